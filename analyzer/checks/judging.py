"""What becomes of each cause of a check: whether it was known before, and whether it fails.

Reports for CI count causes, as the summary does: a consequence belongs to its cause, and makes it
fail, but is no test and no alert of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kafkascope.analyzer.findings.causes import Cause, counted
from kafkascope.analyzer.findings.model import RANK, Finding
from kafkascope.analyzer.text import plural

NEVER: Final = "never"
"""In place of a severity: nothing fails."""


class Checked(NamedTuple):
    """A cause, and what a check makes of it."""

    cause: Cause
    known: bool
    """Whether a baseline has its key and those of its consequences."""
    failing: tuple[Finding, ...]
    """Those of the cause and its consequences that make the check fail."""


def judged(causes: Iterable[Cause], known: Collection[str], fail_on: str) -> list[Checked]:
    """Judge all causes. `known`: keys that no longer fail; `fail_on`: the minimum severity that
    does, or `NEVER`."""
    checked = []
    for cause in causes:
        new = [each for each in (cause.finding, *cause.consequences) if each.key not in known]
        failing = tuple(each for each in new if fails(each, fail_on))
        checked.append(Checked(cause, not new, failing))
    return checked


def fails(finding: Finding, fail_on: str) -> bool:
    """Return whether a finding is at least as bad as `fail_on`."""
    return any(RANK[finding.severity] <= rank for word, rank in RANK.items() if word == fail_on)


def summary(causes: Iterable[Cause], known: int) -> str:
    """Return how many causes there are of each severity, and how many findings were known."""
    counts = [plural(n, word) for word, n in counted(causes).items() if n]
    if known:
        return ", ".join([*(counts or ["nothing new"]), f"{known} known"])
    return ", ".join(counts) if counts else "nothing found"
