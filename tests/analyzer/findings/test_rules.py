"""No rule without traffic that shows its trouble and traffic that only looks like it."""

from __future__ import annotations

import ast
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import pytest

from kafkascope.analyzer import findings
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.findings import RULES, Rule
from kafkascope.analyzer.findings.detectors import DETECTORS, Detector
from kafkascope.analyzer.findings.filters import among
from kafkascope.analyzer.findings.view import Counts
from kafkascope.analyzer.statistics.exchange_batch import FETCH, PRODUCE
from kafkascope.captures.model import TlsError
from kafkascope.dissectors.reference.codes import ERRORS
from tests.analyzer.findings.judging import TROUBLE, capture_of, judged
from tests.analyzer.findings.sides_schemas import OF_SCHEMAS
from tests.kit.samples import CAPTURES, SAMPLES

SAMPLED = {
    "batch-old-format": "java-old",
    "breaks-on-upgrade": "java-old",
    "error-broken": "shop",
    "sasl-failed": "sasl",
    "surplus": "librdkafka",
}
"""Rule -> a capture that shows it, among much else."""

BY_HAND = {
    *("response-too-large", "fetches-nothing", "address-shared", "leader-missing"),
    *("client-not-reading", "broker-not-reading", "broker-stopped-sending"),
    *("slow-transfer", "syn-lost"),
    *("handlers-busy", "broker-local-slow", "followers-slow", "network-threads-busy"),
    *("slow-reader", "likely-refused", "controller-listener"),
    *("acks-0-failed", "group-mismatch", "commit-outside", "cluster-changed"),
    *("coordinator-missing", "group-unjoined"),
}
"""Rules that no capture shows: see `test_cut_off`, `test_memberships`, `test_handmade`,
`test_recovered` and `test_delays`; those of
request logs: `sides_logs`."""

CALM = {
    "handlers-busy": "healthy",
    "broker-local-slow": "healthy",
    "followers-slow": "healthy",
    "network-threads-busy": "healthy",
    "slow-reader": "healthy",
    "likely-refused": "java-old",
    "controller-listener": "java-old",
    "acks-0-failed": "healthy",
    "group-unjoined": "healthy",
    "coordinator-missing": "healthy",
    "cluster-changed": "healthy",
    "group-mismatch": "healthy",
    "commit-outside": "healthy",
    "address-differs": "zookeeper-consumers",
    "zookeeper-claims": "zookeeper-consumers",
    "zookeeper-denied": "zookeeper-trouble",
    "zookeeper-error": "zookeeper-brokers",
    "zookeeper-expired": "zookeeper-trouble",
    "zookeeper-large": "zookeeper-brokers",
    "zookeeper-misassigned": "zookeeper-consumers",
    "zookeeper-reconnects": "zookeeper-brokers",
    "zookeeper-registered-twice": "zookeeper-brokers",
    "zookeeper-slow": "zookeeper-brokers",
    "zookeeper-unanswered": "zookeeper-brokers",
    "zookeeper-unknown-request": "zookeeper-brokers",
    "zookeeper-unowned": "zookeeper-consumers",
    "shared-group": "topic-names-alike",
    "topic-names-alike": "shop",
    "topic-unread": "healthy",
    "topic-unwritten": "topic-names-alike",
    "address-loopback": "healthy",
    "address-private": "shop",
    "address-unanswered": "wrong-address",
    "address-unreachable": "advertised-silent-librdkafka",
    "address-unresolved": "unknown-topic",
    "address-unspecified": "shop",
    "address-shared": "leader-moved",
    "leader-missing": "unknown-topic",
    "answer-to-nothing": "lost-answers",
    "answers-out-of-order": "broker-0.9-apiversions",
    "request-skipped": "answers-out-of-order",
    "batch-codec": "java-codecs",
    "batch-damaged": "java-codecs",
    "batch-format": "java-old",
    "batch-old-format": "java-codecs",
    "batch-twice": "forgotten-producer",
    "breaks-on-upgrade": "librdkafka",
    "broker-down": "advertised-port-java",
    "broker-not-reading": "large-batches",
    "broker-paused": "slow-reads",
    "broker-stopped-sending": "stopped-broker",
    "capture-gaps": "lost-answers",
    "capture-midstream": "healthy",
    "apiversions-loop": "client-per-message-librdkafka",
    "connection-churn": "apiversions-loop",
    "client-not-reading": "falling-behind",
    "clock-skew": "commit-storm",
    "commit-back": "commit-storm",
    "commit-ahead": "commit-storm",
    "commit-storm": "odd-commits",
    "transaction-blocks": "transactions",
    "consumer-silent": "slow-rebalance",
    "commits-lost": "assignors",
    "denied": "sasl",
    "disk-failed": "denied",
    "eager-fetches": "commit-storm",
    "error-broken": "denied",
    "error-seen": "denied",
    "error-storm": "unknown-topic",
    "fetch-too-small": "java-old",
    "fetched-repeatedly": "rebalance",
    "framing-lost": "wrong-checksum",
    "group-unreadable": "consumer-protocol",
    "fetches-nothing": "rebalance",
    "hot-partition": "java-codecs",
    "http-to-kafka": "other-protocols",
    "idle-members": "assignors",
    "idle-close": "healthy-idle-java",
    "lag": "commit-storm",
    "large-batches": "too-large",
    "late-answer": "lost-answers",
    "leader-moved": "cluster",
    "stale-leader": "leader-moved",
    "lookup-storm": "short-connections",
    "lost-segments": "far-network",
    "message-too-large": "large-batches",
    "network-far": "lossy-network",
    "network-loss": "far-network",
    "no-answer-yet": "lost-answers",
    "no-api-versions": "java-old",
    "not-kafka": "tls-only",
    "offset-out-of-range": "odd-commits",
    "other-layout": "librdkafka",
    "owned-by-none": "assignors",
    "owned-twice": "share-group",
    "plain-to-tls": "tls-only",
    "producer-fenced": "long-minute",
    "producer-unknown": "sequences",
    "queued-requests": "slow-reads",
    "reads-across-racks": "healthy",
    "response-too-large": "fetch-too-small",
    "latest-skips": "healthy-librdkafka",
    "retention-overtook": "offset-out-of-range-java",
    "share-redelivery": "share-group",
    "rebalance-expired": "assignors",
    "rebalance-storm": "assignors",
    "rebalance-poll": "reopened-consumer",
    "rebalance-restarts": "consumer-protocol",
    "rebalance-slow": "restless-group",
    "reader-stuck": "rebalance",
    "redelivered": "commit-storm",
    "records-null": "odd-commits",
    "request-header": "null-software-name",
    "request-too-large": "large-batches",
    "sasl-failed": "sasl-old",
    "sasl-mechanism": "sasl",
    "sasl-missing": "sasl",
    "sent-in-pieces": "far-network",
    "server-not-kafka": "plain-to-tls",
    "proxy-protocol": "proxy-protocol-v2-taken",
    "sequence-gap": "sequences",
    "sequence-refused": "forgotten-producer",
    "sequence-repeated": "transactions",
    "session-expired": "sasl",
    "silent-drop": "black-hole",
    "static-conflict": "expired-member",
    "topic-deleted": "unknown-topic",
    "slow-answers": "slow-rebalance",
    "slow-transfer": "large-batches",
    "surplus": "java-codecs",
    "syn-lost": "advertised-silent-librdkafka",
    "telemetry": "healthy",
    "throttled": "tiny-batches",
    "tiny-batches": "hot-partition",
    "tls-failed": "tls-only",
    "tls-inside": "tls-only",
    "tls-opaque": "security",
    "tls-to-plain": "tls-only",
    "transaction-aborted": "forgotten-producer",
    "transaction-hangs": "fenced-producer",
    "unanswered": "assignors",
    "two-applications": "left-alone",
    "undecodable": "wrong-checksum",
    "unknown-api": "wrong-answers",
    "unknown-topic": "denied",
    "version-refused": "java-old",
}
"""Rule -> a capture with what it looks at, but without the trouble."""


def found_in(name: str) -> set[str]:
    folder = SAMPLES if any(SAMPLES.glob(f"{name}.pcap*")) else CAPTURES
    return {finding.name for finding in judged(capture_of(name, folder))[0]}


def test_every_rule_has_both_kinds_of_traffic() -> None:
    shown = set().union(*TROUBLE.values(), SAMPLED)
    # Those about schemas need some: test_schemas has both kinds of traffic.
    assert shown | OF_SCHEMAS.keys() | BY_HAND == set(RULES)
    assert CALM.keys() | OF_SCHEMAS.keys() == set(RULES)


CASES = {
    "capture-gaps": {"mirror", "damage"},
    "denied": {each for each in (error.name for error in ERRORS.values()) if "_AUTH" in each},
    "tls-opaque": set(get_args(TlsError)),
}
"""Rule -> cases whose names are facts of the capture, and stand in no detector."""


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.advices], ids=itemgetter(0)
)
def test_detectors_know_the_cases_that_other_fixes_are_for(rule: Rule) -> None:
    words: set[Any] = set(CASES.get(rule.name, ()))
    for path in Path(findings.__file__ or "").parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        words |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert rule.advices.keys() <= words


@pytest.mark.parametrize("rule", sorted(SAMPLED))
def test_a_rule_is_told(rule: str) -> None:
    assert rule in found_in(SAMPLED[rule])


@pytest.mark.parametrize("rule", sorted(CALM))
def test_a_rule_is_not_told(rule: str) -> None:
    assert rule not in found_in(CALM[rule])


def test_detectors_are_those_that_rules_name() -> None:
    named = list(dict.fromkeys(rule.detector for rule in RULES.values()))
    assert [each.name for each in DETECTORS] == [*named, "tampered"]


def test_detectors_of_most_exchanges_take_many_at_once() -> None:
    """One by one, rows and objects of all of them are made: `check` takes half as long again."""
    many = {PRODUCE, FETCH}
    for detector in DETECTORS:
        if detector.counts and (detector.keys is None or detector.keys & many):
            kind = getattr(detector.module, detector.counts)
            assert kind.add is not Counts.add, detector.name


@pytest.mark.parametrize("detector", DETECTORS, ids=itemgetter(0))
def test_a_detector_counts_or_has_a_function(detector: Detector) -> None:
    if detector.counts:
        assert issubclass(getattr(detector.module, detector.counts), Counts)
        assert not hasattr(detector.module, "findings")
    else:
        assert callable(detector.module.findings)
        assert detector.needs is not None
        assert not any((detector.keys, detector.odd, detector.odd_keys))


def test_numbers_in_a_row_are_a_range() -> None:
    assert among("conn", []) == ""
    assert among("conn", [7]) == "conn in {7}"
    assert among("conn", [3, 1, 2, 2, 9, 10]) == "conn in {1..3, 9, 10}"
    assert parse(among("conn", range(200))) == parse("conn in {0..199}")
