"""What becomes of frames, first bytes, addresses and comments on their way into a cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from kafkascope.analyzer.conversation.tampering import BETWEEN, FAULT, nameless
from kafkascope.analyzer.exchanges.offline import BROKER_LEG, CLIENT_LEG
from kafkascope.analyzer.transform import hiding, secrets
from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.captures.model import Endpoint, Resolved
from kafkascope.captures.packets.resolved import canonical
from kafkascope.dissectors.zookeeper.types import is_zookeeper

TOKEN: Final = -2
OPAQUE: Final = -1
"""In the column of api keys: a raw SASL token, and bytes without a readable header."""


class Rewrite(Protocol):
    """What becomes of frames and addresses on their way out."""

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The payload to write; None to leave the frame out."""

    def other(self, head: bytes) -> bytes:
        """What to write of a direction's first bytes, which are not Kafka's; as many."""

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """The address to write."""

    def names(self, found: Iterable[Resolved]) -> Iterable[Resolved]:
        """What is written of what host names stand for, when all else is."""

    def comment(self, text: str) -> str:
        """The comment of an interface to write."""

    def deeds(self, text: str) -> str:
        """What is said of the rules of our proxy, which stands at packets."""


class Masked:
    """Everything as it is, but for secrets."""

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The same payload with asterisks in place of secrets; None when nobody knows what it
        is."""
        if key == TOKEN:
            return secrets.HIDDEN * len(payload)
        if key < 0:
            return _orphan(payload) if side else None
        if is_zookeeper(key):
            return secrets.masked_zookeeper(payload, key, "response" if side else "request")
        if not side:
            return secrets.masked_request(bytes(4) + payload, key, version)[4:]
        return secrets.masked_response(bytes(4) + payload, key, version)[4:]

    def other(self, head: bytes) -> bytes:
        """What tells the protocol, and a TLS handshake as everybody on the line sees it."""
        return hiding.hidden(head, names=True)

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """The same."""
        return endpoint

    def names(self, found: Iterable[Resolved]) -> Iterable[Resolved]:
        """The same."""
        return found

    def comment(self, text: str) -> str:
        """The same."""
        return text

    def deeds(self, text: str) -> str:
        """The same."""
        return text


class Anonymous:
    """Names and addresses become pseudonyms, contents asterisks, and so does what cannot be read
    behind a header."""

    def __init__(self) -> None:
        self.redaction = Redaction("all")

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The redacted payload; None when it has no header that can be read."""
        if key == TOKEN:
            return secrets.HIDDEN * len(payload)
        if key < 0:
            return _orphan(payload) if side else None
        made = self.redaction
        if side:
            found = made.response(payload, key, version)
            if found is None and is_zookeeper(key):
                return secrets.unread_zookeeper(payload, key, "response")
            return found or _orphan(payload)
        # The empty payload of a ping's answer is one, too.
        found = made.request(payload, key)
        return made.unread_request(payload, key) if found is None else found

    def other(self, head: bytes) -> bytes:
        """What tells the protocol; of TLS types and sizes, and alerts."""
        return hiding.hidden(head, names=False)

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
            FAULT + nameless(each.removeprefix(FAULT)) if each.startswith(FAULT) else nameless(each)
            for each in text.split(BETWEEN)
        )


def _orphan(payload: bytes) -> bytes:
    """A response that nobody can read: its correlation id stays."""
    return payload[: secrets.ID_BYTES] + secrets.HIDDEN * (len(payload) - secrets.ID_BYTES)
