"""Bounded collections: names, the count of different values, the latest events."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self, TypeAlias

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.merging.limits import LIMITS
from kafkascope.analyzer.merging.measures import as_lists, as_tuples
from kafkascope.analyzer.ranks import bounded, rank

# Values that are not hashed again, as they were counted last.
RECENT: Final = 16


class Names:
    """A set of texts or numbers that keeps at most so many, and notes whether there were more."""

    __slots__ = ("_limit", "_values", "_worst", "more")

    def __init__(self, limit: int = LIMITS.names) -> None:
        self._limit = limit
        self._values: dict[Any, int] = {}
        """Value -> its rank, which is known once the set is full."""
        self._worst: Any = None
        self.more = False
        """There were more than it holds."""

    def add(self, value: Any) -> None:
        values = self._values
        if value in values:
            return
        short = bounded(value)
        if short is not value:
            self.add(short)
            return
        if len(values) < self._limit:
            values[value] = rank(value) if self.more else 0
            if self.more and values[value] > values[self._worst]:
                self._worst = value
            return
        # Those with the smallest hashes stay (a bottom-k sample): the same ones whatever the order,
        # and however a capture is divided.
        if not self.more:
            self._fill()
        number = rank(value)
        if number < values[self._worst]:
            del values[self._worst]
            values[value] = number
            self._worst = max(values, key=values.__getitem__)

    def _fill(self) -> None:
        """Take note that something is left out from now on."""
        self.more = True
        for each in self._values:
            self._values[each] = rank(each)
        self._worst = max(self._values, key=self._values.__getitem__)

    def shorten(self, limit: int) -> None:
        """Keep at most so many from now on, if that is fewer than before."""
        if limit >= self._limit:
            return
        self._limit = limit
        if len(self._values) > limit:
            ranks = self._values if self.more else {each: rank(each) for each in self._values}
            kept = sorted(ranks, key=ranks.__getitem__)[:limit]
            self._values = dict.fromkeys(kept, 0)
            self._fill()

    def merge(self, other: Names) -> None:
        for value in other._values:
            self.add(value)
        if other.more and not self.more:
            # The other one is full, and so is this one by now.
            self._fill()

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, value: object) -> bool:
        return value in self._values

    def dump(self) -> list[Any]:
        return [self.more, as_lists(tuple(self))]

    def load(self, state: list[Any]) -> Self:
        more, values = state
        for value in as_tuples(values):
            self.add(value)
        if more:
            self._fill()
        return self


class Distinct:
    """How many different values there were, as far as a limit: of each a hash is kept."""

    __slots__ = ("_limit", "_ranks", "_recent")

    def __init__(self, limit: int = LIMITS.many_names) -> None:
        self._limit = limit
        self._ranks = array("Q")
        """The smallest, rising."""
        self._recent: dict[Any, None] = {}
        """Values that are in it."""

    def add(self, value: Any) -> None:
        recent = self._recent
        if value in recent:
            return
        if len(recent) >= RECENT:
            recent.clear()
        recent[value] = None
        self._enter(rank(value) >> 1)

    def _enter(self, number: int) -> None:
        ranks = self._ranks
        at = bisect_left(ranks, number)
        if at == self._limit or (at < len(ranks) and ranks[at] == number):
            return
        if len(ranks) == self._limit:
            ranks.pop()
        ranks.insert(at, number)

    def merge(self, other: Distinct) -> None:
        for number in other._ranks:
            self._enter(number)

    def __len__(self) -> int:
        return len(self._ranks)

    def dump(self) -> str:
        """Return the state as JSON. It is a text, as large numbers in a state may be placeholders
        (`pipeline.tables.numbers`)."""
        return "".join(f"{number:016x}" for number in self._ranks)

    def load(self, state: str) -> Self:
        ends = range(16, len(state) + 1, 16)
        self._ranks = array("Q", [int(state[end - 16 : end], 16) for end in ends])
        return self


class Event(NamedTuple):
    """Something that happened once."""

    time_ns: int
    id: str
    part: int
    """Distinguishes events of an exchange."""
    number: int
    kind: str
    about: dict[str, Any]
    """Plain values only."""

    @property
    def end_ns(self) -> int:
        """When it was over, where that is known."""
        return self.about.get("end_ns") or self.time_ns


Kept: TypeAlias = tuple[Any, ...]
"""An event as it is kept where many come and most go: its first four fields, a function that makes
an `Event` of this, and its arguments."""

_in_order: Final = itemgetter(0, 1, 2)
"""Sort key of events."""
_time: Final = itemgetter(0)
"""Enough for nearly all of them, in a sixth of the time."""


class Events:
    """The latest events, at most so many, in whatever order they came."""

    __slots__ = ("_dropped", "_events", "_limit", "_ordered", "_room")

    def __init__(self, limit: int = LIMITS.events) -> None:
        self._limit = limit
        self._room = limit + limit // 4 + 1
        """Events that are held before the oldest are dropped. Most come in their order: to sort
        them now and then takes a fifth of what a heap of them takes."""
        self._events: list[Event | Kept] = []
        """Time, id and part make each unlike all others."""
        self._ordered = True
        """None is earlier than the one before it."""
        self._dropped = 0

    @property
    def dropped(self) -> int:
        return self._dropped + max(0, len(self._events) - self._limit)

    def add(self, event: Event | Kept) -> None:
        events = self._events
        if events and event[0] < events[-1][0]:
            self._ordered = False
        events.append(event)
        if len(events) >= self._room:
            self._drop()

    def add_all(self, new: Sequence[Event | Kept]) -> None:
        if not new:
            return
        events = self._events
        if self._ordered:
            times = list(map(_time, new))
            self._ordered = (not events or times[0] >= events[-1][0]) and times == sorted(times)
        events += new
        if len(events) >= self._room:
            self._drop()

    def note(self, row: Row, kind: str, about: dict[str, Any], part: int = 0) -> None:
        self.add(Event(row.time_ns, row.id, part, row.number, kind, about))

    def _drop(self) -> None:
        events = self._events
        surplus = len(events) - self._limit
        if surplus > 0:
            if not self._ordered:
                events.sort(key=_time)
                self._ordered = True
            if events[surplus - 1][0] == events[-self._limit][0]:
                events.sort(key=_in_order)
            del events[:surplus]
            self._dropped += surplus

    def shorten(self, limit: int) -> None:
        """Keep at most so many from now on, if that is fewer than before."""
        if limit < self._limit:
            self._limit = limit
            self._room = limit + limit // 4 + 1
            self._drop()

    def merge(self, other: Events) -> None:
        other._drop()
        self.add_all(other._events)
        self._dropped += other._dropped

    def __iter__(self) -> Iterator[Event]:
        self._drop()
        events = sorted(self._events, key=_in_order)
        return iter([each if type(each) is Event else each[4](each) for each in events])

    def __len__(self) -> int:
        return min(len(self._events), self._limit)

    def dump(self) -> list[Any]:
        return [self.dropped, list(map(list, self))]

    def load(self, state: list[Any]) -> Self:
        self._dropped, events = state
        self._events = list(map(Event._make, events))
        self._ordered = False
        return self
