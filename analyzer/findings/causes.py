"""Which findings explain which, and how consequences are folded into their causes.

    linked(findings) -> list[Finding]     # each with the ids of the findings that explain it
    folded(findings) -> list[Cause]       # causes, worst and earliest first, with what followed
    unfolded(causes) -> list[Finding]     # the same in one list, consequences behind their cause
    apart(causes) -> (trouble, chats)     # chats, which outputs put into one line at the end

A finding explains another one when a line of `explanations` names their rules, both name alike what
the line demands (a client, a broker, a group ...), and the other one begins while it lasts or
shortly after. The rules form no circle, so findings cannot either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from analyzer.findings.explanations import EXPLANATIONS, Explanation
from analyzer.findings.model import RANK, Finding, order
from analyzer.model import Severity

MOST_PHRASES: Final = 6
"""Of one line about consequences; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding that nothing explains, with all that followed from it."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()
    """Directly or through others, worst and earliest first."""

    @property
    def severity(self) -> Severity:
        """The worst of itself and its consequences."""
        every = (self.finding, *self.consequences)
        return min((each.severity for each in every), key=RANK.__getitem__)

    def therefore(self) -> str:
        """The consequences in a line: `33 lookups, 4 requests without response`."""
        counts: dict[str, int] = defaultdict(int)
        for each in self.consequences:
            counts[each.brief] += each.count if "{n}" in each.brief else 0
        phrases = [_phrase(brief, count) for brief, count in counts.items()]
        rest = len(phrases) - MOST_PHRASES
        return ", ".join(phrases[:MOST_PHRASES]) + (f" and {rest} more" if rest > 0 else "")


def linked(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with `because`: the ids of those that explain each."""
    found = list(findings)
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for each in found:
        by_rule[each.name].append(each)
    reasons: dict[str, set[str]] = defaultdict(set)
    for line in EXPLANATIONS:
        causes = _by_entity(line, [each for name in line.causes for each in by_rule[name]])
        if not causes:
            continue
        for name in line.effects:
            for effect in by_rule[name]:
                reasons[effect.id].update(each.id for each in _explaining(line, effect, causes))
    return [
        replace(each, because=tuple(sorted(reasons[each.id]))) if reasons.get(each.id) else each
        for each in found
    ]


def _by_entity(
    line: Explanation, causes: Sequence[Finding]
) -> dict[tuple[str, str], list[Finding]]:
    """Causes by what they name of the first kind that the line demands."""
    found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for each in causes:
        for entity in each.entities:
            if entity[0] == line.same[0]:
                found[entity].append(each)
    return found


def _explaining(
    line: Explanation, effect: Finding, causes: dict[tuple[str, str], list[Finding]]
) -> Iterator[Finding]:
    """Those of the causes that explain the effect."""
    for entity in effect.entities:
        for cause in causes.get(entity, ()):
            if (
                cause.id != effect.id
                and _alike(line, effect, cause)
                and _in_time(line, effect, cause)
            ):
                yield cause


def _alike(line: Explanation, effect: Finding, cause: Finding) -> bool:
    """Whether both name something alike of each kind that is demanded."""
    shared = {kind for kind, _ in set(effect.entities) & set(cause.entities)}
    return shared.issuperset(line.same)


def _in_time(line: Explanation, effect: Finding, cause: Finding) -> bool:
    """Whether the effect begins while the cause lasts, or soon after. What has no time is of the
    whole capture."""
    if effect.first_ns is None or cause.first_ns is None:
        return True
    end = cause.first_ns if cause.last_ns is None else cause.last_ns
    return cause.first_ns - line.before_ns <= effect.first_ns <= end + line.after_ns


def folded(findings: Iterable[Finding]) -> list[Cause]:
    """The causes among linked findings, worst and earliest first. A consequence is folded into one
    cause: the worst and earliest of those that it goes back to. One whose cause is not among the
    findings is a cause here."""
    found = {each.id: each for each in sorted(findings, key=order)}
    direct = {
        each.id: [found[one] for one in each.because if one in found] for each in found.values()
    }
    roots: dict[str, Finding] = {}
    for each in found.values():
        roots[each.id] = _root(each, direct)
    groups: dict[str, list[Finding]] = {
        each.id: [] for each in found.values() if not direct[each.id]
    }
    for each in found.values():
        if direct[each.id]:
            groups[roots[each.id].id].append(each)
    causes = [Cause(found[name], tuple(followed)) for name, followed in groups.items()]
    return sorted(causes, key=lambda each: order(each.finding, each.severity))


def _root(finding: Finding, direct: dict[str, list[Finding]]) -> Finding:
    """The worst and earliest cause that a finding goes back to."""
    seen = {finding.id}
    waiting = [finding]
    best: Finding | None = None
    while waiting:
        each = waiting.pop()
        above = direct[each.id]
        if not above and (best is None or order(each) < order(best)):
            best = each
        for one in above:
            if one.id not in seen:
                seen.add(one.id)
                waiting.append(one)
    return best or finding


def unfolded(causes: Iterable[Cause]) -> list[Finding]:
    """All findings, the consequences behind their cause."""
    return [each for cause in causes for each in (cause.finding, *cause.consequences)]


def apart(causes: Iterable[Cause]) -> tuple[list[Cause], list[Cause]]:
    """Causes that are worth a look each, and those that are chats with all that followed."""
    trouble: list[Cause] = []
    chats: list[Cause] = []
    for each in causes:
        (chats if each.severity == "chat" else trouble).append(each)
    return trouble, chats


def names_of(causes: Iterable[Cause]) -> str:
    """Their rules in a line: `unknown-tags, retries (3)`."""
    counts = Counter(each.finding.name for each in causes)
    return ", ".join(name if n == 1 else f"{name} ({n})" for name, n in counts.items())


def _phrase(brief: str, count: int) -> str:
    """`1 lookup` or `33 lookups` of `{n} lookup|{n} lookups`."""
    one, _, several = brief.partition("|")
    return (one if count == 1 else several or one).replace("{n}", f"{count:,}")
