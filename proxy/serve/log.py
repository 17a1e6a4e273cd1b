"""A partition's log: captured batches in the order of their offsets, batches that clients append
while kafkascope serves, and transactions. Sans-I/O.

While the capture is read, batches come in any order: a Fetch has offsets, a Produce gets its offset
from the response, or has none (`unplaced`). `finish` puts them in order. It adds the markers that
were never fetched of transactions that ended, because Fetch responses list an aborted transaction
by its marker."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from operator import attrgetter, itemgetter
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

ABORT: Final = 0
COMMIT: Final = 1
_BASE: Final = attrgetter("base")
_OFFSET: Final = struct.Struct(">q")
_MARKER_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
NO_TIME: Final = -1
# Memory of a batch besides its data, and of an aborted transaction.
ENTRY_BYTES: Final = 300
ABORTED_BYTES: Final = 250
# Larger offsets, as in a damaged capture, are ignored, so that sums of offsets fit an int64.
LAST_OFFSET: Final = 1 << 62


class Entry(NamedTuple):
    """A batch, or a message set's entry."""

    base: int
    last: int
    max_timestamp: int
    magic: int
    data: bytes
    producer: int = -1
    """Producer of a transactional batch or marker; -1 for other batches."""
    marker: int | None = None
    """ABORT or COMMIT, for a marker that ends a transaction; None for other batches."""


class PendingMarker(NamedTuple):
    """A marker that was never fetched, of a transaction that ended in the capture."""

    producer: int
    last: int
    marker: int


class ReadBatches(NamedTuple):
    """The batches for a reader."""

    data: bytes
    entries: list[Entry]


class Log:
    """The batches of a partition, each offset once. Offsets that the capture lacks are gaps. Call
    `finish` when the capture is read; from then on batches are only appended."""

    def __init__(self) -> None:
        self.bytes = 0
        """Memory that the batches take."""
        self._captured: dict[int, Entry] = {}
        """By first offset, until `finish`."""
        self._captured_end = 0
        self._captured_start = 0
        self._pending: list[PendingMarker] = []
        self._unplaced: list[bytes] = []
        self._writers: dict[int, int] = {}
        """Last offset of each producer's open transaction, while the capture is read."""
        self._fresh: set[int] = set()
        """Producers that wrote in a transaction since `writers` was last called."""
        self._entries: list[Entry] = []
        self._latest: list[int] = []
        """The largest timestamp of all batches up to each."""
        # Not a plain dict: `stable` looks up the first key, and a dict walks over the slots of all
        # deleted keys to find it.
        self._open: OrderedDict[int, int] = OrderedDict()
        """First offset of each producer's open transaction, in the order of offsets. Transactions
        that the capture leaves open are missing: no client ends them, and readers would wait."""
        self._aborted: dict[int, list[tuple[int, int]]] = {}
        """(First offset, offset of the marker) of each producer's aborted transactions, in
        order."""
        self._listed: dict[tuple[int, int], None] = {}
        """(Producer, first offset) of the aborted transactions that captured Fetch responses list;
        sorted in `_ordered` since `finish`."""
        self._ordered: list[tuple[int, int]] = []

    @property
    def start(self) -> int:
        return self._entries[0].base if self._entries else self._captured_start

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self._entries[-1].last + 1 if self._entries else self._captured_start

    @property
    def next(self) -> int:
        """The offset of the next appended record: after all offsets that the capture mentions,
        because clients may continue to read there."""
        return max(self.end, self._captured_end)

    @property
    def stable(self) -> int:
        """The last stable offset: the first one of the oldest open transaction."""
        return next(iter(self._open.values()), self.end)

    # --- reading the capture

    def add(self, data: bytes, base: int | None = None) -> None:
        """Add the records of a Fetch, or of a Produce that the captured broker appended at `base`.
        A second batch with the same base offset is ignored."""
        with suppress(DissectError):
            for entry in _fetched(data) if base is None else _placed(data, base):
                if entry.base in self._captured:
                    continue
                self._captured[entry.base] = entry
                self.bytes += len(entry.data) + ENTRY_BYTES
                if entry.producer >= 0 and entry.marker is None:
                    self._fresh.add(entry.producer)
                    last = self._writers.get(entry.producer, 0)
                    self._writers[entry.producer] = max(last, entry.last)

    def unplaced(self, data: bytes) -> None:
        self._unplaced.append(data)

    def set_log_start(self, offset: int) -> None:
        """Note a log start offset in the capture; it counts while the log is empty."""
        if offset < LAST_OFFSET:
            self._captured_start = max(self._captured_start, offset)

    def set_high_watermark(self, offset: int) -> None:
        """Note a high watermark in the capture; records before it may be missing."""
        if offset < LAST_OFFSET:
            self._captured_end = max(self._captured_end, offset)

    def aborted(self, producer: int, first: int) -> None:
        if (producer, first) not in self._listed:
            self._listed[producer, first] = None
            self.bytes += ABORTED_BYTES

    def end_captured(self, producer: int, committed: bool) -> None:
        last = self._writers.pop(producer, None)
        if last is not None:
            self._pending.append(PendingMarker(producer, last, COMMIT if committed else ABORT))

    def finish(self) -> None:
        """Put the captured batches in order, append those without an offset, and add the markers
        that were never fetched."""
        entries: list[Entry] = []
        for entry in sorted(self._captured.values(), key=_BASE):
            if not entries or entry.base > entries[-1].last:  # each offset once
                entries.append(entry)
        at = max(entries[-1].last + 1 if entries else self._captured_start, self._captured_end)
        # A Produce without a known offset may also have been fetched. Then the checksums are equal:
        # the CRC of a batch does not cover the base offset, which the broker sets.
        fetched = {
            batch.crc
            for entry in (entries if self._unplaced else ())
            for batch, _ in islice(_whole(entry.data), 1)
        }
        for data in self._unplaced:
            with suppress(DissectError):
                for batch, piece in _whole(data):
                    if batch.crc not in fetched:
                        for entry in _placed(piece, at):
                            entries.append(entry)
                            at = entry.last + 1
        self.bytes = ABORTED_BYTES * len(self._listed)
        # One sort for batches and markers: there may be as many of each.
        for entry in sorted([*entries, *_markers(entries, self._pending)], key=_BASE):
            self._put(entry)
        self._open.clear()
        self._ordered = sorted(self._listed)
        for part in (self._captured, self._unplaced, self._pending, self._writers, self._fresh):
            part.clear()

    # --- serving

    def _put(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.bytes += len(entry.data) + ENTRY_BYTES
        latest = self._latest[-1] if self._latest else entry.max_timestamp
        self._latest.append(max(latest, entry.max_timestamp))
        if entry.producer < 0:
            return
        if entry.marker is None:
            self._open.setdefault(entry.producer, entry.base)
            return
        first = self._open.pop(entry.producer, None)
        if first is not None and entry.marker == ABORT:
            self._aborted.setdefault(entry.producer, []).append((first, entry.base))

    def append(self, data: bytes) -> int:
        """Append the records of a Produce; return the offset of the first, or -1 without
        records."""
        first = self.next
        with suppress(DissectError):
            for entry in _placed(data, first):
                self._put(entry)
                if entry.producer >= 0 and entry.marker is None:
                    self._fresh.add(entry.producer)
        return first if self.end > first else -1

    def writers(self) -> set[int]:
        """Return the producers that wrote in a transaction since the last call."""
        fresh, self._fresh = self._fresh, set()
        return fresh

    def end_transaction(self, producer: int, epoch: int, committed: bool, now_ms: int) -> None:
        if producer in self._open:
            kind = COMMIT if committed else ABORT
            self._put(_marker(self.next, producer, epoch, kind, now_ms))

    def read(self, offset: int, most: int, magic: int, before: int | None = None) -> ReadBatches:
        """Return whole batches from `offset` on, at least one, up to `most` bytes and to the offset
        `before`. Old clients (`magic` 0 or 1) get message sets."""
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
        """Yield the batches from the one that holds `offset` on, or from the next one."""
        first = bisect_right(self._entries, offset, key=_BASE)
        if first and self._entries[first - 1].last >= offset:
            first -= 1
        for index in range(first, len(self._entries)):
            yield self._entries[index]

    def offset_for(self, timestamp: int) -> tuple[int, int]:
        """Return (offset, time) of the first batch that is not older; (-1, -1) if all are."""
        index = bisect_left(self._latest, timestamp)
        if index == len(self._entries):
            return -1, NO_TIME
        return self._entries[index].base, self._entries[index].max_timestamp

    def newest(self) -> tuple[int, int]:
        if not self._entries:
            return -1, NO_TIME
        entry = self._entries[bisect_left(self._latest, self._latest[-1])]
        return entry.last, entry.max_timestamp

    def aborted_in(self, read: list[Entry]) -> Iterator[tuple[int, int]]:
        """Yield (producer id, first offset) of the aborted transactions that a reader of these
        batches has to know.

        A transaction whose marker lies before the batches must not be listed: the reader would drop
        what the producer wrote after it.
        """
        for producer in dict.fromkeys(entry.producer for entry in read if entry.producer >= 0):
            start, end = read[0].base, read[-1].last
            aborted = self._aborted.get(producer)
            if aborted is None:
                yield from self._listed_in(producer, start, end)
                continue
            index = bisect_left(aborted, start, key=itemgetter(1))  # by offset of the marker
            while index < len(aborted) and aborted[index][0] <= end:
                yield producer, aborted[index][0]
                index += 1

    def _listed_in(self, producer: int, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the listed transactions of a producer without captured markers: those that begin in
        these offsets, and the last one before, which may still be open."""
        index = bisect_right(self._ordered, (producer, start)) - 1
        if index < 0 or self._ordered[index][0] != producer:
            index += 1
        while index < len(self._ordered) and self._ordered[index] <= (producer, end):
            yield self._ordered[index]
            index += 1


def _whole(data: bytes) -> Iterator[tuple[Batch, bytes]]:
    for batch in batches(data):
        if not isinstance(batch, Partial):
            yield batch, data[batch.at : batch.at + batch.size]


def _fetched(data: bytes) -> Iterator[Entry]:
    for batch, piece in _whole(data):
        base, last = batch.base_offset, batch.last_offset
        if not 0 <= last < LAST_OFFSET:
            continue
        if batch.magic != 2:  # an entry of a message set has the offset of its last message
            records = open_batch(data, batch).records
            base = records[0].offset if records else last
        yield _entry(base, last, batch, piece)


def _placed(data: bytes, at: int) -> Iterator[Entry]:
    if at + len(data) >= LAST_OFFSET:
        return
    for batch, piece in _whole(data):
        if batch.magic == 2:
            count = batch.last_offset - batch.base_offset + 1
            piece = _OFFSET.pack(at) + piece[8:]
        else:
            records = open_batch(data, batch).records
            count = len(records)
            rows = [r._replace(offset=at + n) for n, r in enumerate(records)]
            piece = encode_message_set(batch.magic, rows) if rows else piece
        last = at + max(count, 1) - 1
        if last >= LAST_OFFSET:
            return
        yield _entry(at, last, batch, piece)
        at = last + 1


def _entry(base: int, last: int, batch: Batch, piece: bytes) -> Entry:
    producer, marker = -1, None
    if batch.magic == 2 and batch.attributes & TRANSACTIONAL:
        producer = batch.producer_id
        if batch.attributes & CONTROL:
            opened = open_batch(piece, batch._replace(at=0))
            key = (opened.records[0].key or b"") if opened.records else b""
            marker = _MARKER_KEY.unpack(key)[1] if len(key) == _MARKER_KEY.size else COMMIT
    return Entry(base, last, batch.max_timestamp, batch.magic, piece, producer, marker)


def _markers(entries: list[Entry], pending: list[PendingMarker]) -> list[Entry]:
    """Return the pending markers in order, each at the first free offset after its transaction,
    where the broker probably wrote it. A marker is left out if the producer's next batch is a
    marker, or lies before that offset."""
    # Base offset of a batch -> an offset up to which no gap follows.
    ends = {entry.base: entry.last + 1 for entry in entries} if pending else {}

    def free(offset: int) -> int:
        passed = []
        while offset in ends:
            passed.append(offset)
            offset = ends[offset]
        # Shortcuts, as in union-find: without them each marker would walk over all batches again.
        ends.update(dict.fromkeys(passed, offset))
        return offset

    bases_of: dict[int, list[int]] = {}
    for entry in entries if pending else ():
        if entry.producer >= 0:
            bases_of.setdefault(entry.producer, []).append(entry.base)
    fetched = {entry.base for entry in entries if entry.marker is not None}
    markers = []
    for ended in pending:
        offset, bases = free(ended.last + 1), bases_of.get(ended.producer, [])
        index = bisect_right(bases, ended.last)
        if index < len(bases) and (bases[index] < offset or bases[index] in fetched):
            continue
        ends[offset] = offset + 1
        bases.insert(index, offset)
        markers.append(_marker(offset, ended.producer, 0, ended.marker, 0))
    return markers


def _marker(offset: int, producer: int, epoch: int, kind: int, now_ms: int) -> Entry:
    record = Record(offset, now_ms, _MARKER_KEY.pack(0, kind), _MARKER_VALUE.pack(0, 0), ())
    more = {"producer_id": producer, "producer_epoch": epoch}
    data = encode_batch([record], attributes=TRANSACTIONAL | CONTROL, **more)
    return Entry(offset, offset, now_ms, 2, data, producer, kind)


def _older(entry: Entry, magic: int) -> bytes:
    """Return a batch as messages of an older format; nothing for control batches."""
    batch = next(iter(batches(entry.data)))
    if isinstance(batch, Partial) or (batch.magic == 2 and batch.attributes & CONTROL):
        return b""
    records = open_batch(entry.data, batch).records
    rows = [Record(r.offset, r.timestamp if magic else None, r.key, r.value, ()) for r in records]
    return encode_message_set(magic, rows)
