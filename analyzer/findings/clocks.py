"""Clocks of producers that are wrong, as the timestamps of their records tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, duration, listed, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import least, measured, most, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.moved import Moved, moved
from kafkascope.dissectors.records.batches import LOG_APPEND_TIME

PRODUCE: Final = 0
INVALID_TIMESTAMP: Final = 32
MS: Final = 1_000_000
DAY: Final = 86_400 * 1_000 * MS
OLDER_THAN_KAFKA: Final = 16 * 365 * DAY
MAX_CLIENTS: Final = 2_000
MOST_NAMED: Final = 100


@measured
class Stamps(Seen):
    """Of the batches of a producer, whose newest records have a CreateTime."""

    ahead_ns: int | None = most()
    """How far the newest timestamp was ahead of the capture's clock; below 0: behind it."""
    least_ns: int | None = least()
    refused: int = total()
    """Requests that were refused with INVALID_TIMESTAMP."""
    topics: Names = whole(Names)
    """Of these, as keys."""
    old: int = total()
    """Requests whose newest record is older than retention keeps it by default."""
    old_topics: Names = whole(Names)

    def stamp(self, ahead_ns: int) -> None:
        """Take note of how far a timestamp is ahead."""
        if self.ahead_ns is None or ahead_ns > self.ahead_ns:
            self.ahead_ns = ahead_ns
        if self.least_ns is None or ahead_ns < self.least_ns:
            self.least_ns = ahead_ns


class Clocks(Detector):
    """CreateTime of records next to the clock of the capture."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "clock-skew",
            "warning",
            "record timestamps far in the future or the past, or refused by a broker",
            "Synchronize the clock of the producer's machine (NTP). Check for timestamps in "
            "seconds or microseconds: Kafka reads them as milliseconds. Brokers delete and index "
            "records by timestamp; message.timestamp.before.max.ms and "
            "message.timestamp.after.max.ms (message.timestamp.difference.max.ms before 3.6) "
            "limit it for each topic.",
            "INVALID_TIMESTAMP",
            subject=("client",),
            limits=("clock.ahead", "clock.alone", "clock.behind"),
        ),
    )
    KEYS = frozenset({PRODUCE})

    clients: Keyed[Stamps] = table(Stamps, MAX_CLIENTS)
    """By client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of the newest timestamp of a request, and refusals."""
        newest = 0
        refused = []
        for each in moved(exchange):
            if each.error == INVALID_TIMESTAMP:
                refused.append(each.topic)
            newest = max(newest, newest_of(each))
        if newest <= 0 and not refused:
            return
        stamps = self.clients[client_of(row)]
        stamps.see(row)
        if newest > 0:
            ahead = newest * MS - row.time_ns
            stamps.stamp(ahead)
            if ahead <= -limit("clock.behind"):
                stamps.old += 1
                for each in moved(exchange):
                    stamps.old_topics.add(each.topic or "")
        if refused:
            stamps.refused += 1
            for topic in refused:
                stamps.topics.add(topic or "")

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        found: dict[tuple[int, int], int] = {}
        for parts in alike.parts.values():
            abouts = zip(parts.by_batch(parts.begins), parts.by_batch(parts.numbers), strict=True)
            batches = parts.batches
            columns = abouts, batches.max_timestamp, batches.attributes
            for about, newest, attributes in zip(*columns, strict=True):
                if newest > found.get(about, 0) and not attributes & LOG_APPEND_TIME:
                    found[about] = newest
        if not found:
            return
        stamps = self.clients[client_of(alike.row)]
        ahead = [newest * MS - time_ns for (time_ns, _), newest in found.items()]
        stamps.see_all(found)
        stamps.stamp(min(ahead))
        stamps.stamp(max(ahead))
        behind = -limit("clock.behind")
        if min(ahead) <= behind:
            stamps.old += sum(each <= behind for each in ahead)
            for topic, _ in alike.parts:
                stamps.old_topics.add(topic or "")

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client: refused ones, and those that are ahead where others are not."""
        far = limit("clock.ahead")
        seen = [each.ahead_ns for _, each in self.clients.items() if each.ahead_ns is not None]
        right = any(abs(each) < far for each in seen)
        # Of a capture whose own clock is wrong, or was moved, all clients are as far away.
        moved_clock = len(seen) > 1 and max(seen) - min(seen) < far
        for (client_id, host), stamps in self.clients.items():
            ahead = stamps.ahead_ns
            future = ahead is not None and ahead >= far and right
            future |= ahead is not None and ahead >= limit("clock.alone") and not moved_clock
            if stamps.refused or future:
                yield self._told(client_id, host, stamps, view)
            elif stamps.old and not moved_clock:
                yield self._old(client_id, host, stamps, view)

    def _old(self, client_id: Any, host: Any, stamps: Stamps, view: View) -> Finding:
        """Return the finding about records that retention deletes at once."""
        who, oldest = view.client(client_id, host), stamps.least_ns or 0
        topics = sorted({view.topic(topic) for topic in stamps.old_topics})
        was = "was" if stamps.old == 1 else "were"
        return view.finding(
            self.rule("clock-skew"),
            f"{plural(stamps.old, 'Produce request')} from {who} to {listed(topics)} {was} up to "
            f"{_age(-oldest)} old by CreateTime{_unit(stamps, oldest)}: brokers delete such "
            "records at the next check of retention.ms (7 days by default)",
            all_of(view.of_client(client_id, host), "api == Produce"),
            stamps,
            count=stamps.old,
            # Copies and tests keep timestamps of the past; no record is older than Kafka.
            severity=None if -oldest >= OLDER_THAN_KAFKA else "note",
            about=[("client", who), *(("topic", each) for each in topics[:MOST_NAMED])],
        )

    def _told(self, client_id: Any, host: Any, stamps: Stamps, view: View) -> Finding:
        who, ahead = view.client(client_id, host), stamps.ahead_ns or 0
        topics = sorted({view.topic(topic) for topic in stamps.topics})
        refused = (
            f"; {plural(stamps.refused, 'request')} for {listed(topics)} "
            f"{'was' if stamps.refused == 1 else 'were'} refused with INVALID_TIMESTAMP"
            if stamps.refused
            else ""
        )
        where = "ahead of" if ahead >= 0 else "behind"
        kept = ""
        if ahead >= limit("clock.alone"):
            kept = ": retention.ms does not delete their segments until that time has passed"
        mine = view.of_client(client_id, host)
        return view.finding(
            self.rule("clock-skew"),
            f"Timestamps from {who} are up to {_age(abs(ahead))} {where} the clock of the "
            f"capture{_unit(stamps, ahead)}{kept}{refused}",
            all_of(mine, "api == Produce", "error == 32" if stamps.refused else ""),
            stamps,
            count=stamps.refused or stamps.count,
            severity="error" if stamps.refused else None,
            about=[
                ("client", who),
                *(("topic", each) for each in topics[:MOST_NAMED]),
            ],
        )


def _age(ns: int) -> str:
    """Return a duration, from two days on in days."""
    days = round(ns / DAY)
    return duration(ns) if days < 2 else f"{days:,} days"


def _unit(stamps: Stamps, ahead_ns: int) -> str:
    """Say in which unit timestamps seem to be, where it is not Kafka's milliseconds."""
    now = stamps.first[0] if stamps.first else 0
    ratio = (now + ahead_ns) / max(1, now)
    units = ((0.001, "seconds"), (1_000, "microseconds"), (1_000_000, "nanoseconds"))
    for factor, unit in units:
        if 0.9 < ratio / factor < 1.1:
            return f", as if they were {unit}"
    return ""


def newest_of(each: Moved) -> int:
    """Return the newest CreateTime of batches, in milliseconds; 0 where there is none."""
    newest = 0
    for batch in each.batches:
        if batch.max_timestamp > newest and not batch.attributes & LOG_APPEND_TIME:
            newest = batch.max_timestamp
    return newest
