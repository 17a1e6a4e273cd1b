"""The generated reader and writer against a reader written by hand and the construct Struct.

    python benchmarks/codec.py

One message of usual size each; microseconds per message are the median of several rounds,
interleaved. The claim: generated readers stay
within 2x of a hand-written `struct` reader on Fetch and Produce bodies. Then `decode --batch` and
`encode --batch` in messages a second,
start of the process included.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
import time
from functools import partial
from typing import Any

from measuring import Arguments, Report, calls_in_turn, kafkascope

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.structs import parse

RECORDS = bytes(600)


def produce_8() -> dict[str, Any]:
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 30000,
        "topic_data": [
            {
                "name": f"orders-{topic}",
                "partition_data": [{"index": index, "records": RECORDS} for index in range(4)],
            }
            for topic in range(3)
        ],
    }


def fetch_11() -> dict[str, Any]:
    return {
        "throttle_time_ms": 0,
        "error_code": 0,
        "session_id": 7,
        "responses": [
            {
                "topic": f"orders-{topic}",
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": 0,
                        "high_watermark": 99,
                        "last_stable_offset": 99,
                        "log_start_offset": 0,
                        "aborted_transactions": None,
                        "preferred_read_replica": -1,
                        "records": RECORDS,
                    }
                    for index in range(4)
                ],
            }
            for topic in range(3)
        ],
    }


SHORT, INT, SHORT_INT, PARTITION, FETCH = (
    struct.Struct(f) for f in (">h", ">i", ">hi", ">ii", ">ihqqqi")
)
TOP = struct.Struct(">ihii")


def text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = SHORT.unpack_from(data, at)
    at += 2
    if size < 0 or at + size > len(data):
        raise ValueError
    return data[at : at + size].decode(), at + size


def hand_produce(data: bytes) -> dict[str, Any]:
    """Produce 8 as a careful person would write it."""
    (size,) = SHORT.unpack_from(data, 0)
    at, transactional = 2, None
    if size >= 0:
        transactional, at = text(data, 0)
    acks, timeout = SHORT_INT.unpack_from(data, at)
    (count,) = INT.unpack_from(data, at + 6)
    at += 10
    if count > len(data) - at:
        raise ValueError
    topics = []
    for _ in range(count):
        name, at = text(data, at)
        (inner,) = INT.unpack_from(data, at)
        at += 4
        if inner > len(data) - at:
            raise ValueError
        partitions = []
        for _ in range(inner):
            index, size = PARTITION.unpack_from(data, at)
            at += 8
            records = None
            if size >= 0:
                if at + size > len(data):
                    raise ValueError
                records = data[at : at + size]
                at += size
            partitions.append({"index": index, "records": records})
        topics.append({"name": name, "partition_data": partitions})
    return {
        "transactional_id": transactional,
        "acks": acks,
        "timeout_ms": timeout,
        "topic_data": topics,
    }


def hand_fetch(data: bytes) -> dict[str, Any]:
    """Fetch response 11 as a careful person would write it."""
    throttle, error, session, count = TOP.unpack_from(data, 0)
    at = 14
    if count > len(data) - at:
        raise ValueError
    topics = []
    for _ in range(count):
        name, at = text(data, at)
        (inner,) = INT.unpack_from(data, at)
        at += 4
        if inner > len(data) - at:
            raise ValueError
        partitions = []
        for _ in range(inner):
            index, code, high, stable, start, aborted = FETCH.unpack_from(data, at)
            at += FETCH.size
            transactions = None
            if aborted >= 0:
                if aborted * 16 > len(data) - at:
                    raise ValueError
                flat = struct.unpack_from(f">{2 * aborted}q", data, at)
                at += 16 * aborted
                transactions = [
                    {"producer_id": a, "first_offset": b}
                    for a, b in zip(flat[::2], flat[1::2], strict=True)
                ]
            replica, size = PARTITION.unpack_from(data, at)
            at += 8
            records = None
            if size >= 0:
                if at + size > len(data):
                    raise ValueError
                records = data[at : at + size]
                at += size
            partitions.append(
                {
                    "partition_index": index,
                    "error_code": code,
                    "high_watermark": high,
                    "last_stable_offset": stable,
                    "log_start_offset": start,
                    "aborted_transactions": transactions,
                    "preferred_read_replica": replica,
                    "records": records,
                }
            )
        topics.append({"topic": name, "partitions": partitions})
    return {
        "throttle_time_ms": throttle,
        "error_code": error,
        "session_id": session,
        "responses": topics,
    }


def batch(word: str, lines: list[bytes]) -> float:
    """Messages a second of `kafkascope WORD --batch`."""
    start = time.perf_counter()
    command = kafkascope(word, "--batch")
    done = subprocess.run(command, input=b"".join(lines), capture_output=True, check=True)
    seconds = time.perf_counter() - start
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    assert all(answer.startswith(b'{"ok":true') for answer in answers)
    return len(lines) / seconds


def main() -> int:
    Arguments(__doc__).parse_args()
    report = Report("message|<24 bytes|6 generated|11.1f by hand|9.1f ratio|7.2f Struct|9.0f")
    for name, version, body, hand in (
        ("ProduceRequest", 8, produce_8(), hand_produce),
        ("FetchResponse", 11, fetch_11(), hand_fetch),
    ):
        data = registry.encode_body(name, version, body)
        layout = registry.layout_of(name, version)
        assert hand(data) == registry.decode_body(name, version, data)[0] == body
        calls = {
            "generated": partial(registry.read_layout, layout, data),
            "hand": partial(hand, data),
            "struct": partial(parse, layout, data),
        }
        times = calls_in_turn(calls, 7, 200)
        ours, hands, struct_ = (statistics.median(times[each]) for each in calls)
        values = ours, hands, ours / hands, struct_
        report.line(f"{name} {version}", len(data), *values, missed=ours > 2 * hands)
    body = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
    data = registry.encode_body("HeartbeatRequest", 4, body)
    for word, more in (("decode", {"hex": data.hex()}), ("encode", {"body": body})):
        line = {"message": "HeartbeatRequest", "version": 4, **more}
        rate = batch(word, [json.dumps(line).encode() + b"\n"] * 100_000)
        print(f"{word} --batch: {rate:,.0f} messages/s")
    return report.end(True)


if __name__ == "__main__":
    sys.exit(main())
