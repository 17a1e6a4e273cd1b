"""Errors that are expected, once findings are known: one exchange, columns, and the table agree."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import kafkascope
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.errors import ErrorCodes
from kafkascope.analyzer.findings.evidence import ExpectedErrors, errors_in_words, settled
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.topics import TopicNames
from tests.kit.captures import session_of
from tests.kit.counting import count_capture
from tests.kit.run import run
from tests.kit.samples import CAPTURES, SAMPLES, pairs_of

DEMO = SAMPLES / "demo.pcap.zst"


def counted(path: Path) -> tuple[Findings, TopicNames, list[tuple[Row, Exchange]]]:
    """What was found, names of topics, and the exchanges with errors."""
    found = Findings()
    names = count_capture(path, found)
    return found, names, [pair for pair in pairs_of(path) if pair[0].errors]


def by_name(path: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the errors that are expected, and the others."""
    found, names, failed = counted(path)
    expected = ExpectedErrors(found.reported(names))
    yes: Counter[str] = Counter()
    no: Counter[str] = Counter()
    for row, exchange in failed:
        (yes if expected(row, exchange) else no).update(error.name for error in row.errors)
    return yes, no


def test_the_demo_has_35_expected_errors() -> None:
    yes, no = by_name(DEMO)
    assert yes == {"UNSUPPORTED_VERSION": 20, "REBALANCE_IN_PROGRESS": 9, "MEMBER_ID_REQUIRED": 6}
    assert no.total() == 116
    found, names, _ = counted(DEMO)
    words = errors_in_words(settled(found.base.errors, found.reported(names)))
    assert words == "116 errors; 35 more expected by the protocol"


@pytest.mark.parametrize(
    ("name", "expected", "others"),
    [
        # Healthy clusters have no other errors.
        ("causes/healthy-java.pcap.gz", {"COORDINATOR_LOAD_IN_PROGRESS", "MEMBER_ID_REQUIRED"}, ()),
        ("assignors.pcap.gz", {"REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED"}, ()),
        ("measured.pcap", {"UNKNOWN_SUBSCRIPTION_ID"}, ()),
        # Replicas follow elections; the finding about leaders is about clients.
        ("causes/healthy-controller-change.pcap.gz", {"NOT_CONTROLLER"}, ()),
        # Coordinators that move are expected, leaders that a note is about are not.
        ("causes/healthy-rolling-restart-librdkafka.pcap.gz", {"NOT_COORDINATOR"},
         {"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"}),
        ("stale-leader.pcap", (), {"NOT_LEADER_OR_FOLLOWER"}),
        ("leader-moved.pcap", (), {"NOT_LEADER_OR_FOLLOWER"}),
        # A storm of rebalances, of lookups, of errors.
        ("causes/rebalance-storm-librdkafka.pcap.gz", (),
         {"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"}),
        ("causes/disk-full-librdkafka.pcap.gz", (), {"LEADER_NOT_AVAILABLE"}),
        ("sequences.pcap", (), {"COORDINATOR_LOAD_IN_PROGRESS"}),
        # An evicted member is trouble, the rebalance that follows is none.
        ("expired-member.pcap.gz", {"REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED"}, ()),
        ("causes/txn-fenced-librdkafka.pcap.gz", {"CONCURRENT_TRANSACTIONS"}, ()),
    ],
)  # fmt: skip
def test_captures(name: str, expected: set[str], others: set[str]) -> None:
    yes, no = by_name(CAPTURES / name)
    assert set(expected) <= yes.keys()
    assert set(others) <= no.keys()
    assert not set(expected) & no.keys()
    assert not set(others) & yes.keys()


@pytest.mark.parametrize(
    "path",
    [
        DEMO,
        SAMPLES / "cluster.pcap.gz",
        CAPTURES / "stale-leader.pcap",
        CAPTURES / "causes" / "rebalance-storm-librdkafka.pcap.gz",
        CAPTURES / "causes" / "disk-full-librdkafka.pcap.gz",
    ],
    ids=lambda path: path.name.partition(".")[0],
)
def test_exchanges_columns_and_the_table_agree(path: Path) -> None:
    found, names, failed = counted(path)
    told = found.reported(names)
    expected = ExpectedErrors(told)
    decided = {row.number: expected(row, exchange) for row, exchange in failed}
    with open_capture([path]) as capture:
        session = session_of(capture)
        among = expected.among(session, 0, len(session))
        assert among == {number: decided[number] for number in among}
        assert all(number in among for number, yes in decided.items() if yes)
    counts = Counter(decided[row.number] for row, _ in failed for _ in row.errors)
    assert settled(found.base.errors, told).totals() == (counts[False], counts[True])
    # Halves that are merged are decided alike.
    halves = Errors(), Errors()
    for at, (row, exchange) in enumerate(failed):
        halves[at % 2].add(ExchangeBatch.of(row, exchange))
    halves[0].merge(halves[1])
    assert settled(halves[0], told).totals() == (counts[False], counts[True])


def test_the_table_leaves_out_what_is_expected_unless_asked() -> None:
    found, names, _ = counted(DEMO)
    errors = settled(found.base.errors, found.reported(names))
    assert {line["error"] for line in errors.rows(names, ["code"])} == {
        "NOT_LEADER_OR_FOLLOWER",
        "SASL_AUTHENTICATION_FAILED",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_MEMBER_ID",
    }
    lines = errors.rows(names, ["expected"])
    assert {line["expected"]: line["count"] for line in lines} == {False: 116, True: 35}


def test_the_filter_and_json_go_by_findings(tmp_path: Path) -> None:
    demo = str(DEMO)
    storm = str(CAPTURES / "causes" / "rebalance-storm-librdkafka.pcap.gz")
    lines = run("ls", demo, "-Y", "expected", "--json").stdout.splitlines()
    assert len(lines) == 35
    assert all(json.loads(line)["expected"] and json.loads(line)["errors"] for line in lines)
    assert (
        len(run("ls", demo, "-Y", "failed and not expected", "--json").stdout.splitlines()) == 116
    )
    # The exchange alone takes the errors of the storm for expected, the finding does not.
    rows = [json.loads(line) for line in run("ls", storm, "--json").stdout.splitlines()]
    assert sum(row["expected"] for row in rows) == 18
    assert run("ls", storm, "-Y", "expected", "--json").stdout == ""


def test_a_pipe_is_filtered_by_the_exchange_alone(tmp_path: Path) -> None:
    storm = CAPTURES / "causes" / "rebalance-storm-librdkafka.pcap.gz"
    words = [sys.executable, "-m", "kafkascope", "ls", "-", "-Y", "expected", "--json", "-q"]
    with gzip.open(storm) as file:
        told = subprocess.run(words, input=file.read(), capture_output=True, check=True)
    assert len(told.stdout.splitlines()) == 18


def test_stats_errors_says_how_many_are_expected() -> None:
    result = run("stats", "errors", str(DEMO), "--json")
    assert sum(json.loads(line)["count"] for line in result.stdout.splitlines()) == 116
    assert "116 errors; 35 more expected by the protocol" in result.stderr
    one = run("stats", "errors", str(DEMO), "-Y", "client == billing-1")
    assert "no errors; 14 more expected by the protocol" in one.stderr


def test_stats_errors_says_where_logs_have_no_responses(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_text(
        "[2026-11-28 18:18:01,000] DEBUG Completed request:Name: TopicMetadataRequest; Version: 0; "
        "CorrelationId: 1; ClientId: app from client /10.0.0.4:51422;totalTime:4,"
        "requestQueueTime:0,localTime:3,remoteTime:0,responseQueueTime:0,sendTime:1\n"
    )
    words = "no errors; request logs of brokers before 1.0 have no responses, and so no errors"
    assert words in run("stats", "errors", "--time-zone", "UTC", str(log)).stderr


def test_the_library_has_column_and_table() -> None:
    capture = kafkascope.open(DEMO)
    assert sum(exchange.expected for exchange in capture) == 35
    assert sum(line["count"] for line in capture.table("errors")) == 116


@pytest.mark.parametrize(("count", "expected"), [(12, True), (40, False)])
def test_member_ids_asked_for_in_a_loop_are_not_expected(count: int, *, expected: bool) -> None:
    """A client that never uses the member id that it is given: `error-storm`."""
    found, names = Findings(), TopicNames()
    capture = SAMPLES / "java-codecs.pcap"
    failed = [each for each in counted(capture)[2] if each[0].api == "JoinGroup"]
    row, exchange = failed[0]
    rows = [
        replace(row, number=number, time_ns=row.time_ns + number * 200_000_000)
        for number in range(count)
    ]
    detector = ErrorCodes()
    for each in rows:
        detector.add(ExchangeBatch.of(each, exchange))
    told = list(detector.findings(found.view(names)))
    assert [ExpectedErrors(told)(each) for each in rows] == [expected] * count
