"""Measures by key, for a limited number of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from heapq import heapify, heapreplace
from typing import Any, Final, Self, TypeAlias, TypeVar, cast

from kafkascope.analyzer.merging.bounded import Events, Names
from kafkascope.analyzer.merging.limits import LIMITS, MergingLimits
from kafkascope.analyzer.merging.measures import Measures, whole
from kafkascope.analyzer.ranks import bounded, rank

OTHERS: Final = "(others)"
"""Key of the keys beyond the limit."""

Key: TypeAlias = tuple[Any, ...]
"""Tuple of texts, numbers and None."""

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M", bound=Measures)


class Keyed(dict[Key, M]):
    """Measures by key, for at most `limit` keys; all other keys share the measures `others`.
    `[key]` returns the measures of a key. Add to them at once, because the next key may drop them.

    A dict, because each exchange uses some twenty tables, and nearly always with known keys.
    """

    __slots__ = (
        *("_dropping", "_limits", "_sample", "_shared", "_shares", "_unranked"),
        *("_weight", "kind", "limit", "others"),
    )

    def __init__(
        self,
        kind: type[M],
        limit: int = LIMITS.keys,
        unranked: int = 0,
        sample: Callable[[Key], int] | None = None,
        weight: int = 1,
        limits: MergingLimits = LIMITS,
    ) -> None:
        """`unranked`: number of leading parts of a key that do not decide which keys are kept,
        because they differ between ways to read a capture (the number of a connection). `sample`:
        replaces `rank`, for tables with many keys and without `others`; keys of equal rank are
        compared. `weight`: memory of an event in this table, as a multiple of the usual one."""
        self.kind = kind
        self.limit = limit
        self._unranked = unranked
        self._sample = sample
        self._weight = weight
        self._limits = limits
        self._dropping: list[tuple[int, Key]] = []
        """A heap, the largest rank first; made when the limit is reached."""
        self.others: M | None = None
        self._shared = 0
        """Exponent of the power of two of keys that share the events and names of the table; 0:
        keys do not share."""
        self._shares: list[tuple[str, int]] = []
        """Fields with events or names, and how many a key may have."""

    def __missing__(self, key: Key) -> M:
        short = bounded(key)
        if short is not key:
            return self[short]
        dropping = self._dropping
        if len(self) >= self.limit:
            # Most tables never fill. In a full one each further key is compared with the worst key
            # only.
            if not dropping:
                dropping += [(self._place(each), each) for each in self]
                heapify(dropping)
            number = self._place(key)
            if number < dropping[0][0]:
                return self._rest()
            if number == dropping[0][0] and key < dropping[0][1]:
                return self._rest()
            _, dropped = heapreplace(dropping, (number, key))
            gone = self.pop(dropped)
            if self._sample is None:
                self._rest().merge(gone)
        made = self[key] = self.kind()
        if len(self) > self._limits.shared_from:
            self._share(made)
        return made

    def _share(self, made: M) -> None:
        """Bound the events and names of all keys together. `made`: the measures of a new key."""
        bits = (len(self) - 1).bit_length()
        changed: Iterable[M] = (made,)
        if bits > self._shared:
            # All are shortened only when the number of keys has doubled, so the result does not
            # depend on the order of keys.
            self._shared, changed = bits, self.values()
            limits = {
                Events: self._limits.table_events // self._weight,
                Names: self._limits.table_names,
            }
            fields = _shared_by(cast("Any", self.kind))
            self._shares = [(name, max(limits[part] >> bits, 1)) for name, part in fields]
        for name, limit in self._shares:
            for each in changed:
                getattr(each, name).shorten(limit)

    @property
    def worst(self) -> int | None:
        """The largest rank of the kept keys of a sample; None while all are kept. Measures of keys
        with a larger rank are dropped."""
        return -self._dropping[0][0] if self._dropping else None

    def _place(self, key: Key) -> int:
        return -rank(key[self._unranked :]) if self._sample is None else -self._sample(key)

    def _rest(self) -> M:
        if self._sample is not None:
            return self.kind()
        if self.others is None:
            self.others = self.kind()
            if self._shared:
                self._share(self.others)
        return self.others

    def items(self) -> list[tuple[Key, M]]:  # type: ignore[override]
        """Return all keys and measures, without `others`, in the order of keys."""
        return self.where(lambda _: True)

    def where(self, test: Callable[[M], bool]) -> list[tuple[Key, M]]:
        """Return the keys and measures that pass a test, in the order of keys."""
        chosen = [item for item in super().items() if test(item[1])]
        return sorted(chosen, key=lambda item: _order(item[0]))

    def merge(self, other: Keyed[M]) -> None:
        for key, value in dict.items(other):
            self[key].merge(value)
        if other.others is not None:
            self._rest().merge(other.others)

    def dump(self) -> list[Any]:
        rest = None if self.others is None else self.others.dump()
        return [rest, [[list(key), value.dump()] for key, value in self.items()]]

    def load(self, state: list[Any]) -> Self:
        rest, pairs = state
        self.others = None if rest is None else self.kind().load(rest)
        self.update((tuple(key), self.kind().load(value)) for key, value in pairs)
        if len(self) > self._limits.shared_from:
            self._share(next(iter(self.values())))
        return self


def table(kind: type[Measures], *args: Any, **options: Any) -> Any:
    """Declare a field that is a table; arguments of `Keyed`."""
    return whole(partial(Keyed, kind, *args, **options))


def sums(kind: type[M], pairs: Iterable[tuple[K, M]]) -> dict[K, M]:
    found: dict[K, M] = {}
    for key, each in pairs:
        if (mine := found.get(key)) is None:
            mine = found[key] = kind()
        mine.merge(each)
    return found


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


@cache
def _shared_by(kind: type[Measures]) -> list[tuple[str, type[Events | Names]]]:
    """Return the names and types of the fields with events or names."""
    made = kind()
    found = ((name, type(getattr(made, name))) for name in kind.RULES)
    return [(name, part) for name, part in found if part in (Events, Names)]


def _order(key: Key) -> tuple[tuple[int, Any], ...]:
    """Return a sort key for keys that mix texts, numbers and None."""
    return tuple(
        (0, 0) if part is None else (1, part) if isinstance(part, int) else (2, part)
        for part in key
    )
