"""Producers that send single records although more are waiting (question 12).

A trickle of single records is healthy: there is nothing to batch. Batching helps a producer that is
busy, and whose requests wait for each other: several are in flight at once, or each is sent as soon
as the one before is answered (`send().get()`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import compress, repeat
from typing import Any, ClassVar, Final, NamedTuple

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, ShortLog
from kafkascope.analyzer.findings.limits import SECOND, limit
from kafkascope.analyzer.findings.view import View, all_of, plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events, Kept
from kafkascope.analyzer.statistics.merging.tables import Keyed

PRODUCE: Final = 0
MAX_CLIENTS: Final = 100


class Pace(NamedTuple):
    """Of the seconds in which a producer is busy."""

    requests: int
    most: int
    """In one second."""
    waiting: int
    """Requests that were sent while another one was in flight, or right after its response."""
    first_ns: int
    last_ns: int


class Batching(Detector):
    """Batch sizes from the statistic; how requests follow each other."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "tiny-batches",
            "warning",
            "busy producer that sends single-record batches",
            "Raise linger.ms (5 to 20 ms) and batch.size. Do not flush, or wait for the result, "
            "after each record. Brokers pay per request and per batch, and compression works "
            "across the records of a batch.",
            limits=("batches.least", "batches.busy", "batches.right-after", "batches.waiting"),
        ),
    )
    KEYS = frozenset({PRODUCE})

    singles: Keyed[ShortLog] = table(ShortLog, MAX_CLIENTS)
    """By client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of when a single record was sent, and answered."""
        if row.records == 1 and row.latency_ns is not None:
            ends = row.client_address, row.broker_address
            end = row.time_ns + row.latency_ns
            kept = row.time_ns, row.id, 0, row.number, _single, end, *ends
            self.singles[client_of(row)].events.add(kept)

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        row = alike.row
        if 1 not in alike.records:
            return
        ends = repeat(row.client_address), repeat(row.broker_address)
        events = zip(
            alike.begins, alike.ids, repeat(0), alike.numbers, repeat(_single), alike.ends, *ends
        )
        single = [records == 1 for records in alike.records]
        self.singles[client_of(row)].events.add_all(list(compress(events, single)))

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client."""
        for key, sizes in view.base.sizes.grouped(("what", "api", "client_id", "host")):
            if key["what"] != "batch" or key["api"] != "Produce":
                continue
            count, median = sizes.records.count, sizes.records.percentile(0.5)
            singles = self.singles.get((key["client_id"], key["host"]))
            if singles is None or count < limit("batches.least") or (median or 2) > 1:
                continue
            pace = max(map(_pace, _sequences(singles.events)), key=lambda each: each.requests)
            waiting = 100 * pace.waiting // max(1, pace.requests)
            if pace.requests < limit("batches.least") or waiting < limit("batches.waiting"):
                continue
            who = view.client(key["client_id"], key["host"])
            yield view.finding(
                self.rule("tiny-batches"),
                f"{who} sent {plural(count, 'batch', 'batches')} with a median of 1 record "
                f"({size(sizes.bytes.total // count)} on average), at up to {pace.most} Produce "
                f"requests per second; {waiting} % of them waited for the previous request",
                all_of(
                    view.of_client(key["client_id"], key["host"]), "api == Produce", "records <= 1"
                ),
                count=count,
                first_ns=pace.first_ns,
                last_ns=pace.last_ns,
                about=[("client", who)],
            )


def _sequences(events: Events) -> list[list[Event]]:
    """Return the requests of each producer. One with a connection to each broker waits for any of
    them; of several with one client id, which have several connections to a broker, each connection
    is judged alone."""
    connections: dict[tuple[Any, ...], list[Event]] = {}
    for event in events:
        connections.setdefault(tuple(event.about["connection"]), []).append(event)
    brokers = {broker for _, broker in connections}
    return [list(events)] if len(brokers) == len(connections) else list(connections.values())


def _pace(events: list[Event]) -> Pace:
    """Measure how requests follow each other in the busy seconds of a sequence."""
    each_second = Counter(event.time_ns // SECOND for event in events)
    busy = {when for when, count in each_second.items() if count >= limit("batches.busy")}
    end = waiting = 0
    for event in events:
        follows = event.time_ns - end <= limit("batches.right-after")
        waiting += follows and event.time_ns // SECOND in busy
        end = max(end, event.about["end_ns"])
    requests = sum(each_second[when] for when in busy)
    most = max(each_second.values())
    return Pace(requests, most, waiting, events[0].time_ns, events[-1].time_ns)


def _single(kept: Kept) -> Event:
    time_ns, id_, part, number, _, end_ns, client, broker = kept
    about = {"end_ns": end_ns, "connection": [client, broker]}
    return Event(time_ns, id_, part, number, "single", about)
