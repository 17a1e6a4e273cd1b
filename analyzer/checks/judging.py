"""What becomes of each finding of a check: whether it was known before, and whether it fails."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kafkascope.analyzer.findings.causes import Cause
from kafkascope.analyzer.findings.model import RANK, Finding

NEVER: Final = "never"
"""In place of a severity: nothing fails."""


class Checked(NamedTuple):
    """A finding, and what a check makes of it."""

    cause: Cause
    """The finding with what followed from it; a consequence alone."""
    because: str
    """The sentence of the cause that it followed from; empty for a cause."""
    known: bool
    """Whether a baseline has its key."""
    fails: bool
    """Whether it makes the check fail."""

    @property
    def finding(self) -> Finding:
        """The finding itself."""
        return self.cause.finding


def judged(causes: Iterable[Cause], known: Collection[str], fail_on: str) -> list[Checked]:
    """Judge all findings, each consequence behind its cause. `known`: keys that no longer fail;
    `fail_on`: the mildest severity that does, or `NEVER`."""
    return [
        Checked(
            cause if place == 0 else Cause(finding),
            "" if place == 0 else cause.finding.text,
            finding.key in known,
            finding.key not in known and _is_bad(finding, fail_on),
        )
        for cause in causes
        for place, finding in enumerate((cause.finding, *cause.consequences))
    ]


def _is_bad(finding: Finding, fail_on: str) -> bool:
    return any(RANK[finding.severity] <= rank for word, rank in RANK.items() if word == fail_on)


def unknown(causes: Iterable[Cause], known: Collection[str]) -> list[Cause]:
    """Return the causes that are new, or that something new followed from."""
    return [
        cause
        for cause in causes
        if any(each.key not in known for each in (cause.finding, *cause.consequences))
    ]
