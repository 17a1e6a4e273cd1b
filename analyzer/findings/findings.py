"""All detectors and the statistics that they read, as one accumulator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from kafkascope.analyzer.findings.causes import Cause, folded, linked, unfolded
from kafkascope.analyzer.findings.detector import Detector, Exchange, Row, is_odd
from kafkascope.analyzer.findings.detectors import DETECTORS
from kafkascope.analyzer.findings.model import COLUMNS, Finding, Rule
from kafkascope.analyzer.findings.pieces import supported
from kafkascope.analyzer.findings.tampered import Tampered
from kafkascope.analyzer.findings.view import Base, View
from kafkascope.analyzer.statistics import STATISTICS
from kafkascope.analyzer.statistics.mergeable import Measures, least, measured, most, total
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

Add = Callable[["Row", "Exchange"], None]


@measured
class Span(Measures):
    """Of all traffic."""

    exchanges: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()


def accumulators(payloads: Payloads | None = None) -> dict[str, Statistic]:
    """Return all statistics, and the findings beside them: each exchange is counted once by
    each. `payloads`: see `Findings`."""
    counted: dict[str, Statistic] = {name: kind() for name, kind in STATISTICS.items()}
    counted[Findings.NAME] = Findings(beside=counted, payloads=payloads)
    return counted


class Findings:
    """An accumulator of exchanges that tells findings."""

    NAME: ClassVar[str] = "findings"
    VERSION: ClassVar[int] = 14
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
        for name in (*(only or ()), *ignore):
            RULES[name]
        self.wanted = {name for name in only or RULES if name not in ignore}
        self.span = Span()
        self.beside = beside is not None
        found = beside or {name: STATISTICS[name]() for name in Base._fields}
        self.base = Base(*(found[name] for name in Base._fields))  # type: ignore[arg-type]
        own = () if self.beside else self.base
        self.detectors: list[Detector] = [kind() for kind in DETECTORS]
        for detector in self.detectors:
            detector.payloads = payloads
        self._always: list[Add] = [each.add for each in own]
        self._always += [each.add for each in self.detectors if each.KEYS is None]
        self._by_key: dict[int, list[Add]] = {}
        for each in self.detectors:
            for key in each.KEYS or ():
                self._by_key.setdefault(key, []).append(each.add)
        self._odd: list[Add] = [each.add for each in self.detectors if each.ODD]
        self._odd_by_key: dict[int, list[Add]] = {}
        for each in self.detectors:
            for key in each.ODD_KEYS:
                self._odd_by_key.setdefault(key, []).append(each.add)
        self._watchers = [each.saw for each in own if hasattr(each, "saw")]
        self._watchers += [each.saw for each in self.detectors if each.WATCHES]

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        span = self.span
        span.exchanges += 1
        end = row.time_ns + (row.latency_ns or 0)
        if span.first_ns is None or row.time_ns < span.first_ns:
            span.first_ns = row.time_ns
        if span.last_ns is None or end > span.last_ns:
            span.last_ns = end
        for add in self._always:
            add(row, exchange)
        if is_odd(row):
            for add in self._odd:
                add(row, exchange)
            if row.api_key is not None:
                for add in self._odd_by_key.get(row.api_key, ()):
                    add(row, exchange)
        if row.api_key is not None:
            for add in self._by_key.get(row.api_key, ()):
                add(row, exchange)

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
        self.span.merge(other.span)
        if not (self.beside or other.beside):
            parts: list[Any] = list(self.base)
            for mine, its in zip(parts, other.base, strict=True):
                mine.merge(its)
        for one, two in zip(self.detectors, other.detectors, strict=True):
            one.merge(two)

    def told(self, names: TopicNames | None = None) -> list[Finding]:
        """Return all findings: causes, the worst and earliest first, each before its
        consequences."""
        return unfolded(self.causes(names))

    def view(self, names: TopicNames | None = None, whole: Findings | None = None) -> View:
        """Return what detectors read, as it is by now."""
        clients = (whole or self).base.clients
        return View(self.base, names, self.span.first_ns, self.span.last_ns, self.release, clients)

    def beyond(self) -> list[str]:
        """Return a sentence for each kind of subject of which there are more than are counted one
        by one: no finding is about a single one of the others."""
        counted = (self.base.connections, self.base.clients, self.base.groups)
        return [
            f"there are more than {each.limit:,} {each.NAME}: findings are about so many of them"
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
