"""Where brokers lose time, by the stages that their request logs tell: queues, disks, followers,
network threads, readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.analyzer.findings.counting import Names, Occurrences, most, total, whole
from kafkascope.analyzer.findings.filters import all_of
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.model import Logged
from kafkascope.analyzer.statistics.exchange_batch import PRODUCE, ExchangeBatch

# acks=all.
ALL: Final = -1


class SlowStage(NamedTuple):
    """A stage in which time is lost, and the finding that says so."""

    rule: str
    field: str
    """Field of the filter language."""
    limit: str
    """Threshold of one request's time."""
    words: str


STAGES: Final = {
    "queue": SlowStage(
        "handlers-busy",
        "broker.request_queue",
        "stage.queue",
        "in the request queue of {}: its request handlers are busy",
    ),
    "local": SlowStage(
        "broker-local-slow",
        "broker.local",
        "stage.local",
        "in the request handlers of {}: a slow disk, or a lock",
    ),
    "followers": SlowStage(
        "followers-slow",
        "broker.remote",
        "stage.remote",
        "at {} for its followers: these replicate slowly",
    ),
    "network": SlowStage(
        "network-threads-busy",
        "broker.response_queue",
        "stage.queue",
        "in the response queue of {}: its network threads are busy",
    ),
    "send": SlowStage(
        "slow-reader", "broker.send", "stage.send", "at {} until the response was sent"
    ),
}


class StageTimes(Occurrences):
    """Requests that lost time in a stage."""

    requests: int = total()
    """All of them, slow or not."""
    longest_ns: int | None = most()
    apis: Names = whole(Names)
    connections: Names = whole(Names)
    topics: Names = whole(Names)


class BrokerTimeCounts(Counts):
    """By stage and broker; slow readers by client as well."""

    stages = StageTimes.table(LIMITS.keys)

    def add(self, batch: ExchangeBatch) -> None:
        """Take in the times of a line; lines come one by one."""
        row, logged = batch.row, batch.exchange.logged
        if logged is None:
            return
        for stage, spent_ns in _spent(row, logged):
            who = client_of(row) if stage == "send" else (None, "")
            seen = self.stages[(stage, row.broker_address, *who)]
            seen.requests += 1
            if spent_ns >= limit(STAGES[stage].limit):
                seen.see(row, longest_ns=spent_ns, apis=row.api, connections=row.connection)
                for topic in row.topics[:4] if stage == "followers" else ():
                    seen.topics.add(topic)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (stage, broker, *who), seen in self.stages.items():
            few = seen.count < limit("stage.count")
            if few or 100 * seen.count < limit("stage.share") * seen.requests:
                continue
            # All requests wait in the queues: where one API or connection does, it is its own.
            shared = stage in ("queue", "network")
            if shared and min(len(seen.apis), len(seen.connections)) < limit("stage.spread"):
                continue
            rule, name, at, words = STAGES[stage]
            client = view.client(*who) if stage == "send" else None
            whose = f" from {client}" if client is not None else ""
            what = "acks=all Produce request" if stage == "followers" else "request"
            if len(seen.apis) == 1 and stage not in ("followers", "send"):
                what = f"{next(iter(seen.apis))} request"
            topics = f" ({listed(sorted(seen.topics))})" if stage == "followers" else ""
            yield view.finding(
                rule,
                f"{seen.count} of {plural(seen.requests, what)}{whose}{topics} spent "
                f"{duration(limit(at))} or more, up to {duration(seen.longest_ns or 0)}, "
                f"{words.format(spelled(broker))}",
                all_of(
                    f"{name} >= {limit(at) // 1_000_000}ms",
                    "api == Produce" if stage == "followers" else "",
                ),
                seen,
                client=client,
                broker=broker,
            )


def _spent(row: Row, logged: Logged) -> Iterator[tuple[str, int]]:
    times = logged.times
    for stage, spent_ns in (
        ("queue", times.request_queue_ns),
        ("local", times.local_ns),
        ("network", times.response_queue_ns),
        ("send", times.send_ns),
    ):
        if spent_ns is not None:
            yield stage, spent_ns
    if row.api_key == PRODUCE and row.acks == ALL and times.remote_ns is not None:
        yield "followers", times.remote_ns
