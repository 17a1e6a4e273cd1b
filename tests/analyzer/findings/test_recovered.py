"""Errors that healthy clients meet and recover from are no trouble: next to the same without the
recovery."""

from typing import Any

import pytest

from tests.analyzer.findings.judging import found, states
from tests.analyzer.findings.sides_data import producing
from tests.analyzer.findings.sides_ends import add_partitions, at_stable
from tests.analyzer.findings.sides_requests import (
    BUSY,
    NODE,
    asking,
    closing,
    leaderless,
    uncoordinated,
    unjoined,
    unknown,
)
from tests.kit.batches import batch
from tests.kit.members import Members
from tests.kit.wire import SECOND, START, Wire, metadata, request, response

REFUSED = 45


def test_batches_behind_a_refused_one_are_out_of_order_for_a_moment() -> None:
    """A 4.x broker answers CONCURRENT_TRANSACTIONS while it ends the transaction before."""
    names = found([producing((0, 0), (2, BUSY), (4, REFUSED), (2, 0), (4, 0))])
    refused, again = names["sequence-refused"], names["sequence-repeated"]
    assert refused.severity == "note"
    assert states(refused.text, "all batches were accepted on retry")
    assert (again.severity, again.count) == ("chat", 2)
    assert again.text.endswith("sent 2 batches for t-0 again, all after an error")


def test_batches_that_are_out_of_order_for_good_are_lost() -> None:
    names = found([producing((0, 0), (2, BUSY), (4, REFUSED), (4, REFUSED))])
    assert names["sequence-refused"].severity == "error"


def test_copies_of_what_was_taken_are_a_note() -> None:
    finding = found([producing((0, 0), (0, 0), (2, BUSY), (2, 0))])["sequence-repeated"]
    assert finding.severity == "note"
    assert finding.text.endswith("sent 2 batches for t-0 again, 1 after an error")


def test_all_partitions_of_a_producer_are_one_finding() -> None:
    wire = Wire()
    for place in range(1, 3):
        data = batch([(None, b"v")], producer=(7, 0, 0))
        parts = [{"index": index, "records": data} for index in range(50)]
        topics = [{"name": "t", "partition_data": parts}]
        wire.client(request("Produce", 7, place, acks=-1, topic_data=topics))
    finding = found([wire])["sequence-repeated"]
    assert finding.count == 50
    assert "t-0, t-1, t-10, t-11 and 46 more again" in finding.text


def test_a_topic_that_is_made_while_a_client_waits_for_it() -> None:
    """Kafka Streams makes its internal topics itself."""
    finding = found([asking(*[unknown()] * 6, metadata(NODE))])["unknown-topic"]
    assert finding.severity == "chat"
    assert finding.text.endswith("until the topic was created")


def test_a_topic_name_that_none_can_have() -> None:
    assert "no topic can have this one" in found([asking(unknown(17))])["unknown-topic"].advice


@pytest.mark.parametrize("answers", [[unknown()] * 6, [metadata(NODE), *[unknown()] * 6]])
def test_a_topic_that_never_comes_or_is_gone(answers: list[dict[str, Any]]) -> None:
    assert found([asking(*answers)])["unknown-topic"].severity == "warning"


@pytest.mark.parametrize(("stays", "topic"), [(6, "orders"), (4, "orders"), (6, "others")])
def test_a_member_that_looks_up_its_topic_once(stays: int, topic: str) -> None:
    """kafka-go waits then for partitions that never come."""
    group = Members()
    group.join("app", 0, 1, ("app",), topics=(topic,))
    wire = group.wires["app"]
    wire.exchange("Metadata", 12, 90, unknown())
    group.beat("app", stays, 1)
    finding = found(group.wires.values()).get("unknown-topic")
    assert (finding is not None) == (stays > 5 and topic == "orders")
    if finding is not None:
        assert states(finding.text, "looked up topic orders once")


@pytest.mark.parametrize("version", [3, 4])
def test_a_group_without_a_coordinator(version: int) -> None:
    finding = uncoordinated(9, version=version)["coordinator-missing"]
    assert states(finding.text, "Group g has no coordinator", "9 FindCoordinator responses to app")
    assert states(finding.advice, "offsets.topic.replication.factor")
    assert not uncoordinated(9, then=0, version=version)


@pytest.mark.parametrize(
    ("then", "told"), [("ListGroups", True), ("OffsetFetch", False), ("Fetch", False)]
)
def test_a_client_that_finds_its_coordinator_and_does_not_join(then: str, told: bool) -> None:
    findings = unjoined(9 * SECOND, then)
    assert ("group-unjoined" in findings) == told
    if told:
        text = findings["group-unjoined"].text
        assert states(text, "app found the coordinator of group g", "for 9.0 s")


def fetching(refresh: float, times: int = 5) -> Wire:
    """A reader that is told so many times that the broker is no leader, and asks for metadata after
    so many seconds."""
    wire = Wire()
    for number in range(1, times + 1):
        wire.fetch(number, error_code=6, high_watermark=-1).time_ns += SECOND // 10
    wire.time_ns = START + int(refresh * SECOND)
    return wire.exchange("Metadata", 12, 9, metadata(NODE))


def test_a_client_may_back_off_before_it_asks_for_metadata() -> None:
    names = found([fetching(1)])
    assert "stale-leader" not in names
    assert states(names["leader-moved"].text, "5 requests", "app", "former leaders")


def test_several_refused_requests_have_a_duration() -> None:
    assert " within " in found([fetching(1)])["leader-moved"].text
    assert " within " not in found([fetching(1, 1)])["leader-moved"].text


def test_a_client_that_does_not_refresh_its_metadata() -> None:
    assert found([fetching(5)])["stale-leader"].count == 4


def test_one_transaction_after_the_other_holds_nobody_back() -> None:
    moving = at_stable((0, 10, 20), (8, 20, 30), (16, 30, 40), (24, 40, 50))
    assert "transaction-blocks" not in found(moving)


def test_a_transaction_that_stays_open_holds_readers_back() -> None:
    finding = found(at_stable((0, 10, 20), (4, 20, 30), (24, 20, 50)))["transaction-blocks"]
    assert states(finding.text, "waited 20 s", "offset 20 of t-0", "30 records after it")
    over = at_stable((0, 10, 20), (4, 20, 30), (24, 20, 50))
    over[0].fetch(9, 20, batch([(None, b"v")] * 30, base_offset=20), topic="t", high_watermark=50)
    assert "waited 20 s at the last stable offset 20" in found(over)["transaction-blocks"].text


def adding(pause: float) -> Wire:
    """Transactions whose first request is told to wait for the end of the one before."""
    wire = Wire()
    for number in range(1, 31):
        busy = number % 5 > 0
        add_partitions(wire, number, BUSY if busy else 0)
        wire.time_ns += int((0.02 if busy else pause) * SECOND)
    return wire


def test_producers_wait_for_the_end_of_their_last_transaction() -> None:
    assert "error-storm" not in found([adding(pause=2)])


def test_a_transaction_before_that_does_not_end_is_a_storm() -> None:
    assert found([adding(pause=0.02)])["error-storm"].count == 24


@pytest.mark.parametrize(("throttle_ms", "slow"), [(3000, False), (0, True), (500, True)])
def test_requests_in_flight_wait_for_the_end_of_a_quota(throttle_ms: int, slow: bool) -> None:
    """A broker answers at once with the pause, and reads the connection when it is over."""
    wire = Wire()
    for turn in range(3):
        first, second = 2 * turn + 1, 2 * turn + 2
        for number in (first, second):
            wire.client(request("Produce", 7, number, acks=-1, topic_data=[]))
        wire.broker(response("Produce", 7, first, responses=[], throttle_time_ms=throttle_ms))
        wire.time_ns += 3 * SECOND
        wire.broker(response("Produce", 7, second, responses=[], throttle_time_ms=0))
    assert ("slow-answers" in found([wire])) == slow


@pytest.mark.parametrize(("kind", "often"), [("connect", False), ("consumer", True)])
def test_each_connector_that_is_made_is_a_rebalance_of_its_workers(kind: str, often: bool) -> None:
    group = Members()
    for generation in range(1, 6):
        at = generation * 2.0
        group.join("a", at, generation, ("a", "b"), protocol_type=kind)
        group.join("b", at + 0.05, generation, protocol_type=kind)
    assert ("rebalance-storm" in found(group.wires.values())) == often
    last = group.groups().rebalances("g")[-1]["text"]
    assert last.endswith("on a topic change" if often else "on a connector change")


def test_a_storm_of_what_healthy_clusters_do_not_have_is_an_error_with_its_causes() -> None:
    wire = Wire()
    for number in range(1, 31):
        wire.write(number, error_code=19, base_offset=-1)
    finding = found([wire])["error-storm"]
    assert finding.severity == "error"
    assert "min.insync.replicas" in finding.advice


@pytest.mark.parametrize(
    ("max_wait_ms", "count", "words"),
    [(500, 5_100, "the broker answers at once"), (0, 400, "fetch.max.wait.ms")],
)
def test_fetches_that_a_broker_does_not_let_wait(max_wait_ms: int, count: int, words: str) -> None:
    """Records above the high watermark end a long poll, though nobody may read them yet: for some
    seconds while a follower restarts."""
    wire = Wire()
    for number in range(1, count):
        asked = {"max_wait_ms": max_wait_ms, "min_bytes": 1, "topics": []}
        wire.exchange("Fetch", 11, number, {"error_code": 0, "responses": []}, **asked)
    finding = found([wire])["eager-fetches"]
    assert words in finding.advice
    assert states(finding.text, "fetch.max.wait.ms is 500 ms") == bool(max_wait_ms)


def test_partitions_without_a_leader() -> None:
    finding = found([asking(*leaderless(1, -1, -1, -1, -1, -1))])["leader-missing"]
    assert states(finding.text, "1 partition", "orders-0", "brokers 1, 2", "5 lookups of app")
    # It came back, or the topic was being created.
    assert "leader-missing" not in found([asking(*leaderless(-1, -1, -1, -1, -1, 1))])


def test_a_broker_that_serves_nobody_who_does_not_authenticate() -> None:
    finding = found(closing(3))["sasl-missing"]
    parts = ("10.0.1.2:9092", "ApiVersions", "app", "closed 3 connections", "authentication")
    assert states(finding.text, *parts)


def test_a_client_that_asks_for_versions_only_once_lacks_sasl_as_well() -> None:
    """kafkajs: its next connections begin with the request that the broker refuses."""
    later = [Wire(number=number).client(request("Metadata", 6, 1)) for number in (1, 2, 3)]
    wires = [*closing(1), *(wire.close("broker") for wire in later)]
    assert "closed 4 connections" in found(wires)["sasl-missing"].text
    assert "sasl-missing" not in found(wires[1:])


@pytest.mark.parametrize("wires", [closing(2), closing(3, served=True)])
def test_a_broker_that_closes_connections_for_another_reason(wires: list[Wire]) -> None:
    names = found(wires)
    assert "sasl-missing" not in names
    assert "unanswered" in names


@pytest.mark.parametrize(
    ("reads_on", "gone", "said"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_a_reader_that_may_not_reset_its_position_stops(
    reads_on: bool, gone: bool, said: bool
) -> None:
    """One that is still connected may read on with its next poll."""
    wire = Wire()
    for number, refused in enumerate([True, not reads_on], 1):
        told = {"error_code": int(refused), "high_watermark": -1 if refused else 500}
        wire.fetch(number, 10, topic="t", asked={"isolation_level": 1}, **told)
        wire.time_ns += 2 * SECOND
    if gone:
        wire.close()
    text = found([wire])["offset-out-of-range"].text
    assert states(text, "did not continue", "auto.offset.reset=none") == said


@pytest.mark.parametrize(("other", "named"), [("new", ", also used by new)"), ("old", "(t")])
def test_a_fenced_producer_is_told_who_has_its_transactional_id(other: str, named: str) -> None:
    wire = Wire()
    who = {"transactional_id": "x", "transaction_timeout_ms": 60_000}
    for number, name in enumerate(("old", other), 1):
        wire.client(request("InitProducerId", 4, number, name, **who))
        given = {"error_code": 0, "producer_id": 7, "producer_epoch": number}
        wire.broker(response("InitProducerId", 4, number, **given))
    ended = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 1, "committed": True}
    wire.exchange("EndTxn", 3, 3, {"error_code": 90}, client="old", **ended)
    fenced = found([wire])["producer-fenced"]
    assert named in fenced.text
    # Of thousands of ids of one client, each finding selects its own.
    assert fenced.filter == 'client == "old" and txn == "x" and api == EndTxn and error == 90'


@pytest.mark.parametrize(("epoch", "lost"), [(-1, False), (7, True)])
def test_a_goodbye_on_a_connection_that_is_gone_is_no_loss(epoch: int, lost: bool) -> None:
    """Consumers close their fetch sessions when they end, also at brokers that went away."""
    wire = asking(metadata(NODE))
    wire.client(request("Fetch", 11, 9, session_id=5, session_epoch=epoch, topics=[]))
    assert ("unanswered" in found([wire.close("broker", "rst")])) == lost
