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
NO_LEADER: Final = frozenset({5})
NO_COORDINATOR: Final = frozenset({14, 15, 16})
"""What lookups go on asking for."""
MS: Final = 1_000_000

CHANGES_TOPICS: Final = frozenset({"CreateTopics", "DeleteTopics", "CreatePartitions"})
"""What the quota of topic changes holds back, with an error of its own (KIP-599)."""
CHANGES: Final = (
    "Raise controller_mutation_rate, or change topics at a slower pace. The client is hitting the "
    "quota for topic changes."
)
MADE: Final = (
    "No action is needed: a client that waits for a new topic looks it up every retry.backoff.ms. "
    "Kafka Streams does so while it creates its internal topics, other clients while "
    "auto.create.topics.enable creates the topic."
)


class Lookups(Detector):
    """Rates by client, and topics that are asked for in vain."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "unknown-topic",
            "warning",
            "lookups of a topic that does not exist",
            "Create the topic, correct its name, or remove it from the subscription. ACLs that "
            "hide a topic have the same effect.",
            "UNKNOWN_TOPIC_OR_PARTITION",
            brief="{n} lookup of missing topic {topic}|{n} lookups of missing topic {topic}",
            limits=("unknown-topic.count", "unknown-topic.spreading"),
            errors=NO_TOPIC,
        ),
        Rule(
            "lookup-storm",
            "warning",
            "excessive metadata or coordinator lookups",
            "Find what fails between the lookups (errors, closed connections): each failure "
            "triggers another lookup. If nothing fails, raise metadata.max.age.ms.",
            brief="{n} lookup|{n} lookups",
            limits=("metadata.rate", "metadata.count", "metadata.starting"),
            errors=NO_LEADER | NO_COORDINATOR,
        ),
        Rule(
            "commit-storm",
            "warning",
            "excessive offset commits",
            "Commit by time or every few thousand records, not after each record. "
            "auto.commit.interval.ms is 5 s by default.",
            limits=("commits.rate", "commits.least"),
        ),
        Rule(
            "throttled",
            "warning",
            "client throttled by a quota",
            "Raise the quota (kafka-configs.sh --entity-type), or send and fetch less. The client "
            "is hitting a user or client-id quota.",
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
            pace = f" ({60 * rate:.0f} per minute)" if rate else ""
            made = self._made(topic, seen, view)
            yield view.finding(
                self.rule("unknown-topic"),
                f"{who} looked up topic {view.topic(topic)} {seen.count:,} times{pace} and got "
                f"{error}" + (" until the topic was created" if made else ""),
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
                    + (f"; {traffic.failed:,} of them failed" if traffic.failed else ""),
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
                    f"{who} commits offsets {rate:.0f} times per second "
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
                    f"{plural(traffic.throttled, f'{api} response')} throttled {who}, for "
                    f"{longest} in total ({part} % of {plural(traffic.answered, 'response')})",
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
