"""Findings as Python programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafkascope.library.errors import UsageError
from kafkascope.library.values import Attribute, moment

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

    name = Attribute[str]("_model", "The rule, see docs/findings.md.")
    severity: Attribute[Severity] = Attribute("_model", "error, warning, note or chat.")
    text = Attribute[str]("_model", "What was seen, in a sentence with numbers.")
    advice = Attribute[str]("_model", "What to do.")
    count = Attribute[int]("_model", "Number of exchanges and connection attempts that show it.")
    filter = Attribute[str](
        "_model", "A display filter for the exchanges that it is about; empty where there are none."
    )
    number = Attribute[int | None]("_model", "Number of the first of these exchanges.")
    entities = Attribute[tuple[tuple[str, str], ...]](
        "_model", 'Whom it is about: ("client", "orders"), ("topic", "oders").'
    )
    id = Attribute[str]("_model", "Equal for equal findings.")
    key = Attribute[str](
        "_model",
        "Rule and subject without times, ports and counts: equal for the same problem in another "
        "capture.",
    )
    because = Attribute[tuple[str, ...]](
        "_model", "Ids of the findings that explain it; empty for a cause."
    )

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def first(self) -> datetime | None:
        """When it was seen first, UTC; None where it has no time."""
        return None if self._model.first_ns is None else moment(self._model.first_ns)

    @property
    def last(self) -> datetime | None:
        """When it was seen last."""
        return None if self._model.last_ns is None else moment(self._model.last_ns)

    def to_dict(self) -> dict[str, Any]:
        """Return finding/1, see docs/json.md."""
        from kafkascope.analyzer.findings.model import COLUMNS
        from kafkascope.analyzer.statistics.table import json_line

        return json_line(COLUMNS, self._model.line(), "finding/1")

    def __repr__(self) -> str:
        return f"<Finding {self.severity} {self.name}: {self.text}>"
