"""Which exchanges findings are about: for filters (`finding`, `finding.severity`) and for screens.

    evidence = Evidence(found)                   # what `Findings.told` gave
    evidence.of(row, exchange)                   # the findings of one exchange
    evidence.note(known, row, exchange)          # and tell a filter's `Known` of them
    evidence.note_all(known, session, begin)     # all rows of a session from `begin` on
    evidence.among(session, begin, end)          # the findings of these rows, by index
    note(known, number, findings)                # tell a filter's `Known` what is known already

Evidence is what the filter of a finding selects; nobody keeps lists of exchanges. More traffic may
change findings: make a new `Evidence` then, and a new `Known`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.filter.bind import Every, Test
from kafkascope.analyzer.filter.language import Bound, Filter, Known, compile_filter, compile_query
from kafkascope.analyzer.findings.model import Finding

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.backends.columns import Query
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session


class Evidence:
    """Of a list of findings. One about no exchange has none."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = [each for each in findings if each.filter]
        self._wanted: dict[tuple[str, Any], list[tuple[int, Filter]]] = {}
        """By what an exchange must have to be asked for at all."""
        for place, finding in enumerate(self.findings):
            wanted = _compiled(finding.filter)
            for key in _needed(wanted.bound):
                self._wanted.setdefault(key, []).append((place, wanted))
        self._asked: list[Query] = []
        self._for: tuple[Session, int] | None = None

    def of(self, row: Row, exchange: Exchange) -> tuple[Finding, ...]:
        """Return the findings that an exchange is evidence of, the worst first."""
        keys = (
            ("", None),
            ("number", row.number),
            ("conn", row.connection),
            ("client", row.client_id),
            ("api", row.api_key),
        )
        places = [
            place
            for key in keys
            for place, wanted in self._wanted.get(key, ())
            if wanted(row, exchange)
        ]
        return tuple(self.findings[place] for place in sorted(places))

    def note(self, known: Known, row: Row, exchange: Exchange) -> None:
        """Tell filters of an exchange's findings, before they judge it."""
        found = self.of(row, exchange)
        if found:
            note(known, row.number, found)

    def note_all(
        self, known: Known, session: Session, begin: int = 0, end: int | None = None
    ) -> None:
        """Tell filters of the findings of rows `begin` to `end`."""
        for index, found in self.among(session, begin, end).items():
            note(known, session.columns["number"][index], found)

    def among(
        self, session: Session, begin: int = 0, end: int | None = None
    ) -> dict[int, tuple[Finding, ...]]:
        """Return the findings of those rows from `begin` to `end` that have any, by index. Few
        findings need messages: they are read only where the columns leave it open."""
        end = len(session) if end is None else end
        found: dict[int, tuple[Finding, ...]] = {}
        for finding, query in zip(self.findings, self._queries(session), strict=True):
            sure, open_ = query.settle(session, begin, end)
            for at in (sure | open_).nonzero()[0].tolist():
                if sure[at] or query.decide(session, begin + at):
                    found[begin + at] = (*found.get(begin + at, ()), finding)
        return found

    def _queries(self, session: Session) -> list[Query]:
        """Return what judges the filters of findings, made once: it keeps what it learned of a
        session's tables until rows are dropped."""
        if self._for is None or self._for[0] is not session or self._for[1] != session.dropped:
            self._for = session, session.dropped
            self._asked = [compile_query(each.filter) for each in self.findings]
        return self._asked


def _needed(bound: Bound | None) -> list[tuple[str, Any]]:
    """Return (field, value) pairs of which an exchange has one, when a filter wants it: the rarest
    field of those that it must have; else nothing in particular."""
    terms = bound.terms if isinstance(bound, Every) else (bound,)
    for name in ("number", "conn", "client", "api"):
        for term in terms:
            if not isinstance(term, Test) or term.field.name != name or term.scope != "any":
                continue
            if term.relation == "==":
                return [(name, term.value)]
            if term.relation == "in" and all(last is None for _, last in term.value):
                return [(name, value) for value in dict.fromkeys(each for each, _ in term.value)]
    return [("", None)]


def note(known: Known, number: int, found: tuple[Finding, ...]) -> None:
    """Tell filters of the findings of an exchange."""
    known.findings[number], known.severities[number] = _words(found)


@lru_cache(maxsize=4096)
def _words(found: tuple[Finding, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return rules and severities; many exchanges share them."""
    return (
        tuple(dict.fromkeys(each.name for each in found)),
        tuple(dict.fromkeys(each.severity for each in found)),
    )


_compiled = lru_cache(maxsize=1024)(compile_filter)
