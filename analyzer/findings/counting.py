"""Counters of detectors: tables by key, of measures that merge."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, Self

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.merging.bounded import Event, Events, Names
from kafkascope.analyzer.merging.limits import LIMITS
from kafkascope.analyzer.merging.measures import Measures, bits, least, most, smallest, total, whole
from kafkascope.analyzer.merging.tables import Key, Keyed, table

__all__ = [
    "Event",
    "EventLog",
    "Events",
    "Key",
    "Keyed",
    "KeyedMeasures",
    "Measures",
    "Names",
    "Occurrences",
    "OccurrencesWithText",
    "ShortEventLog",
    "bits",
    "least",
    "most",
    "smallest",
    "total",
    "whole",
]


class KeyedMeasures(Measures):
    """Measures of a key."""

    @classmethod
    def table(cls, limit: int, **options: Any) -> Keyed[Self]:
        """Declare a field that is a table of these by key, as `Keyed` makes it."""
        field: Keyed[Self] = table(cls, limit, **options)
        return field


class Occurrences(KeyedMeasures):
    """How often something was seen, and when."""

    count: int = total()
    first: tuple[int, int] | None = least()
    """(time, number of the exchange)"""
    last_ns: int | None = most()

    @property
    def span_ns(self) -> int:
        """Time from the first to the last; 0 where nothing was seen."""
        return (self.last_ns or 0) - (self.first or (0, 0))[0]

    def see(self, row: Row, **values: Any) -> None:
        """Count an exchange, with values of other fields: `Names` get one more."""
        self.see_at(row.time_ns, row.number)
        for name, value in values.items():
            kept = getattr(self, name)
            if isinstance(kept, Names):
                kept.add(value)
            else:
                self.take(**{name: value})

    def see_at(self, time_ns: int, number: int) -> None:
        """Count an exchange with a time and number."""
        first = self.first
        self.count += 1
        if first is None or (time_ns <= first[0] and (time_ns, number) < first):
            self.first = time_ns, number
        if self.last_ns is None or time_ns > self.last_ns:
            self.last_ns = time_ns

    @classmethod
    def of(cls, events: Iterable[Any]) -> Self:
        """Return how often and when some events happened, which have a time and a number."""
        times, numbers = zip(*((each.time_ns, each.number) for each in events), strict=True)
        return cls(len(times), (min(times), min(numbers)), max(times))

    @classmethod
    def summed(cls, seen: Iterable[Occurrences]) -> Self:
        """Return how often and when some things were seen."""
        found = cls()
        for each in seen:
            found.take(count=each.count, first=each.first, last_ns=each.last_ns)
        return found

    def see_all(self, seen: Collection[tuple[int, int]]) -> None:
        """Count exchanges: (time, number) of each."""
        self.take(count=len(seen), first=min(seen), last_ns=max(seen)[0])


class OccurrencesWithText(Occurrences):
    """Occurrences with their texts."""

    words: Names = whole(Names)


class EventLog(KeyedMeasures):
    """Events of a client, a connection or a partition, in the order of time."""

    events: Events = whole(Events)


class ShortEventLog(KeyedMeasures):
    """Fewer of them, for large tables."""

    events: Events = whole(partial(Events, LIMITS.few_events))
