"""What a feed gives many at a time counts the same as one exchange after the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.feed import Feed, is_out_of_ordinary, wants
from kafkascope.analyzer.statistics.limits import LIMITS, StatisticsLimits
from kafkascope.kernel.pairs import OLDER
from tests.analyzer.statistics.laws import Pair, traffic
from tests.kit.batches import batch
from tests.kit.samples import SAMPLES
from tests.kit.wire import Wire, request, response, told

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
    data=st.data(),
    name=st.sampled_from(MANY),
    most=st.integers(1, 60),
    size=st.integers(1, 20_000),
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
            {
                "index": draw(st.sampled_from((*indexes, 9))),
                "error_code": 0,
                "base_offset": draw(OFFSETS),
                "log_append_time_ms": -1,
                "log_start_offset": 0,
            }
            for _ in draw(st.sampled_from((indexes, indexes[:1], [])))
        ]
        topics.append({"name": name, "partition_data": parts})
        answers.append({"name": name, "partition_responses": results})
    return (
        request("Produce", 7, number, acks=-1, topic_data=topics),
        response("Produce", 7, number, responses=answers),
    )


@st.composite
def fetched(draw: st.DrawFn, number: int) -> tuple[bytes, bytes]:
    """A Fetch and its answer, which need not be about what was asked for."""
    part = {"current_leader_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 1}
    names = st.lists(st.sampled_from(TOPICS), max_size=2, unique=True)
    indexes = st.lists(st.integers(0, 2), min_size=1, max_size=2)
    topics = [
        {
            "topic": name,
            "partitions": [
                part | {"partition": index, "fetch_offset": draw(st.integers(0, 40))}
                for index in draw(indexes)
            ],
        }
        for name in draw(names)
    ]
    answers = [
        {
            "topic": name,
            "partitions": [
                {
                    "partition_index": index,
                    "error_code": 0,
                    "high_watermark": draw(OFFSETS),
                    "last_stable_offset": draw(OFFSETS),
                    "log_start_offset": draw(OFFSETS),
                    "aborted_transactions": None,
                    "preferred_read_replica": draw(st.sampled_from((-1, -1, 2))),
                    "records": draw(BLOBS),
                }
                for index in draw(indexes)
            ],
        }
        for name in draw(names)
    ]
    asked: dict[str, Any] = {
        "replica_id": draw(st.sampled_from((-1, -1, 3))),
        "isolation_level": draw(st.integers(0, 1)),
        "session_id": draw(st.sampled_from((0, 7))),
        "max_wait_ms": 1,
        "min_bytes": 0,
    }
    return (
        request("Fetch", 11, number, topics=topics, forgotten_topics_data=[], **asked),
        response("Fetch", 11, number, error_code=0, session_id=0, responses=answers),
    )


OF_GROUPS = {"group_id": st.sampled_from("gh"), "member_id": st.sampled_from("mn")}
WITHIN = {"transactional_id": st.sampled_from("tu"), "producer_id": st.integers(7, 8)}
GENERATION = {"generation_id": st.integers(-1, 1)}
COMMITTED = {
    "topics": st.lists(
        st.builds(
            lambda name, index, offset: {
                "name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": offset,
                        "committed_leader_epoch": -1,
                        "committed_metadata": None,
                    }
                ],
            },
            st.sampled_from(TOPICS),
            st.integers(0, 1),
            st.integers(0, 40),
        ),
        max_size=2,
    )
}
NODE = st.fixed_dictionaries(
    {
        "node_id": st.integers(0, 2),
        "host": st.sampled_from(("k0", "k1")),
        "port": st.just(9092),
        "rack": st.none(),
    }
)
LEADER = st.fixed_dictionaries(
    {
        "error_code": st.just(0),
        "partition_index": st.integers(0, 1),
        "leader_id": st.integers(0, 2),
        "leader_epoch": st.integers(0, 1),
        "replica_nodes": st.just([0, 1]),
        "isr_nodes": st.just([0]),
        "offline_replicas": st.just([]),
    }
)
LED = st.fixed_dictionaries(
    {
        "error_code": st.just(0),
        "name": st.sampled_from(TOPICS),
        "is_internal": st.just(False),
        "partitions": st.lists(LEADER, max_size=2),
        "topic_authorized_operations": st.just(0),
    }
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
    wire, context = Wire(), Context()
    for number in range(draw(st.integers(1, 6))):
        asked, answer = draw(st.one_of(produced(number), fetched(number), other(number)))
        wire.client(asked)
        wire.broker(answer)
    return [(row_of(each, context.names), each) for each in told(wire.events, context)]


@settings(max_examples=60)
@given(exchanged())
def test_any_usual_exchanges_are_counted_alike(pairs: list[Pair]) -> None:
    states, waited = fed(pairs)
    assert states == one_by_one(pairs)
    assert waited == len(pairs)
