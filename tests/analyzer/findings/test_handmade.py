"""Detectors whose trouble no small cluster shows: on exchanges made by hand, next to the same
without the trouble."""

from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from tests.analyzer.findings.judging import commit, found, states
from tests.analyzer.findings.sides_connections import asking
from tests.analyzer.findings.sides_data import producing
from tests.analyzer.findings.sides_ends import add_partitions
from tests.analyzer.findings.sides_groups import owning
from tests.kit.batches import batch
from tests.kit.members import Members
from tests.kit.wire import (
    CLIENT,
    MS,
    SECOND,
    START,
    Wire,
    beat,
    framed,
    heartbeat,
    metadata,
    produce,
    request,
    response,
    told,
)


@pytest.mark.parametrize("further", [False, True])
@pytest.mark.parametrize("key", [3, 62])
def test_a_client_that_connects_to_a_controller(key: int, further: bool) -> None:
    """A controller offers BrokerRegistration, and no Metadata; tools ask it for other things."""
    wire = Wire().client(request("ApiVersions", 3, 1))
    offer = [{"api_key": each, "min_version": 0, "max_version": 2} for each in (18, key)]
    wire.broker(response("ApiVersions", 3, 1, api_keys=offer))
    if further:
        wire.exchange("DescribeQuorum", 2, 2)
    finding = found([wire.close("client")]).get("controller-listener")
    assert (finding is not None) == (key == 62 and not further)
    if finding is not None:
        assert states(finding.text, "app", "10.0.1.2:9092", "controller")
        assert states(finding.advice, "bootstrap.servers")


@pytest.mark.parametrize(
    ("second", "error", "tells"),
    [("10.0.1.2", 16, True), ("10.0.1.3", 16, False), ("10.0.1.2", 0, False)],
    ids=["a load balancer", "two addresses", "works all the same"],
)
def test_one_address_of_two_nodes(second: str, error: int, tells: bool) -> None:
    wire = asking((1, "10.0.1.2", 9092), (2, second, 9092))
    finding = found([wire.client(heartbeat(2)).broker(beat(2, error))]).get("address-shared")
    assert (finding is not None) == tells
    if finding is not None:
        assert states(finding.text, "Brokers 1, 2", "10.0.1.2:9092", "1 request from app")


@pytest.mark.parametrize(
    ("clusters", "tells"), [("AB", True), ("ABB", True), ("AA", False), ("ABA", False)]
)
def test_an_address_that_leads_to_another_cluster(clusters: str, tells: bool) -> None:
    """Behind an ingress that routes by server name there are several all the time."""
    wire = Wire()
    for number, cluster in enumerate(clusters, 1):
        wire.exchange("Metadata", 12, number, {"cluster_id": cluster})
    finding = found([wire]).get("cluster-changed")
    assert (finding is not None) == tells
    if finding is not None:
        assert states(finding.text, "10.0.1.2:9092 was in cluster A", "cluster B", "for app")


@pytest.mark.parametrize(
    ("broker", "times", "tells"),
    [
        ("8.8.8.8", 4, True),
        ("8.8.8.8", 1, False),  # it may get there yet
        ("10.0.1.2", 4, False),  # it is inside, whatever its own address is
    ],
)
def test_a_private_address_for_a_public_client(broker: str, times: int, tells: bool) -> None:
    wire = asking((1, "10.9.9.9", 9092), times=times)
    wire.connection.a = CLIENT._replace(host="8.8.4.4")
    wire.connection.b = wire.connection.b._replace(host=broker)
    assert ("address-private" in found([wire])) == tells


def test_a_producer_that_only_reaches_the_address_it_was_started_with() -> None:
    """It gets its producer id there, and no further."""
    wire = asking((1, "kafka-1", 9192), times=3)
    wire.exchange("InitProducerId", 4, 9)
    assert "address-unresolved" in found([wire])
    wire.exchange("Produce", 7, 10, {"responses": []}, topic_data=[])
    assert "address-unresolved" not in found([wire])


def test_segments_that_were_sent_again() -> None:
    wire = asking((1, "10.0.1.2", 9092))
    wire.connection.retransmissions = (10, 20)
    wire.connection.bytes = [100, 100]
    finding = found([wire])["network-loss"]
    assert states(finding.text, "app", "30 retransmissions")
    assert finding.last_ns == wire.connection.last_ns  # not when the last connection was opened


@pytest.mark.parametrize("name", ['a"b\\c', "line\nfeed", "tab\t\\", "ü€", "x" * 30_000, "{1..2}"])
def test_odd_names_stay_inside_their_filters(name: str) -> None:
    wire = Wire()
    for number in range(1, 61):
        answer, asked = metadata((1, "127.0.0.1", 9092)), [{"name": name[:200]}]
        answer["topics"][0] |= {"error_code": 3, "name": name[:200]}
        wire.exchange("Metadata", 12, number, answer, client=name, topics=asked)
    names = found([wire])
    assert {"lookup-storm", "unknown-topic"} <= names.keys()
    assert all(len(finding.text) <= 1_000 for finding in names.values())


@pytest.mark.parametrize("error", [0, 16])
def test_lookups_of_requests_that_succeed_are_no_storm(error: int) -> None:
    """kafkajs looks up the coordinator for each step of a transaction."""
    wire = Wire()
    for number in range(60):
        wire.exchange("FindCoordinator", 3, 2 * number, client="web", key="tx", key_type=1)
        wire.client(request("EndTxn", 1, 2 * number + 1, "web", transactional_id="tx"))
        wire.broker(response("EndTxn", 1, 2 * number + 1, error_code=error))
    assert ("lookup-storm" in found([wire])) == bool(error)


def test_topics_that_get_their_names_later_have_them_in_the_text() -> None:
    topic_id, place = bytes(range(16)), {"index": 0}
    damaged = batch([(b"k", b"v")])[:-1] + b"w"
    asked = [{"topic_id": topic_id, "partition_data": [{**place, "records": damaged}]}]
    refused = {**place, "error_code": 29, "base_offset": -1}
    refused |= {}
    refused |= {}
    denied = [{"topic_id": topic_id, "partition_responses": [refused]}]
    wire = Wire()
    wire.exchange("Produce", 13, 1, {"responses": denied}, acks=1, topic_data=asked)
    answer = metadata((1, "10.0.1.2", 9092))
    answer["topics"][0] |= {"topic_id": topic_id}
    wire.exchange("Metadata", 12, 2, answer)
    events, context = wire.events, Context()
    findings = Findings()
    for exchange in told(events, Context()):
        # Nothing is known yet: each task of a job is in that place.
        findings.add(ExchangeBatch.of(row_of(exchange, Context().names), exchange))
    told(events, context)
    texts = {finding.name: finding.text for finding in findings.reported(context.names)}
    assert states(texts["batch-damaged"], "topic orders", "app")
    assert states(texts["denied"], "app", "orders", "TOPIC_AUTHORIZATION_FAILED")


def test_a_consumer_that_did_not_poll_says_so() -> None:
    group = Members()
    group.join("a", 0, 1, ("a", "b"))
    group.join("b", 0.1, 1)
    group.leave("b", 10, "consumer poll timeout has expired.")
    group.join("a", 11, 2, ("a",))
    finding = found(group.wires.values())["rebalance-poll"]
    assert finding.severity == "warning"
    assert "consumer poll timeout has expired" in finding.text


def test_a_group_that_rebalances_again_and_again() -> None:
    group = Members()
    for generation in range(1, 7):
        at = 10 * generation
        group.join("a", at, generation, ("a", "b"), reason="rejoin")
        group.join("b", at + 0.1, generation)
    finding = found(group.wires.values())["rebalance-storm"]
    assert states(finding.text, "Group g", "5 times", "40 s", "2 members")


def test_a_rebalance_that_takes_long() -> None:
    group = Members()
    group.join("a", 0, 1, ("a", "b"), takes=25)
    group.join("b", 24, 1)
    finding = found(group.wires.values())["rebalance-slow"]
    assert states(finding.text, "Group g", "25 s", "b joined last")


def test_partitions_of_a_member_that_is_never_heard_of_again_are_free() -> None:
    group = Members()
    group.epoch("a", 0, 0, 1, subscribed_topic_names=["t"], given=owning(0))
    group.epoch("b", 60, 0, 2, subscribed_topic_names=["t"], given=owning(0))
    assert "owned-twice" not in found(group.wires.values())


def test_partitions_that_are_handed_over_have_one_owner() -> None:
    group = Members()
    group.epoch("a", 0, 0, 1, subscribed_topic_names=["t"], given=owning(0))
    group.epoch("a", 1, 1, 2, given={"topic_partitions": []})
    group.epoch("b", 2, 0, 2, subscribed_topic_names=["t"], given=owning(0))
    assert "owned-twice" not in found(group.wires.values())


def reading(ends: list[int], step: float, *, commits: bool) -> list[Wire]:
    """A consumer that reads 10 records in each step while the end moves on."""
    wire, other = Wire(), Wire(number=1)
    for place, end in enumerate(ends):
        at = 10 * place
        wire.time_ns = START + int(place * step * SECOND)
        other.time_ns = wire.time_ns + 10 * MS
        blob = batch([(None, b"v")] * 10, base_offset=at)
        wire.fetch(place, at, blob, topic="t", high_watermark=end, last_stable_offset=end)
        if commits:
            commit(other, place, at + 10)
        else:
            other.exchange("Heartbeat", 4, place, group_id="g", member_id="m", generation_id=1)
    return [wire, other]


def changed(wire: Wire, **attributes: Any) -> list[Wire]:
    """A connection of which this is known."""
    for name, value in attributes.items():
        setattr(wire.connection, name, value)
    return [wire]


@pytest.mark.parametrize(
    ("wires", "expected", "parts"),
    [
        ([asking((1, "127.0.0.1", 9092))], "error address-loopback",
         ("Broker 1", "loopback", "127.0.0.1:9092", "app at 10.0.0.4")),
        ([asking((1, "kafka-1", 9192), times=4)], "error address-unresolved",
         ("app", "never", "broker 1", "kafka-1:9192", "4 times", "10.0.1.2:9092")),
        ([Wire().client(framed(heartbeat(1)[4:] + b"abc")).broker(beat(1))], "note surplus",
         ("app", 3, "surplus bytes")),
        (changed(asking((1, "10.0.1.2", 9092)), gap_bytes=(0, 5000)), "warning capture-gaps",
         ("5.0 KB", "1 connection")),
        (changed(asking((1, "10.0.1.2", 9092)), handshake_ns=80 * MS), "note network-far",
         ("handshakes", "app", "80 ms")),
        (reading([10, 20, 30, 40, 50], 20, commits=False), "warning commits-lost",
         ("committed nothing",)),
        (reading([10, 20], 100, commits=True), "warning consumer-silent",
         ("did not fetch for 100.0 s",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_told(wires: list[Wire], expected: str, parts: tuple[object, ...]) -> None:
    severity, rule = expected.split()
    finding = found(wires)[rule]
    assert (finding.severity, states(finding.text, *parts)) == (severity, True), finding


@pytest.mark.parametrize("ends", [[20, 30, 40, 50, 60, 9_000], [20, 2_000, 30, 40, 50, 3_000]])
def test_a_burst_is_not_falling_behind(ends: list[int]) -> None:
    assert "lag" not in found(reading(ends, 1, commits=True))


def test_sequences_that_are_missing() -> None:
    """A broker that took what is behind them may have them."""
    for last, severity in ((0, "note"), (None, "warning")):
        finding = found([producing((0, 0), (2, 0), (6, last))])["sequence-gap"]
        assert finding.text.startswith("2 sequence numbers of producer 7")
        assert finding.severity == severity
    names = found([producing((0, 0), (2, 0), (4, 0))])
    assert not any(name.startswith("sequence") for name in names)


def test_a_transaction_that_nobody_ends() -> None:
    wire = Wire()
    add_partitions(wire, 1)
    wire.time_ns += 90 * SECOND
    wire.exchange("Metadata", 12, 2, metadata((1, "10.0.1.2", 9092)))
    hangs = found([wire])["transaction-hangs"]
    assert "is open for 90 s" in hangs.text
    assert hangs.filter == 'txn == "x" and number >= 1'
    # What comes behind its end is not about it.
    who = {"producer_id": 7, "producer_epoch": 0, "transactional_id": "x"}
    wire.exchange("EndTxn", 3, 3, **who, committed=True)
    add_partitions(wire, 4)
    hangs = found([wire])["transaction-hangs"]
    assert "was open for 90 s" in hangs.text
    assert hangs.filter == 'txn == "x" and number in {1..3}'


def test_a_transaction_that_its_coordinator_aborted() -> None:
    """Kafka 4 answers INVALID_TXN_STATE, where older brokers fence the producer."""
    wire = Wire().client(request("InitProducerId", 5, 1, "x", transactional_id="x"))
    wire.broker(response("InitProducerId", 5, 1, producer_id=7, producer_epoch=0))
    records = batch([(None, b"v")], producer=(7, 0, 0), attributes=16)
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    sent: dict[str, Any] = {"acks": -1, "topic_data": topics, "transactional_id": "x"}
    wire.exchange("Produce", 12, 2, client="x", **sent)
    wire.time_ns += 90 * SECOND
    ended: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "committed": True}
    wire.exchange("EndTxn", 5, 3, {"error_code": 48}, client="x", transactional_id="x", **ended)
    told = found([wire])
    assert states(told["transaction-hangs"].text, "until its end failed (INVALID_TXN_STATE)")
    assert "Commit sooner" in told["transaction-hangs"].advice
    assert told["error-seen"].because


def test_requests_without_a_response_that_fail() -> None:
    """A broker closes the connection in place of an error, and goes on."""
    closed = Wire().client(produce(1, acks=0)).close("broker")
    other = Wire(number=1, start_ns=START + SECOND).client(heartbeat(1)).broker(beat(1))
    finding = found([closed, other])["acks-0-failed"]
    assert states(finding.text, "closed 1 connection from app", "acks=0")
    assert "acks-0-failed" not in found([closed])  # it stopped, perhaps
    answered = Wire().client(produce(1, acks=0), heartbeat(2)).broker(beat(2)).close("broker")
    assert "acks-0-failed" not in found([answered, other])


@pytest.mark.parametrize(("timeout_ms", "hangs"), [(89_000, True), (91_000, False)])
def test_a_transaction_hangs_when_it_is_older_than_its_timeout(
    timeout_ms: int, hangs: bool
) -> None:
    wire = Wire()
    asked = {"transactional_id": "x", "transaction_timeout_ms": timeout_ms}
    wire.exchange("InitProducerId", 4, 1, {"producer_id": 7, "producer_epoch": 0}, **asked)
    add_partitions(wire, 2)
    wire.time_ns += 90 * SECOND
    wire.exchange("Metadata", 12, 3, metadata((1, "10.0.1.2", 9092)))
    assert ("transaction-hangs" in found([wire])) == hangs
