"""Records of batches that expand to much: read again whenever they are wanted, where a list of them
would take more memory than the expanded bytes do."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, overload
from weakref import ref

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.reader import Opened, Record, end_inside, read_records, rest

Content = TypeVar("Content")


class EvictableRecords(Sequence[Record], Generic[Content]):
    """Records of a batch whose content, a list or the expanded bytes, may be evicted."""

    def __init__(
        self,
        count: int,
        content: Content,
        size: int,
        read: Callable[[Content, int], list[Record]],
        reopen: Callable[[], Content],
    ) -> None:
        """`size`: bytes of memory that the content takes. `read`: returns some of the records, from
        the one at an index on, as a list of its own."""
        self._count = count
        self._content: Content | None = content
        self._size = size
        self._read = read
        self._reopen = reopen
        BUDGET.charge(self, size)

    def evict(self) -> None:
        """Drop the content; it is opened again when a record is wanted."""
        self._content = None

    def _some(self, index: int) -> list[Record]:
        content = self._content
        if content is None:
            BUDGET.make_room()
            content = self._content = self._reopen()
            BUDGET.charge(self, self._size)
        return self._read(content, index)

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
        return self._some(place)[0]

    def __iter__(self) -> Iterator[Record]:
        index = 0
        while index < self._count:
            some = self._some(index)
            index += len(some)
            # An iterator that waits holds no long record.
            if len(some) == 1:
                yield some.pop()
            else:
                yield from some
            del some


class Budget:
    """Counts the decoded contents in this process: charged when a batch is opened, released when it
    is evicted or its records are garbage-collected."""

    def __init__(self, limit: int = LIMITS.opened_bytes) -> None:
        self._limit = limit
        # Threads need no lock: each step is one operation of a dict. A sum would drift.
        self._sizes: dict[ref[EvictableRecords[Any]], int] = {}
        """Bytes, the oldest first. Each is some ten kilobytes at least, so there are few."""

    def charge(self, records: EvictableRecords[Any], size: int) -> None:
        """Count the content of `records`, which was opened now."""
        self._sizes[ref(records, self._release)] = size

    def _release(self, gone: ref[EvictableRecords[Any]]) -> None:
        self._sizes.pop(gone, None)

    def make_room(self) -> None:
        """Evict the oldest contents beyond the limit; called before a batch is opened."""
        if not self._sizes:
            return
        alive = self.alive
        for each, size in list(self._sizes.items()):
            if alive <= self._limit:
                break
            self._release(each)
            records = each()
            if records is not None:
                records.evict()
            alive -= size

    @property
    def alive(self) -> int:
        return sum(list(self._sizes.values()))


BUDGET: Final = Budget()
"""That of this process: of one exchange, of all that a program keeps, and of all threads."""


# Bytes of an expanded batch whose records are a list that is not counted: four times batch.size, so
# usual batches cost nothing more.
SMALL: Final = 64 << 10

# Bytes of an expanded batch whose records are always a list: twice what brokers take of a producer
# that does not compress. The records of so many bytes take 80 MB at worst, which are headers of two
# bytes.
LARGE: Final = 2 << 20

# Bytes of memory that a list of the records of a larger batch may take: 5 MB of usual records. The
# records of others are read again for each use: kilobytes of zstd can hold a hundred megabytes of
# the smallest records or headers, for which the objects take forty times as much.
LISTED: Final = 16 << 20

# Bytes of memory that a record takes besides its key, its value and its headers.
RECORD: Final = 200
# The same of a header, besides its name and value.
HEADER: Final = 80

# Records that are read at a time.
STEP: Final = 64

# Bytes of memory of so many records up to which they are read together; longer ones one by one.
TOGETHER: Final = 1 << 20


_headers_of: Final = attrgetter("headers")


def memory_of(records: Sequence[Record], octets: int) -> int:
    """Return the bytes of memory that records take, which are so many octets in their batch."""
    return octets + RECORD * len(records) + HEADER * sum(map(len, map(_headers_of, records)))


class RecordIndex:
    """Tells where in an expanded batch records begin, one in each `STEP` of them."""

    def __init__(self, base_offset: int, base_timestamp: int, stamp: int | None) -> None:
        self._around = base_offset, base_timestamp, stamp
        self._firsts = array("L")
        """Index of the first record of each step."""
        self._starts = array("L")
        """Where it begins."""
        self.count = 0

    def records(self, body: bytes, index: int) -> list[Record]:
        """Return the records from `index` on to the end of its step."""
        step = bisect_right(self._firsts, index)
        end = self._firsts[step] if step < len(self._firsts) else self.count
        first = self._firsts[step - 1]
        found = read_records(body, end - first, *self._around, self._starts[step - 1]).records
        return list(found[index - first :])

    def read(self, body: bytes, count: int) -> tuple[list[Record] | None, DissectError | None]:
        """Find the records of a body, each read once or twice. Return them as a list where that
        takes little memory, and the error that stopped this."""
        size, at, wanted, more = len(body), 0, 1, 1
        listed: list[Record] | None = []
        total = 0
        error: DissectError | None = None
        some: Sequence[Record] = ()
        most = min(count, LIMITS.records)
        while self.count < most:
            wanted = min(more, most - self.count)
            some, error = read_records(body, wanted, *self._around, at)
            end = size if error is None else error.offset
            taken = memory_of(some, end - at)
            if taken > TOGETHER and len(some) > 1:
                more = 1
                continue
            more = min(STEP, 2 * more) if taken <= TOGETHER // 2 else 1
            self._firsts.append(self.count)
            self._starts.append(at)
            self.count += len(some)
            total += taken
            if total > LISTED:
                listed = None
            elif listed is not None:
                listed += some
            if len(some) < wanted:
                break
            at, error = end, None
        if error is not None:
            if error.reason == end_inside(wanted, len(some)):
                error.reason = end_inside(count, self.count)
        elif count > LIMITS.records or at != size:
            error = rest(count, at, size)
        if error is not None:
            error.path = f"records[{self.count}]"
        return listed, error


def read_body(
    expand: Callable[[], bytes],
    count: int,
    base_offset: int,
    base_timestamp: int,
    stamp: int | None = None,
) -> Opened:
    """Read the records of the magic 2 body that `expand` makes: as a list where it is small, else
    as what the budget of `alive` counts; then the body is made again when records are needed."""
    body, around = expand(), (base_offset, base_timestamp, stamp)
    size = len(body)
    if size <= SMALL or count < 0:
        return read_records(body, count, *around)

    def listed() -> Sequence[Record]:
        return read_records(expand(), count, *around).records

    if size <= LARGE:
        opened = read_records(body, count, *around)
        return Opened(evictable(opened.records, size, listed), opened.error)
    index = RecordIndex(*around)
    records, error = index.read(body, count)
    if records is not None:
        return Opened(evictable(records, size, listed), error)
    return Opened(EvictableRecords(index.count, body, size, index.records, expand), error)


def evictable(
    records: Sequence[Record], octets: int, reopen: Callable[[], Sequence[Record]]
) -> EvictableRecords[Sequence[Record]]:
    """Return records of a list so that the budget counts them; they are so many octets in their
    batch. `reopen` makes the list again."""
    size = memory_of(records, octets)
    step = STEP if size <= 4 * TOGETHER else 1

    def some(content: Sequence[Record], index: int) -> list[Record]:
        return list(content[index : index + step])

    return EvictableRecords(len(records), records, size, some, reopen)
