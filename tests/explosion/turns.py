"""What hostile captures are made of: connections, turns of each side, batches nobody looked at."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import Batch, Record, batches
from kafkascope.dissectors.records.writer import encode_batch, varint, with_right_crc
from tests.kit.wire import request, response

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
            composer = Composer(
                Endpoint(host, 40_000), Endpoint("10.255.0.2", 9092), mss=LIMITS.mss_bytes
            )
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


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
