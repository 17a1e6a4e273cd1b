"""Decodes payloads by schema, against the formats' own libraries on the same bytes.

    python benchmarks/payloads.py [--floor]

The rivals make objects (Decimal, datetime, bytes) where kafkascope makes what JSON has; both are
asserted to mean the same. Interleaved rounds, the least of each. `--floor`: exit code 1 below 0.7.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

FLOOR = 0.7
"""Of the rival's speed."""


@dataclass(frozen=True)
class Race:
    """One payload, decoded by both."""

    name: str
    data: bytes
    ours: Callable[[bytes], Any]
    rival: Callable[[bytes], Any]


FLAT = {
    "type": "record",
    "name": "shop.Payment",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "number", "type": "long"},
        {"name": "count", "type": "int"},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        },
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "status",
            "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED"]},
        },
        {"name": "note", "type": ["null", "string"]},
        {"name": "ratio", "type": "double"},
        {"name": "gift", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
    ],
}
NESTED = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "string"},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "quantity", "type": "int"},
                        {"name": "price", "type": "double"},
                        {"name": "tags", "type": {"type": "array", "items": "string"}},
                    ],
                },
            },
        },
        {"name": "counts", "type": {"type": "array", "items": "long"}},
        {"name": "attrs", "type": {"type": "map", "values": ["null", "long", "string"]}},
    ],
}


def flat(at: int) -> dict[str, Any]:
    return {
        "id": f"order-{at:06d}",
        "number": 123456789012 + at,
        "count": 42 + at,
        "amount": Decimal(123456 + at).scaleb(-2),
        # Seconds apart: no cache of texts helps.
        "placed": datetime.fromtimestamp(1_772_366_400 + 61 * at, UTC).replace(microsecond=at),
        "status": ("NEW", "PAID", "SHIPPED")[at % 3],
        "note": "a note" if at % 2 else None,
        "ratio": at / 7,
        "gift": at % 2 == 0,
        "raw": bytes(range(at % 16)),
    }


def nested(at: int) -> dict[str, Any]:
    return {
        "id": f"order-{at:06d}",
        "lines": [
            {"sku": f"sku-{line}", "quantity": line * 7, "price": line * 1.25, "tags": ["a", "bb"]}
            for line in range(5)
        ],
        "counts": [count * 1_000_003 for count in range(20)],
        "attrs": {"a": at, "b": "x", "c": None},
    }


def avro(name: str, schema: dict[str, Any], values: list[dict[str, Any]]) -> list[Race]:
    """fastavro's schemaless reader, its schema parsed before."""
    import fastavro

    from kafkascope.analyzer.payloads.avro.codec import compile as compile_avro

    parsed = fastavro.parse_schema(schema)
    codec = compile_avro(json.dumps(schema), {}, lambda _: None).codec()
    races = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        data = out.getvalue()
        assert fastavro.schemaless_reader(io.BytesIO(data), parsed, None) == value
        decoded = codec.decode(data)
        assert decoded.keys() == value.keys()
        assert codec.encode(decoded) == data
        races.append(
            Race(
                name,
                data,
                codec.decode,
                lambda data: fastavro.schemaless_reader(io.BytesIO(data), parsed, None),
            )
        )
    return races


def timed(races: list[Race], which: str, rounds: int) -> float:
    """Nanoseconds of a decode."""
    work = [(getattr(race, which), race.data) for race in races]
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        for function, data in work:
            function(data)
    return (time.perf_counter_ns() - begin) / (rounds * len(work))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--floor", action="store_true", help="exit code 1 below the claim")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    low = False
    for races in (
        avro("avro flat", FLAT, [flat(at) for at in range(1000)]),
        avro("avro nested", NESTED, [nested(at) for at in range(1000)]),
    ):
        least = {"ours": float("inf"), "rival": float("inf")}
        for _ in range(options.rounds):
            for which in least:
                least[which] = min(least[which], timed(races, which, 3))
        ratio = least["rival"] / least["ours"]
        low = low or ratio < FLOOR
        print(
            f"{races[0].name:16} {sum(len(race.data) for race in races) // len(races):5} bytes"
            f"  ours {least['ours'] / 1000:6.2f} µs  rival {least['rival'] / 1000:6.2f} µs"
            f"  speed {ratio:.2f}"
        )
    return int(low and options.floor)


if __name__ == "__main__":
    sys.exit(main())
