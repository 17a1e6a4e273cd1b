"""What became of each client, on real captures whose truth is known."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.captures.model import Closed
from tests.analyzer.findings.judging import ends, judged, outcome_of
from tests.kit.batches import batch
from tests.kit.members import Members
from tests.kit.run import objects
from tests.kit.samples import CAPTURES
from tests.kit.wire import Wire, framed, produce, request, response
from tests.matrix import pairs

CAUSES = CAPTURES / "causes"

TRUTH = {
    "acl-denied-java": {
        "acl-producer": ("kept out", "AUTHORIZATION"),
        "acl-consumer": ("kept", ""),
    },
    "advertised-host-java": {"remote-java": ("kept out", r"kafka-1.prod.internal")},
    "advertised-loopback-java": {"remote-kcat": ("kept out", "127.0.0.1:9092")},
    "advertised-port-java": {"adv-java": ("kept out", "refused")},
    "advertised-silent-librdkafka": {"orders-api": ("kept out", "did not answer")},
    "broker-down-java": {"restart-prod": ("open", ""), "restart-cons": ("gone", "broker closed")},
    "broker-killed-java": {"lead-prod": ("worked", ""), "lead-cons": ("worked", "LeaveGroup")},
    "client-too-old-producer-kafkapython": {"old-kp": ("kept out", "Produce v2")},
    "codec-zstd-java11": {"zold-java": ("stuck", "zstd")},
    "codec-zstd-kafkajs": {"kjs-zstd": ("gone", "after LeaveGroup, with records")},
    "firewall-idle-drop-librdkafka": {"site-agent": ("gone", "vanished without a FIN")},
    "growing-lag-librdkafka": {"camera": ("worked", "Produce"), "detector": ("worked", "Leave")},
    "healthy-idle-java": {"rare-w": ("worked", "")},
    "healthy-java": {"h-java-p": ("worked", "Produce"), "h-java-c": ("worked", "LeaveGroup")},
    "healthy-rolling-restart-librdkafka": {"belt-r": ("open", ""), "belt-w": ("open", "")},
    "http-curl": {None: ("kept out", "HTTP")},
    "message-too-large-java": {"large-java": ("gone", "MESSAGE_TOO_LARGE")},
    "min-isr-java": {"isr-java": ("gone", "NOT_ENOUGH_REPLICAS")},
    "offset-none-java": {"none-java": ("gone", "LeaveGroup.*OFFSET_OUT_OF_RANGE")},
    "plain-to-tls-java": {"plain-kcat": ("kept out", "TLS")},
    "poison-librdkafka": {"xml-load": ("stuck", "offset 5 of xml-in-0")},
    "sasl-missing-java": {"no-sasl-java": ("kept out", "")},
    "sasl-password-java": {"bad-pw-java": ("kept out", "Authentication")},
    "static-conflict-java": {"stat-2": ("gone", "FENCED_INSTANCE_ID")},
    "static-conflict-latest-librdkafka": {"pod-0": ("worked", "static member")},
    "tls-expired-java": {None: ("kept out", "certificate expired")},
    "tls-untrusted-13-librdkafka": {None: ("kept out", "unknown ca")},
    "topic-deleted-java": {"draft-w": ("gone", "UNKNOWN_TOPIC")},
    "txn-fenced-librdkafka": {"pay-a": ("gone", "INVALID_PRODUCER_EPOCH"), "pay-b": ("worked", "")},
    "txn-hanging-java": {"lso-java": ("stuck", "open transaction")},
    "unknown-topic-java": {"typo-java": ("kept out", "oders"), "typo-cons": ("kept out", "oders")},
}
"""Capture -> client -> outcome, and words of the reason."""


@pytest.mark.parametrize("name", TRUTH)
def test_what_became_of_clients(name: str) -> None:
    path = CAUSES / f"{name}.pcap.gz"
    found = ends(path)
    for client, (word, reason) in TRUTH[name].items():
        end = found[client]
        assert end.word.startswith(word), end
        assert re.search(reason, end.reason), end


@pytest.mark.parametrize("name", ["poison-librdkafka", "sasl-missing-java", "healthy-java"])
def test_what_shows_it_is_a_filter_that_selects_exchanges(name: str) -> None:
    path = CAUSES / f"{name}.pcap.gz"
    _, pairs = judged(path)
    for end in ends(path).values():
        wanted = compile_filter(end.filter)
        assert any(wanted(row, exchange) for row, exchange in pairs), end


def test_nobody_healthy_is_stuck_or_kept_out() -> None:
    for path in sorted(CAUSES.glob("healthy-*.pcap.gz")):
        words = {end.word for end in ends(path).values()}
        assert words <= {"worked", "gone", "open"}, path


def told(*args: object) -> list[dict[str, Any]]:
    return objects("clients", *args, "--json", "-q")


def test_the_command_tells_outcomes() -> None:
    (line,) = told(str(CAUSES / "poison-librdkafka.pcap.gz"))
    assert line["outcome"] == "stuck"
    assert "xml-in-0" in str(line["outcome_reason"])
    assert str(line["outcome_filter"]).startswith("api == Fetch and number in {40,")
    (line,) = told(str(CAUSES / "tls-expired-java.pcap.gz"))
    assert (line["client_id"], line["requests"], line["outcome"]) == (None, 0, "kept out")
    worst = {str(line["worst_finding"]) for line in told(str(CAUSES / "broker-down-java.pcap.gz"))}
    assert all("was down for 26 s" in each for each in worst)  # not what followed from it


ENDS = ("outcome", "outcome_reason", "outcome_filter", "worst_finding")


WANTED = [
    ("-Y", "api == Metadata"),
    ("-Y", "api in {ApiVersions, SaslHandshake}"),
    ("--to", "2"),
    ("--from", "-2s"),
    ("--from", "1", "--to", "3", "-Y", "not error"),
]
CHOSEN_FROM = [
    CAUSES / "broker-down-java.pcap.gz",
    CAUSES / "poison-librdkafka.pcap.gz",
    CAUSES / "acl-denied-java.pcap.gz",
    CAUSES / "tls-expired-java.pcap.gz",
    CAUSES.parents[3] / "captures" / "samples" / "sasl.pcap",
]


@cache
def of_the_whole(path: Path) -> dict[tuple[object, object], dict[str, object]]:
    """The lines of a capture, by client and host: each has one."""
    lines = told(str(path))
    whole = {(line["client_id"], line["client_address"]): line for line in lines}
    assert len(whole) == len(lines)
    return whole


@pytest.mark.parametrize(
    ("path", "args"),
    pairs(CHOSEN_FROM, WANTED),
    ids=lambda value: value.name if isinstance(value, Path) else " ".join(value),
)
def test_of_a_selection_outcomes_are_those_of_the_whole(path: Path, args: tuple[str, ...]) -> None:
    """And numbers are of the selection, in which a client may not say who it is."""
    whole = of_the_whole(path)
    found = told(str(path), *args)
    # KeyedMeasures without the whole: where -c may stop, no outcome is told.
    counted = told(str(path), *args, "-c", "1000000")
    assert [without_end(line) for line in found] == [without_end(line) for line in counted]
    for line in found:
        mine = whole[line["client_id"], line["client_address"]]
        assert [line[name] for name in ENDS] == [mine[name] for name in ENDS]
        assert line["outcome"]


def without_end(line: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in line.items() if name not in ENDS}


def test_where_reading_stops_no_outcome_is_told() -> None:
    (line,) = told(str(CAUSES / "poison-librdkafka.pcap.gz"), "-c", "3", "-Y", "api == Fetch")
    assert (line["outcome"], line["requests"]) == (None, 3)
    assert line["outcome_reason"] == "unknown: -c stops before the end"


def greeted() -> Wire:
    """A client that negotiates versions first."""
    wire = Wire()
    wire.connection.bytes = [100, 100]
    return wire.exchange("ApiVersions", 3, 1)


def fetched(records: bytes) -> Wire:
    """A reader without a group."""
    ends = {"high_watermark": 3, "last_stable_offset": 3}
    return greeted().fetch(2, 3, records, topic="t", version=4, **ends)


def moves(acks: int, error: int = 0) -> Wire:
    """A producer; with acks=0 it gets no responses."""
    wire, blob = greeted(), batch([(None, b"v")])
    for number in range(2, 5):
        if acks:
            wire.write(number, blob, error_code=error, base_offset=number)
        else:
            wire.client(produce(number, 0, blob))
    return wire


def creates(error: int = 0) -> Wire:
    """An admin client."""
    made = [{"name": "t", "error_code": error, "error_message": None}]
    wire = greeted().client(request("CreateTopics", 4, 2))
    return wire.broker(response("CreateTopics", 4, 2, topics=made))


@pytest.mark.parametrize(
    ("wire", "how", "word", "reason"),
    [
        (moves(1), "fin", "worked", "after Produce"),
        (moves(0), "fin", "worked", "after Produce"),
        (moves(1, 3), "fin", "gone", "right after UNKNOWN_TOPIC_OR_PARTITION"),
        (moves(1), "rst", "gone", "reset its connections"),
        (creates(), "fin", "worked", "after CreateTopics"),
        (creates(36), "fin", "gone", "right after TOPIC_ALREADY_EXISTS"),
        (greeted(), "fin", "gone", "after ApiVersions, without a result"),
        (greeted().client(produce(2, 1, batch([(None, b"v")]))).broker(framed(b"\0\0\0\2\1")),
         "fin", "kept out", "could not be decoded"),
        (greeted().exchange("InitProducerId", 4, 2), "fin", "gone", "without a result"),
        (greeted().exchange("Metadata", 8, 2), "fin", "worked", "after Metadata"),
        (greeted().exchange("ListTransactions", 0, 3).client(request("Metadata", 8, 2))
         .broker(framed(b"\0\0\0\2\1")), "fin", "gone", "could not be read"),
        (fetched(batch([(None, b"v")], base_offset=3)), "fin", "worked", "after Fetch"),
        (fetched(b""), "fin", "gone", "without having read a record"),
    ],
    ids=[
        *("acks=1", "acks=0", "refused", "reset", "admin", "refused admin", "versions"),
        *("unreadable response", "a producer id", "metadata", "broken metadata", "records"),
        "no records",
    ],
)  # fmt: skip
def test_a_client_that_worked_has_a_result(wire: Wire, how: str, word: str, reason: str) -> None:
    wire.events = [each for each in wire.events if not isinstance(each, Closed)]
    end = outcome_of([wire.close("client", how)])
    assert (end.word, reason in end.reason) == (word, True), end


def test_records_that_a_broker_refused_without_a_response_moved_nowhere() -> None:
    """With acks=0 a broker closes the connection instead."""
    wire = moves(0)
    assert outcome_of([wire.close("broker")]).word == "gone"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("", "worked"),
        ("the consumer is being closed", "worked"),
        ("consumer poll timeout has expired.", "gone"),
        (None, "gone"),
    ],
    ids=["without a reason", "closed", "did not poll", "did not leave"],
)
def test_a_member_that_joins_syncs_and_leaves_worked(reason: str | None, word: str) -> None:
    """Without a record, too: the topic may have none."""
    group = Members()
    group.join("app", 0, 1, ("app",))
    synced = {"generation_id": 1, "member_id": "app", "assignments": []}
    group.ask("app", 1, "SyncGroup", 5, synced, {"error_code": 0}, 0.1)
    for at in range(2, 6):
        group.beat("app", at, 1)
    if reason is not None:
        group.leave("app", 6, reason)
    wire = group.wires["app"]
    wire.connection.bytes = [500, 500]
    end = outcome_of([wire.close("client")])
    assert end.word == word, end
    assert ("without leaving its group" in end.reason) == (reason is None)


def test_a_static_member_sends_no_leave_group() -> None:
    """KIP-345: its partitions wait for it until the session times out."""
    group = Members()
    group.join("app", 0, 1, ("app",), group_instance_id="pod-1")
    group.beat("app", 1, 1)
    wire = group.wires["app"]
    wire.connection.bytes = [500, 500]
    end = outcome_of([wire.close("client")])
    assert (end.word, "static member" in end.reason) == ("worked", True), end


def test_a_member_that_was_never_let_in_did_not_work() -> None:
    group = Members()
    asked = {"session_timeout_ms": 10_000, "protocol_type": "consumer", "member_id": ""}
    for at in range(3):
        group.ask("app", at, "JoinGroup", 8, asked, {"error_code": 81, "member_id": ""}, 0.1)
    wire = group.wires["app"]
    wire.connection.bytes = [500, 500]
    end = outcome_of([wire.close("client")])
    assert end.word == "gone", end
