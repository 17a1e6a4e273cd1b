"""The back end "one connection": filters over lines of the statistic of connections, also of those
without any exchange. Only fields that are the same on all exchanges of a connection can be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kafkascope.analyzer.filter.backends.exchange import Filter
from kafkascope.analyzer.filter.bind import Bound, fields_of
from kafkascope.analyzer.filter.fields import FIELDS as ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.statistics.model import Line

FIELDS: Final = tuple(field.name for field in ALL if field.told_by == "connection")
"""What a connection without exchanges has."""
CHOSEN_BY: Final = (
    f"without an exchange, they are chosen by {', '.join(FIELDS[:-1])} and {FIELDS[-1]} only"
)
"""Why a filter leaves connects out."""


class Ends(NamedTuple):
    """The part of a row that a connection has: `filter_getters` read these by name."""

    connection: int
    client_address: str
    broker_address: str
    time_ns: int


def asks_connections(bound: Bound | None) -> bool:
    """Whether a filter can be judged of connections."""
    return fields_of(bound) <= set(FIELDS)


def selected(lines: Iterable[Line], bound: Bound | None) -> list[Line]:
    """The lines of connections that a filter wants; the sum of others has no number, and is none
    of them."""
    wanted = Filter(bound)
    return [
        line
        for line in lines
        if bound is None
        or (isinstance(line["connection"], int) and wanted(cast("Row", ends_of(line))))
    ]


def ends_of(line: Line) -> Ends:
    """What filters ask of a line."""
    opened = line["opened"] or 0
    return Ends(line["connection"], line["client_address"], line["broker_address"], opened)
