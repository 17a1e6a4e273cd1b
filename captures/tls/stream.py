"""Decrypts one connection: chunks and gaps of TLS in, chunks and gaps of its plaintext out.

stream = TlsStream(connection, client, keys)
for event in stream.feed(event): ...        # of the plaintext; Closed events pass through
connection.tls                              # what is known of its TLS, and why it cannot be read

Where each byte stands: `records.Plaintext`. State without I/O; knows nothing of what is inside.

    chunk ─► records ─► decryption ─► Plaintext
                              ▲
                              └──── resync, after missing bytes
"""

from __future__ import annotations

from itertools import islice
from typing import Self

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import BEHIND_ALL, Chunk, Closed, Gap, Piece, StreamEvent, Tls
from kafkascope.captures.resumable import Dump
from kafkascope.captures.tls.decryption import (
    take_bytes,
    take_late_alert,
    take_messages,
    take_records,
    texts_of,
)
from kafkascope.captures.tls.handshake import is_alert
from kafkascope.captures.tls.keys.epoch import Stage
from kafkascope.captures.tls.keys.protection import BadRecord
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    HANDSHAKE,
    HEADER,
    Plaintext,
    data_records,
    piece_of,
    places,
)
from kafkascope.captures.tls.resync import begin_midstream, lacks_handshake, search_record
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.state import NO_KEY_LOG, Side, TlsState


class TlsStream(TlsState):
    """One connection. `feed` events in order; `over` when nothing more can be learned."""

    def begin(self) -> None:
        self.tls = self.connection.tls = Tls()
        if self.midstream:
            begin_midstream(self)
        elif self.keys.log is None:
            self.fail("no-key-log", NO_KEY_LOG)

    def load(self, state: Dump) -> Self:
        super().load(state)
        self._settle()
        return self

    @property
    def readable(self) -> bool:
        """Whether any of it was read, or may still be."""
        return any(side.readable or side.opened for side in self.sides)

    @property
    def over(self) -> bool:
        """Whether nothing more can be learned."""
        if any(side.readable for side in self.sides):
            return False
        client = self.client
        if client is not None and not self.midstream and self.sides[client].buffer.lost:
            # An alert may follow, see `_bare_alert`.
            return all(each.buffer.lost for each in self.sides)
        handshake = self.handshake.result is not None or self.midstream
        return handshake or any(each.buffer.lost for each in self.sides)

    @property
    def held(self) -> int:
        """Memory of what waits for more bytes."""
        return self.incomplete + self.negotiation.held

    def evict(self) -> None:
        """Give up what waits for more bytes."""
        self.negotiation.evict()
        if self.incomplete:
            self.fail("damaged", "evicted: too many connections wait for more bytes at once")
            for side in self.sides:
                side.buffer.lost = True
                side.messages.clear()
                side.search = None
        self._settle()

    @property
    def synchronized(self) -> bool:
        """Whether both directions are read record by record, with nothing to be found out."""
        return all(
            side.opener is not None and side.stage is Stage.TRAFFIC and side.search is None
            for side in self.sides
        )

    @property
    def first_waiting(self) -> int:
        """Number of the first packet with bytes that wait for more; `BEHIND_ALL` where none do."""
        return min((piece.packet for piece in self.pieces), default=BEHIND_ALL)

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """Take the next event of the connection; return those of the plaintext."""
        if isinstance(event, Chunk):
            found = self.decrypt_fast(event)
            return self._packets(event) if found is None else [found]
        if isinstance(event, Gap):
            return self._gap(event)
        if isinstance(event, Closed):
            if self.handshake.result is None and event.how in ("fin", "rst"):
                self.handshake.closed(event.direction)
                self.ended()
            self._end(event)
        return [event]

    # --- chunks

    def _packets(self, chunk: Chunk) -> list[StreamEvent]:
        """Take a chunk, and packet by packet what is searched for a record: where one is found may
        depend on how many bytes there are."""
        side, count = self.sides[chunk.direction], len(chunk.pieces)
        if count == 1:
            return self._chunk(chunk)
        out, unread = [], count
        if side.search is None:
            side.buffer.unread = 0
            out = self._chunk(chunk)
            unread = side.buffer.unread
        for part in islice(chunk.by_piece(), count - unread, None) if unread else ():
            if self.waiting is None:
                out += self._chunk(part)
            elif side.search is not None:
                side.search.add(part.data, part.pieces)
        return out

    def _chunk(self, chunk: Chunk) -> list[StreamEvent]:
        side = self._turn_to(chunk.direction)
        if side.search is not None:
            if not side.readable:
                return []
            self._search(side, chunk.data, chunk.pieces)
        else:
            take_bytes(self, side, chunk.data, chunk.pieces)
            if side.buffer.lost and not side.opened and side.number == self.client:
                self._bare_alert(side, chunk)
                if not chunk.offset and side.stage is Stage.PLAIN:
                    self.negotiation.old_hello(chunk.data, self.tls)
        return self._read(side)

    def _turn_to(self, direction: int) -> Side:
        """Return a direction, whose plaintext is collected from now on."""
        side = self.sides[direction]
        self.plain = Plaintext(self.connection, direction, side.offset)
        return side

    def decrypt_fast(self, chunk: Chunk) -> Chunk | None:
        """Return what a chunk holds that is nothing but whole records of application data; None for
        any other, of which nothing is taken: `feed` gives the same, and takes longer."""
        direction, data, pieces = chunk.direction, chunk.data, chunk.pieces
        side = self.sides[direction]
        protection = side.steady
        if protection is None or side.buffer.passed:
            return None
        if len(pieces) == 1:
            # As messages are that fit into a packet.
            opened = self.open_packet(direction, data)
            if opened is None:
                return None
            text, offset, start = opened
            _, time_ns, packet, file, at = pieces[0]
            where = [piece_of((0, time_ns, packet, file, at + start))]
        else:
            spans = data_records(data)
            if not spans or spans[-1][1] < len(data):
                return None
            texts = texts_of(side, protection, data, spans)
            if len(texts) < len(spans):
                return None
            where = places(texts, spans, pieces, protection.start, 0)
            text = b"".join(texts)
            offset = self._took(side, len(texts), len(text))
        return Chunk(self.connection, direction, offset, text, where)

    def open_packet(self, direction: int, data: bytes) -> tuple[bytes, int, int] | None:
        """Return the plaintext of bytes that are one whole record of application data, its offset,
        and where in the bytes it begins; None for any other, of which nothing is taken."""
        side = self.sides[direction]
        protection, size = side.steady, len(data)
        if (
            protection is None
            or side.buffer.passed
            or not HEADER < size <= HEADER + LIMITS.tls_record_bytes
            or data[0] != APPLICATION_DATA
            or data[3] << 8 | data[4] != size - HEADER
            or data[1] != 3
        ):
            return None
        try:
            kind, text = protection.open(side.sequence, data[:HEADER], data[HEADER:])
        except BadRecord:
            return None
        if kind != APPLICATION_DATA or not text:
            return None
        return text, self._took(side, 1, len(text)), HEADER + protection.start

    def _took(self, side: Side, records: int, size: int) -> int:
        """Count records that were opened, with so many bytes; return the offset of these."""
        side.took(records)
        offset = side.offset
        side.offset = end = offset + size
        read = self.tls.decrypted
        self.tls.decrypted = (read[0], end) if side.number else (end, read[1])
        return offset

    def _settle(self) -> None:
        """Note for each direction whether the next records are application data, as far as one can
        tell."""
        calm = self.data and self.waiting is None and self.handshake.proved
        for side in self.sides:
            opener = side.opener
            steady = (
                calm
                and opener is not None
                and side.stage is Stage.TRAFFIC
                and side.readable
                and side.search is None
                and not (side.bad or side.buffer.lost)
            )
            side.steady = opener.protection if opener is not None and steady else None

    def _bare_alert(self, side: Side, chunk: Chunk) -> None:
        """Take an alert that is alone in its packet, though it follows bytes that are no record:
        clients of Kafka 2.4 to 3.0 send all of a buffer before it."""
        data = chunk.data[chunk.pieces[-1].start :]
        if len(data) <= HEADER or int.from_bytes(data[3:HEADER]) != len(data) - HEADER:
            return
        if data[0] == ALERT and len(data) == HEADER + 2:
            take_late_alert(self, side, data[-1])
        elif data[0] == APPLICATION_DATA and is_alert(len(data) - HEADER):
            self.handshake.late(side.number)
            self.ended()

    def go_on(self) -> list[StreamEvent]:
        """Take what waits, as far as the key log has the secrets by now; return what is inside."""
        waiting, self.waiting = self.waiting, None
        if waiting is None:
            return []
        side = self._turn_to(waiting.direction)
        if waiting.records:
            take_records(self, side, waiting.records, waiting.pieces)
        else:
            self._search(side, b"", [])
        if self.waiting is None and not self.midstream:
            self.keys.claim(self.tls.random)
        return self._read(side)

    def give_up(self, waited: str) -> None:
        """Wait no more; `go_on` takes what waits as it is. `waited`: for how long."""
        self.patient, self.waited = False, f"; it was waited for {waited}"
        if not self.midstream and not any(side.opened for side in self.sides):
            self.hopeless()

    def _search(self, side: Side, data: bytes, pieces: list[Piece]) -> None:
        found = search_record(self, side, data, pieces)
        if found is not None:
            take_bytes(self, side, *found)

    def _read(self, side: Side) -> list[StreamEvent]:
        """Return what was read, and the early data that waited for it."""
        out = self._plaintext(side)
        client = self.sides[self.client] if self.client is not None else None
        if self.early and self.waiting is None and client is not None and client.epoch is not None:
            # The ServerHello says how they are encrypted.
            early, self.early = self.early, []
            side = self._turn_to(client.number)
            take_records(self, side, early, early[-1].pieces)
            out += self._plaintext(side)
        self._settle()
        return out

    def _plaintext(self, side: Side) -> list[StreamEvent]:
        plain, tls = self.plain, self.tls
        side.offset = end = plain.end
        if end != plain.begin:
            first, second = tls.decrypted
            tls.decrypted = (first, end) if side.number else (end, second)
        return plain.events()

    # --- gaps and ends

    def _gap(self, gap: Gap) -> list[StreamEvent]:
        side = self._turn_to(gap.direction)
        self.handshake.gap()
        if side.readable and side.stage is Stage.PLAIN:
            self._cut_record(side, side.buffer.head)
        if side.search is not None:
            side.search.gap(gap.size)
        elif gap.size is not None and side.buffer.skip(gap.size):
            if side.stage is not Stage.PLAIN:
                side.sequence += 1
            else:
                side.messages.lost = True
                lacks_handshake(self, side)
        elif side.epoch is None or side.stage is not Stage.TRAFFIC or not side.readable:
            # Where the handshake goes on cannot be known; application data is looked for.
            side.buffer.lost = True
            if side.readable:
                side.search = Search.behind(0, gap.size)
                lacks_handshake(self, side)
            return []
        else:
            side.search = Search.behind(side.sequence, gap.size)
        self._settle()
        if side.readable and side.opened:
            self.damaged("a gap in the capture")
            self.plain.gap(gap.time_ns, gap.reason)
        return self._plaintext(side)

    def _cut_record(self, side: Side, head: bytes) -> None:
        """Take the messages of a record whose end is missing, and the start of a ClientHello."""
        if head[:1] != bytes((HANDSHAKE,)):
            return
        take_messages(self, side, head[HEADER:])
        cut = side.number == self.client and side.epoch is None
        if cut and self.negotiation.cut_hello(head, self.keys, self.tls):
            self.hopeless()

    def _end(self, closed: Closed) -> None:
        """Nothing more comes in a direction, or in both."""
        for direction, side in enumerate(self.sides):
            if closed.how == "fin" and closed.direction == direction and side.buffer.application:
                self.damaged("the connection ends inside a record")
            if closed.direction in (None, direction) and self.midstream and not side.opened:
                search = side.search
                if side.readable and search is not None and self.sides[1 - direction].opened:
                    continue
                side.readable = False
