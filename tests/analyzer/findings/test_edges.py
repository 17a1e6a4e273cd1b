"""What a capture that begins or ends in the middle of a trouble says of it, and what it does not:
packets FIRST to LAST of real captures, and connections made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.captures import open_inputs
from tests.analyzer.batches import batch
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_captures import capture_of, judged
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.findings.test_pieces import written
from tests.analyzer.statistics.cluster.test_cluster import metadata
from tests.analyzer.wire import Wire, request, response


def piece(name: str, first: int, last: int, folder: Path) -> list[Finding]:
    """The findings in some packets of a capture."""
    with open_inputs([capture_of(name)]) as source:
        packets = list(source.packets())
    return judged.__wrapped__(written(packets[first - 1 : last], folder / "piece.pcapng"))[0]


@pytest.mark.parametrize(
    ("name", "first", "last", "rule"),
    [
        pytest.param("forgotten-producer", 1, 38, "address-unanswered", id="SYN at the end"),
        pytest.param("sasl-missing-java", 1, 282, "broker-down", id="SYN at the end, worked"),
        pytest.param("tls-expired-java", 1, 16, "tls-to-plain", id="TLS hello at the end"),
        pytest.param("client-too-old-kafkapython", 486, 522, "sasl-missing", id="refused version"),
        pytest.param("poison-librdkafka", 156, 332, "commits-lost", id="commit before the capture"),
        pytest.param("poison-librdkafka", 134, 306, "commits-lost", id="told of it in the middle"),
        pytest.param("long-minute", 41, 173, "transaction-hangs", id="timeout is not known"),
        pytest.param(
            "healthy-rolling-restart-librdkafka", 1254, 2823, "eager-fetches", id="followers away"
        ),
        pytest.param("broker-killed-java", 221, 1131, "address-unreachable", id="node is gone"),
        pytest.param("assignors", 565, 709, "owned-by-none", id="owners before the capture"),
        pytest.param("advertised-port-java", 54, 185, "broker-down", id="RST of an earlier SYN"),
    ],
)
def test_what_a_piece_cannot_know(
    name: str, first: int, last: int, rule: str, tmp_path: Path
) -> None:
    loud = [each for each in piece(name, first, last, tmp_path) if each.name == rule]
    assert not [each.text for each in loud if each.severity in ("error", "warning")]


def test_a_broker_that_was_down_before_the_capture_is_no_wrong_address(tmp_path: Path) -> None:
    """Its cluster does not list it any more; what is left of its connections are their last
    segments."""
    told = {each.name: each for each in piece("broker-killed-java", 221, 1131, tmp_path)}
    assert ("node", "3") in told["broker-down"].entities
    assert ("client", "lead-cons") in told["broker-down"].entities
    assert told["lookup-storm"].because == (told["broker-down"].id,)


def test_a_node_that_is_not_listed_any_more_was_up(tmp_path: Path) -> None:
    """Nothing of it is in the piece but refused connects."""
    down = [each for each in piece("broker-killed-java", 300, 1253, tmp_path) if each.count > 9]
    text = next(each.text for each in down if each.name == "broker-down")
    assert states(text, "127.0.0.1:9292 (node 3)", "down for 24 s", "out of its cluster")


def test_a_reader_that_was_not_seen_to_stop_may_read_on(tmp_path: Path) -> None:
    every = piece("retention-ahead-of-reader-java", 31, 68, tmp_path)
    (finding,) = (each for each in every if each.name == "offset-out-of-range")
    assert "auto.offset.reset=none" not in finding.text
    assert "holds" not in finding.text  # what it held before the deletion


@pytest.mark.parametrize(
    ("size", "again", "handshake", "severity"),
    [
        (5_000, 1, False, "note"),
        (70_000, 1, False, "warning"),
        (5_000, 0, False, "warning"),
        (5_000, 1, True, "warning"),
    ],
)
def test_bytes_under_way_when_the_capture_began(
    size: int, again: int, handshake: bool, severity: str
) -> None:
    """Of a network that loses some, they were sent before it, and again behind it."""
    wire = Wire(handshake=handshake)
    wire.client(request("Metadata", 12, 1))
    wire.broker(response("Metadata", 12, 1, **metadata((1, "10.0.1.2", 9092))))
    wire.connection.gap_bytes, wire.connection.retransmissions = (0, size), (0, again)
    assert found([wire.close()])["capture-gaps"].severity == severity


@pytest.mark.parametrize(
    ("batches", "others", "told"),
    [(9, 84, False), (54, 84, True), (9, 40, True)],
)
def test_batches_of_a_producer_without_keys_fall_on_one_partition(
    batches: int, others: int, told: bool
) -> None:
    """It fills one after the other; those of other partitions are as full. `others`: records of
    theirs."""
    wire = Wire()
    kept = [(partition, others) for partition in (0, 2, 3)] + [(1, 130)] * batches
    for number, (partition, count) in enumerate(kept, 1):
        records = batch([(None, b"value")] * count)
        part = {"index": partition, "records": records}
        topics = [{"name": "t", "partition_data": [part]}]
        wire.client(request("Produce", 7, number, acks=-1, topic_data=topics))
        answer = {"index": partition, "error_code": 0, "base_offset": 0}
        answer |= {"log_append_time_ms": -1, "log_start_offset": 0}
        topics = [{"name": "t", "partition_responses": [answer]}]
        wire.broker(response("Produce", 7, number, responses=topics))
    assert ("hot-partition" in found([wire])) == told


@pytest.mark.parametrize(
    ("client", "api", "refused"), [("2", "StopReplica", False), ("app", "Fetch", True)]
)
def test_brokers_are_not_refused_by_one_that_stops(client: str, api: str, refused: bool) -> None:
    """They do not ask for versions, and a piece shows nothing else of them."""
    wire = Wire().client(request(api, 1, 2, client)).close("broker")
    assert ("version-refused" in found([wire])) == refused
