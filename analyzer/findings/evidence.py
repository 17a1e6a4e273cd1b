"""Which exchanges findings are about: for filters (`finding`, `finding.severity`) and for screens.

    evidence = Evidence(found)                   # what `Findings.told` gave
    evidence.of(row, exchange)                   # the findings of one exchange
    evidence.note(known, row, exchange)          # and tell a filter's `Known` of them
    evidence.note_all(known, session, begin)     # all rows of a session from `begin` on

Evidence is what the filter of a finding selects; nobody keeps lists of exchanges. More traffic may
change findings: make a new `Evidence` then, and a new `Known`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from analyzer.filter import Filter, Known, compile_filter, compile_query
from analyzer.findings.model import Finding

if TYPE_CHECKING:
    from analyzer.model import Exchange
    from analyzer.rows import Row
    from analyzer.session import Session


class Evidence:
    """Of a list of findings. One about no exchange has none."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = [each for each in findings if each.filter]
        self._wanted: list[tuple[Finding, Filter]] = [
            (each, _compiled(each.filter)) for each in self.findings
        ]

    def of(self, row: Row, exchange: Exchange) -> tuple[Finding, ...]:
        """The findings that an exchange is evidence of, the worst first."""
        return tuple(finding for finding, wanted in self._wanted if wanted(row, exchange))

    def note(self, known: Known, row: Row, exchange: Exchange) -> None:
        """Tell filters of an exchange's findings, before they judge it."""
        found = self.of(row, exchange)
        if found:
            _note(known, row.number, found)

    def note_all(
        self, known: Known, session: Session, begin: int = 0, end: int | None = None
    ) -> None:
        """Tell filters of the findings of rows `begin` to `end`. Few findings need messages: they
        are read only where the columns leave it open."""
        end = len(session) if end is None else end
        found: dict[int, list[Finding]] = {}
        for finding in self.findings:
            query = compile_query(finding.filter)
            sure, open_ = query.settle(session, begin, end)
            for at in (sure | open_).nonzero()[0].tolist():
                if sure[at] or query.decide(session, begin + at):
                    found.setdefault(begin + at, []).append(finding)
        for index, mentioned in found.items():
            _note(known, session.numbers[index], tuple(mentioned))


def _note(known: Known, number: int, found: tuple[Finding, ...]) -> None:
    known.findings[number], known.severities[number] = _words(found)


@lru_cache(maxsize=4096)
def _words(found: tuple[Finding, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Rules and severities; many exchanges share them."""
    return (
        tuple(dict.fromkeys(each.name for each in found)),
        tuple(dict.fromkeys(each.severity for each in found)),
    )


_compiled = lru_cache(maxsize=1024)(compile_filter)
