"""All detectors and the statistics that they read, as one accumulator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from kafkascope.analyzer.findings.causes import Cause, folded, linked, unfolded
from kafkascope.analyzer.findings.detectors import DETECTORS, Deferred, findings
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.analyzer.findings.model import COLUMNS, RANK, Finding
from kafkascope.analyzer.findings.rules import RULES
from kafkascope.analyzer.findings.view import Counts, DetectorInput, GapCause, StatisticsInput
from kafkascope.analyzer.merging.measures import Measures, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.accumulators import STATISTICS
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.feed import Feed
from kafkascope.analyzer.statistics.model import Accumulator, Line, TopicNames
from kafkascope.captures.model import Closed, Opened, Resolved

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads


class Span(Measures):
    """Span of all traffic."""

    exchanges: int = total()
    logged: int = total()
    """Exchanges that are known from request logs alone."""
    first_ns: int | None = least()
    last_ns: int | None = most()

    def add(self, batch: ExchangeBatch) -> None:
        self.exchanges += len(batch)
        self.logged += len(batch) if batch.exchange.sizeless else 0
        stretch(self, batch.first_ns, max(batch.ends))


def accumulators(payloads: Payloads | None = None) -> dict[str, Accumulator]:
    """Return all statistics, and the findings beside them: each exchange is counted once by
    each. `payloads`: see `Findings`."""
    counted: dict[str, Accumulator] = {name: kind() for name, kind in STATISTICS.items()}
    counted[Findings.NAME] = Findings(beside=counted, payloads=payloads)
    return counted


class Findings(Accumulator):
    """An accumulator of exchanges that yields findings."""

    NAME = "findings"
    VERSION = 22
    COLUMNS = COLUMNS

    span: Span = whole(Span)

    def __init__(
        self,
        only: Collection[str] | None = None,
        ignore: Collection[str] = (),
        beside: Mapping[str, Accumulator] | None = None,
        release: str = "",
        payloads: Payloads | None = None,
        limits: FindingLimits = LIMITS,
    ) -> None:
        """`only` and `ignore`: names of rules; unknown ones are a `KeyError`. `beside`: statistics
        that the caller counts, merges and keeps; without them it counts its own. `release`: a Kafka
        release that clients have to work with. `payloads`: decodes keys and values, where these are
        to be judged."""
        super().__init__()
        self.release = release
        self.gap_cause: GapCause = ""
        self.damaged_places = 0
        """Damaged places of the files. Both are set by the reader of the capture."""
        for name in (*(only or ()), *ignore):
            RULES[name]
        self.wanted = {name for name in only or RULES if name not in ignore}
        self.beside = beside is not None
        found = beside or {name: STATISTICS[name]() for name in StatisticsInput._fields}
        self.base = StatisticsInput(*(found[name] for name in StatisticsInput._fields))  # type: ignore[arg-type]
        own = () if self.beside else self.base
        self._counts = {
            each.name: Deferred(each, payloads, limits) for each in DETECTORS if each.counts
        }
        self._watchers = [each.saw for each in own if hasattr(each, "saw")]
        self._watchers += [
            each.made().saw for each in self._counts.values() if each.detector.watches
        ]
        self._feed = Feed((self,))

    def fed(self) -> Iterator[Any]:
        """Yield what counts, to be fed beside other accumulators. It has to settle before any
        finding."""
        yield self.span
        if not self.beside:
            yield from self.base
        yield from self._counts.values()

    def add(self, batch: ExchangeBatch) -> None:
        """Take in exchanges."""
        self._feed.give(batch)

    @property
    def counts(self) -> dict[str, Counts]:
        """State of the detectors, by detector; without detectors that got no exchange."""
        return {name: each.counts for name, each in self._counts.items() if each.counts is not None}

    def saw(self, event: Opened | Closed) -> None:
        """Take in the beginning or end of a connection."""
        for saw in self._watchers:
            saw(event)

    def named(self, event: Resolved) -> None:
        """Take in a host name with its addresses."""
        if not self.beside:
            self.base.cluster.named(event)

    def merge(self, other: Self) -> None:
        """Take in what the other one has; the statistics only where both count their own."""
        super().merge(other)
        for name, its in other.counts.items():
            self._counts[name].made().merge(its)
        if not (self.beside or other.beside):
            base: list[Any] = list(self.base)
            for mine, theirs in zip(base, other.base, strict=True):
                mine.merge(theirs)

    def reported(self, names: TopicNames | None = None) -> list[Finding]:
        """Return all findings: causes, the worst and earliest first, each before its
        consequences."""
        return unfolded(self.causes(names))

    def view(self, names: TopicNames | None = None, whole: Findings | None = None) -> DetectorInput:
        """Return what detectors read, as it is by now."""
        clients, span = (whole or self).base.clients, self.span
        view = DetectorInput(self.base, names, span.first_ns, span.last_ns, self.release, clients)
        view.gap_cause, view.damaged_places = self.gap_cause, self.damaged_places
        view.of_logs = self.of_logs
        return view

    @property
    def of_logs(self) -> bool:
        """Whether all exchanges come from request logs of brokers."""
        return 0 < self.span.logged == self.span.exchanges

    def truncation_notes(self) -> list[str]:
        """Return a sentence for each kind of subject of which there are more than are counted one
        by one: no finding is about a single one of the others."""
        counted = (self.base.connections, self.base.clients, self.base.groups)
        return [
            f"more than {limit:,} {each.NAME}: findings cover {limit:,} of them"
            for each in counted
            if each.subjects.others is not None
            for limit in [each.subjects.limit]
        ]

    def causes(
        self,
        names: TopicNames | None = None,
        whole: Findings | None = None,
        span: tuple[int | None, int | None] = (None, None),
    ) -> list[Cause]:
        """Return the causes, the worst and earliest first, with what followed from each. `whole`:
        of all exchanges, where these are some of them. `span`: begin and end of a time range;
        connections are judged outside of it, too."""
        view = self.view(names, whole)
        tampered: Any = self.counts.get("tampered")
        owned = tampered.attribute_to_proxy() if tampered is not None else None
        wanted = {RULES[name].detector for name in self.wanted}
        found = [
            owned(finding) if owned is not None and RULES[finding.name].touchable else finding
            for detector in DETECTORS
            if detector.name in wanted and not (detector.packets and view.of_logs)
            for finding in findings(detector, self._counts.get(detector.name), view)
            if finding.name in self.wanted
        ]
        if whole is not None:
            found = _supported(found, whole.reported(names))
            found = [finding for finding in found if finding.is_within(*span)]
        return folded(linked(found))

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per finding, in the order of `reported`."""
        return [finding.line() for finding in self.reported(names)]

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON, with its version; without statistics that others keep."""
        base = None if self.beside else [each.dump() for each in self.base]
        counts = {name: each.dump() for name, each in self.counts.items()}
        return {**super().dump(), "base": base, "counts": counts}

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`. A state without statistics can be merged
        without them, but yields nothing."""
        super().load(state)
        base = state["base"]
        self.beside = self.beside or base is None
        if not self.beside:
            parts: list[Any] = list(self.base)
            for mine, its in zip(parts, base, strict=True):
                mine.load(its)
        for name, each in state["counts"].items():
            self._counts[name].made().load(each)
        return self


def _supported(found: Iterable[Finding], whole: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a piece that the whole has, too, at most as bad as there. In a piece
    much seems to be missing that was only not chosen: answers, connections, commits."""
    by_rule = by_key((each.name, each) for each in whole)
    out = []
    for each in found:
        same = [other for other in by_rule.get(each.name, ()) if _same(each, other)]
        if same:
            worst = min((other.severity for other in same), key=RANK.__getitem__)
            out.append(replace(each, severity=max(worst, each.severity, key=RANK.__getitem__)))
    return out


def _same(one: Finding, other: Finding) -> bool:
    """Return whether they share something of each kind that both name."""
    mine, its = by_key(one.entities), by_key(other.entities)
    return all(not set(mine[kind]).isdisjoint(its[kind]) for kind in mine.keys() & its.keys())
