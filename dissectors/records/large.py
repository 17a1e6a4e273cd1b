"""Records of batches that expand to much: read again whenever they are wanted, where a list of them
would take more memory than the expanded bytes do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, overload

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.reader import (
    RECORD_LIMIT,
    Opened,
    Record,
    end_inside,
    read_records,
    rest,
)

LARGE: Final = 2 << 20
"""Bytes of an expanded batch whose records are always a list: twice what brokers take of a producer
that does not compress. The records of so many bytes take 80 MB at worst, which are headers of two
bytes."""

LISTED: Final = 32 << 20
"""Bytes of memory that a list of records may take. The records of larger batches are read again for
each use: kilobytes of zstd can hold a hundred megabytes of the smallest records or headers, for
which the objects take forty times as much."""

RECORD: Final = 200
"""Bytes of memory that a record takes besides its key, its value and its headers."""
HEADER: Final = 80
"""The same of a header."""

STEP: Final = 64
"""Records that are read at a time."""

TOGETHER: Final = 1 << 20
"""Expanded bytes of so many records up to which they are in memory together when they are read
again; longer ones one by one."""


class LargeRecords(Sequence[Record]):
    """Records of an expanded batch, of which a few are in memory at a time."""

    def __init__(
        self, body: bytes, base_offset: int, base_timestamp: int, stamp: int | None
    ) -> None:
        self._around = base_offset, base_timestamp, stamp
        self._body = body
        self._count = 0
        self._starts: list[int] = []
        """Where each `STEP` records begin."""
        self._end = 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(index)
        return next(islice(self._some(place // STEP), place % STEP, None))

    def __iter__(self) -> Iterator[Record]:
        for number in range(len(self._starts)):
            yield from self._some(number)

    def _some(self, number: int) -> Iterator[Record]:
        """Yield the records from one of the starts to the next."""
        count, at = min(STEP, self._count - STEP * number), self._starts[number]
        following = number + 1
        end = self._starts[following] if following < len(self._starts) else self._end
        if end - at <= TOGETHER:
            yield from read_records(self._body, count, *self._around, at).records
            return
        for _ in range(count):
            some, error = read_records(self._body, 1, *self._around, at)
            at = end if error is None else error.offset
            yield some[0]
            del some

    def read(self, count: int) -> Opened:
        """Read all records once. Return them as a list where that takes little memory, else this
        object."""
        size, at, wanted = len(self._body), 0, 0
        listed: list[Record] | None = []
        taken = 0
        error: DissectError | None = None
        some: Sequence[Record] = ()
        most = min(count, RECORD_LIMIT)
        while self._count < most:
            wanted = min(STEP, most - self._count)
            some, error = read_records(self._body, wanted, *self._around, at)
            self._starts.append(at)
            self._count += len(some)
            if listed is not None:
                taken += sum(map(_memory, some))
                listed += some
                if taken > LISTED:
                    listed = None
            if len(some) < wanted:
                break
            at, error = (size, None) if error is None else (error.offset, None)
        self._end = at if error is None else size
        if error is not None:
            if error.reason == end_inside(wanted, len(some)):
                error.reason = end_inside(count, self._count)
        elif count > RECORD_LIMIT or at != size:
            error = rest(count, at, size)
        if error is not None:
            error.path = f"records[{self._count}]"
        return Opened(self if listed is None else listed, error)


def _memory(record: Record) -> int:
    size = RECORD + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += HEADER + len(name) + len(value or b"")
    return size


def read_large(
    body: bytes, count: int, base_offset: int, base_timestamp: int, stamp: int | None = None
) -> Opened:
    """Read the records of an expanded magic 2 body, as `read_records` does."""
    if count < 0:
        return read_records(body, count, base_offset, base_timestamp, stamp)
    return LargeRecords(body, base_offset, base_timestamp, stamp).read(count)


def read_body(
    body: bytes, count: int, base_offset: int, base_timestamp: int, stamp: int | None = None
) -> Opened:
    """Read the records of an expanded magic 2 body, as a list where it is small."""
    read = read_records if len(body) <= LARGE else read_large
    return read(body, count, base_offset, base_timestamp, stamp)
