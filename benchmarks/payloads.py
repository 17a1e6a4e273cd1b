"""Decodes payloads by schema, against the formats' own libraries on the same bytes.

    python benchmarks/payloads.py [--rounds 10] [--floor]

The rivals make objects (Decimal, datetime, bytes) where kafkascope makes what JSON has; both are
asserted to mean the same. Avro: values made here, fastavro's schemaless reader. Protobuf and JSON:
what real serializers wrote; `ParseFromString` with `MessageToDict` (and the first alone), and
`json.loads` with jsonschema's validator. Interleaved rounds, the least of each. `--floor`: exit
code 1 below 0.7.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass
from jsonschema import Draft7Validator
from measuring import Arguments, Report, calls_in_turn

from kafkascope.schemas.avro.codec import compile as compile_avro
from kafkascope.schemas.json import codec as json_schema
from kafkascope.schemas.protobuf import codec as protobuf

SAMPLES = Path(__file__).parent.parent / "tests" / "schemas" / "samples"
FLOOR = 0.7
"""Of the rival's speed."""
Decode = Callable[[bytes], Any]


class Race(NamedTuple):
    """Payloads of one kind, and who decodes them."""

    name: str
    data: list[bytes]
    ours: Decode
    rival: Decode
    parser: Decode | None = None
    """The rival without the values as JSON has them."""


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


def avro(name: str, schema: dict[str, Any], values: list[dict[str, Any]]) -> Race:
    """Values that fastavro writes, its schema parsed before."""
    parsed = fastavro.parse_schema(schema)
    codec = compile_avro(json.dumps(schema), {}, lambda _: None).codec()

    def rival(data: bytes) -> Any:
        return fastavro.schemaless_reader(io.BytesIO(data), parsed, None)

    written = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        written.append(data := out.getvalue())
        assert rival(data) == value
        decoded = codec.decode(data)
        assert decoded.keys() == value.keys()
        assert codec.encode(decoded) == data
    return Race(name, written, codec.decode, rival)


def sampled() -> Iterator[Race]:
    """Yield the messages of Protobuf, and the values of JSON, that real serializers wrote."""
    records = json.loads((SAMPLES / "records.json").read_text())

    def race(name: str, rows: list[Any], ours: Decode, rival: Decode, *parser: Decode) -> Race:
        return Race(name, [bytes.fromhex(each["hex"]) for each in rows], ours, rival, *parser)

    for message in dict.fromkeys(each["message"] for each in records["protobuf"]):
        rows = [each for each in records["protobuf"] if each["message"] == message]
        schema = records["schemas"][rows[0]["schema"]]
        made = protobuf.compile(schema["text"], schema["dependencies"], lambda _: None)
        codec: Any = made.codec(message)
        parse = GetMessageClass(codec._message.descriptor).FromString

        def library(data: bytes, parse: Decode = parse) -> Any:
            return MessageToDict(parse(data), preserving_proto_field_name=True)

        found = race(message, rows, codec.decode, library, parse)
        assert [library(each) for each in found.data] == [each["value"] for each in rows]
        yield found
    schema = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    whole = json_schema.compile(json.dumps(schema), {}, lambda _: None).codec()
    validator: Any = Draft7Validator(schema)
    rows = records["json"]
    found = race("JSON", rows, whole.decode, lambda each: validator.is_valid(json.loads(each)))
    assert [whole.decode(each) for each in found.data] == [each["value"] for each in rows]
    yield found


def decode_all(decode: Decode, data: list[bytes]) -> None:
    for each in data:
        decode(each)


def main() -> int:
    options = Arguments(__doc__, rounds=10, floor=False).parse_args()
    report = Report(
        "type|<28 bytes|6 ours us|9.2f library us|12.2f speed|7.2f parse us|10.2f speed|7.2f"
    )
    races = [
        avro("avro flat", FLAT, [flat(at) for at in range(1000)]),
        avro("avro nested", NESTED, [nested(at) for at in range(1000)]),
        *sampled(),
    ]
    for race in races:
        decoders = {"ours": race.ours, "rival": race.rival, "parser": race.parser or race.rival}
        calls = {who: partial(decode_all, each, race.data) for who, each in decoders.items()}
        count = len(race.data)
        times = calls_in_turn(calls, options.rounds, max(1, 3000 // count))
        ours, rival, parser = (min(times[who]) / count for who in calls)
        size = sum(map(len, race.data)) // count
        speeds = ours, rival, rival / ours, parser, parser / ours
        report.line(race.name, size, *speeds, missed=rival / ours < FLOOR)
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
