"""What a detector is: bounded state that merges, like a statistic's, and what it tells of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.findings.model import Finding, Rule
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.merging.compounds import Compound
from kafkascope.analyzer.statistics.merging.events import FEW, Events
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.captures.model import Closed, Opened

if TYPE_CHECKING:
    from kafkascope.analyzer.findings.view import View
    from kafkascope.analyzer.payloads.decoding import Payloads

__all__ = [
    "Detector",
    "Exchange",
    "Finding",
    "Log",
    "Row",
    "Rule",
    "Seen",
    "ShortLog",
    "Worded",
]


@measured
class Seen(Measures):
    """How often something was seen, and when."""

    count: int = total()
    first: tuple[int, int] | None = least()
    """(time, number of the exchange)"""
    last_ns: int | None = most()

    def see(self, row: Row) -> None:
        """Count an exchange."""
        self.see_at(row.time_ns, row.number)

    def see_at(self, time_ns: int, number: int) -> None:
        """Count an exchange with a time and number."""
        first = self.first
        self.count += 1
        if first is None or (time_ns <= first[0] and (time_ns, number) < first):
            self.first = time_ns, number
        if self.last_ns is None or time_ns > self.last_ns:
            self.last_ns = time_ns

    def see_all(self, seen: Collection[tuple[int, int]]) -> None:
        """Count exchanges: (time, number) of each."""
        self.take(count=len(seen), first=min(seen), last_ns=max(seen)[0])


@measured
class Worded(Seen):
    """With what was said of it."""

    words: Names = whole(Names)


@measured
class Log(Measures):
    """Events of a client, a connection or a partition, in the order of time."""

    events: Events = whole(Events)


@measured
class ShortLog(Measures):
    """Fewer of them, for large tables."""

    events: Events = whole(partial(Events, FEW))


class Detector(Compound):
    """Base of all detectors. State is in declared tables, so that merging, writing down and limits
    are the same for all; a detector that derives everything from statistics has none."""

    RULES: ClassVar[tuple[Rule, ...]]
    KEYS: ClassVar[frozenset[int] | None] = frozenset()
    """Keys of the APIs that `add` wants; None for all exchanges, also those without an API."""
    ODD_KEYS: ClassVar[frozenset[int]] = frozenset()
    """Beside KEYS: APIs of which it wants only exchanges that are not as they should be."""
    ODD: ClassVar[bool] = False
    """In place of KEYS: it wants all exchanges that are not as they should be (`feed.is_odd`)."""
    KAFKA_ONLY: ClassVar[bool] = True
    """Whether it wants exchanges with ZooKeeper only where `KEYS` names them: errors of every day
    there would be trouble with Kafka."""
    TOUCHABLE: ClassVar[bool] = True
    """Whether rules of our own proxy can bring about what it finds: see `tampered`."""
    WATCHES: ClassVar[bool] = False
    """Whether it wants beginnings and ends of connections."""

    payloads: Payloads | None = None
    """What decodes keys and values, where that is wanted; no part of the state."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange. One that has `add_all` gets usual ones by that: see `feed`."""

    def saw(self, event: Opened | Closed) -> None:
        """Take in the beginning or end of a connection."""

    def told(self, view: View) -> Iterator[Finding]:
        """Yield the findings."""
        raise NotImplementedError

    def rule(self, name: str) -> Rule:
        """Return the detector's rule of a name."""
        return next(rule for rule in self.RULES if rule.name == name)
