"""Requests to brokers that are not the leader (question 7), storms of lookups and lookups of
missing topics (question 13), storms of commits, and throttling (question 15)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Event, EventLog, Events, Names, Occurrences, whole
from kafkascope.analyzer.findings.filters import all_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, limit
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import Spelled, duration, listed, plural, spelled
from kafkascope.analyzer.identity import client_key_of, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.model import per_second, topic_key
from kafkascope.analyzer.statistics.traffic import Traffic
from kafkascope.dissectors.reference.codes import error_name

LEADER: Final = frozenset({6, 74, 75})
"""NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
CODES: Final = "error in {5, 6, 74, 75}"
NO_TOPIC: Final = frozenset({3, 5, 17})
"""UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, INVALID_TOPIC_EXCEPTION."""
LEADER_NOT_AVAILABLE: Final = 5
INVALID_TOPIC: Final = 17
NO_LEADER: Final = -1
LOOKUPS: Final[Mapping[str, frozenset[str]]] = {
    "Metadata": frozenset({"ListOffsets", "DeleteRecords", "DescribeProducers", "DescribeConfigs"}),
    "FindCoordinator": frozenset(
        {
            *("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit"),
            *("EndTxn", "DescribeTransactions", "OffsetFetch", "OffsetDelete", "DeleteGroups"),
            *("DescribeGroups", "ConsumerGroupDescribe", "ShareGroupDescribe"),
        }
    ),
    "DescribeCluster": frozenset(),
}
"""Lookups, and the requests before which some clients send one each time: admin clients that delete
records (Kafka Streams, for repartition topics), monitors that read the offsets of each group,
kafkajs in each step of a transaction."""
# APIs under the quota of topic changes, which has its own error (KIP-599).
CHANGES_TOPICS: Final = frozenset({"CreateTopics", "DeleteTopics", "CreatePartitions"})


@dataclass(slots=True)
class RefusalRun:
    """Refusals of one partition by one broker, without Metadata in between."""

    first: Event
    last: Event
    numbers: set[int] = field(default_factory=set)
    """Numbers of the exchanges that repeated the first one after its response."""
    refused: set[int] = field(default_factory=set)
    """Numbers of all exchanges in which the partition was refused, also of shorter runs."""


class Leaderless(Occurrences):
    """Metadata responses without the leader of a partition."""

    clients: Names = whole(Names)


class SeenCluster(Occurrences):
    """Metadata responses with the id of a cluster."""

    clients: Names = whole(Names)


class Leaders(Counts):
    """Errors about leaders next to Metadata requests, and requests for unknown topics."""

    clients = EventLog.table(LIMITS.event_keys)
    """By client: Metadata requests and errors."""
    topics = Occurrences.table(LIMITS.many_keys)
    """By client, topic and error."""
    leaderless = Leaderless.table(LIMITS.many_keys)
    """By topic and partition."""
    clusters = SeenCluster.table(LIMITS.few_keys)
    """By the address of a broker and the cluster id."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        refused = [e for e in row.errors if e.code in LEADER and not e.top]
        if row.api != "Metadata" and not refused:
            return
        log = self.clients[client_key_of(row)]
        end = row.time_ns + (row.latency_ns or 0)
        if row.api == "Metadata":
            log.events.note(row, "metadata", {}, -1)
            cluster = (exchange.response_body or {}).get("cluster_id")
            if cluster:
                self.clusters[(row.broker_address, cluster)].see(row, clients=client_of(row))
            for error in row.errors:
                if error.code in NO_TOPIC and not error.top and error.partition is None:
                    named = topic_key(error.topic, error.topic_id)
                    self.topics[(*client_of(row), named, error.code)].see(row)
                elif error.code == LEADER_NOT_AVAILABLE and error.partition is not None:
                    place = topic_key(error.topic, error.topic_id), error.partition
                    self.leaderless[place].see(row, clients=client_of(row))
            return
        for part, error in enumerate(refused[:100]):
            about: dict[str, Any] = {
                "broker": row.broker_address,
                "topic": topic_key(error.topic, error.topic_id),
                "partition": error.partition,
                "end_ns": end,
            }
            log.events.note(row, "refused", about, part)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        moved: list[tuple[Client, Any, RefusalRun]] = []
        for key, log in self.clients.items():
            client = view.client(*key)
            if view.is_broker(*key):
                # Replicas and voters learn of leaders from the controller, not from Metadata.
                continue
            stale: dict[Any, list[tuple[Any, RefusalRun]]] = defaultdict(list)
            for (broker, *place), run in _runs(log.events).items():
                if len(run.numbers) >= limit("leader.retries"):
                    stale[broker].append((place, run))
                else:
                    moved.append((client, place, run))
            for broker, runs in stale.items():
                yield _stale(client, broker, runs, view)
        if moved:
            yield _of_former_leaders(moved, view)
        for (*who, topic, code), seen in self.topics.items():
            client = view.client(*who)
            many = seen.count >= limit("unknown-topic.count") or code == INVALID_TOPIC
            if many or _waits(client, topic, seen, view):
                yield _unknown(client, topic, int(str(code)), seen, view)
        yield from _leaderless(dict(self.leaderless.items()), view)
        by_broker = by_key(
            (str(at), (str(name), seen)) for (at, name), seen in self.clusters.items()
        )
        for broker, found in by_broker.items():
            yield from _changed(broker, found, view)
        rates = [
            (str(by["api"]), view.client(by["client_id"], by["host"]), traffic)
            for by, traffic in view.base.apis.grouped(("api", "client_id", "host"))
        ]
        worked = {(client, api): each.answered - each.failed for api, client, each in rates}
        for api, client, traffic in rates:
            needed = sum(worked.get((client, each), 0) for each in LOOKUPS.get(api, ()))
            yield from _rates(api, client, traffic, needed, view)


def _changed(
    broker: str, found: list[tuple[str, SeenCluster]], view: DetectorInput
) -> Iterator[Finding]:
    """Yield changes of the cluster behind an address, if a client used both clusters. An ingress
    that routes by server name has several clusters at the same time, which is no change."""
    found.sort(key=lambda each: each[1].first or (0, 0))
    for (old, before), (new, after) in pairwise(found):
        begun = after.first or (0, 0)
        both = set(before.clients) & set(after.clients)
        if not both or (before.last_ns or 0) >= begun[0]:
            continue
        clients = view.clients(both)
        yield view.finding(
            "cluster-changed",
            f"{spelled(broker)} was in cluster {spelled(old)}, and is in cluster {spelled(new)} "
            f"{duration(begun[0] - (before.last_ns or 0))} later, for {listed(clients)}",
            f'api == Metadata and broker == "{broker}"',
            after,
            about={"broker": broker, "client": clients},
        )


def _stale(
    client: Client, broker: Any, runs: list[tuple[Any, RefusalRun]], view: DetectorInput
) -> Finding:
    # One request may be for many partitions.
    count = len(set().union(*(run.numbers for _, run in runs)))
    places = listed(Spelled(f"{view.topic(topic)}-{number}") for (topic, number), _ in runs)
    return view.finding(
        "stale-leader",
        f"{client} repeated {plural(count, 'request')} for {places} at {broker}, which is not the "
        "leader, without a Metadata request in between",
        CODES,
        client=client,
        broker=broker,
        count=count,
        span=(min(run.first.time_ns for _, run in runs), max(run.last.time_ns for _, run in runs)),
        number=min(run.first.number for _, run in runs),
        about={"topic": view.topics(topic for (topic, _), _ in runs)},
    )


def _of_former_leaders(moved: list[tuple[Client, Any, RefusalRun]], view: DetectorInput) -> Finding:
    """Return one finding for all clients, because a leader moves for all of them."""
    runs = [run for _, _, run in moved]
    first = min(run.first.time_ns for run in runs)
    last = max(run.last.about["end_ns"] for run in runs)
    named = sorted({Spelled(f"{view.topic(topic)}-{number}") for _, (topic, number), _ in moved})
    clients = sorted({client for client, _, _ in moved})
    mine = sorted({client.key: f"({client.filter})" for client, _, _ in moved}.items())
    few = len(mine) <= LIMITS.leader_clients
    where = f"({' or '.join(text for _, text in mine)})" if few else ""
    count = len(set().union(*(run.refused for run in runs)))
    within = f" within {duration(last - first)}" if count > 1 else ""
    return view.finding(
        "leader-moved",
        f"{plural(count, 'request')} from {listed(clients)} reached former leaders of "
        f"{listed(named)}{within} (NOT_LEADER_OR_FOLLOWER or a leader epoch error)",
        all_of(moved[0][0].filter if len(mine) == 1 else where, CODES),
        count=count,
        span=(first, last),
        number=min(run.first.number for run in runs),
        about={
            "client": clients,
            "topic": view.topics(topic for _, (topic, _), _ in moved),
        },
    )


def _leaderless(
    found: Mapping[tuple[Any, ...], Leaderless], view: DetectorInput
) -> Iterator[Finding]:
    """Yield topics with partitions that have no leader in the last response either. While a topic
    is created, or a leader moves, the leader is missing only for a moment."""
    leaders = view.base.cluster.leaders(view.names)
    lines = {(view.topic(line["topic"]), line["partition"]): line for line in leaders}
    named: dict[tuple[str, Any], Leaderless] = {}
    for (topic, number), seen in found.items():
        named.setdefault((view.topic(topic), number), Leaderless()).merge(seen)
    missing = by_key(
        (place[0], (lines[place], seen))
        for place, seen in sorted(named.items())
        if lines.get(place, {}).get("leader") == NO_LEADER
        and seen.count >= limit("unknown-topic.count")
    )
    for topic, places in missing.items():
        lookups = Occurrences.summed(each for _, each in places)
        clients = view.clients(who for _, each in places for who in each.clients)
        missed = listed(f"{topic}-{line['partition']}" for line, _ in places)
        nodes = sorted({node for line, _ in places for node in line["replicas"]})
        on = f"broker{'s' if len(nodes) > 1 else ''} {listed(map(str, nodes))}"
        replicas = f", whose replicas are on {on}," if nodes else ""
        yield view.finding(
            "leader-missing",
            f"{plural(len(places), 'partition')} without a leader: {missed}{replicas} got "
            f"LEADER_NOT_AVAILABLE in {plural(lookups.count, 'lookup')} of {listed(clients)}",
            all_of(
                f"api == Metadata and error == {LEADER_NOT_AVAILABLE}",
                f"topic == {quoted(topic)}",
            ),
            lookups,
            about={"topic": topic, "client": clients},
        )


def _waits(client: Client, topic: Any, seen: Occurrences, view: DetectorInput) -> bool:
    """Return whether a client is a member of a group for a topic that it looked up without
    success, and that was never created: kafka-go looks it up once as it joins, and then waits."""
    name, spread = view.topic(topic), limit("unknown-topic.spreading")
    return name not in _since(view) and any(
        name in member.topics
        and (member.client_id or "", member.host) == client.key
        and (member.gone_ns or 0) - (seen.last_ns or 0) >= spread
        for member in view.members
    )


def _unknown(
    client: Client, topic: Any, code: int, seen: Occurrences, view: DetectorInput
) -> Finding:
    error = error_name(code)
    first_ns = seen.first[0] if seen.first else None
    rate = per_second(seen.count, first_ns, seen.last_ns)
    pace = f" ({60 * rate:.0f} per minute)" if rate else ""
    often = "once" if seen.count == 1 else f"{seen.count:,} times"
    # The topic was created, and soon after that no lookup failed any more.
    born = _since(view).get(view.topic(topic))
    soon = limit("unknown-topic.spreading")
    made = born is not None and (first_ns or 0) < born and (seen.last_ns or 0) < born + soon
    return view.finding(
        "unknown-topic",
        f"{client} looked up topic {view.topic(topic)} {often}{pace} and got "
        f"{error}" + (" until the topic was created" if made else ""),
        f"api == Metadata and error == {code}",
        seen,
        client=client,
        topic=topic,
        severity="chat" if made else None,
        case="created" if made else "invalid" if code == INVALID_TOPIC else "",
        link=error,
    )


def _rates(
    api: str, client: Client, traffic: Traffic, needed: int, view: DetectorInput
) -> Iterator[Finding]:
    """Yield findings about a client's requests of an API: too many, or throttled. `needed`: count
    of lookups that successful requests may have needed."""
    first_ns, last_ns = traffic.first_ns, traffic.last_ns
    rate = per_second(traffic.count, first_ns, last_ns) or 0
    common: dict[str, Any] = {"span": (first_ns, last_ns), "client": client}
    connections = len(view.lines_of.get(client.key, ()))
    spare = traffic.count - needed - limit("metadata.starting") * connections
    lookup = api in LOOKUPS and spare >= limit("metadata.count")
    if lookup and rate >= limit("metadata.rate"):
        span = duration((last_ns or 0) - (first_ns or 0))
        failed = f"; {traffic.failed:,} of them failed" if traffic.failed else ""
        yield view.finding(
            "lookup-storm",
            f"{client} sent {plural(traffic.count, f'{api} request')} within {span}, {rate:.1f} "
            f"per second{failed}",
            api=api,
            count=traffic.count,
            **common,
        )
    commits = api == "OffsetCommit" and traffic.count >= limit("commits.least")
    if commits and rate >= limit("commits.rate"):
        yield view.finding(
            "commit-storm",
            f"{client} commits offsets {rate:.0f} times per second "
            f"({plural(traffic.count, 'commit')})",
            "api == OffsetCommit",
            count=traffic.count,
            severity="note" if rate < limit("commits.many") else None,
            **common,
        )
    if traffic.throttled:
        part = 100 * traffic.throttled // max(1, traffic.answered)
        mild = part < limit("throttle.share") or traffic.throttle_ms < limit("throttle.time")
        changes = api in CHANGES_TOPICS
        yield view.finding(
            "throttled",
            f"{plural(traffic.throttled, f'{api} response')} throttled {client}, for "
            f"{duration(traffic.throttle_ms * MS)} in total ({part} % of "
            f"{plural(traffic.answered, 'response')})",
            "throttle > 0",
            api=api,
            count=traffic.throttled,
            severity="note" if mild else None,
            case="topic-changes" if changes else "",
            link="THROTTLING_QUOTA_EXCEEDED" if changes else "",
            **common,
        )


@DetectorInput.once
def _since(view: DetectorInput) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in view.base.cluster.leaders(view.names):
        if line["since"] is not None:
            name = view.topic(line["topic"])
            found[name] = min(line["since"], found.get(name, line["since"]))
    return found


def _runs(events: Events) -> dict[tuple[Any, ...], RefusalRun]:
    """Return the longest run for each (broker, topic, partition). Requests in flight at the first
    refusal are no repetitions, nor are those before a refresh with a usual backoff."""
    found: dict[tuple[Any, ...], RefusalRun] = {}
    begun: dict[tuple[Any, ...], RefusalRun] = {}
    for event in events:
        if event.kind == "metadata":
            for key, run in begun.items():
                if event.time_ns - run.first.about["end_ns"] < limit("leader.refresh"):
                    run.numbers.clear()
                _longest(found, key, run)
            begun.clear()
            continue
        about = event.about
        key = (about["broker"], about["topic"], about["partition"])
        run = begun.setdefault(key, RefusalRun(event, event))
        if event.time_ns > run.first.about["end_ns"]:
            run.numbers.add(event.number)
        run.last = event
        run.refused.add(event.number)
    for key, run in begun.items():
        _longest(found, key, run)
    return found


def _longest(
    found: dict[tuple[Any, ...], RefusalRun], key: tuple[Any, ...], run: RefusalRun
) -> None:
    known = found.setdefault(key, run)
    if known is run:
        return
    refused = known.refused | run.refused
    if len(run.numbers) > len(known.numbers):
        found[key] = known = run
    known.refused = refused
