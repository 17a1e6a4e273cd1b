"""Each detector on traffic that shows the trouble for real, and on traffic that does not.

`tests/interop/make_findings.py` made the captures; their README says how.
"""

from pathlib import Path

import pytest

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import RULES
from kafkascope.analyzer.findings.evidence import Evidence
from tests.analyzer.findings.judging import capture_of, judged, states
from tests.analyzer.findings.sides_schemas import OF_SCHEMAS
from tests.kit.samples import CAPTURES, SAMPLES

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
    *("coordinator-missing", "group-unjoined", "log-truncated"),
}
"""Rules that no capture shows: see `test_outages`, `test_memberships`, `test_handmade`,
`test_recovered` and `test_delays`; those of
request logs: `sides_logs`."""

CALM = {
    "advertised-port-java": {"broker-down"},
    "advertised-silent-librdkafka": {"address-unreachable", "syn-lost"},
    "answers-out-of-order": {"request-skipped"},
    "apiversions-loop": {"connection-churn"},
    "assignors": {
        *("commits-lost", "idle-members", "owned-by-none", "rebalance-expired", "rebalance-storm"),
        *("unanswered",),
    },
    "black-hole": {"silent-drop"},
    "broker-0.9-apiversions": {"answers-out-of-order"},
    "client-per-message-librdkafka": {"apiversions-loop"},
    "cluster": {"leader-moved"},
    "commit-storm": {
        *("clock-skew", "commit-ahead", "commit-back", "eager-fetches", "lag", "redelivered"),
    },
    "consumer-protocol": {"group-unreadable", "rebalance-restarts"},
    "denied": {"disk-failed", "error-broken", "error-seen", "unknown-topic"},
    "expired-member": {"static-conflict"},
    "falling-behind": {"client-not-reading"},
    "far-network": {"lost-segments", "network-loss", "sent-in-pieces"},
    "fenced-producer": {"transaction-hangs"},
    "fetch-too-small": {"response-too-large"},
    "forgotten-producer": {"batch-twice", "sequence-refused", "transaction-aborted"},
    "healthy": {
        *("acks-0-failed", "address-loopback", "broker-local-slow", "capture-midstream"),
        *("cluster-changed", "commit-outside", "coordinator-missing", "followers-slow"),
        *("group-mismatch", "group-unjoined", "handlers-busy", "network-threads-busy"),
        *("reads-across-racks", "slow-reader", "telemetry", "topic-unread"),
    },
    "healthy-idle-java": {"idle-close"},
    "healthy-librdkafka": {"latest-skips"},
    "hot-partition": {"tiny-batches"},
    "java-codecs": {"batch-codec", "batch-damaged", "batch-old-format", "hot-partition", "surplus"},
    "java-old": {
        *("batch-format", "controller-listener", "fetch-too-small", "likely-refused"),
        *("no-api-versions", "version-refused"),
    },
    "large-batches": {
        *("broker-not-reading", "message-too-large", "request-too-large", "slow-transfer"),
    },
    "leader-moved": {"address-shared", "stale-leader"},
    "left-alone": {"two-applications"},
    "librdkafka": {"breaks-on-upgrade", "other-layout"},
    "long-minute": {"producer-fenced"},
    "lossy-network": {"network-far"},
    "lost-answers": {"answer-to-nothing", "capture-gaps", "late-answer", "no-answer-yet"},
    "null-software-name": {"request-header"},
    "odd-commits": {"commit-storm", "offset-out-of-range", "records-null"},
    "offset-out-of-range-java": {"log-truncated", "retention-overtook"},
    "other-protocols": {"http-to-kafka"},
    "plain-to-tls": {"server-not-kafka"},
    "proxy-protocol-v2-taken": {"proxy-protocol"},
    "rebalance": {"fetched-repeatedly", "fetches-nothing", "reader-stuck"},
    "reopened-consumer": {"rebalance-poll"},
    "restless-group": {"rebalance-slow"},
    "sasl": {"denied", "sasl-mechanism", "sasl-missing", "session-expired"},
    "sasl-old": {"sasl-failed"},
    "security": {"tls-opaque"},
    "sequences": {"producer-unknown", "sequence-gap"},
    "share-group": {"owned-twice", "share-redelivery"},
    "shop": {"address-private", "address-unspecified", "topic-names-alike"},
    "short-connections": {"lookup-storm"},
    "slow-reads": {"broker-paused", "queued-requests"},
    "slow-rebalance": {"consumer-silent", "slow-answers"},
    "stopped-broker": {"broker-stopped-sending"},
    "tiny-batches": {"throttled"},
    "tls-only": {"not-kafka", "plain-to-tls", "tls-failed", "tls-inside", "tls-to-plain"},
    "too-large": {"large-batches"},
    "topic-names-alike": {"shared-group", "topic-unwritten"},
    "transactions": {"sequence-repeated", "transaction-blocks"},
    "unknown-topic": {"address-unresolved", "error-storm", "leader-missing", "topic-deleted"},
    "wrong-address": {"address-unanswered"},
    "wrong-answers": {"unknown-api"},
    "wrong-checksum": {"framing-lost", "undecodable"},
    "zookeeper-brokers": {
        *("zookeeper-error", "zookeeper-large", "zookeeper-reconnects"),
        *("zookeeper-registered-twice", "zookeeper-slow", "zookeeper-unanswered"),
        *("zookeeper-unknown-request",),
    },
    "zookeeper-consumers": {
        *("address-differs", "zookeeper-claims", "zookeeper-misassigned", "zookeeper-unowned"),
    },
    "zookeeper-trouble": {"zookeeper-denied", "zookeeper-expired"},
}
"""Capture -> rules that look at its traffic and find nothing: it has no such trouble."""


KNOWN: dict[str, set[str]] = {
    "aiokafka": set(),
    "cluster": set(),
    "libraries": {"sasl-failed"},
    "java-codecs": set(),
    "kafka-python": set(),
    "librdkafka": set(),
    "rebalance": set(),
    "transactions": set(),
    "java-old": set(),
    "sasl": {"sasl-failed"},
    "sasl-old": set(),
    "zookeeper": {"zookeeper-denied", "zookeeper-unknown-request"},
}
"""Sample -> errors and warnings that are right: a wrong password on purpose."""


EXACT = {
    *("batch-damaged", "batch-format", "batch-old-format", "breaks-on-upgrade", "commit-storm"),
    *("denied", "eager-fetches", "error-broken", "error-seen", "error-storm", "lookup-storm"),
    *("lost-segments", "message-too-large", "no-answer-yet", "no-api-versions", "other-layout"),
    *("producer-fenced", "queued-requests", "request-header", "sasl-failed", "slow-answers"),
    *("surplus", "telemetry", "throttled", "unanswered", "undecodable", "unknown-api"),
    *("unknown-topic", "version-refused"),
}
"""Rules that count exchanges: their evidence is these, and no others."""


def names_in(name: str) -> set[str]:
    folder = SAMPLES if any(SAMPLES.glob(f"{name}.pcap*")) else CAPTURES
    return {finding.name for finding in judged(capture_of(name, folder))[0]}


def test_every_rule_has_both_kinds_of_traffic() -> None:
    shown = set().union(*TROUBLE.values(), SAMPLED)
    # Those about schemas need some: test_schemas has both kinds of traffic.
    assert shown | OF_SCHEMAS.keys() | BY_HAND == set(RULES)
    assert set().union(*CALM.values(), OF_SCHEMAS) == set(RULES)


@pytest.mark.parametrize("name", sorted(TROUBLE))
def test_trouble_is_found(name: str) -> None:
    assert TROUBLE[name] <= names_in(name)


@pytest.mark.parametrize("rule", sorted(SAMPLED))
def test_a_rule_is_told(rule: str) -> None:
    assert rule in names_in(SAMPLED[rule])


@pytest.mark.parametrize("name", sorted(CALM))
def test_rules_are_not_told(name: str) -> None:
    assert not CALM[name] & names_in(name)


@pytest.mark.parametrize(
    "path",
    [*sorted(CAPTURES.glob("*.pcap*")), *sorted(SAMPLES.glob("*.pcap*"))],
    ids=lambda path: path.name,
)
def test_evidence_selects_exchanges(path: Path) -> None:
    findings, pairs = judged(path)
    for finding in findings:
        wanted = compile_filter(finding.filter)
        selected = [row.number for row, exchange in pairs if wanted(row, exchange)]
        assert selected, finding
        assert len(selected) < len(pairs) or len(pairs) < 200, finding
        if finding.name in EXACT:
            assert len(selected) == finding.count, finding


def serious(path: Path) -> set[str]:
    return {f.name for f in judged(path)[0] if f.severity in ("error", "warning")}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_healthy_traffic_is_silent(name: str) -> None:
    assert serious(capture_of(name, SAMPLES)) == KNOWN[name]


def test_a_healthy_group_and_producer_are_not_even_noted() -> None:
    findings, _ = judged(capture_of("healthy"))
    assert {finding.severity for finding in findings} <= {"chat"}


def test_sentences_are_for_people() -> None:
    for path in sorted(CAPTURES.glob("*.pcap*")):
        for finding in judged(path)[0]:
            assert finding.text.isprintable()
            assert "None" not in finding.text
            assert not finding.text.endswith(".")


def test_long_polls_that_data_ends_are_no_slow_answers() -> None:
    """A reader of a backlog while the broker stands still, and the same reader at the end of the
    log, where a record comes every 1.7 s."""
    findings, pairs = judged(capture_of("slow-reads"))
    fetches = [row for row, _ in pairs if row.api == "Fetch"]
    slow = [row for row in fetches if (row.latency_beyond_wait_ns or 0) > 100_000_000]
    long = [row for row in fetches if (row.latency_ns or 0) > 1_000_000_000]
    assert (len(slow), len(long)) == (1, 5)
    assert (slow[0].latency_ns or 0) > 2_900_000_000
    assert [f.name for f in findings if f.severity != "chat"] == ["slow-answers"]


def test_an_exchange_knows_the_findings_that_mention_it() -> None:
    findings, pairs = judged(capture_of("too-large"))
    evidence = Evidence(findings)
    told = {row.number: {f.name for f in evidence.of(row, each)} for row, each in pairs}
    failed = next(row.number for row, _ in pairs if row.errors)
    assert "message-too-large" in told[failed]
    assert any("message-too-large" not in names for names in told.values())


def test_numbers_in_sentences() -> None:
    texts = {
        name: next(f.text for f in judged(capture_of(capture))[0] if f.name == name)
        for capture, name in (
            ("odd-commits", "commit-ahead"),
            ("out-of-range", "offset-out-of-range"),
            ("expired-member", "rebalance-expired"),
            ("hot-partition", "hot-partition"),
        )
    }
    assert "skipped 30 records" in texts["commit-ahead"]
    unfetched = judged(capture_of("commit-ahead-nothing-fetched-java", CAPTURES / "causes"))[0]
    text = next(f.text for f in unfetched if f.name == "commit-ahead")
    assert states(text, "skipped 172 records", "skip-1", "offset 172", "nothing from 0 on")
    assert states(texts["offset-out-of-range"], "at 0 (earliest)", "500 offsets back")
    assert "killed timed out: no heartbeat for 6" in texts["rebalance-expired"]
    assert "an even share of 4 partitions is 25 %" in texts["hot-partition"]


@pytest.mark.parametrize(
    ("name", "more", "advice"),
    [
        ("failed12-expired", "valid from 2026-11-14 to 2026-11-21: it expired on 2026-11-21",
         "dates"),
        ("failed12-issuer", "issued by CN=tests, valid from 2026-11-14 to 2026-11-26",
         "does not know the issuer"),
        ("failed13-expired", "it expired on 2026-11-21", "dates"),
        ("failed13-name", "it is not for 127.0.0.1", "names"),
        ("failed13-no-certificate", "the broker sent the alert bad certificate (42)", "keystore"),
        ("failed-suite", "the client offers TLS 1.2 and 34 suites", "ssl.cipher.suites"),
        ("failed-version", "the client offers TLS 1.2 and 34 suites", "ssl.enabled.protocols"),
    ],
)  # fmt: skip
def test_why_a_handshake_failed_is_told(name: str, more: str, advice: str) -> None:
    (found,) = [each for each in judged(capture_of(name))[0] if each.name == "tls-failed"]
    assert more in found.text
    assert advice in found.advice


def test_one_finding_sums_up_what_cannot_be_read() -> None:
    (found,) = [e for e in judged(capture_of("tls-only"))[0] if e.name == "tls-opaque"]
    assert found.severity == "chat"
    assert "--keylog" in found.advice
    (found,) = [e for e in judged(capture_of("tls13-missing-key"))[0] if e.name == "tls-opaque"]
    assert (found.severity, found.count) == ("note", 1)
    assert states(found.text, "1 TLS connection", "key log", "no secret for it")
    assert "keys check" in found.advice
