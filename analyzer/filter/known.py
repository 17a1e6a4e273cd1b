"""Data for filters besides the traffic: marks, comments, findings, schemas."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.decoded.reading import Decoding


@dataclass(slots=True)
class Known:
    """Notes and findings by the number of the exchange. They may change between two evaluations;
    filters keep none of them."""

    marked: Collection[int] = frozenset()
    """Preferably a set."""
    comments: Mapping[int, str] = field(default_factory=dict)
    findings: dict[int, Sequence[str]] = field(default_factory=dict)
    """The rules of the findings that mention the exchange."""
    severities: dict[int, Sequence[str]] = field(default_factory=dict)
    expected: Mapping[int, bool] = field(default_factory=dict)
    """Whether the errors of an exchange are expected, where findings have decided that."""
    ignored: Collection[int] = frozenset()
    """Removed from the list; preferably a set."""
    decoding: Decoding | None = None
    """Decodes keys and values by schema; filters about decoded values are refused without it."""

    def values(self, name: str, number: int) -> tuple[Any, ...]:
        """Return the values of one of `fields.NOTED` for an exchange."""
        found = self.numbers(name)
        if name in ("marked", "ignored"):
            return (number in found,)
        if number not in found:
            return ()
        assert isinstance(found, Mapping)
        return (found[number],) if name == "comment" else tuple(found[number])

    def numbers(self, name: str) -> Collection[int]:
        """Return the exchanges that have values for a field."""
        found: Collection[int] = getattr(self, _ATTRIBUTES.get(name, name))
        return found


_ATTRIBUTES: Final = {
    "comment": "comments",
    "finding": "findings",
    "finding.severity": "severities",
}
NOTHING: Final = Known()
