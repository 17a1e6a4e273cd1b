"""The table of clients: what each used, where it breaks, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.findings.outcomes import Outcome
from kafkascope.analyzer.statistics.clients import Clients, Usage, line_of
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.verdict import RANK, breaks_at, verdict_of

if TYPE_CHECKING:
    from kafkascope.analyzer.identity import Identity

BREAKS: Final = Column("breaks_at", "breaks at")
VERDICT: Final = (Column("verdict", "verdict"), BREAKS, Column("why", "why", "list"))


def judged(
    found: Clients, release: str | None, ends: Mapping[Identity, Outcome] | None = None
) -> list[Line]:
    """The clients with where they break, and what became of them; with a release, those that break
    on it first. Behind them hosts that never came to a request."""
    ends = dict(ends or {})
    lines = []
    for usage in found.usages():
        line = {**line_of(usage), "breaks_at": breaks_at(usage)}
        if release is not None:
            verdict = verdict_of(usage, release)
            line["verdict"] = verdict.word
            line["why"] = [reason.text for reason in verdict.reasons]
        end = ends.pop(usage.identity, None)
        lines.append(line if end is None else {**line, **end.line()})
    if release is not None:
        lines.sort(key=lambda line: RANK[line["verdict"]])
    strangers = [{**line_of(Usage(each)), **end.line()} for each, end in ends.items()]
    return lines + found.rows()[len(lines) :] + strangers
