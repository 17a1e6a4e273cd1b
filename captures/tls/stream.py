"""Decrypts one connection: chunks and gaps of TLS in, chunks and gaps of its plaintext out.

stream = TlsStream(connection, client, keys)
for event in stream.feed(event): ...        # of the plaintext; Closed events pass through
connection.tls                              # what is known of its TLS, and why it cannot be read

Where each byte stands: `plaintext`. State without I/O; knows nothing of what is inside.

    chunk ─► records ─► decryption ─► plaintext
                           │  ▲
          key changes ◄────┘  └──── resync, behind missing bytes
"""

from __future__ import annotations

from typing import Self

from kafkascope.captures.model import Chunk, Closed, Connection, Gap, Piece, StreamEvent, Tls
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.tls.changes import KeyChanges
from kafkascope.captures.tls.decryption import Decryption, texts_of
from kafkascope.captures.tls.keys.epoch import Stage
from kafkascope.captures.tls.plaintext import Plaintext, places
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    HANDSHAKE,
    HEADER,
    MOST_RECORD,
    data_records,
    piece_of,
)
from kafkascope.captures.tls.resync import TlsResync
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.side import Side
from kafkascope.captures.tls.sources import SharedKeys
from kafkascope.captures.tls.state import NO_KEY_LOG, Stall, TlsState


class TlsStream(Resumable):
    """One connection. `feed` events in order; `over` when nothing more can be learned."""

    def __init__(self, connection: Connection, client: int | None, keys: SharedKeys) -> None:
        """`client`: direction of the side that sent the ClientHello; None where the handshake is
        not in the capture."""
        self.connection = connection
        self._state = state = TlsState(connection, client, keys)
        self._sides = state.sides
        self._changes = KeyChanges(state)
        self._resync = TlsResync(state)
        self._decryption = Decryption(state, self._changes, self._resync)

    def begin(self) -> None:
        """Begin with a connection that is new."""
        state = self._state
        state.tls = self.connection.tls = Tls()
        if state.midstream:
            self._resync.begin()
        elif state.keys.log is None:
            state.fail("no-key-log", NO_KEY_LOG)

    def dump(self) -> Dump:
        """Return the state, without keys."""
        return self._state.dump()

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        self._state.load(state)
        self.connection = self._state.connection
        self._settle()
        return self

    @property
    def tls(self) -> Tls:
        """What is known of it."""
        return self._state.tls

    @property
    def client(self) -> int | None:
        """Direction of the side that sent the ClientHello; None where that is not known."""
        return self._state.client

    @property
    def midstream(self) -> bool:
        """Whether the handshake is not in the capture, or not enough of it."""
        return self._state.midstream

    @property
    def waiting(self) -> Stall | None:
        """What waits for a secret. Nothing may be fed until `go_on` found it."""
        return self._state.waiting

    @property
    def readable(self) -> bool:
        """Whether any of it was read, or may still be."""
        return any(side.readable or side.opened for side in self._sides)

    @property
    def over(self) -> bool:
        """Whether nothing more can be learned."""
        if any(side.readable for side in self._sides):
            return False
        state, client = self._state, self._state.client
        if client is not None and not state.midstream and self._sides[client].buffer.lost:
            # An alert may follow, see `_bare_alert`.
            return all(each.buffer.lost for each in self._sides)
        handshake = state.handshake.result is not None or state.midstream
        return handshake or any(each.buffer.lost for each in self._sides)

    @property
    def held(self) -> int:
        """Memory of what waits for more bytes."""
        return self._state.incomplete + self._state.negotiation.held

    def relieve(self) -> None:
        """Give up what waits for more bytes."""
        state = self._state
        state.negotiation.relieve()
        if state.incomplete:
            state.fail("damaged", "evicted: too many connections wait for more bytes at once")
            for side in self._sides:
                side.buffer.lost = True
                side.messages.clear()
                side.search = None
        self._settle()

    @property
    def synchronized(self) -> bool:
        """Whether both directions are read record by record, with nothing to be found out."""
        return all(
            side.opener is not None and side.stage is Stage.TRAFFIC and side.search is None
            for side in self._sides
        )

    def begun(self, direction: int) -> bool:
        """Whether the first bytes of a record with application data are here, but not its last."""
        side = self._sides[direction]
        return side.opened > 0 and side.stage is Stage.TRAFFIC and side.buffer.application

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """Take the next event of the connection; return those of the plaintext."""
        if isinstance(event, Chunk):
            found = self.straight(event)
            return self._chunk(event) if found is None else [found]
        if isinstance(event, Gap):
            return self._gap(event)
        if isinstance(event, Closed):
            state = self._state
            if state.handshake.result is None and event.how in ("fin", "rst"):
                state.handshake.closed(event.direction)
                state.ended()
            self._end(event)
        return [event]

    # --- chunks

    def _chunk(self, chunk: Chunk) -> list[StreamEvent]:
        direction = chunk.direction
        side = self._sides[direction]
        plain = Plaintext(self.connection, direction, side.offset)
        if side.search is not None:
            if not side.readable:
                return []
            self._searched(side, chunk.data, chunk.pieces, direction, plain)
        else:
            self._decryption.take(side, chunk.data, chunk.pieces, direction, plain)
            if side.buffer.lost and side.stage is Stage.PLAIN and direction == self._state.client:
                self._bare_alert(chunk)
                if not chunk.offset:
                    self._state.negotiation.old_hello(chunk.data, self._state.tls)
        return self._read(side, plain, direction)

    def straight(self, chunk: Chunk) -> Chunk | None:
        """Return what a chunk holds that is nothing but whole records of application data; None for
        any other, of which nothing is taken: `feed` gives the same, and takes longer."""
        direction, data, pieces = chunk.direction, chunk.data, chunk.pieces
        side = self._sides[direction]
        protection = side.steady
        if protection is None or side.buffer.passed:
            return None
        size, offset, start = len(data), side.offset, protection.start
        if len(pieces) > 1:
            spans = data_records(data)
            if not spans or spans[-1][1] < size:
                return None
            texts = texts_of(side, protection, data, spans)
            if len(texts) < len(spans):
                return None
            where = places(texts, spans, pieces, start, 0)
            text = texts[0] if len(texts) == 1 else b"".join(texts)
            side.took(len(texts))
        else:
            # As messages are that fit into a packet: one record.
            if (
                not HEADER < size <= HEADER + MOST_RECORD
                or data[0] != APPLICATION_DATA
                or data[3] << 8 | data[4] != size - HEADER
                or data[1] != 3
            ):
                return None
            opened = protection.data(side.sequence, data[:HEADER], data[HEADER:])
            if not opened:
                return None
            text = opened
            side.records += 1
            side.sequence += 1
            side.opened += 1
            _, time_ns, packet, file, at = pieces[0]
            where = [piece_of((0, time_ns, packet, file, at + HEADER + start))]
        side.offset = end = offset + len(text)
        tls = self._state.tls
        read = tls.decrypted
        tls.decrypted = (read[0], end) if direction else (end, read[1])
        return Chunk(self.connection, direction, offset, text, where)

    def _settle(self) -> None:
        """Note for each direction whether the next records are application data, as far as one can
        tell."""
        state = self._state
        calm = state.data and state.waiting is None
        for side in self._sides:
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

    def _bare_alert(self, chunk: Chunk) -> None:
        """Take an alert that is alone in its packet, though it follows bytes that are no record:
        clients of Kafka 2.4 send all of a buffer before it."""
        data = chunk.data[chunk.pieces[-1].start :]
        if len(data) == HEADER + 2 and data[0] == ALERT and data[3:HEADER] == b"\0\2":
            self._changes.late_alert(chunk.direction, data[-1])

    def go_on(self) -> list[StreamEvent]:
        """Take what waits, as far as the key log has the secrets by now; return what is inside."""
        state = self._state
        waiting, state.waiting = state.waiting, None
        if waiting is None:
            return []
        direction = waiting.direction
        side = self._sides[direction]
        plain = Plaintext(self.connection, direction, side.offset)
        if waiting.records:
            self._decryption.records(side, waiting.records, waiting.pieces, direction, plain)
        else:
            self._searched(side, b"", [], direction, plain)
        if state.waiting is None and not state.midstream:
            state.keys.claim(state.tls.random)
        return self._read(side, plain, direction)

    def give_up(self, waited: str) -> None:
        """Wait no more; `go_on` takes what waits as it is. `waited`: for how long."""
        state = self._state
        state.patient, state.waited = False, f"; it was waited for {waited}"
        if not state.midstream and not any(side.opened for side in self._sides):
            state.hopeless()

    def _searched(
        self, side: Side, data: bytes, pieces: list[Piece], direction: int, plain: Plaintext
    ) -> None:
        """Look for a record that fits, and go on from there."""
        found = self._resync.found(side, data, pieces, direction, plain)
        if found is not None:
            self._decryption.take(side, *found, direction, plain)

    def _read(self, side: Side, plain: Plaintext, direction: int) -> list[StreamEvent]:
        """Return what was read, and the early data that waited for it."""
        state = self._state
        out = self._told(side, plain, direction)
        client = state.client
        if state.early and state.waiting is None and client is not None:
            asking = self._sides[client]
            if asking.epoch is not None:
                # The ServerHello says how they are encrypted.
                early, state.early = state.early, []
                plain = Plaintext(self.connection, client, asking.offset)
                self._decryption.records(asking, early, early[-1].pieces, client, plain)
                out += self._told(asking, plain, client)
        self._settle()
        return out

    def _told(self, side: Side, plain: Plaintext, direction: int) -> list[StreamEvent]:
        side.offset = plain.end
        if plain.end != plain.begin:
            tls = self._state.tls
            read = list(tls.decrypted)
            read[direction] = plain.end
            tls.decrypted = (read[0], read[1])
        return plain.events()

    # --- gaps and ends

    def _gap(self, gap: Gap) -> list[StreamEvent]:
        side = self._sides[gap.direction]
        plain = Plaintext(self.connection, gap.direction, side.offset)
        if side.readable and side.stage is Stage.PLAIN:
            self._cut_record(side, side.buffer.head, gap.direction)
        if side.search is not None:
            side.search.gap(gap.size)
        elif gap.size is not None and side.buffer.skip(gap.size):
            if side.stage is not Stage.PLAIN:
                side.sequence += 1
            else:
                side.messages.lost = True
                self._resync.lacks_handshake(side, gap)
        elif side.epoch is None or side.stage is not Stage.TRAFFIC or not side.readable:
            # Where the handshake goes on cannot be known; application data is looked for.
            side.buffer.lost = True
            if side.readable:
                side.search = Search.behind(0, gap.size)
                self._resync.lacks_handshake(side, gap)
            return []
        else:
            side.search = Search.behind(side.sequence, gap.size)
        self._settle()
        if side.readable and side.opened:
            self._state.damaged("a gap in the capture")
            plain.gap(gap.time_ns, gap.reason)
        return self._told(side, plain, gap.direction)

    def _cut_record(self, side: Side, head: bytes, direction: int) -> None:
        """Take the messages of a record whose end is missing, and the start of a ClientHello."""
        if head[:1] != bytes((HANDSHAKE,)):
            return
        state = self._state
        self._changes.messages(side, head[HEADER:], direction)
        cut = direction == state.client and side.epoch is None
        if cut and state.negotiation.cut_hello(head, state.keys, state.tls):
            state.hopeless()

    def _end(self, closed: Closed) -> None:
        """Nothing more comes in a direction, or in both."""
        for direction, side in enumerate(self._sides):
            if closed.how == "fin" and closed.direction == direction and side.buffer.application:
                self._state.damaged("the connection ends inside a record")
            if closed.direction in (None, direction) and self.midstream and not side.opened:
                search = side.search
                if side.readable and search is not None and self._sides[1 - direction].opened:
                    continue
                side.readable = False
