"""Rewriting of frames, first bytes, addresses and comments for a cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkascope.analyzer.conversation.detect import is_tls, stand_in
from kafkascope.analyzer.conversation.tampering import BETWEEN, FAULT, anonymized
from kafkascope.analyzer.exchanges.offline import BROKER_LEG, CLIENT_LEG
from kafkascope.analyzer.transform import secrets
from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.captures.model import Endpoint, Resolved
from kafkascope.captures.packets.resolved import canonical

# In the column of api keys: a raw SASL token, and bytes without a readable header.
TOKEN: Final = -2
OPAQUE: Final = -1


class Masked:
    """What becomes of frames and addresses on their way out: everything stays, but for secrets."""

    redaction = Redaction("none")

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The payload to write; None to leave out a frame that cannot be identified."""
        if key == TOKEN:
            return HIDDEN * len(payload)
        if key < 0:
            kept = secrets.ID_BYTES
            return payload[:kept] + HIDDEN * (len(payload) - kept) if side else None
        return self.redaction.frame(payload, "response" if side else "request", key, version)

    def other(self, head: bytes) -> bytes:
        """Mask the first bytes of a direction that is not Kafka's, at the same length; the
        protocol's signature and the public TLS handshake stay."""
        return hidden(head, names=True)

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """The address to write."""
        return endpoint

    def names(self, found: Iterable[Resolved]) -> Iterable[Resolved]:
        """The resolved host names to write, when all else is."""
        return found

    def comment(self, text: str) -> str:
        """The comment of an interface to write."""
        return text

    def deeds(self, text: str) -> str:
        """The packet comment on our proxy's rules to write."""
        return text


class Anonymous(Masked):
    """Names and addresses become pseudonyms, contents asterisks, and so does what cannot be read
    after a header."""

    def __init__(self) -> None:
        self.redaction = Redaction("all")

    def other(self, head: bytes) -> bytes:
        """Keep the protocol's signature; of TLS types and sizes, and alerts."""
        return hidden(head, names=False)

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Another address, the same port."""
        return Endpoint(self.redaction.names.host(endpoint.host), endpoint.port)

    def names(self, found: Iterable[Resolved]) -> Iterable[Resolved]:
        """Those that were met, under their other names, with the addresses that were."""
        met = self.redaction.names.hosts
        others: dict[str, list[str]] = {}
        for host, other in met.items():
            others.setdefault(canonical(host), []).append(other)
        for name, hosts, source in found:
            places = tuple(sorted(met[host] for host in hosts if host in met))
            for other in others.get(name, ()) if places else ():
                yield Resolved(other, places, source)

    def comment(self, text: str) -> str:
        """Our proxy's own mark; whatever else people wrote goes."""
        return text if text in (CLIENT_LEG, BROKER_LEG) else ""

    def deeds(self, text: str) -> str:
        """What was done, without what people wrote into their rules."""
        return BETWEEN.join(
            FAULT * each.startswith(FAULT)
            + anonymized(each.removeprefix(FAULT), self.redaction.names.host)
            for each in text.split(BETWEEN)
        )


HIDDEN: Final = b"*"
# Type, version, size (RFC 8446, 5.1).
RECORD_HEAD: Final = 5
# Type and size of a handshake message (RFC 8446, 4).
MESSAGE_HEAD: Final = 4

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
RECORD_TYPES: Final = range(20, 25)

PUBLIC_MESSAGES: Final = frozenset({1, 2, 11, 14})
"""ClientHello, ServerHello, Certificate, ServerHelloDone: shown to everybody on the line."""
# Bytes of an alert that is not encrypted.
PLAIN_ALERT: Final = 2


def hidden(data: bytes, *, names: bool) -> bytes:
    """The first bytes of a direction, masked at the same length. With `names` the public messages
    of a TLS handshake stay, with server names and certificates."""
    start = stand_in(data)
    if is_tls(data):
        start = _records(data, PUBLIC_MESSAGES if names else frozenset()) or start
    return start + HIDDEN * (len(data) - len(start))


def _records(data: bytes, kept: frozenset[int]) -> bytes:
    out, at = bytearray(), 0
    messages = _Messages(kept)
    while at + RECORD_HEAD <= len(data):
        kind, size = data[at], int.from_bytes(data[at + 3 : at + RECORD_HEAD], "big")
        if kind not in RECORD_TYPES or data[at + 1] != 3:
            break
        out += data[at : at + RECORD_HEAD]
        at += RECORD_HEAD
        body = data[at : at + size]
        at += len(body)
        plain = kind == ALERT and size == PLAIN_ALERT
        if kind == HANDSHAKE:
            out += messages.hidden(body)
        elif plain or (kind == CHANGE_CIPHER_SPEC and size == 1):
            messages.encrypted |= not plain
            out += body
        else:
            out += HIDDEN * len(body)
    return bytes(out)


class _Messages:
    """Handshake messages of one direction: they may share a record, or cross records."""

    def __init__(self, kept: frozenset[int]) -> None:
        self.encrypted = False
        """Everything after ChangeCipherSpec is."""
        self._kept = kept
        self._left = 0
        """Bytes of the current message that are still to come."""
        self._keep = False

    def hidden(self, body: bytes) -> bytes:
        """The body of the next record."""
        if self.encrypted:
            return HIDDEN * len(body)
        out, at = bytearray(), 0
        while at < len(body):
            if not self._left:
                head = body[at : at + MESSAGE_HEAD]
                if len(head) < MESSAGE_HEAD:
                    # Cut in two: where the next message starts would be a guess.
                    self.encrypted = True
                    return bytes(out) + HIDDEN * len(head)
                out += head
                at += MESSAGE_HEAD
                self._left = int.from_bytes(head[1:], "big")
                self._keep = head[0] in self._kept
                continue
            part = body[at : at + self._left]
            out += part if self._keep else HIDDEN * len(part)
            at += len(part)
            self._left -= len(part)
        return bytes(out)
