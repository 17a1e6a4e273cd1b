"""Records of TLS in the chunks of one direction (RFC 8446, 5.1; RFC 5246, 6.2.1).

  type    version  length          type 20 change cipher spec, 21 alert, 22 handshake,
+-------+---------+---------+           23 application data
| 1     | 2       | 2       | ...
+-------+---------+---------+
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from kafkascope.captures.model import Piece
from kafkascope.captures.resumable import Resumable

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
HEARTBEAT: Final = 24
HEADER: Final = 5
MOST_RECORD: Final = (1 << 14) + 2048
"""Largest record (RFC 5246, 6.2.3); a longer one is no TLS."""
LEAST_SEALED: Final = 17
"""Bytes of the smallest encrypted record: its type, and a tag of 16."""
PIECE_BYTES: Final = 200
"""Memory of a piece."""


_start = attrgetter("start")
piece_of = partial(tuple.__new__, Piece)
"""Makes a `Piece` of a tuple, in half the time of the usual way."""


class TlsRecord(NamedTuple):
    """A record, or the head of one that nobody wants whole."""

    kind: int
    version: int
    size: int
    """Bytes behind the header."""
    body: bytes
    """All of them; of a record that is not wanted, the first two at most."""
    pieces: list[Piece]
    """Where its bytes stand, the header included; `start` counts from `begin`."""
    begin: int
    """Offset of the header in what `pieces` counts."""


class RecordBuffer(Resumable):
    """Cuts the bytes of one direction into records. State without I/O."""

    STATE = ("_blocks", "_kept", "_pieces", "_total", "lost", "passed", "whole")
    __slots__ = STATE

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._kept = 0
        """Bytes in `_blocks`."""
        self._pieces: list[Piece] = []
        """Of `_blocks`."""
        self.passed = 0
        """Bytes of the current record that went by, kept or not, the header included; 0 where the
        next byte begins one."""
        self._total = 0
        """The same when the record is complete; 0 while its header is not."""
        self.lost = False
        """No more records can be found: bytes are missing, or this is no TLS."""
        self.whole = True
        """Whether the bodies of application data are wanted; others are small, and always are."""

    @property
    def held(self) -> int:
        """Memory that the record takes which is not complete."""
        return self._kept + len(self._pieces) * PIECE_BYTES

    @property
    def head(self) -> bytes:
        """What is here of the record that is not complete."""
        return b"".join(self._blocks)

    @property
    def application(self) -> bool:
        """Whether the first bytes of a record of application data are here, but not its last."""
        return bool(self._blocks) and self._blocks[0][0] == APPLICATION_DATA

    def feed(self, data: bytes, pieces: list[Piece]) -> list[TlsRecord]:
        """Return the records that these bytes complete."""
        joined = self.joined(data, pieces)
        return [] if joined is None else self.cut(*joined)

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
            pieces = [*self._pieces, *shifted(pieces, self._kept)]
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
        self._pieces += shifted(pieces, self._kept)
        self._blocks.append(data)
        self._kept += len(data)
        self.passed += len(data)

    def _forget(self) -> None:
        self._blocks, self._pieces = [], []
        self._kept = self.passed = self._total = 0


def data_records(data: bytes) -> list[tuple[int, int]]:
    """Return begin and end of the whole records of application data that these bytes begin with."""
    found: list[tuple[int, int]] = []
    at, size = 0, len(data)
    while size - at >= HEADER and data[at] == APPLICATION_DATA and data[at + 1] == 3:
        length = data[at + 3] << 8 | data[at + 4]
        end = at + HEADER + length
        if end > size or length > MOST_RECORD:
            break
        found.append((at, end))
        at = end
    return found


def is_header(kind: int, version: int, length: int) -> bool:
    """Whether the fields of a record's header are possible."""
    return CHANGE_CIPHER_SPEC <= kind <= HEARTBEAT and version >> 8 == 3 and length <= MOST_RECORD


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
