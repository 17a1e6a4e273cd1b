"""The outcome of a replay: counts, latencies, differences. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.replay.compare import CLOSED, NOT_SERVED, Comparison, ReplayDifference


class Latencies:
    """The latencies of an API's exchanges, in nanoseconds: all of them, or a sample in which each
    is as likely as the others."""

    def __init__(self, limit: int = LIMITS.latencies) -> None:
        self._limit = limit
        self.count = 0
        self.kept: list[tuple[int, int]] = []
        """In the capture, and now."""
        self._random = Random(7)

    def add(self, then_ns: int, now_ns: int) -> None:
        self.count += 1
        if len(self.kept) < self._limit:
            self.kept.append((then_ns, now_ns))
        elif (place := self._random.randrange(self.count)) < self._limit:
            self.kept[place] = then_ns, now_ns


@dataclass(slots=True)
class Outcome:
    """The outcome of a replay."""

    comparison: Comparison
    sent: int = 0
    unanswered: int = 0
    unserved: int = 0
    """Not sent, for the peer lacks the version."""
    settled: int = 0
    """Answers whose error in the capture was one that passes."""
    unmatched: int = 0
    """Answers where the capture has none that can be read."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about what was not done."""
    latencies: dict[str, Latencies] = field(default_factory=dict)
    seconds: float = 0.0
    """From the first request to the last response."""


VERSIONS: Final = "versions of "
# How a side that lacks an element shows it.
NOTHING: Final = "-"

# Reasons for which a client cannot go on at all: they come first.
GRAVE: Final = frozenset({NOT_SERVED, CLOSED})
# Paths of differences that are no differences of responses.
UNANSWERED: Final = frozenset({"version", "answer"})

Line: TypeAlias = tuple[str, str]


def lines_of(findings: Iterable[ReplayDifference]) -> Iterator[Line]:
    """All lines. Elements of one array that only one side has, and versions, share a line."""
    by_reason: dict[str, list[ReplayDifference]] = {}
    for each in findings:
        by_reason.setdefault(each.why, []).append(each)
    for line in _grouped(by_reason.pop("", [])):
        yield line, "!"
    for why, some in sorted(by_reason.items(), key=lambda each: each[0] not in GRAVE):
        yield f"{why}:", "header"
        for line in _grouped(some):
            yield f"  {line}", ""


def not_answered(findings: Iterable[ReplayDifference]) -> str:
    """The requests that the target does not answer at all, as text; empty when there are none."""
    return ", ".join(
        f"{each.api} v{each.version} ({each.times}, {each.now})"
        for each in findings
        if each.path in UNANSWERED
    )


def _grouped(findings: list[ReplayDifference]) -> Iterator[str]:
    served: dict[str, list[str]] = {}
    lists: dict[tuple[str, str], tuple[list[str], list[str], list[ReplayDifference]]] = {}
    for each in findings:
        where = f"{each.api} v{each.version}" if each.version >= 0 else each.api
        if each.path.startswith(VERSIONS):
            name = each.path.removeprefix(VERSIONS)
            served.setdefault(where, []).append(f"{name} {each.then} -> {each.now}")
        elif each.path.endswith("[]") and NOTHING in (each.then, each.now):
            gone, new, some = lists.setdefault((where, each.path), ([], [], []))
            if each.then == NOTHING:
                new.append(each.now)
            else:
                gone.append(each.then)
            some.append(each)
        else:
            yield f"{where}  {each.path}: {each.then} -> {each.now}  {_times([each])}"
    for (where, path), (gone, new, some) in lists.items():
        sides = (("then", gone), ("now", new))
        parts = [f"only {side} {', '.join(names)}" for side, names in sides if names]
        yield f"{where}  {path}: {'; '.join(parts)}  {_times(some)}"
    for where, changes in served.items():
        yield f"{where}  served: {', '.join(changes)}"


def _times(findings: list[ReplayDifference]) -> str:
    first = min((each.exchange for each in findings if each.exchange), default=0)
    count = max(each.times for each in findings)
    return f"({count}x, first in exchange {first})" if first else f"({count}x)"
