"""Bodies of messages with very many, or very long, parts."""

from __future__ import annotations

import struct
from typing import Any

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.turns import Turn, exchange, uvarint
from tests.kit.wire import framed, request, response


def _topic(name: str = "") -> dict[str, Any]:
    return {
        "error_code": 0,
        "name": name,
        "topic_id": bytes(16),
        "is_internal": False,
        "partitions": [],
        "topic_authorized_operations": 0,
    }


def _metadata(topics: list[dict[str, Any]]) -> list[Turn]:
    brokers = [{"node_id": 1, "host": "h", "port": 9092, "rack": None}]
    return exchange(
        "Metadata", 12, {"topics": None}, {"brokers": brokers, "topics": topics, "cluster_id": None}
    )


def empty_topics(n: int) -> list[Turn]:
    """An OffsetFetch response of topics without name and partitions: six bytes each."""
    topics = [{"name": "", "partitions": []}] * n
    return exchange("OffsetFetch", 0, {}, {"topics": topics})


def metadata_topics(n: int) -> list[Turn]:
    return _metadata([_topic(f"t{index}") for index in range(n)])


def metadata_partitions(n: int) -> list[Turn]:
    part = {
        "error_code": 0,
        "leader_id": 1,
        "leader_epoch": 0,
        "replica_nodes": [1],
        "isr_nodes": [1],
        "offline_replicas": [],
    }
    parts = [part | {"partition_index": index} for index in range(n)]
    return _metadata([_topic("t") | {"partitions": parts}])


def replicas(n: int) -> list[Turn]:
    part = {
        "error_code": 0,
        "partition_index": 0,
        "leader_id": 1,
        "leader_epoch": 0,
        "replica_nodes": [1] * n,
        "isr_nodes": [1] * n,
        "offline_replicas": [],
    }
    return _metadata([_topic("t") | {"partitions": [part]}])


def produced_topics(n: int) -> list[Turn]:
    topics = [{"name": "", "partition_data": []}] * n
    return [
        (0, request("Produce", 7, 1, acks=-1, topic_data=topics)),
        (1, response("Produce", 7, 1)),
    ]


def named_topics(n: int) -> list[Turn]:
    """Every topic another name, each with one partition and one record."""
    data = encode_batch([Record(0, 1, None, b"", ())])
    topics = [
        {"name": f"t{index}", "partition_data": [{"index": 0, "records": data}]}
        for index in range(n)
    ]
    told = [
        {
            "name": f"t{index}",
            "partition_responses": [
                {
                    "index": 0,
                    "error_code": 6,
                    "base_offset": -1,
                    "log_append_time_ms": -1,
                    "log_start_offset": -1,
                }
            ],
        }
        for index in range(n)
    ]
    return [
        (0, request("Produce", 7, 1, acks=-1, topic_data=topics)),
        (1, response("Produce", 7, 1, responses=told)),
    ]


def tags(n: int) -> list[Turn]:
    """Tagged fields that nobody knows, in a header and in a body."""
    asked = request("Metadata", 12, 1)[4:]
    section = uvarint(n) + b"".join(uvarint(tag + 100) + b"\0" for tag in range(n))
    assert asked.endswith(b"\0")
    return [(0, framed(asked[:-1] + section))]


def header_tags(n: int) -> list[Turn]:
    section = uvarint(n) + b"".join(uvarint(tag + 100) + b"\0" for tag in range(n))
    head = struct.pack(">hhih", 3, 12, 1, 1) + b"a" + section
    return [(0, framed(head + b"\0\0\0\0"))]


def acls(n: int) -> list[Turn]:
    rule = {"principal": "User:a", "host": "*", "operation": 2, "permission_type": 3}
    told = [
        {
            "resource_type": 2,
            "resource_name": "t",
            "pattern_type": 3,
            "acls": [rule | {"principal": f"User:{index}"} for index in range(n)],
        }
    ]
    return exchange("DescribeAcls", 2, {}, {"resources": told})


def configs(n: int) -> list[Turn]:
    each = {
        "name": "ssl.keystore.password",
        "value": "x",
        "read_only": False,
        "is_default": False,
        "config_source": 1,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": 1,
        "documentation": None,
    }
    told = [
        {
            "error_code": 0,
            "error_message": "",
            "resource_type": 2,
            "resource_name": "t",
            "configs": [each | {"name": f"{index}"} for index in range(n)],
        }
    ]
    return exchange("DescribeConfigs", 4, {}, {"results": told})


def created_topics(n: int) -> list[Turn]:
    topics = [
        {
            "name": f"{index}",
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [{"partition_index": 0, "broker_ids": [1]}],
            "configs": [{"name": "a", "value": "b"}],
        }
        for index in range(n)
    ]
    return exchange("CreateTopics", 4, {"topics": topics}, {})


def members(n: int) -> list[Turn]:
    subscription = struct.pack(">hi", 0, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">i", -1)
    told = [
        {"member_id": f"m{index}", "group_instance_id": None, "metadata": subscription}
        for index in range(n)
    ]
    return exchange(
        "JoinGroup",
        5,
        {
            "group_id": "g",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription}],
        },
        {
            "leader": "m0",
            "member_id": "m0",
            "protocol_name": "range",
            "members": told,
            "generation_id": 1,
            "error_code": 0,
        },
    )


def subscription(n: int) -> list[Turn]:
    topics = b"".join(struct.pack(">h", 7) + b"%07d" % index for index in range(n))
    data = struct.pack(">hi", 0, n) + topics + struct.pack(">i", -1)
    return exchange(
        "JoinGroup",
        5,
        {
            "group_id": "g",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": data}],
        },
        {
            "leader": "m0",
            "member_id": "m0",
            "protocol_name": "range",
            "error_code": 0,
            "members": [{"member_id": "m0", "group_instance_id": None, "metadata": data}],
        },
    )


def assignments(n: int) -> list[Turn]:
    """A leader that gives each member the same partitions."""
    data = (
        struct.pack(">hih", 0, 1, 1)
        + b"t"
        + struct.pack(">ii", 20, 0)
        + b"".join(struct.pack(">i", part) for part in range(1, 20))
        + struct.pack(">i", -1)
    )
    given = [{"member_id": f"m{index}", "assignment": data} for index in range(n)]
    return exchange(
        "SyncGroup",
        3,
        {"group_id": "g", "generation_id": 1, "member_id": "m0", "assignments": given},
        {"error_code": 0, "assignment": data},
    )


def commits(n: int) -> list[Turn]:
    parts = [
        {
            "partition_index": index,
            "committed_offset": index,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        for index in range(n)
    ]
    return exchange(
        "OffsetCommit",
        6,
        {"group_id": "g", "member_id": "m", "topics": [{"name": "t", "partitions": parts}]},
        {},
    )


def envelopes(n: int) -> list[Turn]:
    """Envelopes in envelopes; each level is a request inside bytes."""
    inner = request("Metadata", 9, 1)[4:]
    for _ in range(n):
        inner = request(
            "Envelope",
            0,
            1,
            request_data=inner,
            request_principal=None,
            client_host_address=b"\x7f\0\0\1",
        )[4:]
    return [(0, framed(inner)), (1, response("Envelope", 0, 1, response_data=b"", error_code=0))]


def long_names(n: int) -> list[Turn]:
    """Names of 30 000 bytes, all of them different."""
    topics = [{"name": f"{index:06d}" + "n" * 29_994} for index in range(n)]
    return [(0, request("Metadata", 1, 1, topics=topics))]
