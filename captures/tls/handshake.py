"""How a TLS handshake went, from record headers, unencrypted alerts, and who closed when.

Nothing is decrypted. In TLS 1.3 all behind the ServerHello is encrypted: a client's first encrypted
record holds its Certificate or its Finished (at least 53 bytes with its tag) or, when it is much
smaller, an alert.

      type    version  length          type 20 change cipher spec, 21 alert, 22 handshake,
    +-------+---------+---------+           23 application data
    | 1     | 2       | 2       | ...
    +-------+---------+---------+
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from kafkascope.captures.model import (
    Chunk,
    Closed,
    Connection,
    Gap,
    HandshakeResult,
    Outcome,
    StreamEvent,
)
from kafkascope.captures.resumable import Dump, Resumable

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
CLIENT_HELLO: Final = b"\1"
HEADER: Final = 5
LEAST_FINISHED: Final = 53
"""Bytes of a record with a Finished in TLS 1.3: 4 of header, 32 of hash, 1 of type, 16 of tag."""
MOST_ALERT: Final = 24
"""Bytes of a record with an alert: 2, 1 of type, a tag of 8 or 16; an empty Certificate has 25."""
MOST_RECORD: Final = (1 << 14) + 2048
"""Largest record (RFC 5246, 6.2.3); a longer one is no TLS."""
NO_FAILURE: Final = frozenset({0, 90})
"""close_notify and user_canceled: the usual ends."""

ALERTS: Final[dict[int, str]] = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    21: "decryption_failed",
    22: "record_overflow",
    30: "decompression_failure",
    40: "handshake_failure",
    41: "no_certificate",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    60: "export_restriction",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    111: "certificate_unobtainable",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    114: "bad_certificate_hash_value",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}
"""The IANA registry of TLS alerts."""


class TlsRecord(NamedTuple):
    """Head of a record."""

    type: int
    size: int
    head: bytes
    """Its first two bytes: of an alert, level and description; of a handshake message that is not
    encrypted, its type first."""


class Records(Resumable):
    """Finds the heads of records in the chunks of one direction. State without I/O."""

    STATE = __slots__ = ("_head", "_skip", "lost")

    def __init__(self) -> None:
        self._head = bytearray()
        self._skip = 0
        """Bytes of the current record that are still to come, beyond its head."""
        self.lost = False
        """No more records can be found: bytes are missing, or this is no TLS."""

    def feed(self, data: bytes) -> list[TlsRecord]:
        """Return the records whose heads these bytes complete."""
        found: list[TlsRecord] = []
        at = 0
        while at < len(data) and not self.lost:
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            wanted = self._wanted() - len(self._head)
            self._head += data[at : at + wanted]
            at += wanted
            if len(self._head) < HEADER or len(self._head) < self._wanted():
                continue
            size = int.from_bytes(self._head[3:HEADER], "big")
            found.append(TlsRecord(self._head[0], size, bytes(self._head[HEADER:])))
            self._skip = size - (len(self._head) - HEADER)
            self._head.clear()
        return found

    def _wanted(self) -> int:
        """Return how many bytes of the head are wanted: five, and then up to two of content."""
        if len(self._head) < HEADER:
            return HEADER
        size = int.from_bytes(self._head[3:HEADER], "big")
        if not CHANGE_CIPHER_SPEC <= self._head[0] <= 24 or size > MOST_RECORD:
            self.lost = True
        return HEADER + min(size, 2)


class Handshake(Resumable):
    """Follows the handshake of one connection in both directions. State without I/O."""

    STATE = (
        "_answered",
        "_changed",
        "_client",
        "_finished",
        "_modern",
        "_spoke",
        "connection",
        "result",
    )
    __slots__ = (*STATE, "_records")

    def __init__(self, connection: Connection, client: int) -> None:
        """`client`: the direction of the side that sent the ClientHello."""
        self.connection = connection
        self._client = client
        self._records = (Records(), Records())
        self._spoke = [False, False]
        """Per direction: a record came."""
        self._changed = [False, False]
        """Per direction: a ChangeCipherSpec came."""
        self._answered = False
        """The client sent a handshake message that is no hello: TLS 1.2."""
        self._modern = False
        """TLS 1.3: the server encrypted before the client did anything but hello."""
        self._finished = False
        """The client's Finished of TLS 1.3 came."""
        self.result: HandshakeResult | None = None

    def dump(self) -> Dump:
        """Return the state, the records of both directions included."""
        return {**super().dump(), "records": [each.dump() for each in self._records]}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        for records, each in zip(self._records, state["records"], strict=True):
            records.load(each)
        return super().load(state)

    @property
    def over(self) -> bool:
        """Whether nothing more can be learned."""
        return self.result is not None or any(each.lost for each in self._records)

    def feed(self, event: StreamEvent) -> None:
        """Take the next event of the connection."""
        if self.over:
            return
        if isinstance(event, Chunk):
            for record in self._records[event.direction].feed(event.data):
                self._record(record, event.direction)
                if self.over:
                    return
        elif isinstance(event, Gap):
            self._records[event.direction].lost = True
        elif isinstance(event, Closed) and event.how in ("fin", "rst"):
            self._closed(event.direction)

    def _record(self, record: TlsRecord, direction: int) -> None:
        self._spoke[direction] = True
        if record.type == ALERT and record.size == 2 and len(record.head) == 2:
            level, description = record.head
            answered = direction != self._client or self._spoke[1 - direction]
            if answered and level in (1, 2) and description not in NO_FAILURE:
                self._end("alert", direction, description)
        elif record.type == CHANGE_CIPHER_SPEC:
            self._changed[direction] = True
            if all(self._changed) and self._answered:
                self._end("established")
        elif record.type == HANDSHAKE and direction == self._client and not self._modern:
            if self._changed[direction] or record.head[:1] != CLIENT_HELLO:
                self._answered = True
                if all(self._changed):
                    self._end("established")
        elif record.type == APPLICATION_DATA:
            self._encrypted(record, direction)

    def _encrypted(self, record: TlsRecord, direction: int) -> None:
        small = record.size <= MOST_ALERT
        if self._answered:
            self._end("established")
        elif not self._finished:
            if direction != self._client:
                self._modern = True
            elif small and self._modern:
                self._end("rejected", direction)
            elif record.size >= LEAST_FINISHED:
                self._finished = True
        elif direction != self._client:
            # Behind the client's Finished come tickets and data, or an alert and the end.
            if small:
                self._end("rejected", direction)
            else:
                self._end("established")

    def _closed(self, direction: int | None) -> None:
        if direction is None or not all(self._spoke):
            return
        if self._finished and direction == self._client:
            self._end("established")  # a check that asks for nothing more
        else:
            self._end("closed", direction)

    def _end(self, outcome: Outcome, side: int | None = None, alert: int | None = None) -> None:
        self.result = HandshakeResult(outcome, side, alert)
