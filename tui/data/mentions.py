"""Which rows findings are about: for a sign in the list, the context of an exchange, and filters.

Evidence is looked up in small pieces, so that keys never wait; the old result stays until the new
one is complete. No widgets here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.known import Known
from kafkascope.tui.data.store import Store

if TYPE_CHECKING:
    from kafkascope.analyzer.findings import Finding
    from kafkascope.analyzer.findings.evidence import Evidence, ExpectedErrors

SIGNS: Final = {"error": "◆", "warning": "◇"}
"""Severity -> sign in the list; lower ones have none."""
ROLES: Final = {"error": "!", "warning": "?"}
LEAST, MOST = 128, 1 << 16
"""Least and most rows of a piece."""
# Seconds that a piece may take before the next one is smaller.
USUAL: Final = 0.01


class Mentions:
    """Finds the findings of each exchange, by its number."""

    def __init__(self, store: Store, known: Known) -> None:
        self.store, self.known = store, known
        self.told: list[Finding] = []
        """The findings of the last call of `tell`."""
        self._found: dict[int, tuple[Finding, ...]] = {}
        self._evidence: Evidence | None = None
        self._new: dict[int, tuple[Finding, ...]] = {}
        self._expected: ExpectedErrors | None = None
        self._decided: dict[int, bool] = {}
        """By number: whether the errors of exchanges are expected."""
        self._next = 0
        """The next row, counted from the first one that ever came."""
        self._piece = LEAST

    @property
    def busy(self) -> bool:
        """Whether rows are left to look at."""
        return self._evidence is not None

    def update(self, findings: Iterable[Finding]) -> None:
        """Take findings, and look at all rows again if they have changed."""
        found = list(findings)
        if found == self.told:
            return
        from kafkascope.analyzer.findings.evidence import Evidence, ExpectedErrors

        self.told = found
        self._evidence, self._expected = Evidence(found), ExpectedErrors(found)
        self._decided = {}
        self._new, self._next = {}, self.store.session.dropped

    def advance(self, seconds: float) -> bool:
        """Look at more rows, for `seconds` at most; return whether that was the last of them."""
        if self._evidence is None or self._expected is None:
            return False
        session = self.store.session
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            begin = max(0, self._next - session.dropped)
            end = min(len(session), begin + self._piece)
            if begin >= end:
                self._take()
                return True
            for index, found in self._evidence.among(session, begin, end).items():
                self._new[session.columns["number"][index]] = found
            self._decided |= self._expected.among(session, begin, end)
            self._next = session.dropped + end
            spent = time.monotonic() - now
            self._piece = max(LEAST, self._piece // 2) if spent > USUAL else self._piece
            self._piece = min(MOST, self._piece * 2) if spent < USUAL / 4 else self._piece
        return False

    def _take(self) -> None:
        from kafkascope.analyzer.findings.evidence import note

        self._found, self._new, self._evidence = self._new, {}, None
        self.store.decided.clear()
        self.store.decided.update(self._decided)
        self.known.findings.clear()
        self.known.severities.clear()
        for number, found in self._found.items():
            note(self.known, number, found)

    def of(self, number: int) -> tuple[Finding, ...]:
        """Return the findings that mention an exchange, the worst first."""
        return self._found.get(number, ())

    def sign(self, number: int) -> tuple[str, str]:
        """Return the sign and role of an exchange's worst finding; blank for lower severities."""
        found = self._found.get(number)
        if not found:
            return " ", ""
        worst = found[0].severity
        return SIGNS.get(worst, " "), ROLES.get(worst, "")

    def worst(self, severity: str) -> list[int]:
        """Return the exchanges whose worst finding has a severity."""
        return [number for number, each in self._found.items() if each[0].severity == severity]
