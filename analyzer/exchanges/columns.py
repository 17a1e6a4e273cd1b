"""Columns in place of objects: they hold about ten times as many exchanges in the same memory."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

from kafkascope.analyzer.conversation.ordinary import request_frame, response_frame
from kafkascope.analyzer.model import Cut, Frame, Part

if TYPE_CHECKING:
    from kafkascope.captures.inputs.spool import Spool
    from kafkascope.kernel.pairs import Pair

Read: TypeAlias = Callable[[int, int, int], bytes]
"""Reads (file, offset, size) of the input again and returns the bytes; may raise
`captures.NotKept`."""

T = TypeVar("T", bound=Hashable)

CUTS: Final[tuple[Cut, ...]] = ("", "gap", "end", "too-large")

_CUT: Final = {cut: number for number, cut in enumerate(CUTS)}

_FRAME: Final = struct.Struct("<qqqqBI")
"""Stream offset, size, times of the first and the last byte, cut, number of parts."""
_PART: Final = struct.Struct("<HQIQ")
_BOTH: Final = struct.Struct("<qqqqBIHQIQqqqqBIHQIQ")
"""Two frames of a single part each, the common case."""

# Number of a part's file whose bytes no file has: they came out of TLS.
PLAINTEXT: Final = 0xFFFF

WIDTHS: Final = "bhiq"


def grown(column: array[int], values: Sequence[int]) -> array[int]:
    """Return the column with more values: the same one, or a wider copy once they do not fit. A
    column starts with one byte per value, which most never exceed."""
    for code in WIDTHS[WIDTHS.index(column.typecode) :]:
        try:
            more = array(code, values)
        except OverflowError:
            if code == WIDTHS[-1]:
                raise
            continue
        if code != column.typecode:
            column = array(code, column)
        column.extend(more)
        break
    return column


class ValueList(Generic[T]):
    """Values by number: each distinct value is kept once, however many rows have it."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self.values: list[T] = []
        """By number; filters evaluate these first, rows only have the numbers."""
        self._numbers: _Numbers[T] = _Numbers(self.values)

    def number(self, value: T) -> int:
        """Return the number of a value; a new number for a new value."""
        return self._numbers[value]

    def numbers(self, values: Iterable[T]) -> Iterable[int]:
        return map(self._numbers.__getitem__, values)


class _Numbers(dict[T, int]):
    """Numbers by value; looking up a new value assigns the next number."""

    __slots__ = ("_values",)

    def __init__(self, values: list[T]) -> None:
        super().__init__()
        self._values = values

    def __missing__(self, value: T) -> int:
        number = self[value] = len(self._values)
        self._values.append(value)
        return number


class Kept(Protocol):
    """Store of bytes that are read again by their address: a `Heap` or a `captures.Spool`."""

    written: int
    """The address of the next byte."""

    def write(self, data: bytes, /) -> int:
        """Keep the bytes and return their address."""

    def read(self, at: int, size: int, /) -> bytes:
        """Return the bytes at an address."""

    def release(self, before: int, /) -> None:
        """Release what lies before an address: it is not read any more."""


class Heap:
    """Bytes by address, in memory."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._from = 0
        self.written = 0

    def write(self, data: bytes) -> int:
        at = self.written
        self._data += data
        self.written += len(data)
        return at

    def read(self, at: int, size: int) -> bytes:
        """Return a copy of the bytes at an address, so that others may be written meanwhile."""
        return bytes(self._data[at - self._from : at - self._from + size])

    def release(self, before: int) -> None:
        if before > self._from:
            del self._data[: before - self._from]
            self._from = before


# Bytes that an `Overflow` collects before it writes them to disk.
IN_MEMORY: Final = 16 << 20


class Overflow:
    """Bytes by address: few in memory, many on disk."""

    def __init__(self) -> None:
        self._heap = Heap()
        self._disk: Spool | None = None
        self._from = 0
        """Address from which on bytes are in memory."""
        self.written = 0

    def write(self, data: bytes) -> int:
        at = self._heap.write(data)
        self.written = self._heap.written
        if self.written - self._from > IN_MEMORY:
            if self._disk is None:
                from kafkascope.captures.inputs.spool import UNBOUNDED, Spool

                self._disk = Spool(UNBOUNDED)
            self._disk.write(self._heap.read(self._from, self.written - self._from))
            self._from = self.written
            self._heap.release(self._from)
        return at

    def read(self, at: int, size: int) -> bytes:
        """Return the bytes at an address, which were written together or side by side."""
        if self._disk is None or at >= self._from:
            return self._heap.read(at, size)
        early = self._disk.read(at, min(size, self._from - at))
        return early + self._heap.read(self._from, size - len(early))

    def release(self, before: int) -> None:
        self._heap.release(min(before, self._from))

    def __del__(self) -> None:
        if self._disk is not None:
            self._disk.close()


class Frames:
    """Frames without their bytes: their places in the input, packed, in the order of rows; for each
    row the request, then the response, where present.

    Frames that came out of TLS are in no file, so their bytes are kept (`decrypted`)."""

    def __init__(
        self, kept: Kept | None = None, *, plaintext: Callable[[], Kept] | None = None
    ) -> None:
        """`kept`: store of the places; None for memory. `plaintext`: makes the store of bytes that
        came out of TLS, when the first ones come."""
        self._kept: Kept = Heap() if kept is None else kept
        self._make_plaintext: Callable[[], Kept] = Heap if plaintext is None else plaintext
        self._plaintext: Kept | None = None

    @property
    def end(self) -> int:
        """The address of the next frame."""
        return self._kept.written

    @property
    def plaintext(self) -> Kept:
        """The store of bytes that came out of TLS."""
        if self._plaintext is None:
            self._plaintext = self._make_plaintext()
        return self._plaintext

    def decrypted(self, frame: Frame) -> Frame:
        """Keep the bytes of a frame that came out of TLS; return the frame with its parts there, of
        which each still names its packet."""
        data = (frame.size & 0xFFFF_FFFF).to_bytes(4, "big") + frame.payload
        at = self.plaintext.write(data)
        end = at + len(data)
        parts = []
        for number, part in enumerate(frame.parts, 1):
            left = end - at
            size = left if number == len(frame.parts) else min(part.size, left)
            parts.append(Part(PLAINTEXT, at, size, part.packet))
            at += size
        return frame._replace(parts=tuple(parts))

    def extend(self, packed: Sequence[bytes]) -> list[int]:
        """Keep the frames of rows, as `packed_frames` gives them; return the address of each
        row's."""
        found = list(accumulate(map(len, packed), initial=self.end))
        self._kept.write(b"".join(packed))
        return found[:-1]

    def since(self, at: int) -> bytes:
        """Return everything packed from an address on, for `append` to another object."""
        return self._kept.read(at, self.end - at)

    def append(self, packed: bytes) -> None:
        """Append the bytes that `since` returned."""
        self._kept.write(packed)

    def release(self, before: int) -> None:
        """Forget everything before an address; addresses stay valid."""
        self._kept.release(before)

    def get(self, addresses: Sequence[int], row: int, count: int, read: Read) -> list[Frame]:
        """Return `count` frames of a row with their bytes, read again. `addresses` holds the
        results of `extend` for all rows."""
        at, behind = addresses[row], addresses[row + 1 : row + 2]
        packed = self._kept.read(at, (behind[0] if behind else self.end) - at)
        place, found = 0, []
        for _ in range(count):
            offset, size, first_ns, last_ns, cut, parts = _FRAME.unpack_from(packed, place)
            begin = place + _FRAME.size
            place = begin + parts * _PART.size
            places = tuple(map(Part._make, _PART.iter_unpack(packed[begin:place])))
            data = b"".join([self._bytes(part, read) for part in places])
            payload = data[4 : 4 + size]
            found.append(Frame(payload, offset, size, first_ns, last_ns, places, CUTS[cut]))
        return found

    def _bytes(self, part: Part, read: Read) -> bytes:
        if part.file == PLAINTEXT:
            return self.plaintext.read(part.at, part.size)
        return read(part.file, part.at, part.size)


def packed_frames(frames: Iterable[Frame]) -> bytes:
    """Return the places of the frames of a row."""
    packed = []
    for _, offset, size, first_ns, last_ns, parts, cut in frames:
        packed.append(_FRAME.pack(offset, size, first_ns, last_ns, _CUT[cut], len(parts)))
        # A part without a file has a negative number.
        packed += [
            _PART.pack(max(file, 0), at, length, packet) for file, at, length, packet in parts
        ]
    return b"".join(packed)


def packed_pair(pair: Pair) -> bytes:
    """Return the places of both frames of an ordinary exchange, without making these."""
    if pair.pieces is not None or pair.response_pieces is not None or not pair.answered:
        frames = request_frame(pair), response_frame(pair)
        return packed_frames(frames if pair.answered else frames[:1])
    size, answer = pair.end - pair.begin, pair.response_end - pair.response_begin
    return _BOTH.pack(
        *(pair.offset, size - 4, pair.first_ns, pair.last_ns, 0, 1),
        *(max(pair.file, 0), pair.place, size, pair.packet),
        *(pair.response_offset, answer - 4, pair.response_first_ns, pair.response_last_ns, 0, 1),
        *(max(pair.response_file, 0), pair.response_place, answer, pair.response_packet),
    )
