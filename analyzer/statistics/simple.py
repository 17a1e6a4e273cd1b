"""Bases of the statistics that are one table of measures by key, with keys that may be left out.

A subclass says what its key is, adds to the measures of keys, and makes lines of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from kafkascope.analyzer.statistics.merging.measures import Measures
from kafkascope.analyzer.statistics.merging.tables import OTHERS, Key, Keyed
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Column,
    Line,
    TopicNames,
    checked,
    stated,
    topic_label,
)

M = TypeVar("M", bound=Measures)

CLIENT: Final = ("client_id", "host")
"""Parts of a key that make up a client."""
PARTS: Final = {
    "what": (Column("what"),),
    "code": (Column("code", "count"),),
    "api": (Column("api"),),
    "version": (Column("api_version", "count"),),
    "client": (Column("client_id"), Column("client_address")),
    "broker": (Column("broker_address"),),
    "topic": (Column("topic"),),
    "group": (Column("group"),),
    "expected": (Column("expected", "flag"),),
}
"""The columns of what lines may be for, by its name in filters."""
_PART_OF: Final = {column.name: part for part, columns in PARTS.items() for column in columns}


def part_named(name: str) -> str:
    """Return what lines may be for by its name in filters or that of one of its columns."""
    return _PART_OF.get(name, name)


class ByKey(Accumulator, Generic[M]):
    """Measures by key, in bounded memory."""

    KEY: ClassVar[tuple[str, ...]]
    """Names of the parts of a key."""
    values: Keyed[M]
    """Declared by each: `table(Kind)`."""

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON, with its version."""
        return stated(self, self.values.dump())

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`."""
        self.values.load(checked(self, state))
        return self

    def grouped(
        self, by: Sequence[str], names: TopicNames | None = None
    ) -> list[tuple[dict[str, Any], M]]:
        """Sum up the measures over all parts of the key that are not in `by`. Topics have their
        names."""
        items = self.values.items()
        sums: dict[tuple[Any, ...], M] = {}
        for key, value in items:
            parts = dict(zip(self.KEY, key, strict=True))
            self.resolve(parts)
            if "topic" in parts:
                parts["topic"] = topic_label(parts["topic"], names)
            self._into(sums, tuple(parts[part] for part in by), value)
        if self.values.others is not None:
            self._into(sums, (OTHERS,) * len(by), self.values.others)
        return [(dict(zip(by, key, strict=True)), value) for key, value in sums.items()]

    def resolve(self, parts: dict[str, Any]) -> None:
        """Replace parts of a key by what they are at the end."""

    def _into(self, sums: dict[tuple[Any, ...], M], key: Key, value: M) -> None:
        found = sums.get(key)
        if found is None:
            found = sums[key] = self.values.kind()
        found.merge(value)


class Breakdown(ByKey[M]):
    """Measures by key, with lines for whatever parts of the key are asked for."""

    USUAL: ClassVar[tuple[str, ...]]
    """Parts that lines are for unless others are asked for."""

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """Return the parts that lines may be for, as `PARTS` has them."""
        return tuple(dict.fromkeys("client" if part in CLIENT else part for part in cls.KEY))

    @classmethod
    def key_columns(cls, by: Sequence[str]) -> tuple[Column, ...]:
        """Return the columns of some parts of the key."""
        return tuple(column for part in by for column in PARTS[part])

    @classmethod
    def columns(cls, by: Sequence[str]) -> tuple[Column, ...]:
        """Return the columns of lines for some parts of the key."""
        return (*cls.key_columns(by), *cls.COLUMNS)

    def keyed(self, by: Sequence[str], names: TopicNames | None = None) -> list[tuple[Line, M]]:
        """Return the measures for each value of some parts of the key, by the columns of these."""
        parts = [each for part in by for each in (CLIENT if part == "client" else (part,))]
        columns = [column.name for column in self.key_columns(by)]
        return [
            (dict(zip(columns, key.values(), strict=True)), measures)
            for key, measures in self.grouped(parts, names)
        ]

    def rows(self, names: TopicNames | None = None, by: Sequence[str] = ()) -> list[Line]:
        """Return one line for each value of some parts of the key, those with the most weight
        first."""
        found = self.keyed(by or self.USUAL, names)
        found.sort(key=lambda item: -self.weight(item[1]))
        return [self.line(key, measures) for key, measures in found]

    def weight(self, measures: M) -> int:
        """Return what lines are sorted by, the largest first."""
        raise NotImplementedError

    def line(self, key: Line, measures: M) -> Line:
        """Return the line of a key."""
        raise NotImplementedError
