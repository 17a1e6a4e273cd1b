"""How a TLS handshake went, from the heads of records, alerts, and who closed when.

In TLS 1.3 all after the ServerHello is encrypted: without keys a client's first encrypted record
shows by its size what it holds: its Certificate or its Finished (at least 53 bytes with its tag)
or, when it is much smaller, an alert.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import HandshakeResult, Outcome
from kafkascope.captures.resumable import Resumable
from kafkascope.captures.tls.begin import CLIENT_HELLO
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    TlsRecord,
)

# Bytes of a record with a Finished in TLS 1.3: 4 of header, 32 of hash, 1 of type, 16 of tag.
LEAST_FINISHED: Final = 53
NO_FAILURE: Final = frozenset({0, 90})
"""close_notify and user_canceled: the usual ends."""
EMPTY_CERTIFICATE: Final = frozenset({25, 61, 77, 93})
"""Bytes of a record with a Certificate without one in TLS 1.3: 8, 1 of type, a tag of 16; the same
with a Finished (36 or 52) after it, as Java packs them, without and with Java's padding. One with
a certificate has hundreds."""
# A Finished has 85 bytes at most, with SHA-384 and Java's padding; a certificate alone has some
# hundreds (one of ECDSA with a short name: 350).
LEAST_CERTIFICATE: Final = 200
# Java pads each record of TLS 1.3 with 16 zeros (SSLCipher.T13GcmWriteCipherGenerator of JDK 17).
PADDED_ALERT: Final = 35
# no_certificate (SSL 3.0), no_renegotiation and unrecognized_name: as warnings they end nothing
# (RFC 6066, 3); older Java servers send the last and go on.
WARNINGS: Final = frozenset({41, 100, 112})
# unexpected_message.
UNEXPECTED: Final = 10


def is_alert(size: int) -> bool:
    """Return whether an encrypted record of this size holds an alert."""
    return size <= LIMITS.alert_record_bytes or size == PADDED_ALERT


@dataclass(slots=True, eq=False)
class Handshake(Resumable):
    """Follows the handshake of one connection in both directions. State without I/O."""

    _client: int
    """The direction of the side that sent the ClientHello."""
    _spoke: list[bool] = field(default_factory=lambda: [False, False])
    """Per direction: a record came."""
    _changed: list[bool] = field(default_factory=lambda: [False, False])
    """Per direction: a ChangeCipherSpec came."""
    _answered: bool = False
    """The client sent a handshake message that is no hello: TLS 1.2."""
    _modern: bool = False
    """TLS 1.3: the server encrypted before the client did anything but hello."""
    _finished: bool = False
    """The client's Finished of TLS 1.3 came."""
    _reply: int = 0
    """Bytes of the client's first encrypted record of TLS 1.3."""
    result: HandshakeResult | None = None
    _sizes_tell: bool = True
    """Encrypted records tell by their size what they hold: not after early data."""
    _gap: bool = False
    """Bytes are missing: what follows may be no alert, whatever its size."""
    _sent: bool = False
    """Data of the client could be decrypted."""
    proved: bool = False
    """What could be decrypted says how it went: `opened` learns no more."""

    def record(self, record: TlsRecord, direction: int) -> None:
        """Take the next record of a direction, as long as there is no result."""
        self._spoke[direction] = True
        if record.kind == ALERT and record.size == 2 and len(record.body) == 2:
            level, description = record.body
            answered = direction != self._client or self._spoke[1 - direction]
            warns = level == 1 and description in WARNINGS
            if answered and level in (1, 2) and not warns and description not in NO_FAILURE:
                self._end("alert", direction, description)
        elif record.kind == CHANGE_CIPHER_SPEC:
            self._changed[direction] = True
            if all(self._changed) and self._answered:
                self._end("established")
        elif record.kind == HANDSHAKE and direction == self._client and not self._modern:
            if self._changed[direction] or record.body[:1] != bytes((CLIENT_HELLO,)):
                self._answered = True
                if all(self._changed):
                    self._end("established")
        elif record.kind == APPLICATION_DATA:
            self._encrypted(record, direction)

    def _encrypted(self, record: TlsRecord, direction: int) -> None:
        small = is_alert(record.size)
        if direction == self._client and not self._spoke[1 - direction]:
            self._sizes_tell = False
        if not self._sizes_tell:
            return
        if self._answered:
            self._end("established")
        elif not self._finished:
            if direction != self._client:
                self._modern = True
            elif small and self._modern:
                self._end("rejected", direction)
                return
            elif not self._reply:
                self._reply = record.size
            if direction == self._client and record.size >= LEAST_FINISHED:
                self._finished = True
        elif direction != self._client:
            # After the client's Finished come tickets and data, or an alert and the end.
            if small:
                self._end("rejected", direction)
            else:
                self._end("established")

    @property
    def empty_certificate(self) -> bool:
        """Whether the client's reply in TLS 1.3 has the size of a Certificate without one."""
        return self._reply in EMPTY_CERTIFICATE

    @property
    def certificate(self) -> bool:
        """Whether the client's reply in TLS 1.3 has the size of a Certificate with one."""
        return self._reply >= LEAST_CERTIFICATE

    def opened(self, direction: int, alert: int | None) -> None:
        """Take what the first records that could be decrypted hold: application data, or an
        alert, which says more than sizes."""
        if alert is None and direction == self._client and self._modern:
            # Clients of TLS 1.3 may send data right after their Finished, before the server has
            # looked at their certificate (RFC 8446, 4.6.2): Go's crypto/tls does in one segment.
            self._sent = True
            return
        if alert in NO_FAILURE:
            return
        self.proved = True
        # Tickets come after a handshake that is done; an alert then ends what was sent.
        ticket = self._sent and self.result is not None and self.result.outcome == "established"
        if alert is None:
            self._end("established")
        elif not ticket:
            self._end("alert", direction, alert)

    def late(self, direction: int, alert: int | None = None) -> None:
        """Take an alert after bytes that are no record, which the other side may have answered
        before; without its number where it is encrypted."""
        result = self.result
        answered = result is None or result.outcome == "closed" or result.alert == UNEXPECTED
        if answered and alert not in NO_FAILURE and not (alert is None and self._gap):
            self._end("rejected" if alert is None else "alert", direction, alert)

    def gap(self) -> None:
        self._gap = True

    def closed(self, direction: int | None) -> None:
        """Take the end of a direction, as long as there is no result."""
        if direction is None or not all(self._spoke) or not self._sizes_tell:
            return
        if self._sent or (self._finished and direction == self._client):
            self._end("established")  # a check that asks for nothing more
        else:
            self._end("closed", direction)

    def _end(self, outcome: Outcome, side: int | None = None, alert: int | None = None) -> None:
        self.result = HandshakeResult(outcome, side, alert)
