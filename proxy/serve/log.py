"""A partition's log as the capture shows it: batches in the order of their offsets, and aborted
transactions. Sans-I/O."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import (
    CONTROL,
    TRANSACTIONAL,
    Batch,
    Partial,
    Record,
    batches,
    open_batch,
)
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from kafkascope.proxy.serve.entries import Entries, Entry
from kafkascope.proxy.serve.transactions import ABORT, COMMIT, Transactions

_OFFSET: Final = struct.Struct(">q")
_MARKER_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
NO_TIME: Final = -1
ENTRY_BYTES: Final = 300
"""That a batch takes beside its data."""
ABORTED_BYTES: Final = 250
"""That an aborted transaction takes."""
MOST: Final = 1 << 62
"""No offset is larger: whatever a damaged capture tells, sums of offsets stay representable."""


class Owed(NamedTuple):
    """A transaction that was ended in the capture, whose marker nobody has fetched."""

    producer: int
    last: int
    """The last offset of the transaction's batches."""
    marker: int


class ReadBatches(NamedTuple):
    """What a reader gets: whole batches."""

    data: bytes
    entries: list[Entry]


class Log:
    """The batches of a partition, each offset once. What the capture never showed is missing:
    offsets have gaps."""

    def __init__(self) -> None:
        self._entries = Entries()
        self._captured_end = 0
        self._captured_start: int | None = None
        self._owed: list[Owed] = []
        self._unplaced: list[bytes] = []
        self._live = 0
        self.bytes = 0
        """Memory that the batches take."""
        self._transactions = Transactions()
        """From the entries in their order; `_settle` makes it true."""
        self._stale = False
        self._writers: dict[int, int] = {}
        """Producers of transactions -> the last offset of what they wrote since one ended, while
        the capture is read."""
        self._fresh: set[int] = set()
        """Those of whom nobody was told."""
        self._reading = True
        """Whether the capture is being read."""

    @property
    def start(self) -> int:
        """The first offset that can be read."""
        if self._entries:
            return self._entries.first.base
        return self._captured_start or 0

    @property
    def end(self) -> int:
        """The offset of the next record: the end of what was captured."""
        return self._entries.last.last + 1 if self._entries else self._captured_start or 0

    @property
    def next(self) -> int:
        """The largest offset that a reader may be at: a client of the capture was there."""
        return max(self.end, self._captured_end)

    @property
    def stable(self) -> int:
        """The last stable offset: before transactions that have been open since we serve."""
        self._settle()
        first = self._transactions.first
        return self.end if first is None else first

    def add(self, data: bytes) -> None:
        """Add the records of a Fetch; batches that are known change nothing."""
        try:
            for batch in batches(data):
                if isinstance(batch, Partial):
                    continue
                last = batch.last_offset
                if not 0 <= last < MOST:
                    continue
                base = batch.base_offset if batch.magic == 2 else _first(data, batch)
                piece = data[batch.at : batch.at + batch.size]
                self._put(_entry(base, last, batch, piece))
        except DissectError:
            return

    def _put(self, entry: Entry) -> None:
        if not self._entries.add(entry):
            return
        if entry.producer >= 0 and entry.marker is None:
            self._fresh.add(entry.producer)
            if self._reading:
                last = self._writers.get(entry.producer, 0)
                self._writers[entry.producer] = max(last, entry.last)
        self.bytes += len(entry.data) + ENTRY_BYTES
        if self._entries.last is entry:
            self._transactions.take(entry)
        else:
            self._stale = True

    def append(self, data: bytes, base: int | None = None) -> int:
        """Append what a producer sent, at the end or where the captured broker put it. Returns the
        offset of the first record, -1 when there is none."""
        first = at = self.next if base is None else base
        if first + len(data) >= MOST:
            return -1
        try:
            for batch in batches(data):
                if isinstance(batch, Partial):
                    continue
                piece = data[batch.at : batch.at + batch.size]
                count = max(batch.last_offset - batch.base_offset + 1, 1) if batch.magic == 2 else 1
                if batch.magic != 2:
                    opened = open_batch(data, batch)
                    count = max(len(opened.records), 1)
                    rows = [r._replace(offset=at + n) for n, r in enumerate(opened.records)]
                    piece = encode_message_set(batch.magic, rows) if rows else piece
                piece = _OFFSET.pack(at) + piece[8:] if batch.magic == 2 else piece
                last = at + count - 1
                if last >= MOST:
                    break
                self._put(_entry(at, last, batch, piece))
                at = last + 1
        except DissectError:
            pass
        return first if at > first else -1

    def starts_at(self, offset: int) -> None:
        """Note the log start offset of the capture; it counts while the log is empty."""
        if offset < MOST and (self._captured_start is None or offset > self._captured_start):
            self._captured_start = offset

    def reaches(self, offset: int) -> None:
        """Note an offset that the capture mentions; what lies before it may be unknown."""
        if offset < MOST:
            self._captured_end = max(self._captured_end, offset)

    # --- reading

    def read(self, offset: int, most: int, magic: int, before: int | None = None) -> ReadBatches:
        """Whole batches from the one with `offset` on, at least one, up to `most` bytes and to the
        offset `before`. Old clients (`magic` 0 or 1) get message sets."""
        out: list[bytes] = []
        entries: list[Entry] = []
        size = 0
        for entry in self.entries(offset):
            if before is not None and entry.base >= before:
                break
            data = entry.data if entry.magic <= magic else _older(entry, magic)
            if out and size + len(data) > most:
                break
            out.append(data)
            entries.append(entry)
            size += len(data)
        return ReadBatches(b"".join(out), entries)

    def entries(self, offset: int) -> Iterator[Entry]:
        """The batches from the one with `offset` on, or behind it when there is none."""
        return self._entries.behind(offset)

    def offset_for(self, timestamp: int) -> tuple[int, int]:
        """(offset, time) of the first batch that is not older; (-1, -1) when there is none."""
        found = self._entries.not_older(timestamp)
        return (-1, NO_TIME) if found is None else (found.base, found.max_timestamp)

    def newest(self) -> tuple[int, int]:
        """(offset, time) of the record with the largest timestamp."""
        best = self._entries.newest()
        return (-1, NO_TIME) if best is None else (best.last, best.max_timestamp)

    # --- transactions

    def _settle(self) -> None:
        if self._stale:
            self._stale = False
            self._transactions.follow(self._entries, self._live)

    def aborted(self, producer: int, first: int) -> None:
        """Note an aborted transaction of the capture."""
        if self._transactions.tell(producer, first):
            self.bytes += ABORTED_BYTES

    def aborted_in(self, read: list[Entry]) -> list[tuple[int, int]]:
        """The aborted transactions that a reader of these batches has to know: (producer id, first
        offset)."""
        self._settle()
        return list(self._transactions.aborted_in(read))

    def end_transaction(self, producer: int, epoch: int, committed: bool, now_ms: int) -> None:
        """Append the marker, if the producer has a transaction open here."""
        self._settle()
        if producer in self._transactions:
            kind = COMMIT if committed else ABORT
            self._put(_marker(self.next, producer, epoch, kind, now_ms))

    def ends(self, producer: int, committed: bool) -> None:
        """Note that a transaction of the capture ended."""
        last = self._writers.pop(producer, None)
        # Not settled for this: of a log that is read out of order each end would walk over all.
        if last is not None and (self._stale or producer in self._transactions):
            self._owed.append(Owed(producer, last, COMMIT if committed else ABORT))

    def writers(self) -> set[int]:
        """The producers whose transactions wrote something since the last call."""
        fresh, self._fresh = self._fresh, set()
        return fresh

    def unplaced(self, data: bytes) -> None:
        """Keep records written with acks=0, whose offsets nobody was told."""
        self._unplaced.append(data)

    def _place(self) -> None:
        """Append the records that were written without an offset and not fetched either. Checksums
        do not cover offsets: what was fetched is known by them."""
        known = {_crc(entry.data) for entry in self._entries} if self._unplaced else set()
        for data in self._unplaced:
            try:
                for batch in batches(data):
                    if not isinstance(batch, Partial) and batch.crc not in known:
                        self.append(data[batch.at : batch.at + batch.size])
            except DissectError:
                continue
        self._unplaced.clear()

    def _mark(self) -> None:
        """Place the markers that are owed, in the order in which they were. A batch of the same
        producer before the free offset is the marker, or what came after it."""
        if not self._owed:
            return
        runs = _Runs(self._entries)
        of: dict[int, list[int]] = {}
        for entry in self._entries:
            if entry.producer >= 0:
                of.setdefault(entry.producer, []).append(entry.base)
        made = []
        for owed in self._owed:
            place = runs.end_of(owed.last)
            bases = of[owed.producer]
            at = bisect_right(bases, owed.last)
            if at < len(bases) and bases[at] < place:
                continue
            runs.grow(owed.last)
            bases.insert(at, place)
            made.append(_marker(place, owed.producer, 0, owed.marker, 0))
        # All at once: there may be as many as batches.
        self._entries = Entries([*self._entries, *made])
        self.bytes += sum(len(entry.data) + ENTRY_BYTES for entry in made)
        self._stale = True

    def finish(self) -> None:
        """Place the markers that nobody fetched, once all of the capture was read: at the first
        free offset behind their transaction, where the broker will have put them."""
        self._place()
        self._mark()
        self._owed.clear()
        self._reading = False
        self._writers, self._fresh = {}, set()
        self._live = self.end
        self._stale = True


class _Runs:
    """Stretches of offsets without a gap, which grow at their ends until they meet."""

    def __init__(self, entries: Entries) -> None:
        """`entries`: in the order of their offsets."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        for entry in entries:
            if self._ends and self._ends[-1] == entry.base:
                self._ends[-1] = entry.last + 1
            else:
                self._starts.append(entry.base)
                self._ends.append(entry.last + 1)
        self._into = list(range(len(self._starts)))
        """Run -> the one that it has grown into; itself while it has not."""

    def _of(self, offset: int) -> int:
        run = bisect_right(self._starts, offset) - 1
        path = []
        while self._into[run] != run:
            path.append(run)
            run = self._into[run]
        for each in path:
            self._into[each] = run
        return run

    def end_of(self, offset: int) -> int:
        """The first free offset behind one that is in a run."""
        return self._ends[self._of(offset)]

    def grow(self, offset: int) -> None:
        """Take the first free offset into the run of another one."""
        run = self._of(offset)
        self._ends[run] += 1
        following = bisect_right(self._starts, self._ends[run]) - 1
        if following > run and self._starts[following] == self._ends[run]:
            self._into[run] = following


def _entry(base: int, last: int, batch: Batch, piece: bytes) -> Entry:
    producer, marker = -1, None
    if batch.magic == 2 and batch.attributes & TRANSACTIONAL:
        producer = batch.producer_id
        if batch.attributes & CONTROL:
            opened = open_batch(piece, batch._replace(at=0))
            key = (opened.records[0].key or b"") if opened.records else b""
            marker = _MARKER_KEY.unpack(key)[1] if len(key) == _MARKER_KEY.size else COMMIT
    return Entry(base, last, batch.max_timestamp, batch.magic, piece, producer, marker)


def _crc(entry: bytes) -> int | None:
    batch = next(batches(entry), None)
    return None if batch is None or isinstance(batch, Partial) else batch.crc


def _marker(place: int, producer: int, epoch: int, kind: int, now_ms: int) -> Entry:
    record = Record(place, now_ms, _MARKER_KEY.pack(0, kind), _MARKER_VALUE.pack(0, 0), ())
    data = encode_batch(
        [record],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer,
        producer_epoch=epoch,
    )
    return Entry(place, place, now_ms, 2, data, producer, kind)


def _first(data: bytes, batch: Batch) -> int:
    """The first offset of a message set's entry, which says the last one."""
    opened = open_batch(data, batch)
    return opened.records[0].offset if opened.records else batch.last_offset


def _older(entry: Entry, magic: int) -> bytes:
    """A batch as messages of an older format; control batches have none."""
    batch = next(iter(batches(entry.data)))
    if isinstance(batch, Partial) or (batch.magic == 2 and batch.attributes & CONTROL):
        return b""
    opened = open_batch(entry.data, batch)
    rows = [
        Record(r.offset, r.timestamp if magic else None, r.key, r.value, ()) for r in opened.records
    ]
    return encode_message_set(magic, rows)
