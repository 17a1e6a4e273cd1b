"""The back end "one connection": filters over the lines of the connection statistics, also for
connections without exchanges. Only fields with the same value in all exchanges of a connection can
be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kafkascope.analyzer.filter.backends.exchange import Filter
from kafkascope.analyzer.filter.bind import Bound, fields_of
from kafkascope.analyzer.filter.fields import FIELDS as ALL
from kafkascope.captures.model import TlsSummary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.statistics.model import Line

FIELDS: Final = tuple(field.name for field in ALL if field.told_by in ("connection", "tls"))
"""Fields of a connection without exchanges."""
CHOSEN_BY: Final = (
    "connections without an exchange can be selected by "
    f"{', '.join(FIELDS[:-1])} and {FIELDS[-1]} only"
)
"""Why other fields are refused."""


class Ends(NamedTuple):
    """The part of a row that a connection has: `filter.getters` read these attributes."""

    connection: int
    client_address: str
    broker_address: str
    time_ns: int
    tls: TlsSummary | None
    via: str


def asks_connections(bound: Bound | None) -> bool:
    """Return whether a filter can be applied to connections."""
    return fields_of(bound) <= set(FIELDS)


def selected(lines: Iterable[Line], bound: Bound | None) -> list[Line]:
    """Return the lines of connections that match; the line that sums up others has no number and
    never matches."""
    wanted = Filter(bound)
    return [
        line
        for line in lines
        if bound is None
        or (isinstance(line["connection"], int) and wanted(cast("Row", ends_of(line))))
    ]


def ends_of(line: Line) -> Ends:
    """Return the attributes of a line that filters read."""
    opened = line["opened"] or 0
    tls = None
    if line["resumed"] is not None:
        said = (line[key] or "" for key in ("sni", "alpn", "tls_client"))
        tls = TlsSummary.named(line["tls"] or "", line["resumed"], *said)
    ends = line["client_address"], line["broker_address"]
    return Ends(line["connection"], *ends, opened, tls, line.get("via") or "")
