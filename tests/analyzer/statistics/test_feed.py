"""What a feed gives many at a time counts the same as one exchange after the other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.feed import Feed, is_out_of_ordinary, wants
from kafkascope.analyzer.statistics.limits import LIMITS, StatisticsLimits
from kafkascope.kernel.pairs import OLDER
from tests.kit.batches import batch
from tests.kit.counting import Pair, pairs_in, traffic
from tests.kit.samples import SAMPLES
from tests.kit.wire import Wire, request, response

FILES = sorted(path.name for path in SAMPLES.iterdir() if ".pcap" in path.name)
MANY = ("rebalance.pcap", "transactions.pcap", "java-old.pcap")


def one_by_one(pairs: Any) -> dict[str, Any]:
    counted: dict[str, Any] = {**accumulators()}
    takers = list(Feed(counted.values())._takers)
    for row, exchange in pairs:
        for taker in takers:
            if wants(taker, row.api_key, odd=is_out_of_ordinary(row)):
                taker.add(ExchangeBatch.of(row, exchange))
    return {name: each.dump() for name, each in counted.items()}


def fed(pairs: Any, limits: StatisticsLimits = LIMITS) -> tuple[dict[str, Any], int]:
    """The states, and how many exchanges waited."""
    counted: dict[str, Any] = {**accumulators()}
    feed, waited = Feed(counted.values(), limits), 0
    for row, exchange in pairs:
        before = feed.waiting
        feed.add(row, exchange)
        waited += feed.waiting != before
    feed.settle()
    return {name: each.dump() for name, each in counted.items()}, waited


@pytest.mark.parametrize("name", FILES)
def test_states_are_the_same(name: str) -> None:
    pairs, _ = traffic(name)
    assert fed(pairs)[0] == one_by_one(pairs)


@pytest.mark.parametrize("name", MANY)
def test_usual_exchanges_wait(name: str) -> None:
    pairs, _ = traffic(name)
    moving = [row for row, _ in pairs if row.api_key in (0, 1) and row.state == "answered"]
    # Each exchange of old versions is looked at: messages may be of any format.
    moving = [row for row in moving if (row.api_version or 0) >= OLDER]
    assert fed(pairs)[1] >= -(-len(moving) // 2)


@settings(max_examples=30)
@given(
    data=st.data(), name=st.sampled_from(MANY), most=st.integers(1, 60), size=st.integers(1, 20_000)
)
def test_it_does_not_matter_when_they_are_given(
    data: st.DataObject, name: str, most: int, size: int
) -> None:
    pairs, _ = traffic(name)
    some = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=80, unique_by=id))
    limits = LIMITS._replace(waiting_exchanges=most, waiting_bytes=size)
    assert fed(some, limits)[0] == one_by_one(some)


TOPICS = ("a", "b", "_own")
OFFSETS = st.integers(-1, 40)
BATCHES = st.builds(
    batch,
    st.integers(1, 3).map(lambda count: [(None, b"v")] * count),
    base_offset=st.integers(0, 40),
    time_ms=st.integers(1_700_000_000_000, 1_700_000_000_003),
    producer=st.sampled_from([(-1, -1, -1), (-1, -1, -1), (7, 0, 1), (7, 1, 0), (8, 0, 3)]),
    attributes=st.sampled_from([0, 8, 16]),
)
BLOBS = st.lists(BATCHES, max_size=3).map(b"".join)


@st.composite
def produced(draw: st.DrawFn, number: int) -> tuple[bytes, bytes]:
    """A Produce and its answer, which need not be about every partition."""
    names = draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=2, unique=True))
    topics, answers = [], []
    for name in names:
        indexes = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2))
        parts = [{"index": index, "records": draw(BLOBS)} for index in indexes]
        results = [
            {"index": draw(st.sampled_from((*indexes, 9))), "base_offset": draw(OFFSETS)}
            for _ in draw(st.sampled_from((indexes, indexes[:1], [])))
        ]
        topics.append({"name": name, "partition_data": parts})
        answers.append({"name": name, "partition_responses": results})
    return (
        request("Produce", 7, number, acks=-1, topic_data=topics),
        response("Produce", 7, number, responses=answers),
    )


ASKED = st.fixed_dictionaries({"partition": st.integers(0, 2), "fetch_offset": st.integers(0, 40)})
FETCHED = st.fixed_dictionaries(
    {"partition_index": st.integers(0, 2), "records": BLOBS}
    | {"preferred_read_replica": st.sampled_from((-1, -1, 2))}
    | dict.fromkeys(("high_watermark", "last_stable_offset", "log_start_offset"), OFFSETS)
)


def of_topics(partition: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    partitions = st.lists(partition, min_size=1, max_size=2)
    topic = st.fixed_dictionaries({"topic": st.sampled_from(TOPICS), "partitions": partitions})
    return st.lists(topic, max_size=2, unique_by=lambda each: each["topic"])


@st.composite
def fetched(draw: st.DrawFn, number: int) -> tuple[bytes, bytes]:
    """A Fetch and its answer, which need not be about what was asked for."""
    asked: dict[str, Any] = {
        "topics": draw(of_topics(ASKED)),
        "replica_id": draw(st.sampled_from((-1, -1, 3))),
        "isolation_level": draw(st.integers(0, 1)),
        "session_id": draw(st.sampled_from((0, 7))),
    }
    answers = draw(of_topics(FETCHED))
    return request("Fetch", 11, number, **asked), response("Fetch", 11, number, responses=answers)


OF_GROUPS = {"group_id": st.sampled_from("gh"), "member_id": st.sampled_from("mn")}
WITHIN = {"transactional_id": st.sampled_from("tu"), "producer_id": st.integers(7, 8)}
GENERATION = {"generation_id": st.integers(-1, 1)}
OFFSET = {"partition_index": st.integers(0, 1), "committed_offset": st.integers(0, 40)}
PARTITIONS = st.lists(st.fixed_dictionaries(OFFSET), min_size=1, max_size=1)
COMMITS = st.fixed_dictionaries({"name": st.sampled_from(TOPICS), "partitions": PARTITIONS})
COMMITTED = {"topics": st.lists(COMMITS, max_size=2)}
NODE = st.fixed_dictionaries(
    {"node_id": st.integers(0, 2), "host": st.sampled_from(("k0", "k1")), "port": st.just(9092)}
)
LEADER = st.fixed_dictionaries(
    {
        "partition_index": st.integers(0, 1),
        "leader_id": st.integers(0, 2),
        "leader_epoch": st.integers(0, 1),
        "replica_nodes": st.just([0, 1]),
        "isr_nodes": st.just([0]),
    }
)
LED = st.fixed_dictionaries(
    {"name": st.sampled_from(TOPICS), "partitions": st.lists(LEADER, max_size=2)}
)
ANSWERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "Metadata": {"brokers": st.lists(NODE, max_size=2), "topics": st.lists(LED, max_size=2)},
    "FindCoordinator": {"node_id": st.integers(0, 2), "host": st.just("k0"), "port": st.just(9092)},
}
OTHERS: dict[tuple[str, int], dict[str, st.SearchStrategy[Any]]] = {
    ("Heartbeat", 3): OF_GROUPS | GENERATION,
    ("OffsetCommit", 7): OF_GROUPS | COMMITTED,
    ("OffsetFetch", 5): {"group_id": st.sampled_from("gh")},
    ("LeaveGroup", 2): OF_GROUPS,
    ("ConsumerGroupHeartbeat", 1): OF_GROUPS | {"member_epoch": st.integers(0, 2)},
    ("ListOffsets", 5): {},
    ("Metadata", 8): {},
    ("FindCoordinator", 2): {"key": st.sampled_from("gh")},
    ("InitProducerId", 1): {"transactional_id": st.sampled_from("tu")},
    ("AddPartitionsToTxn", 1): {},
    ("AddOffsetsToTxn", 1): WITHIN | {"group_id": st.sampled_from("gh")},
    ("EndTxn", 1): WITHIN | {"committed": st.booleans()},
    ("TxnOffsetCommit", 2): WITHIN | COMMITTED | {"group_id": st.sampled_from("gh")},
    ("DescribeConfigs", 2): {},
}
"""APIs of which several exchanges are one batch, and fields in which they differ."""


@st.composite
def other(draw: st.DrawFn, number: int) -> tuple[bytes, bytes]:
    """A message without records and its answer."""
    (name, version), fields = draw(st.sampled_from(sorted(OTHERS.items(), key=repr)))
    body: Any = {field: draw(values) for field, values in fields.items()}
    answer = {field: draw(values) for field, values in ANSWERS.get(name, {}).items()}
    return request(name, version, number, **body), response(name, version, number, **answer)


@st.composite
def exchanged(draw: st.DrawFn) -> list[Pair]:
    """Usual exchanges of one connection, about any number of partitions and batches."""
    wire = Wire()
    for number in range(draw(st.integers(1, 6))):
        asked, answer = draw(st.one_of(produced(number), fetched(number), other(number)))
        wire.client(asked)
        wire.broker(answer)
    return pairs_in(wire.events)


@settings(max_examples=60)
@given(exchanged())
def test_any_usual_exchanges_are_counted_alike(pairs: list[Pair]) -> None:
    states, waited = fed(pairs)
    assert states == one_by_one(pairs)
    assert waited == len(pairs)
