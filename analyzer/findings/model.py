"""What a finding is, and the rules that findings come from. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from analyzer.model import Severity
from analyzer.statistics.model import Column

if TYPE_CHECKING:
    from analyzer.statistics.model import Line

RANK: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2, "chat": 3}
"""Worst first. error: something does not work; warning: it works badly, or will stop to work; note:
worth knowing; chat: normal, and often taken for trouble."""


class Rule(NamedTuple):
    """A kind of finding."""

    name: str
    severity: Severity
    """The usual one; a finding may be milder."""
    title: str
    """What it tells, for lists of rules."""
    advice: str
    """What to do, in a sentence or two."""
    link: str = ""
    """The word for `kafkascope errors`: an error's name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An observation about the traffic."""

    name: str
    """Of the rule."""
    severity: Severity
    text: str
    """One sentence with numbers."""
    count: int
    """How often it was seen."""
    first_ns: int | None
    last_ns: int | None
    filter: str
    """Selects the exchanges that it is about; empty when it is about no exchange."""
    advice: str
    link: str = ""
    entities: tuple[tuple[str, str], ...] = ()
    """Who it is about: ("client", "orders-svc"), ("topic", "orders")..."""
    number: int | None = None
    """Of the first exchange."""

    def line(self) -> Line:
        """As a line of a table."""
        return {
            "severity": self.severity,
            "name": self.name,
            "text": self.text,
            "count": self.count,
            "first": self.first_ns,
            "last": self.last_ns,
            "filter": self.filter,
            "advice": self.advice,
            "link": self.link,
            "entities": [f"{kind}={name}" for kind, name in self.entities],
            "number": self.number,
        }


COLUMNS: Final = (
    Column("severity", "severity"),
    Column("name", "rule"),
    Column("count", "n", "count"),
    Column("first", "first", "time"),
    Column("last", "last", "time"),
    Column("number", "first No", "count"),
    Column("text", "finding"),
    Column("filter", "evidence", wide=True),
    Column("advice", "what to do", wide=True),
    Column("link", "error", wide=True),
    Column("entities", "about", "list", wide=True),
)


def order(finding: Finding) -> tuple[int, int, str, str]:
    """Worst first, then the most frequent."""
    return RANK[finding.severity], -finding.count, finding.name, finding.text
