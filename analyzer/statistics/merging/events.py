"""The latest of what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self, TypeAlias

from kafkascope.analyzer.exchanges.rows import Row

MAX_EVENTS: Final = 4_000
FEW: Final = 1_000


class Event(NamedTuple):
    """Something that happened once."""

    time_ns: int
    id: str
    """Of the exchange."""
    part: int
    """Tells the events of one exchange apart."""
    number: int
    """Of the exchange."""
    kind: str
    about: dict[str, Any]
    """Plain values only."""


Kept: TypeAlias = tuple[Any, ...]
"""An event as it is kept where many come and most go: its first four fields, a function that makes
an `Event` of this, and whatever that wants."""

_in_order: Final = itemgetter(0, 1, 2)
"""What events are sorted by."""
_time: Final = itemgetter(0)
"""Enough for nearly all of them, in a sixth of the time."""


class Events:
    """The latest events, at most so many, in whatever order they came."""

    __slots__ = ("_dropped", "_events", "_limit", "_ordered", "_room")

    def __init__(self, limit: int = MAX_EVENTS) -> None:
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
        """How many older ones there were."""
        return self._dropped + max(0, len(self._events) - self._limit)

    def add(self, event: Event | Kept) -> None:
        """Take an event in."""
        events = self._events
        if events and event[0] < events[-1][0]:
            self._ordered = False
        events.append(event)
        if len(events) >= self._room:
            self._drop()

    def add_all(self, new: Sequence[Event | Kept]) -> None:
        """Take events in."""
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
        """Take in something that an exchange showed."""
        self.add(Event(row.time_ns, row.id, part, row.number, kind, about))

    def _drop(self) -> None:
        """Drop what is older than the latest ones."""
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
        """Take in the events of the other one."""
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
        """Return the state as JSON."""
        return [self.dropped, list(map(list, self))]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        self._dropped, events = state
        self._events = list(map(Event._make, events))
        self._ordered = False
        return self
