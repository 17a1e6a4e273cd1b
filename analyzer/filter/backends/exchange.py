"""The back end "one exchange": a bound filter as a predicate over a row and its exchange; also over
the lines of the connection statistics, whose connections may have no exchange. For those only
fields with the same value in all exchanges of a connection can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.filter.bind import (
    And,
    Bound,
    Not,
    Or,
    Search,
    Test,
    bound_of,
    cost,
    fields_of,
)
from kafkascope.analyzer.filter.checks import check_of
from kafkascope.analyzer.filter.fields import EXPECTED
from kafkascope.analyzer.filter.fields import FIELDS as ALL
from kafkascope.analyzer.filter.getters import Values, body_values
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.captures.model import TlsSummary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.statistics.model import Line

Part: TypeAlias = Callable[..., bool]


def summary(row: Row) -> str:
    """Return the text that a string alone searches: the line of `ls`, and its subject."""
    api = f"{row.api} v{row.api_version}"
    named = (*row.topics, *row.implied_topics, *row.groups, *row.transactional_ids)
    start = (row.client_id or "", row.client_address, row.broker_address, row.software, api)
    return " ".join((*start, result(row), row.reason, *named))


class Filter:
    """A filter for exchanges, applied to one after the other."""

    def __init__(self, bound: Bound | None, known: Known = NOTHING) -> None:
        self.bound = bound
        self.before_ns: int | None = None
        """Time of the exchange before the next one; None when there is none."""
        self._known = known
        self._part = None if bound is None else self.part(bound)

    def __call__(self, row: Row, exchange: Exchange | None = None) -> bool:
        """Return whether the exchange matches. Without `exchange`, fields of cost b have no
        value."""
        if self._part is None:
            return True
        wanted = self._part(row, exchange)
        self.before_ns = row.time_ns
        return wanted

    def part(self, bound: Bound) -> Part:
        """Return a part of a filter as a predicate that uses what this one has seen."""
        return predicate(bound, self._leaf)

    def _leaf(self, leaf: Test | Search) -> Part:
        if isinstance(leaf, Test):
            return self._test(leaf)
        text = leaf.text
        return lambda row, exchange: text in summary(row).lower()

    def _delta(self, row: Row) -> Values:
        return () if self.before_ns is None else (row.time_ns - self.before_ns,)

    def _test(self, test: Test) -> Part:
        name, path = test.field.name, test.path
        holds = scoped(test)
        if test.field.told_by == "schemas":
            decoding = self._known.decoding
            if decoding is None:
                return lambda row, exchange: holds(())
            return lambda row, exchange: holds(decoding.values(exchange, name, path))
        if path:
            return lambda row, exchange: holds(body_values(exchange, path))
        if test.field.read is not None:
            read = test.field.read
            return lambda row, exchange: exchange is not None and holds(read(exchange))
        if test.field.told_by in ("notes", "findings"):
            known = self._known
            return lambda row, exchange: holds(known.values(name, row.number))
        if name == EXPECTED:
            known = self._known
            return lambda row, _: holds((known.expected.get(row.number, row.expected),))
        get = test.field.get or self._delta
        return lambda row, exchange: holds(get(row))


def predicate(bound: Bound, leaf: Callable[[Test | Search], Part]) -> Part:
    """Return a filter as a predicate of those of its leaves, the ones that need the message last.
    It is given a row and its exchange, or another unit alone."""
    match bound:
        case And(terms):
            every = [predicate(term, leaf) for term in cheapest_first(terms)]
            return lambda unit, exchange=None: all(part(unit, exchange) for part in every)
        case Or(terms):
            some = [predicate(term, leaf) for term in cheapest_first(terms)]
            return lambda unit, exchange=None: any(part(unit, exchange) for part in some)
        case Not(term):
            part = predicate(term, leaf)
            return lambda unit, exchange=None: not part(unit, exchange)
        case _:
            return leaf(bound)


def cheapest_first(terms: tuple[Bound, ...]) -> list[Bound]:
    """Return the terms in the order of their cost: those that need the message come last."""
    return sorted(terms, key=lambda term: "isb".index(cost(term)))


def scoped(test: Test) -> Callable[[Iterable[Any]], bool]:
    """Return a test over all values of a field."""
    if test.scope == "has":
        if test.field.type == "bool" or test.field.truth:
            return any
        return bool
    check = check_of(test)
    match test.scope:
        case "any":
            return lambda values: any(check(value) for value in values)
        case "all":
            return lambda values: _each(values, check, True)
        case "none":
            return lambda values: _each(values, check, False)


def _each(values: Iterable[Any], check: Callable[[Any], bool], wanted: bool) -> bool:
    """Return whether there are values, and `check` is `wanted` for each. One pass: those of records
    are decompressed while they are read."""
    found = False
    for value in values:
        if bool(check(value)) is not wanted:
            return False
        found = True
    return found


def compile_filter(text: str, known: Known = NOTHING) -> Filter:
    """Return the filter of a text; `FilterError` when it is invalid."""
    return Filter(bound_of(text, known), known)


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


def is_about_connections(bound: Bound | None) -> bool:
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
