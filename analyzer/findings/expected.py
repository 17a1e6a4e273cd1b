"""Which errors are expected, once findings are known: those that no finding is about.

    expected = ExpectedErrors(found.told(names))
    expected(row, exchange)                      # one exchange
    expected.among(session, begin, end)          # rows of a session, by number
    settled(errors, found.told(names))           # the statistic of errors, decided by them

A finding is about an error where its rule names the code (`Rule.errors`) and its filter selects the
exchange. A filter alone is not enough: that of a late rebalance selects all requests of the group.
Chats do not count, but what followed from a finding does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kafkascope.analyzer.exchanges.expected import CODES, is_expected
from kafkascope.analyzer.exchanges.rows import codes_of
from kafkascope.analyzer.findings.evidence import Evidence
from kafkascope.analyzer.findings.findings import RULES
from kafkascope.analyzer.findings.view import plural

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.findings.model import Finding
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session
    from kafkascope.analyzer.statistics.errors import Errors


class ExpectedErrors:
    """Decides of some findings."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._evidence = Evidence(_citing(list(findings)))

    def __call__(self, row: Row, exchange: Exchange | None = None) -> bool:
        """Return whether the errors of an exchange are expected."""
        codes = codes_of(row)
        if not codes or not is_expected(row.api_key, codes, findings=True):
            return False
        return not _about(self._evidence.of(row, exchange), codes)

    def is_about(self, row: Row) -> bool:
        """Return whether a finding is about the errors of a row."""
        return _about(self._evidence.of(row), codes_of(row))

    def among(self, session: Session, begin: int, end: int) -> dict[int, bool]:
        """Return, by number, whether rows with errors of the classes are expected."""
        lists, numbers = session.tables["errors"].values, session.columns["number"]
        classes = [bool(codes) and CODES.issuperset(codes) for codes in lists]
        errors, keys = session.columns["errors"], session.columns["api_key"]
        rows = [row for row in range(begin, min(end, len(errors))) if classes[errors[row]]]
        found = self._evidence.among(session, begin, end) if rows else {}
        decided = {}
        for row in rows:
            codes = frozenset(lists[errors[row]])
            expected = is_expected(keys[row], codes, findings=True)
            decided[numbers[row]] = expected and not _about(found.get(row, ()), codes)
        return decided


def settled(errors: Errors, findings: Iterable[Finding]) -> Errors:
    """Return a statistic of errors, decided by these findings from now on."""
    errors.is_about = ExpectedErrors(findings).is_about
    return errors


def errors_in_words(errors: Errors) -> str:
    """Return how many errors there are: `116 errors; 35 expected by the protocol`."""
    count, expected = errors.totals()
    more = f"; {expected:,} expected by the protocol" if expected else ""
    return (plural(count, "error") if count else "no errors") + more


def _citing(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that count, of rules that are about errors."""
    found = [each for each in findings if RULES[each.name].errors]
    if any(each.severity == "chat" and each.because for each in found):
        worth = {each.id for each in findings if each.severity != "chat"}
        return [e for e in found if e.severity != "chat" or not worth.isdisjoint(e.because)]
    return [each for each in found if each.severity != "chat"]


def _about(found: Iterable[Finding], codes: frozenset[int]) -> bool:
    return any(RULES[each.name].errors & codes for each in found)
