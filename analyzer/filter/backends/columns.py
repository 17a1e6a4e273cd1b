"""The back end "whole columns": a bound filter over the rows of a `Session`, a million at once.

    query = compile_query("api == Fetch and error != 0")      FilterError
    query.cost                                                "fast", or "decodes"
    query.mask(session)                                       bool array, one per row
    yes, maybe = query.settle(session, begin, end)            without reading any message
    query.decide(session, index)                              what `maybe` leaves open, row by row

Numpy evaluates the fields that columns hold; a part that needs the message stays open (three
values: yes, no, maybe), so that only the rows that depend on it are read. Each distinct value of a
table is evaluated once, by the checks of the other back end.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kafkascope.analyzer.filter.backends.exchange import Filter, scoped
from kafkascope.analyzer.filter.backends.sources import (
    LISTS,
    NUMBERS,
    TEXTS,
    Lookup,
    RowRange,
    packets,
)
from kafkascope.analyzer.filter.bind import And, Bound, Not, Or, Search, Test, bound_of, cost
from kafkascope.analyzer.filter.fields import COST_WORDS, EXPECTED, NOTED
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.values import DAY, ORDER, Clock, Instant, local_offset
from kafkascope.analyzer.session.rows import row_of_columns
from kafkascope.captures.errors import CaptureError
from kafkascope.times import SECOND

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.backends.sources import Bools, Numbers
    from kafkascope.analyzer.session.session import Session


TRUTHS: Final = frozenset({"marked", "ignored"})
TEXTUAL: Final = frozenset({"contains", "matches"})


class Verdict(NamedTuple):
    """For each row whether a part of a filter holds, and whether it fails; neither means maybe."""

    yes: Bools
    no: Bools


def _both(one: Verdict, other: Verdict) -> Verdict:
    return Verdict(one.yes & other.yes, one.no | other.no)


def _either(one: Verdict, other: Verdict) -> Verdict:
    return Verdict(one.yes | other.yes, one.no & other.no)


class Query:
    """A filter for one session only, because it keeps results for the values in the session's
    tables."""

    def __init__(self, bound: Bound | None, known: Known = NOTHING) -> None:
        self.bound = bound
        self.known = known
        self.cost = "fast" if bound is None else COST_WORDS[cost(bound)]
        """`fast`: columns suffice. `decodes`: messages may have to be read."""
        self._single = Filter(bound, known)
        self._lookups: dict[int, list[Lookup]] = {}

    def mask(self, session: Session, begin: int = 0, end: int | None = None) -> Bools:
        """Return which rows of begin..end match. Reads messages where necessary; rows whose bytes
        are gone do not match."""
        yes, maybe = self.settle(session, begin, end)
        for place in np.flatnonzero(maybe):
            yes[place] = self.decide(session, begin + int(place))
        return yes

    def settle(
        self, session: Session, begin: int = 0, end: int | None = None
    ) -> tuple[Bools, Bools]:
        """Return (matches, undecided) for rows begin..end, from columns alone."""
        end = len(session) if end is None else min(end, len(session))
        return self.settled(RowRange(session, begin, max(begin, end)))

    def settled(self, rows: RowRange) -> tuple[Bools, Bools]:
        """Return (matches, undecided) for these rows, from columns alone."""
        if self.bound is None:
            return np.ones(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
        yes, no = self._part(self.bound, rows)
        return yes, ~(yes | no)

    def decide(self, session: Session, index: int) -> bool:
        """Return whether one row matches; reads its message when necessary."""
        row = row_of_columns(session, index)
        self._single.before_ns = session.columns["time_ns"][index - 1] if index else None
        try:
            exchange = session.exchange(index) if self.cost == "decodes" else None
            return self._single(row, exchange)
        except CaptureError:
            return False

    def _part(self, bound: Bound, rows: RowRange) -> Verdict:
        match bound:
            case And(terms):
                return reduce(_both, (self._part(term, rows) for term in terms))
            case Or(terms):
                return reduce(_either, (self._part(term, rows) for term in terms))
            case Not(term):
                yes, no = self._part(term, rows)
                return Verdict(no, yes)
            case Search(text):
                return self._find(bound, text, rows)
            case Test():
                return self._test(bound, rows)

    def _find(self, bound: Search, text: str, rows: RowRange) -> Verdict:
        """Match one of the texts of the summary; the part that needs the message stays open."""
        lookups = self._lookups.get(id(bound))
        if lookups is None:
            found = [Lookup(lambda values: any(text in v.lower() for v in values)) for _ in TEXTS]
            lookups = self._lookups[id(bound)] = found
        yes = np.zeros(len(rows), dtype=np.bool_)
        for source, lookup in zip(TEXTS, lookups, strict=True):
            yes |= lookup(source(rows))
        return Verdict(yes, np.zeros(len(rows), dtype=np.bool_))

    def _test(self, test: Test, rows: RowRange) -> Verdict:
        name = test.field.name
        if test.path or test.field.cost == "b":
            nothing = np.zeros(len(rows), dtype=np.bool_)
            return Verdict(nothing, nothing)
        if name in NOTED:
            yes = self._noted(test, rows)
        elif name == "frame":
            yes = _framed(test, rows)
        elif name in NUMBERS and test.relation not in TEXTUAL:
            values, there = NUMBERS[name](rows)
            if test.scope == "has":
                yes = values != 0 if test.field.truth else np.ones(len(rows), dtype=np.bool_)
            else:
                yes = holds(test, values)
                yes = ~yes if test.scope == "none" else yes
            yes = yes if there is None else yes & there
        else:
            yes = self._listed(test, rows)
            if name == EXPECTED and self.known.expected:
                yes = self._decided(test, rows, yes)
        return Verdict(yes, ~yes)

    def _listed(self, test: Test, rows: RowRange) -> Bools:
        """Evaluate each distinct list of values once."""
        lookups = self._lookups.get(id(test))
        if lookups is None:
            lookups = self._lookups[id(test)] = [Lookup(scoped(test))]
        return lookups[0](LISTS[test.field.name](rows))

    def _decided(self, test: Test, rows: RowRange, yes: Bools) -> Bools:
        """Override the column's result by the decisions of findings."""
        judge, numbers = scoped(test), rows.numbers("number")
        for value in (False, True):
            decided = [at for at, expected in self.known.expected.items() if expected is value]
            yes = np.where(np.isin(numbers, np.array(decided, np.int64)), judge((value,)), yes)
        return yes

    def _noted(self, test: Test, rows: RowRange) -> Bools:
        """Evaluate the few exchanges with marks and findings one by one, all others together."""
        name, judge = test.field.name, scoped(test)
        noted = self.known.numbers(name)
        good = [number for number in noted if judge(self.known.values(name, number))]
        numbers = rows.numbers("number")
        found: Bools = np.isin(numbers, np.array(good, dtype=np.int64))
        if judge((False,) if name in TRUTHS else ()):
            found |= ~np.isin(numbers, np.array(list(noted), dtype=np.int64))
        return found


def _framed(test: Test, rows: RowRange) -> Bools:
    (request, in_request), (response, in_response) = packets(rows)
    there = in_request | in_response
    if test.scope == "has":
        return there
    one, other = holds(test, request), holds(test, response)
    if test.scope == "all":
        return there & (one | ~in_request) & (other | ~in_response)
    found = (one & in_request) | (other & in_response)
    return there & ~found if test.scope == "none" else found


def compile_query(text: str, known: Known = NOTHING) -> Query:
    """Return the query of a text; `FilterError` when it is invalid."""
    return Query(bound_of(text, known), known)


# Seconds; offsets of time zones change at most every quarter of an hour.
QUARTER: Final = 900
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def holds(test: Test, values: Numbers) -> Bools:
    """Return for each number whether the test's comparison holds; not for `contains` and
    `matches`."""
    if test.relation != "in":
        return _one(test.relation, values, test.value)
    plain = [low for low, high in test.value if high is None and isinstance(low, int)]
    found: Bools = np.isin(values, [low for low in plain if _LEAST <= low <= _MOST])
    for low, high in test.value:
        if high is not None:
            found |= _one(">=", values, low) & _upto(values, high)
        elif not isinstance(low, int):
            found |= _one("==", values, low)
    return found


def _upto(values: Numbers, high: Any) -> Bools:
    if isinstance(high, Instant | Clock):
        return _compared("<=", _of(high, values), high.ns + high.span - 1)
    return _compared("<=", values, high)


def _one(relation: str, values: Numbers, wanted: Any) -> Bools:
    if not isinstance(wanted, Instant | Clock):
        return _compared(relation, values, wanted)
    moments = _of(wanted, values)
    low, high = wanted.ns, wanted.ns + wanted.span
    if relation in ("==", "!="):
        # Equal: within the span that the text leaves open.
        within = _compared(">=", moments, low) & _compared("<", moments, high)
        return within if relation == "==" else ~within
    return _compared(relation, moments, low)


def _compared(relation: str, values: Numbers, wanted: int) -> Bools:
    if _LEAST <= wanted <= _MOST:
        return np.asarray(ORDER[relation](values, wanted))
    # No number of a column is that large or small: one result applies to all.
    return np.full(len(values), ORDER[relation](0, wanted), dtype=np.bool_)


def _of(wanted: Instant | Clock, values: Numbers) -> Numbers:
    if isinstance(wanted, Instant):
        return values
    quarters, place = np.unique(values // (QUARTER * SECOND), return_inverse=True)
    offsets = np.array([local_offset(int(quarter)) for quarter in quarters], dtype=np.int64)
    return (values + offsets[place] * SECOND) % DAY
