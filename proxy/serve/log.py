"""One partition as the capture shows it: batches in the order of their offsets. Sans-I/O."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissectors.errors import DissectError
from dissectors.record_writer import encode_message_set
from dissectors.records import CONTROL, Batch, Partial, Record, batches, open_batch

_OFFSET: Final = struct.Struct(">q")
NO_TIME: Final = -1


class Entry(NamedTuple):
    """A batch, or a message set's entry."""

    base: int
    last: int
    max_timestamp: int
    magic: int
    data: bytes


class Log:
    """Batches, each offset once. What the capture never showed is not there: offsets have holes."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._entries: list[Entry] = []
        self.aborted: list[tuple[int, int]] = []
        """(producer id, first offset) of aborted transactions."""
        self._told_end = 0
        self._told_start: int | None = None

    @property
    def start(self) -> int:
        """The first offset that can be read."""
        if self._entries:
            return self._entries[0].base
        return self._told_start or 0

    @property
    def end(self) -> int:
        """The offset that the next record gets: the end of what was captured."""
        return self._entries[-1].last + 1 if self._entries else self._told_start or 0

    def add(self, data: bytes) -> None:
        """Take in the records of a Fetch; those that are there already change nothing."""
        try:
            for batch in batches(data):
                if isinstance(batch, Partial):
                    continue
                last = batch.last_offset
                if last < 0:
                    continue
                entry = Entry(
                    batch.base_offset if batch.magic == 2 else _first(data, batch),
                    last,
                    batch.max_timestamp,
                    batch.magic,
                    data[batch.at : batch.at + batch.size],
                )
                self._put(entry)
        except DissectError:
            return

    def _put(self, entry: Entry) -> None:
        at = bisect_right(self._bases, entry.base)
        if at and self._entries[at - 1].last >= entry.base:
            return
        if at < len(self._bases) and self._bases[at] <= entry.last:
            return
        self._bases.insert(at, entry.base)
        self._entries.insert(at, entry)

    def append(self, data: bytes, base: int | None = None) -> int:
        """Write what a producer sent, behind the end or where the captured broker put it; the
        offset of the first record."""
        first = at = self.end if base is None else base
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
                self._put(Entry(at, last, batch.max_timestamp, batch.magic, piece))
                at = last + 1
        except DissectError:
            pass
        return first

    def starts_at(self, offset: int) -> None:
        """The capture told where the log starts; counts while there is nothing in it."""
        if self._told_start is None or offset > self._told_start:
            self._told_start = offset

    def read(self, offset: int, most: int, magic: int) -> bytes:
        """Whole batches from the one with `offset` on, at least one, up to `most` bytes; old
        clients
        (`magic` 0 or 1) get message sets."""
        out: list[bytes] = []
        size = 0
        for entry in self._from(offset):
            data = entry.data if entry.magic <= magic else _older(entry, magic)
            if out and size + len(data) > most:
                break
            out.append(data)
            size += len(data)
        return b"".join(out)

    def _from(self, offset: int) -> Iterator[Entry]:
        at = bisect_right(self._bases, offset)
        if at and self._entries[at - 1].last >= offset:
            at -= 1
        yield from self._entries[at:]

    def holds(self, offset: int) -> bool:
        """Whether there is something to read from that offset on."""
        return bool(self._entries) and self._entries[-1].last >= offset

    def offset_for(self, timestamp: int) -> tuple[int, int]:
        """(offset, time) of the first batch that is not older; (-1, -1) when there is none."""
        for entry in self._entries:
            if entry.max_timestamp >= timestamp:
                return entry.base, entry.max_timestamp
        return -1, NO_TIME

    def newest(self) -> tuple[int, int]:
        """(offset, time) of the record with the largest timestamp."""
        best = max(self._entries, key=lambda entry: entry.max_timestamp, default=None)
        return (-1, NO_TIME) if best is None else (best.last, best.max_timestamp)

    def aborted_from(self, offset: int) -> list[tuple[int, int]]:
        """Aborted transactions that a reader from `offset` on has to know."""
        return list(self.aborted)


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
