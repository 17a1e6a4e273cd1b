"""All detectors and the statistics that they read, as one accumulator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from kafkascope.analyzer.findings.causes import Cause, folded, linked, unfolded
from kafkascope.analyzer.findings.detector import Detector, Exchange, Row
from kafkascope.analyzer.findings.detectors import DETECTORS
from kafkascope.analyzer.findings.model import COLUMNS, Finding, Rule
from kafkascope.analyzer.findings.pieces import supported
from kafkascope.analyzer.findings.tampered import Tampered
from kafkascope.analyzer.findings.view import Base, GapCause, View
from kafkascope.analyzer.statistics import STATISTICS
from kafkascope.analyzer.statistics.feed import Alike, Feed
from kafkascope.analyzer.statistics.merging.measures import Measures, least, measured, most, total
from kafkascope.analyzer.statistics.model import (
    Column,
    Line,
    Statistic,
    TopicNames,
    checked,
    stated,
)
from kafkascope.captures.model import Closed, Opened, Resolved

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads

RULES: Final[dict[str, Rule]] = {rule.name: rule for kind in DETECTORS for rule in kind.RULES}


@measured
class Span(Measures):
    """Of all traffic."""

    exchanges: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        self._reach(1, row.time_ns, row.time_ns + (row.latency_ns or 0))

    def add_all(self, alike: Alike) -> None:
        """Take in usual exchanges."""
        self._reach(len(alike.begins), min(alike.begins), max(alike.ends))

    def _reach(self, count: int, first_ns: int, last_ns: int) -> None:
        self.exchanges += count
        if self.first_ns is None or first_ns < self.first_ns:
            self.first_ns = first_ns
        if self.last_ns is None or last_ns > self.last_ns:
            self.last_ns = last_ns


def accumulators(payloads: Payloads | None = None) -> dict[str, Statistic]:
    """Return all statistics, and the findings beside them: each exchange is counted once by
    each. `payloads`: see `Findings`."""
    counted: dict[str, Statistic] = {name: kind() for name, kind in STATISTICS.items()}
    counted[Findings.NAME] = Findings(beside=counted, payloads=payloads)
    return counted


class Findings:
    """An accumulator of exchanges that tells findings."""

    NAME: ClassVar[str] = "findings"
    VERSION: ClassVar[int] = 18
    COLUMNS: ClassVar[tuple[Column, ...]] = COLUMNS

    def __init__(
        self,
        only: Collection[str] | None = None,
        ignore: Collection[str] = (),
        beside: Mapping[str, Statistic] | None = None,
        release: str = "",
        payloads: Payloads | None = None,
    ) -> None:
        """`only` and `ignore`: names of rules; unknown ones are a `KeyError`. `beside`: statistics
        that somebody else counts, merges and keeps; without them it counts its own. `release`: a
        Kafka release that clients have to work with. `payloads`: decodes keys and values, where
        these are to be judged."""
        self.release = release
        self.gap_cause: GapCause = ""
        self.damaged_places = 0
        """Of the files. Both are set by whoever has read the capture."""
        for name in (*(only or ()), *ignore):
            RULES[name]
        self.wanted = {name for name in only or RULES if name not in ignore}
        self._span = Span()
        self.beside = beside is not None
        found = beside or {name: STATISTICS[name]() for name in Base._fields}
        self._base = Base(*(found[name] for name in Base._fields))  # type: ignore[arg-type]
        own = () if self.beside else self._base
        self._detectors: list[Detector] = [kind() for kind in DETECTORS]
        for detector in self._detectors:
            detector.payloads = payloads
        self._watchers = [each.saw for each in own if hasattr(each, "saw")]
        self._watchers += [each.saw for each in self._detectors if each.WATCHES]
        self._feed = Feed((self,))

    def fed(self) -> Iterator[Any]:
        """Yield what counts: for who feeds these beside others. It has to settle before this tells
        anything."""
        yield self._span
        if not self.beside:
            yield from self._base
        yield from self._detectors

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        self._feed.add(row, exchange)

    @property
    def span(self) -> Span:
        """Of all that was taken in."""
        self._feed.settle()
        return self._span

    @property
    def base(self) -> Base:
        """The statistics that are read."""
        self._feed.settle()
        return self._base

    @property
    def detectors(self) -> list[Detector]:
        """All detectors."""
        self._feed.settle()
        return self._detectors

    def saw(self, event: Opened | Closed) -> None:
        """Take in the beginning or end of a connection."""
        for saw in self._watchers:
            saw(event)

    def named(self, event: Resolved) -> None:
        """Take in a host name with its addresses."""
        if not self.beside:
            self._base.cluster.named(event)

    def merge(self, other: Self) -> None:
        """Take in what the other one has; the statistics only where both count their own."""
        parts: list[Any] = [*self.detectors]
        others: list[Any] = [*other.detectors]
        if not (self.beside or other.beside):
            parts, others = [*self.base, *parts], [*other.base, *others]
        for mine, its in zip([self.span, *parts], [other.span, *others], strict=True):
            mine.merge(its)

    def told(self, names: TopicNames | None = None) -> list[Finding]:
        """Return all findings: causes, the worst and earliest first, each before its
        consequences."""
        return unfolded(self.causes(names))

    def view(self, names: TopicNames | None = None, whole: Findings | None = None) -> View:
        """Return what detectors read, as it is by now."""
        clients, span = (whole or self).base.clients, self.span
        view = View(self.base, names, span.first_ns, span.last_ns, self.release, clients)
        view.gap_cause, view.damaged_places = self.gap_cause, self.damaged_places
        return view

    def beyond(self) -> list[str]:
        """Return a sentence for each kind of subject of which there are more than are counted one
        by one: no finding is about a single one of the others."""
        counted = (self.base.connections, self.base.clients, self.base.groups)
        return [
            f"more than {each.limit:,} {each.NAME}: findings cover {each.limit:,} of them"
            for each in counted
            if each.crowded
        ]

    def causes(self, names: TopicNames | None = None, whole: Findings | None = None) -> list[Cause]:
        """Return the causes, the worst and earliest first, with what followed from each. `whole`:
        of all exchanges, where these are some of them."""
        view = self.view(names, whole)
        (tampered,) = (each for each in self.detectors if isinstance(each, Tampered))
        owned = tampered.owner()
        found = [
            owned(finding) if detector.TOUCHABLE else finding
            for detector in self.detectors
            if any(rule.name in self.wanted for rule in detector.RULES)
            for finding in detector.told(view)
            if finding.name in self.wanted
        ]
        if whole is not None:
            found = supported(found, whole.told(names))
        return folded(linked(found))

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per finding, in the order of `told`."""
        return [finding.line() for finding in self.told(names)]

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON, with its version; without statistics that others keep."""
        base = None if self.beside else [each.dump() for each in self.base]
        detectors = {type(each).__name__: each.dump() for each in self.detectors}
        return stated(self, [self.span.dump(), base, detectors])

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`. A state without statistics can be merged
        without them, but tells nothing."""
        span, base, detectors = checked(self, state)
        self.span.load(span)
        self.beside = self.beside or base is None
        if not self.beside:
            parts: list[Any] = list(self.base)
            for mine, its in zip(parts, base, strict=True):
                mine.load(its)
        for each in self.detectors:
            each.load(detectors[type(each).__name__])
        return self
