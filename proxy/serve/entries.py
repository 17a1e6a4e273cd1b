"""The batches of a log in the order of their offsets, whatever the order in which they come.
Sans-I/O."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

BLOCK: Final = 1_000
"""Batches that lie together; one that comes late moves twice as many at most."""
_BASE: Final = attrgetter("base")


class Entry(NamedTuple):
    """A batch, or a message set's entry."""

    base: int
    last: int
    max_timestamp: int
    magic: int
    data: bytes
    producer: int = -1
    """Of a transaction's batch, or of its marker; -1 for all others."""
    marker: int | None = None
    """ABORT or COMMIT, of a batch that ends a transaction."""


class Entries:
    """Batches by their first offset."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        ordered = sorted(entries, key=_BASE)
        self._blocks = [ordered[at : at + BLOCK] for at in range(0, len(ordered), BLOCK)]
        """None is empty."""
        self._firsts = [block[0].base for block in self._blocks]
        self._latest = [_latest(block) for block in self._blocks]
        """The largest timestamp of each block."""

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[Entry]:
        for block in self._blocks:
            yield from block

    @property
    def first(self) -> Entry:
        """The first one; there has to be one."""
        return self._blocks[0][0]

    @property
    def last(self) -> Entry:
        """The last one; there has to be one."""
        return self._blocks[-1][-1]

    def _place(self, offset: int) -> tuple[int, int]:
        """The block, and the place in it, of the first batch that begins behind an offset."""
        at = max(0, bisect_right(self._firsts, offset) - 1)
        return at, bisect_right(self._blocks[at], offset, key=_BASE)

    def behind(self, offset: int) -> Iterator[Entry]:
        """Yield the batches from the one with an offset on, or behind it when there is none."""
        if not self._blocks:
            return
        at, place = self._place(offset)
        block = self._blocks[at]
        if place and block[place - 1].last >= offset:
            place -= 1
        yield from block[place:]
        for each in self._blocks[at + 1 :]:
            yield from each

    def not_older(self, timestamp: int) -> Entry | None:
        """Return the first batch with a timestamp like this or a larger one; None without any."""
        for block, latest in zip(self._blocks, self._latest, strict=True):
            if latest >= timestamp:
                return next(entry for entry in block if entry.max_timestamp >= timestamp)
        return None

    def newest(self) -> Entry | None:
        """Return the first batch with the largest timestamp; None when there is none."""
        return self.not_older(max(self._latest)) if self._latest else None

    def add(self, entry: Entry) -> bool:
        """Add a batch, unless others have one of its offsets. Returns whether it was added."""
        if not self._blocks:
            self._blocks, self._firsts = [[entry]], [entry.base]
            self._latest = [entry.max_timestamp]
            return True
        next_ = next(self.behind(entry.base), None)
        if next_ is not None and next_.base <= entry.last:
            return False
        at, place = self._place(entry.base)
        block = self._blocks[at]
        block.insert(place, entry)
        self._firsts[at] = block[0].base
        self._latest[at] = max(self._latest[at], entry.max_timestamp)
        if len(block) > 2 * BLOCK:
            halves = [block[:BLOCK], block[BLOCK:]]
            self._blocks[at : at + 1] = halves
            self._firsts[at : at + 1] = [half[0].base for half in halves]
            self._latest[at : at + 1] = map(_latest, halves)
        return True


def _latest(block: list[Entry]) -> int:
    return max(entry.max_timestamp for entry in block)
