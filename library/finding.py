"""Findings as Python programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafkascope.library.errors import UsageError
from kafkascope.library.values import moment

if TYPE_CHECKING:
    from kafkascope.analyzer.findings.model import Finding as Model
    from kafkascope.analyzer.model import Severity

LEVELS = ("error", "warning", "note", "chat")


def at_least(severity: Severity, level: str) -> bool:
    """Return whether a severity is as bad as a level, or worse."""
    if level not in LEVELS:
        raise UsageError(f"{level!r} is none of {', '.join(LEVELS)}")
    return LEVELS.index(severity) <= LEVELS.index(level)


class Finding:
    """Something that `kafkascope check` finds: the names of finding/1, see docs/json.md."""

    __slots__ = ("_model",)

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The rule, see docs/findings.md."""
        return self._model.name

    @property
    def severity(self) -> Severity:
        """error, warning, note or chat."""
        return self._model.severity

    @property
    def text(self) -> str:
        """What was seen, in a sentence with numbers."""
        return self._model.text

    @property
    def advice(self) -> str:
        """What to do."""
        return self._model.advice

    @property
    def count(self) -> int:
        """How often it was seen."""
        return self._model.count

    @property
    def first(self) -> datetime | None:
        """When it was seen first, UTC; None where it has no time."""
        return None if self._model.first_ns is None else moment(self._model.first_ns)

    @property
    def last(self) -> datetime | None:
        """When it was seen last."""
        return None if self._model.last_ns is None else moment(self._model.last_ns)

    @property
    def filter(self) -> str:
        """A display filter for the exchanges that it is about; empty where there are none."""
        return self._model.filter

    @property
    def number(self) -> int | None:
        """Number of the first of these exchanges."""
        return self._model.number

    @property
    def entities(self) -> tuple[tuple[str, str], ...]:
        """Whom it is about: ("client", "orders"), ("topic", "oders")."""
        return self._model.entities

    @property
    def id(self) -> str:
        """Equal for equal findings."""
        return self._model.id

    @property
    def key(self) -> str:
        """Rule and subject without times, ports and counts: the same trouble in another capture
        has the same."""
        return self._model.key

    @property
    def because(self) -> tuple[str, ...]:
        """Ids of the findings that explain it; empty for a cause."""
        return self._model.because

    def to_dict(self) -> dict[str, Any]:
        """Return finding/1, see docs/json.md."""
        from kafkascope.analyzer.findings.model import COLUMNS
        from kafkascope.analyzer.statistics.table import json_line

        return json_line(COLUMNS, self._model.line(), "finding/1")

    def __repr__(self) -> str:
        return f"<Finding {self.severity} {self.name}: {self.text}>"
