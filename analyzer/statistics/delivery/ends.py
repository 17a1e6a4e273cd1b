"""Offsets and polls over time: where logs began and ended, what readers requested and when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Self

from kafkascope.analyzer.merging.measures import Measures, kept, whole
from kafkascope.analyzer.statistics.exchange_batch import PartitionColumns
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import topic_key

# The narrowest slot of time is 2^28 ns, about a quarter of a second.
FINEST: Final = 28
# Fetches no further apart than this (ns) are one period: long polls end twice a second.
APART: Final = 2_000_000_000
# Timestamps of ListOffsets for the end and the beginning of a log.
LATEST: Final = -1
EARLIEST: Final = -2


class Series(Measures):
    """The largest offset of each slot of time. The width of slots follows from how long the traffic
    is, so that the order in which offsets come does not matter."""

    _shift: int = kept(lambda: FINEST)
    _slots: dict[int, tuple[int, int]] = kept(dict)
    """Slot -> (offset, minus the time when it was first seen)"""

    def add(self, time_ns: int, offset: int) -> None:
        slots, slot = self._slots, time_ns >> self._shift
        known = slots.get(slot)
        if known is None:
            slots[slot] = offset, -time_ns
            # Twice as wide: slots of half the width fit into them whole, also when parts are
            # merged.
            while len(self._slots) > LIMITS.log_slots:
                self._widen()
        elif offset > known[0] or (offset == known[0] and -time_ns > known[1]):
            slots[slot] = offset, -time_ns

    def add_all(self, times: Iterable[int], offsets: Iterable[int]) -> None:
        """Take in reported offsets; -1 where one is missing."""
        slots, shift = self._slots, self._shift
        for time_ns, offset in zip(times, offsets, strict=True):
            known = slots.get(time_ns >> shift)
            if offset >= 0 and (known is None or (offset, -time_ns) > known):
                self.add(time_ns, offset)
                slots, shift = self._slots, self._shift

    def _widen(self) -> None:
        self._shift += 1
        narrow, self._slots = self._slots, {}
        for slot, here in narrow.items():
            self._slots[slot >> 1] = max(here, self._slots.get(slot >> 1, here))

    def merge(self, other: Self) -> None:
        while self._shift < other._shift:
            self._widen()
        for offset, minus_ns in other._slots.values():
            self.add(-minus_ns, offset)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Return the offsets as (time, offset), in the order of time."""
        return iter(sorted((-minus_ns, offset) for offset, minus_ns in self._slots.values()))

    def __len__(self) -> int:
        return len(self._slots)


class Bounds(Measures):
    """Bounds of a partition's log."""

    begins: Series = whole(Series)
    ends: Series = whole(Series)

    def see(self, time_ns: int, begin: int, end: int) -> None:
        """Take in offsets of an answer; -1 where it has none."""
        if begin >= 0:
            self.begins.add(time_ns, begin)
        if end >= 0:
            self.ends.add(time_ns, end)


class Periods(Measures):
    """Stretches of time with polls, joined where they are near. Whatever the order in which polls
    come, the stretches are the same; of too many the latest are kept."""

    _begins: list[int] = kept(list)
    _ends: list[int] = kept(list)

    def add(self, begin_ns: int, end_ns: int) -> None:
        begins, ends = self._begins, self._ends
        if begins and begins[-1] <= begin_ns <= ends[-1] + APART:
            # The usual case: polls come in their order.
            if end_ns > ends[-1]:
                ends[-1] = end_ns
            return
        at = bisect_right(begins, begin_ns)
        first = at - 1 if at and ends[at - 1] + APART >= begin_ns else at
        last = first
        while last < len(begins) and begins[last] <= end_ns + APART:
            begin_ns, end_ns = min(begin_ns, begins[last]), max(end_ns, ends[last])
            last += 1
        begins[first:last] = [begin_ns]
        ends[first:last] = [end_ns]
        if len(begins) > LIMITS.periods:
            del begins[0], ends[0]

    def add_all(self, begins: Sequence[int], ends: Sequence[int]) -> None:
        pairs = iter(sorted(zip(begins, ends, strict=True)))
        first, last = next(pairs)
        for begin, end in pairs:
            if begin > last + APART:
                self.add(first, last)
                first, last = begin, end
            elif end > last:
                last = end
        self.add(first, last)

    def merge(self, other: Self) -> None:
        for begin, end in zip(other._begins, other._ends, strict=True):
            self.add(begin, end)

    def pauses(self) -> list[tuple[int, int]]:
        """Return (from, to) of the time between stretches."""
        return list(zip(self._ends, self._begins[1:], strict=False))

    @property
    def last_ns(self) -> int | None:
        return self._ends[-1] if self._ends else None


class Positions(Measures):
    """Offsets of fetches without records, each with the first time. Of too many the largest are
    kept, so that parts merge to the same as the whole."""

    _times: dict[int, int] = kept(dict)

    def add(self, offset: int, time_ns: int) -> None:
        times = self._times
        known = times.get(offset)
        if known is not None:
            times[offset] = min(known, time_ns)
            return
        times[offset] = time_ns
        if len(times) > LIMITS.positions:
            del times[min(times)]

    def merge(self, other: Self) -> None:
        for offset, time_ns in other._times.items():
            self.add(offset, time_ns)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Return the offsets as (time, offset), in the order of time."""
        return iter(sorted((time_ns, offset) for offset, time_ns in self._times.items()))


def written(parts: PartitionColumns, *, sizeless: bool = False) -> list[int]:
    """Return, for each Produce, the end of the log after what it appended; -1 where that is not
    known. `sizeless`: the number of records is not known, so that it is one at least."""
    counts = parts.sums([batch.last_offset - batch.base_offset + 1 for batch in parts.batches])
    if sizeless:
        counts = [1] * len(parts.begins)
    return [
        base + count if base is not None and count > 0 else -1
        for base, count in zip(parts.base_offsets, counts, strict=True)
    ]


def listed(
    request: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[tuple[str | None, int, int, int]]:
    """Yield (topic, partition, begin or -1, end or -1) of ListOffsets."""
    if response is None or request.get("isolation_level"):
        return
    wanted = {
        (topic_key(topic["name"], None), each["partition_index"]): each["timestamp"]
        for topic in request["topics"]
        for each in topic["partitions"]
    }
    for topic in response["topics"]:
        named = topic_key(topic["name"], None)
        for each in topic["partitions"]:
            number, offset = each["partition_index"], each.get("offset", -1)
            stamp = wanted.get((named, number))
            if not each["error_code"] and offset >= 0 and stamp in (LATEST, EARLIEST):
                bounds = (-1, offset) if stamp == LATEST else (offset, -1)
                yield named, number, *bounds


def at(series: list[tuple[int, int]], time_ns: int) -> int | None:
    """Interpolate the offset at a time, between the offsets before and after."""
    place = bisect_left(series, (time_ns, -1))
    if place == len(series):
        return series[-1][1] if series else None
    after_ns, after = series[place]
    if after_ns == time_ns:
        return after
    if place == 0:
        return None
    before_ns, before = series[place - 1]
    return before + (after - before) * (time_ns - before_ns) // (after_ns - before_ns)


def value_at(series: list[tuple[int, int]], time_ns: int) -> int:
    """Return the first offset from a time on, or else the last before it: bounds move in steps. -1
    when there is none."""
    place = bisect_left(series, (time_ns, -1))
    return series[min(place, len(series) - 1)][1] if series else -1
