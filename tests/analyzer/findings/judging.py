"""Findings of traffic by hand and of captures, and what their sentences state."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.analyzer.findings.outcomes import Outcome, outcomes
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.captures.model import Closed, Opened, StreamEvent
from kafkascope.schemas.decoding import Payloads
from tests.kit.samples import CAPTURES
from tests.kit.wire import Wire, told


def ends(path: Path) -> dict[str | None, Outcome]:
    found = Findings()
    with open_capture([path]) as capture:
        capture.watch = found.saw
        for exchange in capture.exchanges():
            found.add(ExchangeBatch.of(row_of(exchange, capture.context.names), exchange))
        return {who.client_id: end for who, end in outcomes(found, capture.context.names).items()}


def found(
    wires: Iterable[Wire],
    *rules: str,
    payloads: Payloads | None = None,
    limits: FindingLimits = LIMITS,
) -> dict[str, Finding]:
    """Rule -> finding, of these rules or of all; events in the order of time."""
    events = sorted((event for wire in wires for event in wire.events), key=time_of)
    return found_in(events, *rules, payloads=payloads, limits=limits)


def found_in(
    events: Iterable[StreamEvent],
    *rules: str,
    payloads: Payloads | None = None,
    limits: FindingLimits = LIMITS,
) -> dict[str, Finding]:
    """Rule -> finding, of these rules or of all; every evidence filter is tried."""
    every = _every(list(events), *rules, payloads=payloads, limits=limits)
    return {finding.name: finding for finding in every}


def every(wires: Iterable[Wire], *rules: str) -> list[Finding]:
    """All findings of these rules, causes before their consequences."""
    return _every(sorted((event for wire in wires for event in wire.events), key=time_of), *rules)


def _every(
    events: list[StreamEvent],
    *rules: str,
    payloads: Payloads | None = None,
    limits: FindingLimits = LIMITS,
) -> list[Finding]:
    findings = Findings(only=rules or None, payloads=payloads, limits=limits)
    context = Context()
    for event in events:
        if isinstance(event, Opened | Closed):
            findings.saw(event)
    pairs = [(row_of(each, context.names), each) for each in told(events, context)]
    for row, exchange in pairs:
        findings.add(ExchangeBatch.of(row, exchange))
    out = findings.reported(context.names)
    for finding in out:
        selects = compile_filter(finding.filter)
        # What is about connections that came to none has no exchanges.
        assert finding.connects or any(selects(*pair) for pair in pairs), finding
    return out


def time_of(event: StreamEvent) -> int:
    if isinstance(event, Opened):
        return event.connection.first_ns
    if isinstance(event, Closed):
        return event.time_ns
    pieces = getattr(event, "pieces", None)
    return int(pieces[0].time_ns) if pieces else int(getattr(event, "time_ns", 0))


TROUBLE = {
    "black-hole": {"no-answer-yet"},
    "broker-killed-java": {"broker-down"},
    "commit-storm": {"commit-storm"},
    "denied": {"denied"},
    "disk-full-librdkafka": {"disk-failed"},
    "acl-denied-java": {"denied"},
    "answers-out-of-order": {"answers-out-of-order"},
    "broker-0.9-apiversions": {"request-skipped"},
    "eventhubs-apiversions4": {"version-refused"},
    "answered-by-ssh": {"server-not-kafka"},
    "proxy-protocol-v1-refused": {"proxy-protocol"},
    "group-shared-mixed-topics": {"two-applications"},
    "more-members-than-partitions-librdkafka": {"idle-members"},
    "eager-fetches": {"eager-fetches"},
    "consumer-protocol": {"rebalance-expired", "redelivered"},
    "expired-member": {"rebalance-expired", "shared-group"},
    "falling-behind": {"lag"},
    "fetch-too-small": {"fetch-too-small"},
    "fetched-four-times": {"fetched-repeatedly"},
    "far-racks": {"reads-across-racks"},
    "fenced-member": {"static-conflict"},
    "firewall-idle-drop-librdkafka": {"silent-drop"},
    "fenced-producer": {"producer-fenced", "transaction-aborted"},
    "forgotten-producer": {"producer-unknown"},
    "apiversions3-answered-as-0": {"other-layout"},
    "assignment-without-version": {"group-unreadable"},
    "fetch2-with-magic2": {"batch-format"},
    "framing-lost": {"framing-lost"},
    "null-records": {"records-null"},
    "header-without-client-id": {"request-header"},
    "null-software-name": {"undecodable"},
    "hot-partition": {"hot-partition"},
    "huge-request": {"request-too-large"},
    "idle-closed-java": {"idle-close"},
    "large-batches": {"large-batches"},
    "latest-skips-librdkafka": {"latest-skips"},
    "retention-ahead-of-reader-java": {"retention-overtook"},
    "share-released-java": {"share-redelivery"},
    "leader-moved": {"leader-moved"},
    "left-alone": {"owned-by-none"},
    "growing-lag-librdkafka": {"lag"},
    "codec-zstd-java11": {"batch-codec"},
    "codec-zstd-kafkajs": {"batch-codec"},
    "commits-lost-java": {"commits-lost"},
    "long-minute": {"commits-lost", "topic-unread", "topic-unwritten"},
    "lost-answers": {"unanswered", "batch-twice"},
    "measured": {"telemetry"},
    "midstream": {"capture-midstream"},
    "nagle": {"sent-in-pieces"},
    "odd-commits": {"commit-back", "commit-ahead"},
    "healthy-leader-election-librdkafka": {"error-seen"},
    "odd-requests": {"error-broken", "unknown-api"},
    "old-reader": {"batch-codec"},
    "old-versions": {"no-api-versions", "undecodable", "version-refused"},
    "open-transaction": {"transaction-blocks"},
    "other-protocols": {"not-kafka"},
    "out-of-range": {"offset-out-of-range"},
    "poison-librdkafka": {"reader-stuck"},
    "overdue-transaction": {"transaction-hangs", "transaction-aborted"},
    "plain-to-tls": {"plain-to-tls"},
    "security": {
        "http-to-kafka",
        "sasl-failed",
        "sasl-mechanism",
        "sasl-missing",
        "tls-to-plain",
    },
    "sequences": {"error-storm", "sequence-refused", "sequence-repeated"},
    "client-too-old-producer-kafkapython": {"version-refused"},
    "reset-after-rest": {"silent-drop"},
    "restarted-member": {"consumer-silent", "rebalance-poll", "rebalance-restarts"},
    "restless-group": {"rebalance-storm"},
    "static-conflict-java": {"static-conflict"},
    "timestamps-future-refused-java": {"clock-skew"},
    "client-per-message-librdkafka": {"connection-churn"},
    "short-connections": {"apiversions-loop"},
    "sasl-expired-aiokafka": {"session-expired"},
    "topic-deleted-java": {"topic-deleted"},
    "client-too-old-librdkafka": {"version-refused"},
    "silent-consumer": {"rebalance-poll", "redelivered"},
    "slow-reads": {"slow-answers"},
    "snaplen200": {"capture-gaps"},
    "slow-rebalance": {"rebalance-slow"},
    "stale-leader": {"stale-leader"},
    "stopped-broker": {"broker-paused", "late-answer", "slow-answers"},
    "throttled": {"throttled"},
    "topic-names-alike": {"topic-names-alike", "topic-unread"},
    "tiny-batches": {"tiny-batches"},
    "tls-expired-java": {"tls-failed"},
    "tls-only": {"tls-opaque"},
    "tls13-https": {"tls-inside"},
    "tls13-missing-key": {"tls-opaque"},
    "failed12-expired": {"tls-failed"},
    "too-large": {"message-too-large"},
    "advertised-host-java": {"address-unresolved"},
    "advertised-loopback-java": {"address-loopback"},
    "advertised-host-librdkafka": {"address-unresolved"},
    "advertised-silent-librdkafka": {"address-unanswered"},
    "advertised-private-net-kafkajs": {"address-unresolved"},
    "unknown-topic": {"lookup-storm", "unknown-topic"},
    "private-address": {"address-private"},
    "no-address": {"address-unspecified"},
    "far-network": {"network-far"},
    "lossy-network": {"lost-segments", "network-loss"},
    "metadata-storm-librdkafka": {"lookup-storm", "queued-requests"},
    "owned-twice": {"owned-twice", "redelivered"},
    "sequence-gap": {"sequence-gap"},
    "seen-by-one": {"sequence-gap"},
    "wrong-address": {"address-unreachable"},
    "wrong-answers": {"answer-to-nothing"},
    "wrong-checksum": {"batch-damaged"},
    "zookeeper-brokers": {"broker-down", "zookeeper-expired"},
    "zookeeper-consumers": {"zookeeper-expired"},
    "zookeeper-failover": {"broker-down", "zookeeper-reconnects", "zookeeper-unanswered"},
    "zookeeper-groups": {"zookeeper-claims", "zookeeper-misassigned", "zookeeper-unowned"},
    "zookeeper-odd": {"zookeeper-error", "zookeeper-unknown-request"},
    "zookeeper-sasl": {"zookeeper-denied"},
    "zookeeper-trouble": {
        "address-differs",
        "zookeeper-large",
        "zookeeper-registered-twice",
        "zookeeper-slow",
        "zookeeper-unanswered",
    },
    "zookeeper-sessions": {"broker-down", "zookeeper-expired", "zookeeper-reconnects"},
}
"""Capture -> rules that must be there."""


@cache
def judged(path: Path) -> tuple[list[Finding], list[tuple[Row, Exchange]]]:
    found = Findings()
    log = path.with_name(path.name.partition(".")[0] + ".keys")
    with open_capture([path], keylog=[log] if log.exists() else []) as capture:
        capture.watch = found.saw
        exchanges = list(capture.exchanges())
        names = capture.context.names
        pairs = [(row_of(exchange, names), exchange) for exchange in exchanges]
    for row, exchange in pairs:
        found.add(ExchangeBatch.of(row, exchange))
    return found.reported(names), pairs


def capture_of(name: str, folder: Path = CAPTURES) -> Path:
    places = folder, CAPTURES / "causes", CAPTURES / "tls"
    return next(each for place in places for each in place.glob(f"{name}.pcap*"))


def states(text: str, *parts: object) -> bool:
    """Return whether a text has these parts in this order, each as whole words."""
    place = 0
    for part in map(str, parts):
        found = re.compile(rf"(?<![\w.]){re.escape(part)}(?!\w)").search(text, place)
        if found is None:
            return False
        place = found.end()
    return True


def sized(wire: Wire) -> Wire:
    """With the numbers of bytes that reassembly counts."""
    wire.connection.bytes = list(wire.offsets)
    return wire


def reported(wires: Iterable[Wire]) -> list[Finding]:
    """Findings of connections whose bytes are counted."""
    return list(found([sized(wire) for wire in wires]).values())
