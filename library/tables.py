"""The tables of statistics by name, with what counts them and which lines they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, overload

from kafkascope.library.errors import UsageError
from kafkascope.library.values import duration, moment

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Column, Line
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.library.passes import CountedTraffic

TableName: TypeAlias = Literal[
    "apis",
    "latency",
    "errors",
    "topics",
    "partitions",
    "connections",
    "client-connections",
    "sizes",
    "rates",
    "clients",
    "client-apis",
    "groups",
    "rebalances",
    "group-members",
    "delivery-partitions",
    "delivery-events",
    "delivery-plans",
    "delivery-lag",
    "nodes",
    "coordinators",
    "leaders",
    "producers",
    "producer-partitions",
    "transactions",
    "map",
    "journeys",
]
"""Tables of statistics, as docs/library.md lists them."""
OwnName: TypeAlias = Literal["exchanges", "records"]
"""Tables that are made while a capture is read."""
Key: TypeAlias = Literal[
    "what",
    "code",
    "api",
    "version",
    "api_version",
    "client",
    "client_id",
    "client_address",
    "broker",
    "broker_address",
    "topic",
    "group",
    "expected",
]
"""Subjects of a line, by their names in filters or in JSON."""

Told: TypeAlias = "tuple[Sequence[Column], list[Line]]"
"""Columns and lines of a table."""


MAX_HTML_LINES: Final = 200
"""A notebook keeps what it shows."""


class Table(Sequence[Mapping[str, Any]]):
    """Lines of a statistic, the most important first: mappings of column names to values. Times
    are in UTC, durations `timedelta`s, shares 0 to 1; None is what is not known."""

    def __init__(self, name: str, columns: Sequence[Column], lines: list[Line]) -> None:
        self.name = name
        self._columns = columns
        self._lines = lines

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self._columns)

    @property
    def raw(self) -> tuple[Sequence[Column], list[Line]]:
        """Columns with their kinds, and lines with times and durations as nanoseconds."""
        return self._columns, self._lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(at, slice):
            return [self._values(line) for line in self._lines[at]]
        return self._values(self._lines[at])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return map(self._values, self._lines)

    def _values(self, line: Line) -> dict[str, Any]:
        return {column.name: _value(column, line.get(column.name)) for column in self._columns}

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} lines of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """Return the first lines as a table for notebooks, with the headings of the commands. Text
        of the capture is escaped."""
        from html import escape

        from kafkascope.analyzer.render.times import Times
        from kafkascope.analyzer.statistics.table import cell

        times = Times("u")
        head = "".join(f"<th>{escape(column.title)}</th>" for column in self._columns)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(cell(column, line, times))}</td>" for column in self._columns)
            + "</tr>"
            for line in self._lines[:MAX_HTML_LINES]
        )
        rest = len(self) - MAX_HTML_LINES
        more = f"<p>{rest:,} more lines</p>" if rest > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _value(column: Column, value: Any) -> Any:
    if isinstance(value, int):
        if column.kind == "duration":
            return duration(value)
        if column.kind == "time":
            return moment(value)
        if column.kind == "flag":
            return bool(value)
    return value


class How(NamedTuple):
    """How a table is wanted."""

    by: tuple[str, ...] = ()
    """Subject of a line; empty for the usual one."""
    release: str | None = None
    """A Kafka release that clients have to work with."""


class Counted(NamedTuple):
    """How a table is made."""

    counts: str
    """Tables that say the same are counted together."""
    counted: Callable[[], Any]
    """Makes the statistic."""
    lines: Callable[[CountedTraffic, How], Told]
    """Its columns and lines."""
    whole: Callable[[], Any] | None = None
    """Makes a statistic of all exchanges, which it needs where these are only some."""


def _simple(name: str) -> Counted:
    """Return the main table of a statistic."""

    def made() -> Any:
        from kafkascope.analyzer.statistics.accumulators import STATISTICS

        return STATISTICS[name]()

    def lines(counted: CountedTraffic, how: How) -> Told:
        found, names = counted.found, counted.names
        if not hasattr(found, "USUAL"):
            return found.COLUMNS, found.rows(names)
        from kafkascope.analyzer.statistics.simple import part_named

        by = tuple(map(part_named, how.by)) or found.USUAL
        if wrong := [part for part in by if part not in found.choices()]:
            raise UsageError(f"{name} has no {wrong[0]!r}; there are {', '.join(found.choices())}")
        return found.columns(by), found.rows(names, by)

    return Counted(name, made, lines)


def _part(name: str, columns: str, rows: Callable[[Any, TopicNames | None], list[Line]]) -> Counted:
    """Return another table of a statistic."""
    whole = _simple(name)
    return whole._replace(
        lines=lambda counted, _: (
            getattr(counted.found, columns),
            rows(counted.found, counted.names),
        )
    )


def _findings() -> Any:
    from kafkascope.analyzer.findings import Findings

    return Findings()


def _clients(counted: CountedTraffic, how: How) -> Told:
    from kafkascope.analyzer.findings.outcomes import (
        BREAKS,
        COLUMNS,
        VERDICT,
        judged,
        of_selection,
        outcomes,
    )

    chosen, names = counted.found.base.clients, counted.names
    ends = outcomes(counted.whole or counted.found, names)
    if counted.whole is not None:
        ends = of_selection(chosen, ends, counted.whole.base.clients)
    verdict = (BREAKS,) if how.release is None else VERDICT
    return (*chosen.COLUMNS, *verdict, *COLUMNS), judged(chosen, how.release, ends)


def _errors(counted: CountedTraffic, how: How) -> Told:
    from kafkascope.analyzer.findings.evidence import settled

    found = (counted.whole or counted.found).reported(counted.names)
    settled(counted.found.base.errors, found)
    errors = counted._replace(found=counted.found.base.errors)
    return _simple("errors").lines(errors, how)


def _audited(columns: str, rows: str) -> Callable[[CountedTraffic, How], Told]:
    """Return what makes a table of the audit of deliveries."""

    def lines(counted: CountedTraffic, how: How) -> Told:
        from kafkascope.analyzer.statistics.delivery import model as declared
        from kafkascope.analyzer.statistics.delivery.audit import Audit

        base = counted.found.base
        found = Audit(base.delivery, base.groups, base.cluster, counted.names)
        lines = [line for each in base.delivery.groups() for line in getattr(found, rows)(each)]
        return getattr(declared, f"{columns}_COLUMNS"), lines

    return lines


TABLES: Final[dict[TableName, Counted]] = {
    "apis": _simple("apis"),
    "latency": _simple("latency"),
    "errors": Counted("findings", _findings, _errors, _findings),
    "topics": _simple("topics"),
    "partitions": _part(
        "topics", "PARTITION_COLUMNS", lambda found, names: found.partitions(names)
    ),
    "connections": _simple("connections"),
    "client-connections": _part(
        "connections",
        "CLIENT_COLUMNS",
        lambda found, names: found.by_client(names, found.rows(names)),
    ),
    "sizes": _simple("sizes"),
    "rates": _simple("rates"),
    "clients": Counted("findings", _findings, _clients, _findings),
    "client-apis": _part("clients", "API_COLUMNS", lambda found, names: found.apis()),
    "groups": _simple("groups"),
    "rebalances": _part(
        "groups",
        "REBALANCE_COLUMNS",
        lambda found, names: [line for each in found.names() for line in found.rebalances(each)],
    ),
    "group-members": _part(
        "groups",
        "MEMBER_COLUMNS",
        lambda found, names: [
            line for each in found.names() for line in found.members(each, names)
        ],
    ),
    "delivery-partitions": Counted("findings", _findings, _audited("PARTITION", "partitions")),
    "delivery-events": Counted("findings", _findings, _audited("EVENT", "events")),
    "delivery-plans": Counted("findings", _findings, _audited("PLAN", "plans")),
    "delivery-lag": Counted("findings", _findings, _audited("LAG", "lags")),
    "nodes": _simple("cluster"),
    "coordinators": _part(
        "cluster", "COORDINATOR_COLUMNS", lambda found, names: found.coordinators()
    ),
    "leaders": _part("cluster", "LEADER_COLUMNS", lambda found, names: found.leaders(names)),
    "producers": _simple("producers"),
    "producer-partitions": _part(
        "producers", "LANE_COLUMNS", lambda found, names: found.lanes(names)
    ),
    "transactions": _part(
        "producers", "TRANSACTION_COLUMNS", lambda found, names: found.transactions(names)
    ),
    "map": _simple("map"),
    "journeys": _simple("journeys"),
}
"""By name, as docs/library.md lists them."""
