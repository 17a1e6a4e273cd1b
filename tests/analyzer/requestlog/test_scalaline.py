"""Classes of 0.8 and 0.9, at TRACE: what `describe(details = true)` prints in Kafka's source."""

from __future__ import annotations

from typing import Any

import pytest

from kafkascope.analyzer.requestlog.textline import parse_text

TAIL = (
    " from client /127.0.0.1:55380;totalTime:528,requestQueueTime:6,localTime:20,remoteTime:499,"
    "responseQueueTime:0,sendTime:0"
)


def parsed(text: str) -> Any:
    return parse_text(f"Completed request:{text}{TAIL}".encode(), 0, "TRACE")


@pytest.mark.parametrize(
    ("text", "body", "unknown", "sizes"),
    [
        (
            "Name: ProducerRequest; Version: 0; CorrelationId: 1; ClientId: c; RequiredAcks: -1; "
            "AckTimeoutMs: 30000 ms; TopicAndPartition: [a,0] -> 1019,[b,3] -> 7",
            {
                "acks": -1,
                "timeout_ms": 30000,
                "topic_data": [
                    {"name": "a", "partition_data": [{"index": 0, "records": None}]},
                    {"name": "b", "partition_data": [{"index": 3, "records": None}]},
                ],
            },
            ("topic_data.partition_data.records",),
            {("a", 0): 1019, ("b", 3): 7},
        ),
        (
            "Name: FetchRequest; Version: 0; CorrelationId: 1; ClientId: c; ReplicaId: 2; MaxWait: "
            "500 ms; MinBytes: 1 bytes; RequestInfo: [a,0] -> PartitionFetchInfo(5,1048576)",
            {
                "replica_id": 2,
                "max_wait_ms": 500,
                "min_bytes": 1,
                "topics": [
                    {
                        "topic": "a",
                        "partitions": [
                            {"partition": 0, "fetch_offset": 5, "partition_max_bytes": 1048576}
                        ],
                    }
                ],
            },
            (),
            {},
        ),
        (
            "Name: FetchRequest; Version: 3; CorrelationId: 1; ClientId: c; ReplicaId: 2; MaxWait: "
            "5 ms; MinBytes: 1 bytes; MaxBytes:9 bytes; RequestInfo: "
            "([a,1],PartitionFetchInfo(5,7)),([b,0],PartitionFetchInfo(0,8))",
            {
                "replica_id": 2,
                "max_wait_ms": 5,
                "min_bytes": 1,
                "max_bytes": 9,
                "topics": [
                    {
                        "topic": "a",
                        "partitions": [
                            {"partition": 1, "fetch_offset": 5, "partition_max_bytes": 7}
                        ],
                    },
                    {
                        "topic": "b",
                        "partitions": [
                            {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 8}
                        ],
                    },
                ],
            },
            (),
            {},
        ),
        (
            "Name: OffsetRequest; Version: 0; CorrelationId: 1; ClientId: c; ReplicaId: -1; "
            "RequestInfo: [a,0] -> PartitionOffsetRequestInfo(-2,1)",
            {
                "replica_id": -1,
                "topics": [
                    {
                        "name": "a",
                        "partitions": [
                            {"partition_index": 0, "timestamp": -2, "max_num_offsets": 1}
                        ],
                    }
                ],
            },
            (),
            {},
        ),
        (
            "Name: TopicMetadataRequest; Version: 0; CorrelationId: 1; ClientId: c; Topics: a,b",
            {"topics": [{"name": "a"}, {"name": "b"}]},
            (),
            {},
        ),
        (
            "Name: OffsetFetchRequest; Version: 1; CorrelationId: 1; ClientId: c; GroupId: g; "
            "RequestInfo: [a,0],[a,1]",
            {"group_id": "g", "topics": [{"name": "a", "partition_indexes": [0, 1]}]},
            (),
            {},
        ),
        (
            "Name: OffsetCommitRequest; Version: 2; CorrelationId: 1; ClientId: c; GroupId: g; "
            "GroupGenerationId: 1; MemberId: m; RetentionMs: -1; RequestInfo: [a,0] -> "
            "[OffsetMetadata[26,NO_METADATA],CommitTime -1,ExpirationTime -1]",
            {
                "group_id": "g",
                "generation_id_or_member_epoch": 1,
                "member_id": "m",
                "retention_time_ms": -1,
                "topics": [
                    {
                        "name": "a",
                        "partitions": [
                            {"partition_index": 0, "committed_offset": 26, "committed_metadata": ""}
                        ],
                    }
                ],
            },
            ("topics.partitions.committed_metadata",),
            {},
        ),
        (
            "Name: ConsumerMetadataRequest; Version: 0; CorrelationId: 1; ClientId: c; Group: g",
            {"key": "g"},
            (),
            {},
        ),
        (
            "Name: Heartbeat; Version: 0; CorrelationId: 1; ClientId: c; Body: {group_id=g,"
            "group_generation_id=3,member_id=m}",
            {"group_id": "g", "generation_id": 3, "member_id": "m"},
            (),
            {},
        ),
        (
            "Name: FetchRequest; Version: 0; CorrelationId: 1; ClientId: c; ReplicaId: 2; "
            "MaxWait: 500 ms; MinBytes: 1 bytes",
            {"replica_id": 2, "max_wait_ms": 500, "min_bytes": 1, "topics": []},
            ("topics",),
            {},
        ),
    ],
)
def test_requests(
    text: str, body: Any, unknown: tuple[str, ...], sizes: dict[tuple[str, int], int]
) -> None:
    found = parsed(text)
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
