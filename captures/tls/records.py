"""Records of TLS in the chunks of one direction (RFC 8446, 5.1; RFC 5246, 6.2.1), and their
plaintext as chunks whose pieces lead to the packets that carried it. No I/O.

  type    version  length          type 20 change cipher spec, 21 alert, 22 handshake,
+-------+---------+---------+           23 application data
| 1     | 2       | 2       | ...
+-------+---------+---------+

Each byte of plaintext stands where its byte of ciphertext stands. The first byte of a record has
the time and the packet of the record's header, the last one those of the record's end: nobody can
read it earlier.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from struct import pack
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Chunk, Connection, Gap, Piece, StreamEvent
from kafkascope.captures.resumable import TRANSIENT, Resumable

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
HEARTBEAT: Final = 24
HEADER: Final = 5
# Bytes of the smallest encrypted record: its type, and a tag of 16.
LEAST_SEALED: Final = 17
# Memory of a piece.
PIECE_BYTES: Final = 200


_start = attrgetter("start")
piece_of = partial(tuple.__new__, Piece)
"""Makes a `Piece` of a tuple, in half the time of the usual way."""


class TlsRecord(NamedTuple):
    """A record, or the head of one whose body is not needed."""

    kind: int
    version: int
    size: int
    """Bytes after the header."""
    body: bytes
    """All of them; of a record that is not wanted, the first two at most."""
    pieces: list[Piece]
    """Where its bytes stand, the header included; `start` counts from `begin`."""
    begin: int
    """Offset of the header in what `pieces` counts."""

    @property
    def behind(self) -> int:
        """How many pieces are after the one in which it ends."""
        return pieces_behind(self.pieces, self.begin + HEADER + self.size - 1)

    @property
    def header(self) -> bytes:
        """The bytes before the body."""
        return pack(">BHH", self.kind, self.version, self.size)


@dataclass(slots=True, eq=False)
class RecordBuffer(Resumable):
    """Cuts the bytes of one direction into records. State without I/O."""

    _blocks: list[bytes] = field(default_factory=list)
    _kept: int = 0
    """Bytes in `_blocks`."""
    pieces: list[Piece] = field(default_factory=list)
    """Pieces of `_blocks`."""
    passed: int = 0
    """Bytes of the current record that went by, kept or not, the header included; 0 where the
    next byte begins one."""
    _total: int = 0
    """The same when the record is complete; 0 while its header is not."""
    lost: bool = False
    """No more records can be found: bytes are missing, or this is no TLS."""
    unread: int = field(default=0, metadata=TRANSIENT)
    """Pieces of a chunk after the one with which a search began."""
    whole: bool = True
    """Whether the bodies of application data are wanted; others are small, and always are."""

    @property
    def held(self) -> int:
        """Memory that the record takes which is not complete."""
        return self._kept + len(self.pieces) * PIECE_BYTES

    @property
    def head(self) -> bytes:
        """What is here of the record that is not complete."""
        return b"".join(self._blocks)

    @property
    def application(self) -> bool:
        """Whether the first bytes of a record of application data are here, but not its last."""
        return bool(self._blocks) and self._blocks[0][0] == APPLICATION_DATA

    def joined(self, data: bytes, pieces: list[Piece]) -> tuple[bytes, list[Piece]] | None:
        """Return the bytes from the start of a record on, with what was kept of it; None as long as
        it is not complete. They have to be `cut`."""
        if self.lost:
            return None
        if self.passed and not self._kept:
            # The rest of a record that nobody wants, or of which bytes are missing.
            skipped = min(self._total - self.passed, len(data))
            self.passed += skipped
            if self.passed < self._total:
                return None
            self.passed = self._total = 0
            data, pieces = data[skipped:], beginning(pieces, skipped)
        if self._kept:
            if self._total and self.passed + len(data) < self._total:
                self._keep(data, pieces)
                return None
            pieces = [*self.pieces, *shifted(pieces, self._kept)]
            data = b"".join((*self._blocks, data))
            self._forget()
        return data, pieces

    def cut(self, data: bytes, pieces: list[Piece], at: int = 0) -> list[TlsRecord]:
        """Return the records from `at` on, where one begins, and keep what is left."""
        found: list[TlsRecord] = []
        size = len(data)
        while size - at >= HEADER:
            kind, version = data[at], data[at + 1] << 8 | data[at + 2]
            length = data[at + 3] << 8 | data[at + 4]
            if not is_header(kind, version, length):
                self.lost = True
                self.unread = pieces_behind(pieces, at + HEADER - 1)
                return found
            end = at + HEADER + length
            wanted = self.whole or kind != APPLICATION_DATA
            if end <= size:
                body = data[at + HEADER : end if wanted else min(end, at + HEADER + 2)]
                found.append(TlsRecord(kind, version, length, body, pieces, at))
                at = end
                continue
            if not wanted and size - at >= HEADER + 2:
                body = data[at + HEADER : at + HEADER + 2]
                found.append(TlsRecord(kind, version, length, body, pieces, at))
                self.passed, self._total = size - at, HEADER + length
                return found
            self._total = HEADER + length
            break
        if at < size:
            self._keep(data[at:] if at else data, beginning(pieces, at))
        return found

    def skip(self, size: int) -> bool:
        """Pass over missing bytes; return whether it is known where the next record begins. The
        record that they belong to is left out."""
        if not self._total or self.passed + size > self._total:
            return False
        passed, total = self.passed + size, self._total
        self._forget()
        if passed < total:
            self.passed, self._total = passed, total
        return True

    def restart(self) -> None:
        """Begin with the next byte, at the start of a record."""
        self._forget()
        self.lost = False

    def _keep(self, data: bytes, pieces: list[Piece]) -> None:
        self.pieces += shifted(pieces, self._kept)
        self._blocks.append(data)
        self._kept += len(data)
        self.passed += len(data)

    def _forget(self) -> None:
        self._blocks, self.pieces = [], []
        self._kept = self.passed = self._total = 0


def data_records(data: bytes) -> list[tuple[int, int]]:
    """Return begin and end of the whole records of application data that these bytes begin with."""
    found: list[tuple[int, int]] = []
    at, size = 0, len(data)
    while size - at >= HEADER and data[at] == APPLICATION_DATA and data[at + 1] == 3:
        length = data[at + 3] << 8 | data[at + 4]
        end = at + HEADER + length
        if end > size or length > LIMITS.tls_record_bytes:
            break
        found.append((at, end))
        at = end
    return found


def is_header(kind: int, version: int, length: int) -> bool:
    return (
        CHANGE_CIPHER_SPEC <= kind <= HEARTBEAT
        and version >> 8 == 3
        and length <= LIMITS.tls_record_bytes
    )


def pieces_behind(pieces: list[Piece], at: int) -> int:
    """Return how many pieces are after the one with the byte at an offset."""
    return len(pieces) - bisect_right(pieces, at, key=_start)


def shifted(pieces: list[Piece], by: int) -> list[Piece]:
    """Return pieces that start `by` bytes later."""
    if not by:
        return pieces
    return [
        piece_of((start + by, time_ns, packet, file, at))
        for start, time_ns, packet, file, at in pieces
    ]


def beginning(pieces: list[Piece], at: int) -> list[Piece]:
    """Return the pieces from an offset on, as if bytes began there."""
    if not at:
        return pieces
    first = bisect_right(pieces, at, key=_start) - 1
    if first < 0:
        return shifted(pieces, -at)
    begin, time_ns, packet, file, where = pieces[first]
    head = Piece(0, time_ns, packet, file, where + at - begin)
    return [head, *shifted(pieces[first + 1 :], -at)]


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
        if data:
            span = record.begin, record.begin + HEADER + record.size
            self.extend([data], [span], record.pieces, start)

    def extend(
        self, blocks: list[bytes], spans: list[tuple[int, int]], pieces: list[Piece], start: int
    ) -> None:
        """Add the plaintexts of several records, none of them empty, which stand at `spans`, their
        headers included."""
        at = self.end - self._from
        self._pieces += places(blocks, spans, pieces, start, at)
        self._blocks += blocks
        self.end += sum(map(len, blocks))

    def gap(self, time_ns: int, reason: str) -> None:
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
