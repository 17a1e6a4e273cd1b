"""Bases of the statistics that are one table of measures by key, with keys that may be left out.

A subclass defines the key, adds to the measures of keys, and makes lines of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from kafkascope.analyzer.merging.measures import Measures
from kafkascope.analyzer.merging.tables import OTHERS, Key, Keyed, sums
from kafkascope.analyzer.statistics.model import Accumulator, Column, Line, TopicNames, topic_label

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

    def __init__(self) -> None:
        super().__init__()

    def grouped(
        self, by: Sequence[str], names: TopicNames | None = None
    ) -> list[tuple[dict[str, Any], M]]:
        found = sums(self.values.kind, self._parts(by, names))
        return [(dict(zip(by, key, strict=True)), value) for key, value in found.items()]

    def _parts(self, by: Sequence[str], names: TopicNames | None) -> Iterator[tuple[Key, M]]:
        for key, value in self.values.items():
            parts = dict(zip(self.KEY, key, strict=True))
            self.resolve(parts)
            if "topic" in parts:
                parts["topic"] = topic_label(parts["topic"], names)
            yield tuple(parts[part] for part in by), value
        if self.values.others is not None:
            yield (OTHERS,) * len(by), self.values.others

    def resolve(self, parts: dict[str, Any]) -> None:
        """Replace parts of a key by what they are at the end."""


class Breakdown(ByKey[M]):
    """Measures by key, with lines for the requested parts of the key."""

    USUAL: ClassVar[tuple[str, ...]]
    """Parts that lines are for by default."""
    SORT: ClassVar[str]
    """The column that lines are sorted by, the largest first."""

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """Return the parts that lines may be for, as `PARTS` has them."""
        return tuple(dict.fromkeys("client" if part in CLIENT else part for part in cls.KEY))

    @classmethod
    def key_columns(cls, by: Sequence[str]) -> tuple[Column, ...]:
        return tuple(column for part in by for column in PARTS[part])

    @classmethod
    def columns(cls, by: Sequence[str]) -> tuple[Column, ...]:
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
        """Return one line for each value of some parts of the key, in the order of `SORT`."""
        found = [self.line(*each) for each in self.keyed(by or self.USUAL, names)]
        return sorted(found, key=lambda line: -(line[self.SORT] or 0))

    def line(self, key: Line, measures: M) -> Line:
        raise NotImplementedError
