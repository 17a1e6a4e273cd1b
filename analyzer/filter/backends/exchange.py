"""The back end "one exchange": a bound filter as a predicate over a row and its exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkascope.analyzer.exchanges import rows
from kafkascope.analyzer.filter.bind import Bound, Every, Find, Some, Test, Unless, bind, cost
from kafkascope.analyzer.filter.checks import check_of
from kafkascope.analyzer.filter.fields import EXPECTED
from kafkascope.analyzer.filter.getters import Values, body_values
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.places import decodes

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange

Part: TypeAlias = Callable[["Row", "Exchange | None"], bool]


def summary(row: Row) -> str:
    """Return the text that a string alone searches: the line of `ls`, and its subject."""
    api = f"{row.api} v{row.api_version}"
    named = (*row.topics, *row.implied_topics, *row.groups, *row.transactional_ids)
    start = (row.client_id or "", row.client_address, row.broker_address, row.software, api)
    return " ".join((*start, rows.result(row), row.reason, *named))


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
        match bound:
            case Every(terms):
                every = [self.part(term) for term in cheapest_first(terms)]
                return lambda row, exchange: all(part(row, exchange) for part in every)
            case Some(terms):
                some = [self.part(term) for term in cheapest_first(terms)]
                return lambda row, exchange: any(part(row, exchange) for part in some)
            case Unless(term):
                part = self.part(term)
                return lambda row, exchange: not part(row, exchange)
            case Find(text):
                return lambda row, exchange: text in summary(row).lower()
            case Test():
                return self._test(bound)

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
    """Return whether there are values, and a check says the same of each. One pass: those of
    records are decompressed while they are read."""
    found = False
    for value in values:
        if bool(check(value)) is not wanted:
            return False
        found = True
    return found


def compile_filter(text: str, known: Known = NOTHING) -> Filter:
    """Return the filter of a text; `FilterError` when it is invalid."""
    bound = bind(text)
    decodes(bound, text, known)
    return Filter(bound, known)
