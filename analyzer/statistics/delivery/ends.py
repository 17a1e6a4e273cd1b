"""Where logs begin and end over time, as writers, readers and lookups are told."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

from kafkascope.analyzer.statistics.merging.measures import Measures, measured, whole
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.statistics.moved import Moved, Parts

FINEST: Final = 28
"""The narrowest slot of time is 2^28 ns, about a quarter of a second."""
MOST_SLOTS: Final = 64
"""Of a series; when there are more, slots become twice as wide."""
LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps of ListOffsets that ask for the end and the beginning of a log."""


class Series:
    """The largest offset of each slot of time. The width of slots follows from how long the traffic
    is, so that the order in which offsets come does not matter."""

    __slots__ = ("_shift", "_slots")

    def __init__(self) -> None:
        self._shift = FINEST
        self._slots: dict[int, tuple[int, int]] = {}
        """Slot -> (offset, minus the time when it was told first)"""

    def add(self, time_ns: int, offset: int) -> None:
        """Take in an offset that was told."""
        slots, slot = self._slots, time_ns >> self._shift
        known = slots.get(slot)
        if known is None:
            slots[slot] = offset, -time_ns
            while len(self._slots) > MOST_SLOTS:
                self._widen()
        elif offset > known[0] or (offset == known[0] and -time_ns > known[1]):
            slots[slot] = offset, -time_ns

    def add_all(self, times: Iterable[int], offsets: Iterable[int]) -> None:
        """Take in offsets that were told; -1 where one was not."""
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
        """Take in the offsets of another one."""
        while self._shift < other._shift:
            self._widen()
        for offset, minus_ns in other._slots.values():
            self.add(-minus_ns, offset)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Return the offsets as (time, offset), in the order of time."""
        return iter(sorted((-minus_ns, offset) for offset, minus_ns in self._slots.values()))

    def __len__(self) -> int:
        return len(self._slots)

    def dump(self) -> list[Any]:
        """Return the state as JSON."""
        return [self._shift, [[slot, *here] for slot, here in sorted(self._slots.items())]]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        self._shift, slots = state
        self._slots = {slot: (offset, minus_ns) for slot, offset, minus_ns in slots}
        return self


@measured
class Bounds(Measures):
    """Of a partition's log."""

    begins: Series = whole(Series)
    ends: Series = whole(Series)

    def see(self, time_ns: int, begin: int, end: int) -> None:
        """Take in what an answer tells; -1 where it does not."""
        if begin >= 0:
            self.begins.add(time_ns, begin)
        if end >= 0:
            self.ends.add(time_ns, end)


def written(each: Moved) -> int | None:
    """Return the end of the log behind the batches that a Produce appended."""
    if each.base_offset is None or each.error or not each.records:
        return None
    count = sum(batch.last_offset - batch.base_offset + 1 for batch in each.batches)
    return each.base_offset + count if count > 0 else None


def written_all(parts: Parts) -> list[int]:
    """Return the same for each of many usual exchanges; -1 where there is none."""
    first, last = parts.batches.base_offset, parts.batches.last_offset
    counts = parts.sums([b - a + 1 for a, b in zip(first, last, strict=True)])
    return [
        base + count if base is not None and count > 0 else -1
        for base, count in zip(parts.given, counts, strict=True)
    ]


def listed(
    asked: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[tuple[str | None, int, int, int]]:
    """Yield (topic, partition, begin or -1, end or -1) of ListOffsets."""
    if response is None or asked.get("isolation_level"):
        return
    wanted = {
        (topic_key(topic["name"], None), each["partition_index"]): each["timestamp"]
        for topic in asked["topics"]
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
    """Interpolate the offset at a time, between what was told before and after."""
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


def told_at(series: list[tuple[int, int]], time_ns: int) -> int:
    """Return what was told first from a time on, or else last before it: bounds move in steps. -1
    when it never was."""
    place = bisect_left(series, (time_ns, -1))
    return series[min(place, len(series) - 1)][1] if series else -1
