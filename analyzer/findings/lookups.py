"""Storms of lookups: metadata, topics that do not exist (question 13); commits and throttling
(question 15, and close behind)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, duration, once, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import per_second, topic_key
from kafkascope.dissectors.reference.codes import error_name

METADATA: Final = 3
NO_TOPIC: Final = frozenset({3, 5, 17})
"""UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, INVALID_TOPIC_EXCEPTION."""
MS: Final = 1_000_000

CHANGES_TOPICS: Final = frozenset({"CreateTopics", "DeleteTopics", "CreatePartitions"})
"""What the quota of topic changes holds back, with an error of its own (KIP-599)."""
CHANGES: Final = (
    "The quota of topic changes binds (controller_mutation_rate): raise it, or change topics at a "
    "slower pace."
)
MADE: Final = (
    "Nothing: a client that waits for a topic asks for it every retry.backoff.ms. Kafka Streams "
    "does while it makes its internal topics, others while auto.create.topics.enable works."
)


class Lookups(Detector):
    """Rates by client, and topics that are asked for in vain."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "unknown-topic",
            "warning",
            "a client asks again and again for a topic that is not there",
            "Create the topic, correct its name, or take it out of the subscription. Topics "
            "hidden by ACLs look the same.",
            "UNKNOWN_TOPIC_OR_PARTITION",
            brief="{n} answer that {topic} is not there|{n} answers that {topic} is not there",
            limits=("unknown-topic.count", "unknown-topic.spreading"),
        ),
        Rule(
            "lookup-storm",
            "warning",
            "a client looks up metadata or coordinators far too often",
            "Find out what fails between the lookups (errors, connections that end): each failure "
            "makes a client ask again.",
            brief="{n} lookup|{n} lookups",
            limits=("metadata.rate", "metadata.count", "metadata.starting"),
        ),
        Rule(
            "commit-storm",
            "warning",
            "a client commits offsets far too often",
            "Commit by time or by thousands of records, not by record; auto.commit.interval.ms is "
            "5 s by default.",
            limits=("commits.rate", "commits.least"),
        ),
        Rule(
            "throttled",
            "warning",
            "brokers throttle a client",
            "A quota of its user or client id binds: raise it (kafka-configs --entity-type), or "
            "send and fetch less.",
            limits=("throttle.share", "throttle.time"),
        ),
    )
    KEYS = frozenset({METADATA})

    topics: Keyed[Seen] = table(Seen, 5_000)
    """By client, topic and error."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of topics that are not there."""
        for error in row.errors:
            if error.code in NO_TOPIC and not error.top and error.partition is None:
                named = topic_key(error.topic, error.topic_id)
                self.topics[(*client_of(row), named, error.code)].see(row)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client."""
        for (client_id, host, topic, code), seen in self.topics.items():
            if seen.count < limit("unknown-topic.count"):
                continue
            who, error = view.client(client_id, host), error_name(code)
            rate = per_second(seen.count, seen.first[0] if seen.first else None, seen.last_ns)
            pace = f", {60 * rate:.0f} times a minute" if rate else ""
            made = self._made(topic, seen, view)
            yield view.finding(
                self.rule("unknown-topic"),
                f"{who} asked for topic {view.topic(topic)} {seen.count:,} times{pace}, and was "
                f"told {error}" + (" until the topic was made" if made else ""),
                all_of(
                    view.of_client(client_id, host),
                    f"api == Metadata and error == {code}",
                    view.of_topic(topic),
                ),
                seen,
                severity="chat" if made else None,
                advice=MADE if made else "",
                link=error,
                about=[("client", who), ("topic", view.topic(topic))],
            )
        for key, traffic in view.base.apis.grouped(("api", "client_id", "host")):
            api, client_id, host = key["api"], key["client_id"], key["host"]
            rate = per_second(traffic.count, traffic.first_ns, traffic.last_ns) or 0
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            first_ns, last_ns = traffic.first_ns, traffic.last_ns
            lookup = api in ("Metadata", "FindCoordinator", "DescribeCluster")
            starting = limit("metadata.starting") * view.connections(client_id, host)
            spare = traffic.count - starting
            if lookup and spare >= limit("metadata.count") and rate >= limit("metadata.rate"):
                span = (last_ns or 0) - (first_ns or 0)
                yield view.finding(
                    self.rule("lookup-storm"),
                    f"{who} sent {plural(traffic.count, f'{api} request')} within "
                    f"{duration(span)}, {rate:.1f} per second"
                    + (f", and {traffic.failed:,} got an error" if traffic.failed else ""),
                    all_of(mine, f"api == {api}"),
                    count=traffic.count,
                    about=[("client", who), ("api", str(api))],
                    first_ns=first_ns,
                    last_ns=last_ns,
                )
            if (
                api == "OffsetCommit"
                and traffic.count >= limit("commits.least")
                and rate >= limit("commits.rate")
            ):
                yield view.finding(
                    self.rule("commit-storm"),
                    f"{who} commits offsets {rate:.0f} times a second "
                    f"({plural(traffic.count, 'commit')})",
                    all_of(mine, "api == OffsetCommit"),
                    count=traffic.count,
                    about=[("client", who)],
                    first_ns=first_ns,
                    last_ns=last_ns,
                )
            if traffic.throttled:
                part = 100 * traffic.throttled // max(1, traffic.answered)
                mild = part < limit("throttle.share") or traffic.throttle_ms < limit(
                    "throttle.time"
                )
                longest = duration(traffic.throttle_ms * MS)
                changes = api in CHANGES_TOPICS
                yield view.finding(
                    self.rule("throttled"),
                    f"{plural(traffic.throttled, f'{api} answer')} to {who} told it to pause, for "
                    f"{longest} in all ({part} % of {traffic.answered:,} answers)",
                    all_of(mine, f"api == {api} and throttle > 0"),
                    count=traffic.throttled,
                    severity="note" if mild else None,
                    advice=CHANGES if changes else "",
                    link="THROTTLING_QUOTA_EXCEEDED" if changes else "",
                    about=[("client", who), ("api", str(api))],
                    first_ns=first_ns,
                    last_ns=last_ns,
                )

    def _made(self, topic: Any, seen: Seen, view: View) -> bool:
        """Return whether the topic came to be, and nobody was told for long after that it is not
        there."""
        born = _since(view).get(view.topic(topic))
        if born is None or seen.first is None or seen.last_ns is None:
            return False
        return seen.first[0] < born and seen.last_ns < born + limit("unknown-topic.spreading")


@once
def _since(view: View) -> dict[str, int]:
    """Map each topic to when a leader of it was first told."""
    found: dict[str, int] = {}
    for line in view.base.cluster.leaders(view.names):
        if line["since"] is not None:
            name = view.topic(line["topic"])
            found[name] = min(line["since"], found.get(name, line["since"]))
    return found
