"""Groups that read more slowly than others write: from the delivery audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, about_group, duration, listed, places_of, plural
from kafkascope.analyzer.statistics.delivery.ends import at
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.text import spelled


class LagGrowth(NamedTuple):
    """A partition whose lag grows."""

    place: AuditedPartition
    first_ns: int
    last_ns: int
    before: int
    """Records behind the end at first."""
    now: int
    read: int
    written: int


class Lag(Detector):
    """By group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "lag",
            "warning",
            "growing consumer lag",
            "Add members (up to one per partition), speed up processing, or look for one slow "
            "partition. Records that retention deletes before they are read are lost.",
            brief="group {group} falls behind",
            limits=(
                "lag.points",
                "lag.records",
                "lag.span",
                "lag.many",
                "lag.time",
                "lag.share",
                "lag.grown",
            ),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings from one audit of all groups."""
        for group, places in places_of(view):
            found = [growth for growth in map(growth_of, places) if growth is not None]
            if found:
                yield self._finding(group, found, view)

    def _finding(self, group: str, found: list[LagGrowth], view: View) -> Finding:
        begin, end = min(each.first_ns for each in found), max(each.last_ns for each in found)
        places = listed(f"{each.place.topic}-{each.place.number}" for each in found)
        rates = [
            f"{sum(getattr(each, name) for each in found) * 1e9 / (end - begin):,.1f}"
            for name in ("written", "read")
        ]
        names = sorted({each.place.topic for each in found})
        named = [quoted(topic) for topic in names]
        topics = f"topic in {{{', '.join(named)}}}" if len(named) > 1 else f"topic == {named[0]}"
        return view.finding(
            self.rule("lag"),
            f"Lag of group {spelled(group)} grew from {sum(each.before for each in found):,} to "
            f"{plural(sum(each.now for each in found), 'record')} within {duration(end - begin)} "
            f"on {places}: {rates[0]} records/s written, {rates[1]} records/s read",
            f"group == {quoted(group)} or (api == Fetch and {topics})",
            count=len(found),
            first_ns=begin,
            last_ns=end,
            about=about_group(group, (each.place.topic for each in found)),
        )


def growth_of(place: AuditedPartition) -> LagGrowth | None:
    """Return how the lag of a partition grows; None where it does not, or nobody can tell."""
    # Between two commits the position seems to stand still: lag is what it is at commits.
    read = place.placed
    if len(read) < limit("lag.points"):
        read = [(time_ns, to) for time_ns, to, _, _ in place.points if to is not None]
    ends = place.ends
    lags = []
    for time_ns, offset in read:
        end = at(ends, time_ns)
        if end is not None:
            lags.append((time_ns, offset, max(end, offset)))
    if len(lags) < limit("lag.points"):
        return None
    (first_ns, from_, first_end), (last_ns, to, last_end) = lags[0], lags[-1]
    now, before, span = last_end - to, first_end - from_, last_ns - first_ns
    moved, written = max(0, to - from_), last_end - first_end
    least = limit("lag.many" if span < limit("lag.span") else "lag.records")
    if span <= 0 or now < least:
        return None
    slow = 100 * moved <= limit("lag.share") * written
    # Records that wait, at the speed at which they are read.
    behind = now * span >= limit("lag.time") * moved
    return (
        LagGrowth(place, first_ns, last_ns, before, now, moved, written)
        if slow and behind and _rises(lags, first_ns, span)
        else None
    )


def _rises(lags: list[tuple[int, int, int]], first_ns: int, span: int) -> bool:
    """Return whether the least lag of each third of the time is more than that of the one before: a
    burst that is read soon after does not count."""
    least: list[int | None] = [None, None, None]
    for time_ns, offset, end in lags:
        third = min(2, 3 * (time_ns - first_ns) // span)
        known = least[third]
        least[third] = end - offset if known is None else min(known, end - offset)
    one, two, three = least
    if one is None or three is None:
        return False
    middle = (one + three) // 2 if two is None else two
    return one < middle < three and three >= limit("lag.grown") * one
