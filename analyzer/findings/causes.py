"""Which findings explain which, and how consequences are folded into their causes.

    linked(findings) -> list[Finding]     # each with the ids of the findings that explain it
    folded(findings) -> list[Cause]       # causes, worst and earliest first, with what followed
    unfolded(causes) -> list[Finding]     # the same in one list, consequences after their cause
    apart(causes) -> (trouble, chats)     # chats, which outputs put into one line at the end
    counted(causes) -> dict[str, int]     # causes of each severity, and "consequence"

A finding explains another one when a line of `explanations` names their rules, both name alike what
the line demands (a client, a broker, a group ...), and the other one begins while it lasts or
shortly after. The rules form no circle, so findings cannot either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.model import RANK, Finding, order
from kafkascope.analyzer.findings.rules import DATA, RULES
from kafkascope.analyzer.model import Severity
from kafkascope.times import SECOND

_Known: TypeAlias = tuple[str, Finding]
"""A finding after its id, which is computed anew for each use."""


class Explanation(NamedTuple):
    """A line of `rules.json`: which rules may explain which others."""

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    same: tuple[str, ...]
    """Kinds of entities (`client`, `broker`, `group` ...): of each, both findings name at least
    one alike."""
    why: str
    before_ns: int
    """The effect may begin so long before the cause. A second by default: a request is sent before
    its connection is lost, and its finding has the time at which it was sent."""
    after_ns: int
    """The effect begins at most so long after the cause's last sign."""


def _ns(time: str) -> int:
    """Return a time of the file in nanoseconds: `2 s`, or the name of one of its `times`."""
    seconds, _ = DATA["times"].get(time, (time, ""))
    return round(float(seconds.removesuffix(" s")) * SECOND)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Return rules; `@again` expands to a set of them."""
    sets = DATA["sets"]
    return tuple(one for name in names for one in (sets[name[1:]] if name[0] == "@" else (name,)))


ALWAYS: Final = _ns("always")
"""For effects that add up from the beginning of a capture."""
EXPLANATIONS: Final = tuple(
    Explanation(
        _names(line["causes"]),
        _names(line["effects"]),
        tuple(line["same"]),
        line["why"],
        _ns(line.get("before", "1 s")),
        _ns(line.get("after", "soon")),
    )
    for line in DATA["explanations"]
)
"""A test holds that no rule explains itself through others."""


class Cause(NamedTuple):
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
        """Return the consequences in a line: `33 lookups, 4 requests without response`."""
        counts: Counter[str] = Counter()
        for each in self.consequences:
            counts[each.brief] += each.count if "{n}" in each.brief else 0
        phrases = [_phrase(brief, count) for brief, count in counts.items()]
        rest = len(phrases) - LIMITS.consequences
        return ", ".join(phrases[: LIMITS.consequences]) + (f" and {rest} more" if rest > 0 else "")


def linked(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with `because`: the ids of those that explain each."""
    found = [(each.id, each) for each in findings]
    by_rule: dict[str, list[_Known]] = defaultdict(list)
    for known in sorted(found, key=lambda known: order(known[1])):
        by_rule[known[1].name].append(known)
    reasons: dict[str, set[str]] = defaultdict(set)
    for line in EXPLANATIONS:
        causes: dict[tuple[str, str], list[_Known]] = defaultdict(list)
        """By the entities of the first kind that the line demands."""
        for known in (known for name in line.causes for known in by_rule[name]):
            for entity in known[1].entities:
                if entity[0] == line.same[0] and len(causes[entity]) < LIMITS.causes:
                    causes[entity].append(known)
        for effect in (known for name in line.effects for known in by_rule[name] if causes):
            reasons[effect[0]].update(islice(_explaining(line, effect, causes), LIMITS.reasons))
    return [
        replace(each, because=tuple(sorted(reasons[name]))) if reasons.get(name) else each
        for name, each in found
    ]


def _explaining(
    line: Explanation, known: _Known, causes: dict[tuple[str, str], list[_Known]]
) -> Iterator[str]:
    """Yield ids of those of the causes that explain the effect."""
    name, effect = known
    for entity in effect.entities:
        for other, cause in causes.get(entity, ()):
            if (
                other != name
                and _in_time(line, effect, cause)
                and _share_entities(line, effect, cause)
            ):
                yield other


def _share_entities(line: Explanation, effect: Finding, cause: Finding) -> bool:
    """Return whether both name something alike of each kind that is demanded; of the first kind
    they do."""
    if len(line.same) == 1:
        return True
    return {kind for kind, _ in set(effect.entities) & set(cause.entities)}.issuperset(line.same)


def _in_time(line: Explanation, effect: Finding, cause: Finding) -> bool:
    """Return whether the effect begins while the cause lasts, or soon after. What has no time is of
    the whole capture."""
    if effect.first_ns is None or cause.first_ns is None:
        return True
    end = cause.first_ns if cause.last_ns is None else cause.last_ns
    return cause.first_ns - line.before_ns <= effect.first_ns <= end + line.after_ns


def folded(findings: Iterable[Finding]) -> list[Cause]:
    """Return the causes among linked findings, worst and earliest first. A consequence is folded
    into one cause: the worst and earliest of those that it goes back to. One whose cause is not
    among the findings is a cause here."""
    found = {each.id: each for each in sorted(findings, key=order)}
    rank = {name: place for place, name in enumerate(found)}
    roots: dict[str, str] = {}

    def root(name: str) -> str:
        # Explanations go from rule to rule and never back, so this is as deep as they are long.
        # Each root is computed once: many findings may go back to many.
        if name not in roots:
            above = [root(one) for one in found[name].because if one in found]
            roots[name] = min(above, key=rank.__getitem__, default=name)
        return roots[name]

    groups: dict[str, list[Finding]] = {name: [] for name in found if root(name) == name}
    for name, each in found.items():
        if roots[name] != name:
            groups[roots[name]].append(each)
    causes = [Cause(found[name], tuple(followed)) for name, followed in groups.items()]
    return sorted(causes, key=_place)


def _place(cause: Cause) -> tuple[int, bool, tuple[int, int, int, str, str]]:
    """Return a sort key: what is about a time stands before what is about the whole capture."""
    rank, *_ = place = order(cause.finding, cause.severity)
    return rank, RULES[cause.finding.name].standing, place


def unfolded(causes: Iterable[Cause]) -> list[Finding]:
    """Return all findings, each consequence after its cause."""
    return [each for cause in causes for each in (cause.finding, *cause.consequences)]


def apart(causes: Iterable[Cause]) -> tuple[list[Cause], list[Cause]]:
    """Return causes that are worth a look each, and those that are chats with all that followed."""
    found = list(causes)
    chats = [each for each in found if each.severity == "chat"]
    return [each for each in found if each.severity != "chat"], chats


def counted(causes: Iterable[Cause]) -> dict[str, int]:
    """Return how many causes of each severity there are, worst first, and under `consequence` how
    many findings followed from them. A cause is as bad as the worst that followed from it."""
    found = list(causes)
    counts = Counter(each.severity for each in found)
    followed = sum(len(each.consequences) for each in found)
    return {**{severity: counts[severity] for severity in RANK}, "consequence": followed}


def names_of(causes: Iterable[Cause]) -> str:
    """Return the rules of findings in a line: `unknown-tags, retries (3)`."""
    counts = Counter(each.finding.name for each in causes)
    return ", ".join(name if n == 1 else f"{name} ({n})" for name, n in counts.items())


def _phrase(brief: str, count: int) -> str:
    """Return `1 lookup` or `33 lookups` of `{n} lookup|{n} lookups`."""
    one, _, several = brief.partition("|")
    return (one if count == 1 else several or one).replace("{n}", f"{count:,}")
