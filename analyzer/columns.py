"""Columns in place of objects: a million exchanges fit where a tenth of that would as objects."""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from analyzer.model import Cut, Frame, Part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Read: TypeAlias = Callable[[int, int, int], bytes]
"""(file, offset, size) -> bytes of the input once more; may raise `captures.NotKept`."""

T = TypeVar("T", bound=Hashable)

CUTS: Final[tuple[Cut, ...]] = ("", "gap", "end", "too-large")

_CUT: Final = {cut: number for number, cut in enumerate(CUTS)}

_PART = struct.Struct("<HQIQ")


class Table(Generic[T]):
    """Values by number: each is kept once, however many rows have it."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self.values: list[T] = []
        """By number; filters look at these first, rows only have the numbers."""
        self._numbers: _Numbers[T] = _Numbers(self.values)

    def number(self, value: T) -> int:
        """The number of a value; a new one for a new value."""
        return self._numbers[value]

    def numbers(self, values: Iterable[T]) -> Iterable[int]:
        """The numbers of values."""
        return map(self._numbers.__getitem__, values)


class _Numbers(dict[T, int]):
    """Numbers by value; who asks for a new value makes one."""

    __slots__ = ("_values",)

    def __init__(self, values: list[T]) -> None:
        super().__init__()
        self._values = values

    def __missing__(self, value: T) -> int:
        number = self[value] = len(self._values)
        self._values.append(value)
        return number


class Frames:
    """Frames without their bytes: where these stand in the input, packed."""

    __slots__ = (
        *("_cuts", "_ends", "_first", "_last", "_offsets", "_packed", "_packed_from", "_sizes"),
        "dropped",
    )

    def __init__(self) -> None:
        self._offsets = array("q")
        self._sizes = array("q")
        self._first = array("q")
        self._last = array("q")
        self._cuts = array("B")
        self._packed = bytearray()
        self._ends = array("Q", [0])
        self.dropped = 0
        """Frames that were here before the first one; numbers go on."""
        self._packed_from = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def drop(self, number: int) -> None:
        """Forget the frames before that one."""
        count = min(number - self.dropped, len(self))
        if count <= 0:
            return
        for column in (self._offsets, self._sizes, self._first, self._last, self._cuts, self._ends):
            del column[:count]
        del self._packed[: self._ends[0] - self._packed_from]
        self._packed_from = self._ends[0]
        self.dropped += count

    def extend(self, frames: Sequence[Frame | None]) -> array[int]:
        """Keep frames; their numbers, -1 where there is none."""
        first = self.dropped + len(self._sizes)
        known = [frame for frame in frames if frame is not None]
        if len(known) == len(frames):
            numbers = array("q", range(first, first + len(known)))
        else:
            count = itertools.count(first)
            numbers = array("q", [-1 if frame is None else next(count) for frame in frames])
        if not known:
            return numbers
        _, offsets, sizes, firsts, lasts, places, cuts = zip(*known, strict=True)
        self._offsets.extend(array("q", offsets))
        self._sizes.extend(array("q", sizes))
        self._first.extend(array("q", firsts))
        self._last.extend(array("q", lasts))
        self._cuts.extend([_CUT[cut] for cut in cuts] if any(cuts) else bytes(len(cuts)))
        begin, width = self._packed_from + len(self._packed), _PART.size
        flat = [part for parts in places for part in parts]
        if len(flat) == len(places):
            ends: Iterable[int] = range(begin + width, begin + width * len(flat) + 1, width)
        else:
            counts = [width * len(parts) for parts in places]
            ends = itertools.accumulate(counts[1:], initial=begin + counts[0])
        self._ends.extend(array("Q", ends))
        pack = _PART.pack
        try:
            packed = [pack(*part) for part in flat]
        except struct.error:  # of no file
            packed = [pack(max(file, 0), at, size, packet) for file, at, size, packet in flat]
        self._packed += b"".join(packed)
        return numbers

    def parts(self, number: int) -> tuple[Part, ...]:
        """Where the bytes of a frame stand, size field included."""
        at, base = number - self.dropped, self._packed_from
        # A copy: a view would keep the others from growing while another thread reads.
        packed = bytes(self._packed[self._ends[at] - base : self._ends[at + 1] - base])
        return tuple(Part._make(part) for part in _PART.iter_unpack(packed))

    def first_packet(self, number: int) -> int:
        """The packet with the first byte of a frame."""
        at = self._ends[number - self.dropped] - self._packed_from
        packet: int = _PART.unpack_from(self._packed, at)[3]
        return packet

    def first_packets(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """As `first_packet`, of many frames."""
        import numpy as np

        kinds = [("file", "<u2"), ("at", "<u8"), ("size", "<u4"), ("packet", "<u8")]
        # Views must be gone before the columns grow: what is returned is a copy.
        ends = np.frombuffer(self._ends, dtype=np.uint64)[numbers - self.dropped]
        places = (ends - np.uint64(self._packed_from)) // np.uint64(_PART.size)
        packets: NDArray[np.int64] = np.frombuffer(self._packed, dtype=kinds)["packet"][places]
        return packets.astype(np.int64)

    def get(self, number: int, read: Read) -> Frame:
        """The frame with its bytes, read again."""
        parts = self.parts(number)
        at = number - self.dropped
        size = self._sizes[at]
        data = b"".join(read(part.file, part.at, part.size) for part in parts)
        return Frame(
            data[4 : 4 + size],
            self._offsets[at],
            size,
            self._first[at],
            self._last[at],
            parts,
            CUTS[self._cuts[at]],
        )
