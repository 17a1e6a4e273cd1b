"""Transactions of a partition's log: those that are open, and those that were aborted. Sans-I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from kafkascope.proxy.serve.entries import Entry

ABORT: Final = 0
COMMIT: Final = 1


class Transactions:
    """Follows the batches of a log in the order of their offsets."""

    __slots__ = ("_aborted", "_live", "_open", "_ordered", "_told", "_waited_for")

    def __init__(self) -> None:
        self._live = 0
        self._open: dict[int, int] = {}
        """Producer -> its first offset."""
        # A dict looks for its first key behind all that were deleted before it.
        self._waited_for: OrderedDict[int, int] = OrderedDict()
        """Those that began since `_live`, by that offset."""
        self._aborted: dict[int, list[tuple[int, int]]] = {}
        """Producer -> (first offset, offset of the marker) of each, in order."""
        self._told: dict[tuple[int, int], None] = {}
        """(Producer, first offset) as the capture's Fetch responses list them."""
        self._ordered: list[tuple[int, int]] = []
        """The same in order, as far as somebody asked."""

    def follow(self, entries: Iterable[Entry], live: int) -> None:
        """Follow these batches and no others; those that are open count as such from an offset
        on."""
        self._live = live
        self._open, self._aborted = {}, {}
        self._waited_for = OrderedDict()
        for entry in entries:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """Follow a batch behind all others."""
        producer = entry.producer
        if producer < 0:
            return
        if entry.marker is None:
            if producer not in self._open:
                self._open[producer] = entry.base
                if entry.base >= self._live:
                    self._waited_for[producer] = entry.base
            return
        first = self._open.pop(producer, None)
        self._waited_for.pop(producer, None)
        if first is not None and entry.marker == ABORT:
            self._aborted.setdefault(producer, []).append((first, entry.base))

    def tell(self, producer: int, first: int) -> bool:
        """Note an aborted transaction that a captured broker listed; whether it is a new one."""
        new = (producer, first) not in self._told
        self._told[producer, first] = None
        return new

    def __contains__(self, producer: int) -> bool:
        """Whether a producer has a transaction open here."""
        return producer in self._open

    @property
    def first(self) -> int | None:
        """The first offset of those that are open."""
        return next(iter(self._waited_for.values()), None)

    def aborted_in(self, read: list[Entry]) -> Iterator[tuple[int, int]]:
        """Yield the aborted transactions that a reader of these batches has to know: producer id,
        first offset.

        One whose marker lies before them must not be listed: the reader would drop what the
        producer wrote afterwards.
        """
        if not read:
            return
        start, end = read[0].base, read[-1].last
        for producer in dict.fromkeys(each.producer for each in read if each.producer >= 0):
            known = self._aborted.get(producer)
            if known is None:
                yield from self._told_in(producer, start, end)
                continue
            at = bisect_left(known, start, key=_marker_of)
            while at < len(known) and known[at][0] <= end:
                yield producer, known[at][0]
                at += 1

    def _told_in(self, producer: int, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Of a producer whose markers nobody saw: what began in a stretch, and the last one before
        it, which may go on there."""
        if len(self._ordered) != len(self._told):
            self._ordered = sorted(self._told)
        at = bisect_right(self._ordered, (producer, start)) - 1
        if at < 0 or self._ordered[at][0] != producer:
            at += 1
        while at < len(self._ordered) and self._ordered[at] <= (producer, end):
            yield self._ordered[at]
            at += 1


def _marker_of(aborted: tuple[int, int]) -> int:
    return aborted[1]
