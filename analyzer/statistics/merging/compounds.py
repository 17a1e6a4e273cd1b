"""Accumulators of several parts, which a class declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

from kafkascope.analyzer.statistics.merging.measures import Measures
from kafkascope.analyzer.statistics.merging.tables import MAX_KEYS, Key, Keyed


class _Part(NamedTuple):
    """A declared part of a `Compound`."""

    make: Callable[[int | None], Any]
    """Makes the part of an instance; gets the limit of that instance."""


def table(
    kind: type[Measures],
    limit: int = MAX_KEYS,
    unranked: int = 0,
    sample: Callable[[Key], int] | None = None,
    weight: int = 1,
) -> Any:
    """Declare a part of a `Compound`: measures by key, for at most `limit` keys. `unranked`: so
    many parts at the front of a key are not the same in every way of reading a capture (the number
    of a connection), and have no say in which keys are kept. `sample`: gives the rank of a key,
    where keys are many, and nobody asks for the sum of those that are left out; keys of equal rank
    are compared. `weight`: so many times the memory of others an event of this table takes."""

    def made(most: int | None) -> Keyed[Any]:
        return Keyed(kind, limit if most is None else min(limit, most), unranked, sample, weight)

    return _Part(made)


def single(kind: type[Any]) -> Any:
    """Declare a part of a `Compound` that is no table: measures, or another compound."""
    return _Part(lambda most: kind(most) if issubclass(kind, Compound) else kind())


class Compound:
    """State of several parts, which the class declares (`x: Keyed[X] = table(X)`): they merge, and
    are written down in the order of their declaration."""

    _PARTS: ClassVar[tuple[tuple[str, _Part], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._PARTS += tuple(item for item in vars(cls).items() if isinstance(item[1], _Part))

    def __init__(self, limit: int | None = None) -> None:
        """`limit`: of the keys of each table, where it is less than the table's own."""
        for name, part in self._PARTS:
            setattr(self, name, part.make(limit))

    def parts(self) -> list[Any]:
        """Return the parts, as they are declared."""
        return [getattr(self, name) for name, _ in self._PARTS]

    def merge(self, other: Self) -> None:
        """Take in what the other one has."""
        for mine, its in zip(self.parts(), other.parts(), strict=True):
            mine.merge(its)

    def dump(self) -> Any:
        """Return the state as JSON."""
        return [part.dump() for part in self.parts()]

    def load(self, state: Any) -> Self:
        """Take over what `dump` gave."""
        for part, each in zip(self.parts(), state, strict=True):
            part.load(each)
        return self
