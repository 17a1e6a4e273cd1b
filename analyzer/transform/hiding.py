"""Bytes of other protocols than Kafka without their contents: what they are can still be told.

Of TLS the records and messages stay with their types and sizes, and alerts as they are: that is
what tells how far a handshake came. Of everything else the sign stays by which it is known.
Stateless.
"""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.conversation.detect import is_tls, stand_in

HIDDEN: Final = b"*"
RECORD_HEAD: Final = 5
"""Type, version, size (RFC 8446, 5.1)."""
MESSAGE_HEAD: Final = 4
"""Type and size of a handshake message (RFC 8446, 4)."""

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
RECORD_TYPES: Final = range(20, 25)

PUBLIC_MESSAGES: Final = frozenset({1, 2, 11, 14})
"""ClientHello, ServerHello, Certificate, ServerHelloDone: shown to everybody on the line."""
PLAIN_ALERT: Final = 2
"""Bytes of an alert that is not encrypted."""


def hidden(data: bytes, *, names: bool) -> bytes:
    """The first bytes of a direction, as many as there were. With `names` the public messages of a
    TLS handshake stay, which tell server names and certificates."""
    start = stand_in(data)
    if is_tls(data):
        start = _records(data, PUBLIC_MESSAGES if names else frozenset()) or start
    return start + HIDDEN * (len(data) - len(start))


def _records(data: bytes, kept: frozenset[int]) -> bytes:
    """TLS records, as far as they are some."""
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
        """Everything behind ChangeCipherSpec is."""
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
