"""The plaintext of records as chunks whose pieces lead to the packets that carried it.

Each byte of plaintext stands where its byte of ciphertext stands. The first byte of a record has
the time and the packet of the record's header, the last one those of the record's end: nobody can
read it earlier. No I/O.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

from kafkascope.captures.model import Chunk, Connection, Gap, Piece, StreamEvent
from kafkascope.captures.tls.records import HEADER, TlsRecord, piece_of, shifted

_start = attrgetter("start")


class Plaintext:
    """Collects what a chunk turns into."""

    def __init__(self, connection: Connection, direction: int, offset: int) -> None:
        self._connection = connection
        self._direction = direction
        self.begin = self.end = offset
        self._from = offset
        self._blocks: list[bytes] = []
        self._pieces: list[Piece] = []
        self._events: list[StreamEvent] = []

    def add(self, data: bytes, record: TlsRecord, start: int) -> None:
        """Add the plaintext of a record, whose first byte is `start` bytes into the body."""
        if not data:
            return
        self._blocks.append(data)
        at = self.end - self._from
        self.end += len(data)
        pieces = record.pieces
        begin = record.begin + HEADER + start
        if len(pieces) == 1:
            _, time_ns, packet, file, where = pieces[0]
            self._pieces.append(piece_of((at, time_ns, packet, file, where + begin)))
        else:
            span = record.begin, record.begin + HEADER + record.size
            _spread(pieces, span, begin, at, len(data), self._pieces)

    def extend(
        self, blocks: list[bytes], spans: list[tuple[int, int]], pieces: list[Piece], start: int
    ) -> None:
        """Add the plaintexts of several records, none of them empty, which stand at `spans`, their
        headers included. As `add` for each, and faster."""
        at = self.end - self._from
        self._pieces += places(blocks, spans, pieces, start, at)
        self._blocks += blocks
        self.end += sum(map(len, blocks))

    def gap(self, time_ns: int, reason: str) -> None:
        """Add a hole of unknown size."""
        self._flush()
        if self._events and isinstance(self._events[-1], Gap):
            return
        gap = Gap(self._connection, self._direction, self.end, None, time_ns, reason)  # type: ignore[arg-type]
        self._events.append(gap)

    def _flush(self) -> None:
        if self._blocks:
            data = self._blocks[0] if len(self._blocks) == 1 else b"".join(self._blocks)
            chunk = Chunk(self._connection, self._direction, self._from, data, self._pieces)
            self._events.append(chunk)
            self._blocks, self._pieces = [], []
        self._from = self.end

    def events(self) -> list[StreamEvent]:
        """Return chunks and gaps in order."""
        self._flush()
        return self._events


def places(
    texts: list[bytes], spans: list[tuple[int, int]], pieces: list[Piece], start: int, at: int
) -> list[Piece]:
    """Return pieces for the plaintexts of several records, none of them empty, from offset `at` on:
    the records stand at `spans` of `pieces`, their headers included."""
    out: list[Piece] = []
    starts = [piece[0] for piece in pieces]
    index = 0
    for text, span in zip(texts, spans, strict=True):
        size = len(text)
        begin = span[0] + HEADER + start
        first = bisect_right(starts, span[0], index) - 1
        index = bisect_right(starts, begin, first) - 1
        stop = bisect_right(starts, span[1] - 1, index) - 1
        if first != index or (stop > index and starts[stop] >= begin + size):
            _spread(pieces, span, begin, at, size, out)
        else:
            origin, time_ns, packet, file, where = pieces[index]
            out.append(piece_of((at, time_ns, packet, file, where + begin - origin)))
            if stop > index:
                out += shifted(pieces[index + 1 : stop + 1], at - begin)
        at += size
    return out


def _spread(
    pieces: list[Piece], span: tuple[int, int], begin: int, at: int, size: int, out: list[Piece]
) -> None:
    """Add pieces for a record that may cross packets."""
    header, last = span[0], span[1] - 1
    first = bisect_right(pieces, header, key=_start) - 1
    index = bisect_right(pieces, begin, key=_start) - 1
    stop = bisect_right(pieces, last, key=_start) - 1
    if first != index:
        head = pieces[first]
        out.append(head._replace(start=at, at=head.at + header - head.start))
        begin, at, size = begin + 1, at + 1, size - 1
        if not size:
            return
        index = bisect_right(pieces, begin, key=_start) - 1
    end, by = begin + size, at - begin
    final = bisect_left(pieces, end, index, key=_start) - 1
    start, time_ns, packet, file, where = pieces[index]
    out.append(Piece(at, time_ns, packet, file, where + begin - start))
    out += shifted(pieces[index + 1 : final + 1], by)
    if final == stop:
        return
    # The record ends in a later packet than its last byte of plaintext.
    start, time_ns, packet, file, where = pieces[stop]
    if out[-1].start == end - 1 + by:
        out.pop()
    out.append(Piece(end - 1 + by, time_ns, packet, file, where + last - start))
