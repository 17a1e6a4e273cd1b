"""What a piece of a capture may tell: nothing that the whole does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafkascope.analyzer.findings.model import RANK, Finding


def supported(found: Iterable[Finding], whole: Iterable[Finding]) -> list[Finding]:
    """The findings of a piece that the whole tells, too, at most as bad as there. In a piece much
    seems to be missing that was only not chosen: answers, connections, commits."""
    by_rule: dict[str, list[Finding]] = {}
    for each in whole:
        by_rule.setdefault(each.name, []).append(each)
    out = []
    for each in found:
        same = [other for other in by_rule.get(each.name, ()) if _alike(each, other)]
        if same:
            worst = min((other.severity for other in same), key=RANK.__getitem__)
            out.append(replace(each, severity=max(worst, each.severity, key=RANK.__getitem__)))
    return out


def _alike(one: Finding, other: Finding) -> bool:
    """Whether they share something of each kind that both name."""
    mine, its = _by_kind(one), _by_kind(other)
    return all(mine[kind] & its[kind] for kind in mine.keys() & its.keys())


def _by_kind(finding: Finding) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind, name in finding.entities:
        found.setdefault(kind, set()).add(name)
    return found
