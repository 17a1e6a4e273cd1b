"""Bodies of messages with very many, or very long, parts."""

import struct
from typing import Any

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.turns import Turn, exchange, uvarint
from tests.kit.wire import framed, request, response


def empty_topics(n: int) -> list[Turn]:
    """An OffsetFetch response of topics without name and partitions: six bytes each."""
    return exchange("OffsetFetch", 0, {}, {"topics": [{}] * n})


def produced_topics(n: int) -> list[Turn]:
    return exchange("Produce", 7, {"acks": -1, "topic_data": [{}] * n}, {})


def named_topics(n: int) -> list[Turn]:
    """Every topic another name, each with one partition and one record."""
    data = [{"records": encode_batch([Record(0, 1, None, b"", ())])}]
    refused = [{"error_code": 6, "base_offset": -1}]
    names = [f"t{index}" for index in range(n)]
    asked = [{"name": name, "partition_data": data} for name in names]
    told = [{"name": name, "partition_responses": refused} for name in names]
    return exchange("Produce", 7, {"acks": -1, "topic_data": asked}, {"responses": told})


def _section(n: int) -> bytes:
    """Tagged fields that nobody knows."""
    return uvarint(n) + b"".join(uvarint(tag + 100) + b"\0" for tag in range(n))


def tags(n: int) -> list[Turn]:
    """Tagged fields that nobody knows, in a header and in a body."""
    asked = request("Metadata", 12, 1)[4:]
    assert asked.endswith(b"\0")
    return [(0, framed(asked[:-1] + _section(n)))]


def header_tags(n: int) -> list[Turn]:
    return [(0, framed(struct.pack(">hhih", 3, 12, 1, 1) + b"a" + _section(n) + b"\0\0\0\0"))]


def _joined(metadata: bytes, count: int) -> list[Turn]:
    """The leader of a group joins it; all members have one subscription."""
    range_ = [{"name": "range", "metadata": metadata}]
    members = [{"member_id": f"m{index}", "metadata": metadata} for index in range(count)]
    told = {"leader": "m0", "member_id": "m0", "protocol_name": "range", "members": members}
    asked = {"group_id": "g", "protocol_type": "consumer", "protocols": range_}
    return exchange("JoinGroup", 5, asked, told | {"generation_id": 1})


def members(n: int) -> list[Turn]:
    return _joined(struct.pack(">hihsi", 0, 1, 1, b"t", -1), n)


def subscription(n: int) -> list[Turn]:
    topics = b"".join(struct.pack(">h", 7) + b"%07d" % index for index in range(n))
    return _joined(struct.pack(">hi", 0, n) + topics + struct.pack(">i", -1), 1)


def assignments(n: int) -> list[Turn]:
    """A leader that gives each member the same partitions."""
    data = struct.pack(">hihsi20ii", 0, 1, 1, b"t", 20, *range(20), -1)
    given = [{"member_id": f"m{index}", "assignment": data} for index in range(n)]
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m0", "assignments": given}
    return exchange("SyncGroup", 3, asked, {"assignment": data})


def envelopes(n: int) -> list[Turn]:
    """Envelopes in envelopes; each level is a request inside bytes."""
    client: dict[str, Any] = {"request_principal": None, "client_host_address": b"\x7f\0\0\1"}
    inner = request("Metadata", 9, 1)[4:]
    for _ in range(n):
        inner = request("Envelope", 0, 1, request_data=inner, **client)[4:]
    return [(0, framed(inner)), (1, response("Envelope", 0, 1, response_data=b""))]


def long_names(n: int) -> list[Turn]:
    """Names of 30 000 bytes, all of them different."""
    topics = [{"name": f"{index:06d}" + "n" * 29_994} for index in range(n)]
    return [(0, request("Metadata", 1, 1, topics=topics))]
