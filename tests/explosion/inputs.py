"""Hostile captures: little that pretends, or expands, to be much. Each grows with one number, so
that what a command takes at n and at 2n tells how it grows."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from captures.build import MAX_MSS, Composer
from captures.model import Endpoint
from captures.write import PcapngWriter
from dissectors.compression import compress
from dissectors.record_writer import (
    encode_batch,
    encode_message,
    encode_message_set,
    varint,
    with_right_crc,
)
from dissectors.records import Batch, Record, batches
from tests.analyzer.wire import framed, request, response

__all__ = ["ATTACKS", "Attack", "batch_of", "record", "write_attack", "write_capture"]

Turn = tuple[int, bytes]
"""Direction (0 from the client) and bytes."""

TIME: Final = 1_700_000_000_000_000_000


def write_capture(path: Path, conversations: Iterator[list[Turn]]) -> None:
    """A pcapng with these connections, one behind the other."""
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("made")
        time = TIME
        for number, turns in enumerate(conversations):
            host = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            composer = Composer(Endpoint(host, 40_000), Endpoint("10.255.0.2", 9092), mss=MAX_MSS)
            packets = composer.open()
            for direction, said in turns:
                packets += composer.send(direction, said)
            for packet in packets:
                time += 1_000
                writer.packet(packet, time)


def batch_of(codec: int, count: int, body: bytes) -> bytes:
    """A batch of magic 2 with a right checksum and a body that nobody looked at."""
    head = bytearray(encode_batch([Record(0, 1, None, None, ())])[:61])
    packed = compress(codec, body) if codec else body
    head[8:12] = struct.pack(">i", 49 + len(packed))
    head[22] = codec
    head[57:61] = struct.pack(">i", count)
    whole = bytes(head) + packed
    batch = next(batches(whole))
    assert isinstance(batch, Batch)
    return with_right_crc(whole, batch)


def record(body: bytes) -> bytes:
    """A record with its length, from attributes on."""
    return varint(len(body)) + body


def produce(number: int, *fields: bytes, topic: str = "t", key: str = "name") -> list[Turn]:
    """A Produce with a partition for each records field, and its response."""
    data = [{"index": index, "records": each} for index, each in enumerate(fields)]
    asked = request(
        "Produce", 7, number, acks=-1, topic_data=[{key: topic, "partition_data": data}]
    )
    return [(0, asked), (1, response("Produce", 7, number))]


def fetch(number: int, *fields: bytes, topic: str = "t") -> list[Turn]:
    """A Fetch whose response has a partition for each records field."""
    parts = [
        {"partition_index": index, "error_code": 0, "high_watermark": 1, "records": each}
        | {"last_stable_offset": 1, "log_start_offset": 0, "aborted_transactions": []}
        | {"preferred_read_replica": -1}
        for index, each in enumerate(fields)
    ]
    topics = [{"topic": topic, "partitions": parts}]
    return [
        (0, request("Fetch", 11, number)),
        (1, response("Fetch", 11, number, responses=topics)),
    ]


def exchange(api: str, version: int, asked: dict[str, Any], told: dict[str, Any]) -> list[Turn]:
    return [(0, request(api, version, 1, **asked)), (1, response(api, version, 1, **told))]


# --- records


def headers(n: int) -> list[Turn]:
    fields = b"\0\0\0\x01\x01" + varint(n) + b"\0\x01" * n
    return produce(1, batch_of(4, 1, record(fields)))


def empty_records(n: int) -> list[Turn]:
    return produce(1, batch_of(4, n, record(b"\0\0\0\x01\x01\0") * n))


def fetched_records(n: int) -> list[Turn]:
    return fetch(1, batch_of(4, n, record(b"\0\0\0\x01\x01\0") * n))


def plain_batches(n: int) -> list[Turn]:
    return produce(1, encode_batch([Record(0, 1, b"k", b"v", ())]) * n)


def fetched_batches(n: int) -> list[Turn]:
    return fetch(1, encode_batch([Record(0, 1, b"k", b"v", ())]) * n)


def old_messages(n: int) -> list[Turn]:
    return produce(1, encode_message_set(1, [Record(0, 1, None, b"v", ())]) * n)


def nested_sets(n: int) -> list[Turn]:
    """A compressed set within one, whose inner sets are many."""
    inner = encode_message(
        1,
        Record(
            0, 1, None, compress(1, encode_message_set(1, [Record(0, 1, None, b"", ())] * 10)), ()
        ),
        1,
    )
    return produce(1, encode_message(1, Record(n, 1, None, compress(1, inner * n), ()), 1))


def gzip_in_gzip(n: int) -> list[Turn]:
    """Message sets three deep; the innermost value expands to n bytes."""
    inner = encode_message_set(1, [Record(0, 1, None, bytes(n), ())], codec=1)
    for _ in range(2):
        inner = encode_message(1, Record(0, 1, None, compress(1, inner * 20), ()), 1)
    return produce(1, inner)


def bomb(codec: int) -> Callable[[int], list[Turn]]:
    def make(n: int) -> list[Turn]:
        value = bytes(n)
        fields = b"\0\0\0\x01" + varint(n) + value + b"\0"
        return produce(1, batch_of(codec, 1, record(fields)))

    return make


def many_bombs(n: int) -> list[Turn]:
    """n partitions of 4 MB each, in 200 bytes."""
    size = 4 << 20
    fields = b"\0\0\0\x01" + varint(size) + bytes(size) + b"\0"
    return fetch(1, *[batch_of(4, 1, record(fields))] * n)


def large_record(n: int) -> list[Turn]:
    return produce(1, encode_batch([Record(0, 1, None, b"x\xff" * (n // 2), ())]))


def large_text(n: int) -> list[Turn]:
    return produce(1, encode_batch([Record(0, 1, None, b"\x01" * n, ())]))


def long_varints(n: int) -> list[Turn]:
    """Every number in as many bytes as may be."""
    fields = b"\0" + b"\x80" * 9 + b"\0" + b"\x80" * 4 + b"\0" + b"\x81\x80\x80\x80\0" * 2 + b"\0"
    length = len(fields) << 1
    packed = bytes([length | 0x80, 0x80, 0x80, 0x80, 0])
    return produce(1, batch_of(0, n, (packed + fields) * n))


def internal_records(n: int) -> list[Turn]:
    """Offset commits as a broker stores them, fetched."""
    key = struct.pack(">hh", 1, 1) + b"g" + struct.pack(">h", 1) + b"t" + bytes(4)
    value = struct.pack(">hqih", 3, 7, -1, 0) + bytes(8)
    records = [Record(index, 1, key, value, ()) for index in range(n)]
    return fetch(1, encode_batch(records, codec=4), topic="__consumer_offsets")


def control_batches(n: int) -> list[Turn]:
    marker = Record(0, 1, b"\0\0\0\1", b"\0\0\0\0\0\0", ())
    return fetch(1, encode_batch([marker], attributes=0x30) * n)


def scram_records(n: int) -> list[Turn]:
    """Credentials in the cluster's own log: a secret in each record."""
    from dissectors.registry import encode_body, example

    records = []
    for index in range(n):
        body = example("UserScramCredentialRecord", 0) | {
            "name": f"u{index}",
            "mechanism": 1,
            "iterations": 4096,
            "salt": index.to_bytes(8, "big"),
            "stored_key": index.to_bytes(8, "little"),
            "server_key": bytes([index & 255]) * 8,
        }
        value = b"\x01\x0b\0" + encode_body("UserScramCredentialRecord", 0, body)
        records.append(Record(index, 1, None, value, ()))
    return fetch(1, encode_batch(records), topic="__cluster_metadata")


# --- bodies


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
    section = _uvarint(n) + b"".join(_uvarint(tag + 100) + b"\0" for tag in range(n))
    assert asked.endswith(b"\0")
    return [(0, framed(asked[:-1] + section))]


def header_tags(n: int) -> list[Turn]:
    section = _uvarint(n) + b"".join(_uvarint(tag + 100) + b"\0" for tag in range(n))
    head = struct.pack(">hhih", 3, 12, 1, 1) + b"a" + section
    return [(0, framed(head + b"\0\0\0\0"))]


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


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


# --- many


def tiny_frames(n: int) -> list[Turn]:
    asked = b"".join(request("Heartbeat", 0, index) for index in range(n))
    told = b"".join(response("Heartbeat", 0, index) for index in range(n))
    return [(0, asked), (1, told)]


def unanswered(n: int) -> list[Turn]:
    return [(0, b"".join(request("Heartbeat", 0, index) for index in range(n)))]


def orphans(n: int) -> list[Turn]:
    told = b"".join(response("Heartbeat", 0, index + 1000) for index in range(n))
    return [(0, request("Heartbeat", 0, 1)), (1, told)]


def empty_frames(n: int) -> list[Turn]:
    return [(0, request("Heartbeat", 0, 1) + bytes(4) * n), (1, response("Heartbeat", 0, 1))]


def clients(n: int) -> list[Turn]:
    asked = b"".join(request("ApiVersions", 0, index, f"client{index}") for index in range(n))
    return [(0, asked), (1, b"".join(response("ApiVersions", 0, index) for index in range(n)))]


def groups(n: int) -> list[Turn]:
    asked = b"".join(
        request("Heartbeat", 3, index, group_id=f"g{index}", member_id="m") for index in range(n)
    )
    return [
        (0, asked),
        (1, b"".join(response("Heartbeat", 3, index, error_code=27) for index in range(n))),
    ]


def long_client_ids(n: int) -> list[Turn]:
    asked = b"".join(
        request("Heartbeat", 0, index, f"{index:06d}" + "c" * 29_994) for index in range(n)
    )
    return [(0, asked), (1, b"".join(response("Heartbeat", 0, index) for index in range(n)))]


def sessions(n: int) -> list[Turn]:
    """A fetch session of n partitions, and n empty requests of it."""
    parts = [
        {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "log_start_offset": -1,
            "partition_max_bytes": 1,
        }
        for index in range(0, 2 * n, 2)
    ]
    first = request(
        "Fetch", 11, 0, session_id=0, session_epoch=0, topics=[{"topic": "t", "partitions": parts}]
    )
    rest = [
        request("Fetch", 11, index, session_id=7, session_epoch=index, topics=[])
        for index in range(1, n)
    ]
    told = [response("Fetch", 11, index, session_id=7, responses=[]) for index in range(n)]
    turns = [(0, first), (1, told[0])]
    return turns + [
        turn for pair in zip(rest, told[1:], strict=True) for turn in ((0, pair[0]), (1, pair[1]))
    ]


def producers(n: int) -> list[Turn]:
    """Every batch a producer of its own, with sequences that are out of order."""
    data = b"".join(
        encode_batch(
            [Record(0, 1, None, b"", ())], producer_id=index, producer_epoch=0, base_sequence=5
        )
        for index in range(n)
    )
    return produce(1, data)


def tokens(n: int) -> list[Turn]:
    mechanism = request("SaslHandshake", 0, 1, mechanism="GSSAPI")
    told = response("SaslHandshake", 0, 1, error_code=0, mechanisms=["GSSAPI"])
    return [(0, mechanism), (1, told)] + [
        (side, framed(b"\x60" * 5)) for _ in range(n) for side in (0, 1)
    ]


def connections(n: int) -> Iterator[list[Turn]]:
    for index in range(n):
        yield [
            (0, request("ApiVersions", 0, index, f"c{index}")),
            (1, response("ApiVersions", 0, index)),
        ]


def api_versions(n: int) -> list[Turn]:
    keys = [{"api_key": index & 0x3FFF, "min_version": 0, "max_version": 3} for index in range(n)]
    return exchange("ApiVersions", 0, {}, {"api_keys": keys, "error_code": 0})


def nodes(n: int) -> list[Turn]:
    brokers = [
        {"node_id": index, "host": f"h{index}", "port": 9092, "rack": None} for index in range(n)
    ]
    return exchange("Metadata", 5, {"topics": None}, {"brokers": brokers, "topics": []})


class Attack(NamedTuple):
    """One way to make much of little, and the size at which it hurts about a second."""

    make: Callable[[int], Any]
    size: int


ATTACKS: Final[dict[str, Attack]] = {
    "headers": Attack(headers, 20_000),
    "empty records": Attack(empty_records, 200_000),
    "fetched records": Attack(fetched_records, 200_000),
    "batches": Attack(plain_batches, 20_000),
    "fetched batches": Attack(fetched_batches, 20_000),
    "old messages": Attack(old_messages, 50_000),
    "nested sets": Attack(nested_sets, 5_000),
    "gzip in gzip": Attack(gzip_in_gzip, 100_000),
    "gzip": Attack(bomb(1), 10_000_000),
    "snappy": Attack(bomb(2), 10_000_000),
    "lz4": Attack(bomb(3), 10_000_000),
    "zstd": Attack(bomb(4), 10_000_000),
    "many bombs": Attack(many_bombs, 10),
    "large record": Attack(large_record, 10_000_000),
    "large text": Attack(large_text, 10_000_000),
    "long varints": Attack(long_varints, 100_000),
    "internal records": Attack(internal_records, 20_000),
    "control batches": Attack(control_batches, 10_000),
    "scram records": Attack(scram_records, 5_000),
    "empty topics": Attack(empty_topics, 250_000),
    "topics": Attack(metadata_topics, 50_000),
    "partitions": Attack(metadata_partitions, 50_000),
    "replicas": Attack(replicas, 100_000),
    "produced topics": Attack(produced_topics, 200_000),
    "named topics": Attack(named_topics, 10_000),
    "tags": Attack(tags, 60_000),
    "header tags": Attack(header_tags, 60_000),
    "acls": Attack(acls, 30_000),
    "configs": Attack(configs, 20_000),
    "created topics": Attack(created_topics, 20_000),
    "members": Attack(members, 10_000),
    "subscription": Attack(subscription, 50_000),
    "assignments": Attack(assignments, 5_000),
    "commits": Attack(commits, 50_000),
    "envelopes": Attack(envelopes, 200),
    "long names": Attack(long_names, 200),
    "tiny frames": Attack(tiny_frames, 20_000),
    "unanswered": Attack(unanswered, 20_000),
    "orphans": Attack(orphans, 20_000),
    "empty frames": Attack(empty_frames, 50_000),
    "clients": Attack(clients, 10_000),
    "groups": Attack(groups, 10_000),
    "long client ids": Attack(long_client_ids, 200),
    "sessions": Attack(sessions, 1_000),
    "producers": Attack(producers, 10_000),
    "tokens": Attack(tokens, 5_000),
    "connections": Attack(connections, 3_000),
    "api versions": Attack(api_versions, 50_000),
    "nodes": Attack(nodes, 20_000),
}


def write_attack(name: str, path: Path, factor: int = 1) -> None:
    """Write the capture of an attack, `factor` times its size."""
    attack = ATTACKS[name]
    made = attack.make(attack.size * factor)
    write_capture(path, iter([made]) if isinstance(made, list) else made)
