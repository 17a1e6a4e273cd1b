"""Each detector on traffic that shows the trouble for real, and on traffic that does not.

`tests/interop/make_findings.py` made the captures; their README says how.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings.evidence import Evidence
from tests.analyzer.findings.judging import TROUBLE, capture_of, judged, states
from tests.kit.samples import CAPTURES, SAMPLES

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
    "batch-damaged",
    "batch-format",
    "batch-old-format",
    "breaks-on-upgrade",
    "commit-storm",
    "denied",
    "eager-fetches",
    "error-broken",
    "error-seen",
    "error-storm",
    "lookup-storm",
    "lost-segments",
    "message-too-large",
    "no-answer-yet",
    "no-api-versions",
    "other-layout",
    "producer-fenced",
    "queued-requests",
    "request-header",
    "sasl-failed",
    "slow-answers",
    "surplus",
    "telemetry",
    "throttled",
    "unanswered",
    "undecodable",
    "unknown-api",
    "unknown-topic",
    "version-refused",
}
"""Rules that count exchanges: their evidence is these, and no others."""


@pytest.mark.parametrize("name", sorted(TROUBLE))
def test_trouble_is_found(name: str) -> None:
    findings, _ = judged(capture_of(name))
    assert TROUBLE[name] <= {finding.name for finding in findings}


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
        (
            "failed12-expired",
            "valid from 2026-11-14 to 2026-11-21: it expired on 2026-11-21",
            "dates",
        ),
        (
            "failed12-issuer",
            "issued by CN=tests, valid from 2026-11-14 to 2026-11-26",
            "does not know the issuer",
        ),
        ("failed13-expired", "it expired on 2026-11-21", "dates"),
        ("failed13-name", "it is not for 127.0.0.1", "names"),
        ("failed13-no-certificate", "the broker sent the alert bad certificate (42)", "keystore"),
        ("failed-suite", "the client offers TLS 1.2 and 34 suites", "ssl.cipher.suites"),
        ("failed-version", "the client offers TLS 1.2 and 34 suites", "ssl.enabled.protocols"),
    ],
)
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
