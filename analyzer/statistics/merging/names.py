"""Sets of names that merge: the names themselves, or how many there were."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final, Self

from kafkascope.analyzer.ranks import bounded, rank
from kafkascope.analyzer.statistics.merging.measures import as_lists, as_tuples

MAX_NAMES: Final = 64
"""Of one set of names beside a key."""
MANY: Final = 1_024
RECENT: Final = 16
"""Values that are not hashed again, as they were counted last."""


class Names:
    """A set of texts or numbers that keeps at most so many, and says when there were more."""

    __slots__ = ("_limit", "_values", "_worst", "more")

    def __init__(self, limit: int = MAX_NAMES) -> None:
        self._limit = limit
        self._values: dict[Any, int] = {}
        """Value -> its rank, which is known once the set is full."""
        self._worst: Any = None
        self.more = False
        """There were more than it holds."""

    def add(self, value: Any) -> None:
        """Take a value in."""
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
        """Take in what the other one holds."""
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
        """Return the state as JSON."""
        return [self.more, as_lists(tuple(self))]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        more, values = state
        for value in as_tuples(values):
            self.add(value)
        if more:
            self._fill()
        return self


class Distinct:
    """How many different values there were, as far as a limit: of each a hash is kept."""

    __slots__ = ("_limit", "_ranks", "_recent")

    def __init__(self, limit: int = MANY) -> None:
        self._limit = limit
        self._ranks = array("Q")
        """The smallest, rising."""
        self._recent: dict[Any, None] = {}
        """Values that are in it."""

    def add(self, value: Any) -> None:
        """Take a value in."""
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
        """Take in what the other one counted."""
        for number in other._ranks:
            self._enter(number)

    def __len__(self) -> int:
        return len(self._ranks)

    def dump(self) -> str:
        """Return the state as JSON. It is a text, as large numbers in a state may stand for others
        that come late (`pipeline.tables.numbers`)."""
        return "".join(f"{number:016x}" for number in self._ranks)

    def load(self, state: str) -> Self:
        """Take over what `dump` gave."""
        ends = range(16, len(state) + 1, 16)
        self._ranks = array("Q", [int(state[end - 16 : end], 16) for end in ends])
        return self
