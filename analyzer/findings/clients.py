"""The table of clients: what each used, where it breaks, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkascope.analyzer.findings.outcomes import Outcome
from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.statistics.clients import Clients, Usage, line_of
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.verdict import RANK, breaks_at, verdict_of

BREAKS: Final = Column("breaks_at")
VERDICT: Final = (Column("verdict"), BREAKS, Column("why", "list"))


def judged(
    found: Clients, release: str | None, ends: Mapping[Identity, Outcome] | None = None
) -> list[Line]:
    """Return the clients with where they break, and what became of them; those that break on the
    given release come first, hosts that never came to a request last."""
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


def of_selection(
    found: Clients, ends: Mapping[Identity, Outcome], whole: Clients
) -> dict[Identity, Outcome]:
    """Return what became of the clients of a selection. There a client may not have said its
    library or user, which all exchanges tell."""
    target = whole.targets()
    clients = [usage.identity for usage in found.usages()]
    pairs = [(each, target.get(each, each)) for each in clients]
    return {each: ends[whole_one] for each, whole_one in pairs if whole_one in ends}
