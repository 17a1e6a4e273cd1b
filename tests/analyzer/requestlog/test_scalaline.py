"""Classes of 0.8 and 0.9, at TRACE: what `describe(details = true)` prints in Kafka's source."""

from typing import Any

import pytest

from kafkascope.analyzer.requestlog.textline import parse_text

TAIL = (
    " from client /127.0.0.1:55380;totalTime:528,requestQueueTime:6,localTime:20,remoteTime:499,"
    "responseQueueTime:0,sendTime:0"
)


def parsed(text: str) -> Any:
    return parse_text(f"Completed request:{text}{TAIL}".encode(), 0, "TRACE")


RECORDS = ("topic_data.partition_data.records",)
METADATA = ("topics.partitions.committed_metadata",)


def sent(index: int) -> dict[str, Any]:
    return {"partition_data": [{"index": index, "records": None}]}


def fetched(topic: str, partition: int, offset: int, size: int) -> dict[str, Any]:
    of_topic = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": size}
    return {"topic": topic, "partitions": [of_topic]}


def listed(of_topic: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "a", "partitions": [of_topic]}]


@pytest.mark.parametrize(
    ("name", "fields", "body", "unknown", "sizes"),
    [
        (
            "ProducerRequest; Version: 0",
            "RequiredAcks: -1; AckTimeoutMs: 30000 ms; TopicAndPartition: [a,0] -> 1019,[b,3] -> 7",
            {"acks": -1, "timeout_ms": 30000}
            | {"topic_data": [{"name": "a"} | sent(0), {"name": "b"} | sent(3)]},
            RECORDS,
            {("a", 0): 1019, ("b", 3): 7},
        ),
        (
            "FetchRequest; Version: 0",
            "ReplicaId: 2; MaxWait: 500 ms; MinBytes: 1 bytes; RequestInfo: [a,0] -> "
            "PartitionFetchInfo(5,1048576)",
            {"replica_id": 2, "max_wait_ms": 500, "min_bytes": 1}
            | {"topics": [fetched("a", 0, 5, 1048576)]},
            (),
            {},
        ),
        (
            "FetchRequest; Version: 3",
            "ReplicaId: 2; MaxWait: 5 ms; MinBytes: 1 bytes; MaxBytes:9 bytes; RequestInfo: "
            "([a,1],PartitionFetchInfo(5,7)),([b,0],PartitionFetchInfo(0,8))",
            {"replica_id": 2, "max_wait_ms": 5, "min_bytes": 1, "max_bytes": 9}
            | {"topics": [fetched("a", 1, 5, 7), fetched("b", 0, 0, 8)]},
            (),
            {},
        ),
        (
            "OffsetRequest; Version: 0",
            "ReplicaId: -1; RequestInfo: [a,0] -> PartitionOffsetRequestInfo(-2,1)",
            {"replica_id": -1}
            | {
                "topics": listed({"partition_index": 0, "timestamp": -2, "max_num_offsets": 1}),
            },
            (),
            {},
        ),
        ("TopicMetadataRequest; Version: 0", "Topics: a,b",
         {"topics": [{"name": "a"}, {"name": "b"}]}, (), {}),
        ("OffsetFetchRequest; Version: 1", "GroupId: g; RequestInfo: [a,0],[a,1]",
         {"group_id": "g", "topics": [{"name": "a", "partition_indexes": [0, 1]}]}, (), {}),
        (
            "OffsetCommitRequest; Version: 2",
            "GroupId: g; GroupGenerationId: 1; MemberId: m; RetentionMs: -1; RequestInfo: [a,0] -> "
            "[OffsetMetadata[26,NO_METADATA],CommitTime -1,ExpirationTime -1]",
            {"group_id": "g", "generation_id_or_member_epoch": 1, "member_id": "m"}
            | {"retention_time_ms": -1}
            | {
                "topics": listed(
                    {"partition_index": 0, "committed_offset": 26, "committed_metadata": ""}
                )
            },
            METADATA,
            {},
        ),
        ("ConsumerMetadataRequest; Version: 0", "Group: g", {"key": "g"}, (), {}),
        ("Heartbeat; Version: 0", "Body: {group_id=g,group_generation_id=3,member_id=m}",
         {"group_id": "g", "generation_id": 3, "member_id": "m"}, (), {}),
        ("FetchRequest; Version: 0", "ReplicaId: 2; MaxWait: 500 ms; MinBytes: 1 bytes",
         {"replica_id": 2, "max_wait_ms": 500, "min_bytes": 1, "topics": []}, ("topics",), {}),
    ],
)  # fmt: skip
def test_requests(
    name: str, fields: str, body: Any, unknown: tuple[str, ...], sizes: dict[tuple[str, int], int]
) -> None:
    found = parsed(f"Name: {name}; CorrelationId: 1; ClientId: c; {fields}")
    assert found.request.gap == ""
    assert found.request.body == body
    assert found.request.unknown == unknown
    assert found.record_sizes == sizes
    assert (found.correlation_id, found.client_id) == (1, "c")
    assert found.connection == (None, ("127.0.0.1", 55380), "")


@pytest.mark.parametrize(
    ("field", "client_id"), [(";ClientId:Some(1)", "1"), (";ClientId:None", None), ("", None)]
)
def test_an_option_is_a_client_id_or_none(field: str, client_id: str | None) -> None:
    text = f"Name: ControlledShutdownRequest; Version: 1; CorrelationId: 0{field}; BrokerId: 1"
    assert parsed(text).client_id == client_id


def test_times_of_0_8_0() -> None:
    text = "Name: FetchRequest; Version: 0; CorrelationId: 0; ClientId: c"
    times = "totalTime:9,queueTime:3,localTime:2,remoteTime:1,sendTime:4"
    found = parse_text(
        f"Completed request:{text} from client /10.0.0.1:5;{times}".encode(), 0, "TRACE"
    )
    assert found.times == (3_000_000, 2_000_000, 1_000_000, None, 4_000_000, None)
