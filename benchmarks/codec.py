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
from collections.abc import Callable
from typing import Any

from reader import kafkascope

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


def microseconds(runs: dict[str, Callable[[], Any]], rounds: int = 7) -> dict[str, float]:
    """Median of several rounds each, in turn."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            count = 200
            start = time.perf_counter()
            for _ in range(count):
                run()
            times[name].append((time.perf_counter() - start) / count * 1e6)
    return {name: statistics.median(each) for name, each in times.items()}


def batch(word: str, lines: list[bytes]) -> float:
    """Messages a second of `kafkascope WORD --batch`."""
    start = time.perf_counter()
    command = [kafkascope(), word, "--batch"]
    done = subprocess.run(command, input=b"".join(lines), capture_output=True, check=True)
    seconds = time.perf_counter() - start
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    assert all(answer.startswith(b'{"ok":true') for answer in answers)
    return len(lines) / seconds


def main() -> int:
    worst = 0.0
    print(f"{'message':<24}{'bytes':>6}{'generated':>11}{'by hand':>9}{'ratio':>7}{'Struct':>9}")
    for name, version, body, hand in (
        ("ProduceRequest", 8, produce_8(), hand_produce),
        ("FetchResponse", 11, fetch_11(), hand_fetch),
    ):
        data = registry.encode_body(name, version, body)
        layout = registry.layout_of(name, version)
        assert hand(data) == registry.decode_body(name, version, data)[0] == body
        times = microseconds(
            {
                "generated": lambda data=data, layout=layout: registry.read_layout(layout, data),
                "hand": lambda data=data, hand=hand: hand(data),
                "struct": lambda data=data, layout=layout: parse(layout, data),
            }
        )
        ratio = times["generated"] / times["hand"]
        worst = max(worst, ratio)
        print(f"{name} {version:<8}{len(data):>7}{times['generated']:>11.1f}", end="")
        print(f"{times['hand']:>9.1f}{ratio:>7.2f}{times['struct']:>9.0f}")
    count = 100_000
    body = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
    data = registry.encode_body("HeartbeatRequest", 4, body)
    line = {"message": "HeartbeatRequest", "version": 4, "hex": data.hex()}
    rate = batch("decode", [json.dumps(line).encode() + b"\n"] * count)
    print(f"decode --batch: {rate:,.0f} messages/s")
    line = {"message": "HeartbeatRequest", "version": 4, "body": body}
    rate = batch("encode", [json.dumps(line).encode() + b"\n"] * count)
    print(f"encode --batch: {rate:,.0f} messages/s")
    return int(worst > 2)


if __name__ == "__main__":
    sys.exit(main())
