"""Segments that a recovering broker refuses although their checksums are right. Stateless.

A broker rebuilds the index of a segment while it recovers it, with an entry for a batch after each
`index.interval.bytes`. It refuses an entry whose offset is not greater than the one before
(InvalidOffsetException), and empties the segment; offsets that go back between two entries are not
noticed. Since 2.0 a broker splits a segment whose offsets exceed the range of its index. It can do
so only where the last offset exceeds the range; otherwise it does not start.
"""

# Whether offsets go back "at an entry" depends on `index.interval.bytes`, which is a setting of the
# topic and not in the segment. Existing indexes bound it (`_interval`); where the bounds leave a
# choice, some intervals are tried, and a remark says that the verdict depends on it.

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kafkascope.analyzer.logdir.limits import LIMITS
from kafkascope.analyzer.logdir.records import batch_of
from kafkascope.analyzer.logdir.releases import (
    MAGIC_AT,
    NEWEST,
    BatchHead,
    Family,
    entries_beside,
    heads,
    sound_at,
)
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import open_batch

# Default of `index.interval.bytes`.
INTERVAL: Final = 4096
# Expanded size of an old compressed entry that is opened only for its first offset.
OPENED: Final = 16 << 20
# Intervals that are tried between the bounds.
PROBES: Final = 9


def known_magic(data: bytes) -> bytes:
    """Return a batch with magic 2 in place of a larger one, as brokers since 0.11 read it: its
    checksum does not cover the magic."""
    if NEWEST < data[MAGIC_AT] <= 127:
        return data[:MAGIC_AT] + bytes((NEWEST,)) + data[MAGIC_AT + 1 :]
    return data


class RefusedOffset(NamedTuple):
    """Why a broker does not keep a segment whose checksums are right."""

    text: str
    starts: bool
    """Whether the broker starts, with the segment emptied."""
    splits: bool = False
    """Whether the broker splits the segment, and keeps all of it."""


class Refusals(NamedTuple):
    """The offsets of a segment that brokers refuse."""

    own: RefusedOffset | None
    """By the releases that wrote it."""
    of: dict[Family, RefusedOffset | None]
    """By other releases."""
    remark: str
    """Remark about what depends on the interval, if its bounds leave a choice."""


def refusals(
    file: BinaryIO, path: Path, base: int | None, family: Family, others: tuple[Family, ...]
) -> Refusals:
    """Return the offsets that brokers refuse, beside damaged batches."""
    if not _suspicious(file, base):
        return Refusals(None, dict.fromkeys(others), "")
    least, most = _interval(file, path)
    walk = _IndexRebuild(file, base)
    own = walk.refusal(family, most)
    if own is not None and own.splits:
        return Refusals(None, _by_family(walk, others, most), own.text)
    remark = ""
    for part in range(PROBES if least < most else 0):
        other = walk.refusal(family, least + (most - least) * part // PROBES)
        if (other is None) != (own is None):
            either = own or other
            assert either is not None
            remark = f"{either.text}; but that depends on index.interval.bytes"
            break
    return Refusals(own, _by_family(walk, others, most), remark)


def _by_family(
    walk: _IndexRebuild, families: tuple[Family, ...], interval: int
) -> dict[Family, RefusedOffset | None]:
    """Return the refusals of families; None also for a split, which loses nothing."""
    refused = {family: walk.refusal(family, interval) for family in families}
    return {
        family: None if offset is None or offset.splits else offset
        for family, offset in refused.items()
    }


def _suspicious(file: BinaryIO, base: int | None) -> bool:
    """Return whether offsets go back or leave the range anywhere. Only then the index is rebuilt,
    which reads the file several times."""
    last = -1
    for head in heads(file):
        if head.last_offset <= last or head.base_offset <= last:
            return True
        if base is not None and not _fits(head, base):
            return True
        last = head.last_offset
    return False


def _fits(head: BatchHead, base: int) -> bool:
    return 0 <= head.last_offset - base <= LIMITS.relative_offset


class _IndexRebuild:
    """The walk of a recovering broker that rebuilds the index of a segment."""

    def __init__(self, file: BinaryIO, base: int | None) -> None:
        self._file = file
        self._base = base
        self._opened = 0

    def refusal(self, family: Family, interval: int) -> RefusedOffset | None:
        """Return the offset that brokers refuse; None when they truncate or keep the segment."""
        entry_at = entry = 0  # position and offset of the last entry
        first = True
        last: BatchHead | None = None
        wrong: RefusedOffset | None = None
        for head in heads(self._file):
            last = head
            if wrong is not None:
                continue
            if not sound_at(self._file, head.at, head.size):
                break  # The broker truncates here, and does not read further.
            base = self._base
            if family == "2.0 and later" and base is not None and not _fits(head, base):
                wrong = RefusedOffset(
                    f"offset {head.last_offset} at position {head.at} is out of range for a segment"
                    f" that starts at {base}",
                    False,
                )
            if wrong is None and head.at - entry_at > interval:
                offset = self._entry(head, family)
                if not first and offset <= entry:
                    return RefusedOffset(
                        f"offset {offset} is not greater than {entry} in the previous index entry,"
                        f" at position {head.at}: recovery truncates the file to 0 bytes",
                        True,
                    )
                first, entry_at, entry = False, head.at, offset
        if family == "0.8.0" and not first and self._base is not None and entry <= self._base:
            return RefusedOffset(
                f"the rebuilt index would end with offset {entry}, the base offset of the segment",
                False,
            )
        if wrong is None or last is None or self._base is None:
            return None
        if last.last_offset >= self._base and not _fits(last, self._base):
            return wrong._replace(text=f"{wrong.text}: brokers split the file", splits=True)
        return wrong

    def _entry(self, head: BatchHead, family: Family) -> int:
        """Return the offset that an entry for a batch has: the last one of the batch since 2.0, the
        first one before, which is inside of old compressed entries."""
        if family == "2.0 and later":
            return head.last_offset
        if head.magic >= NEWEST or not head.compressed:
            return head.base_offset
        self._opened += 1
        if self._opened > LIMITS.opened_entries:
            return head.last_offset
        self._file.seek(head.at)
        data = known_magic(self._file.read(head.size))
        try:
            opened = open_batch(data, batch_of(data), OPENED)
        except DissectError:
            return head.last_offset
        return opened.records[0].offset if opened.records else head.last_offset


def _interval(file: BinaryIO, path: Path) -> tuple[int, int]:
    """Return the minimum and maximum that `index.interval.bytes` can have had, by the indexes of
    the partition: less than the bytes between any two entries, and at least those from an entry to
    the last batch that got none."""
    most = INTERVAL
    for log in (path, *islice(sorted(path.parent.glob("*.log")), LIMITS.indexes)):
        before = 0
        for _, position in entries_beside(log):
            most = min(most, position - before - 1)
            before = position
    marked = {position for _, position in entries_beside(path)}
    end = max(marked, default=0)
    least = entry = 0
    for head in heads(file):
        if head.at > end:
            break
        if head.at in marked:
            entry = head.at
        elif head.magic >= NEWEST:  # Old brokers appended several at a time, with one entry.
            least = max(least, head.at - entry)
    return min(least, most), most
