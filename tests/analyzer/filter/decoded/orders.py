"""Orders in Avro with users in JSON as their keys: what tests of filters decode by schema."""

import struct
from pathlib import Path
from typing import Any

import orjson

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.model import Exchange
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.schemas.avro.codec import compile as compile_avro
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from tests.kit.captures import capture_file
from tests.kit.schemas import record
from tests.kit.wire import Wire, request, response, told

ORDER = record(
    "shop.Order",
    id="string", count="long", paid="boolean", weight="double",
    amount={"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2},
    at={"type": "long", "logicalType": "timestamp-millis"},
    note=["null", "string"], seal="bytes",
    items={"type": "array", "items": record("Item", sku="string", n="int")},
)  # fmt: skip
USER = {"title": "user", "type": "object", "required": ["user-id"]}
VALUE = {
    "id": "17",
    "count": 9_007_199_254_740_993,
    "paid": True,
    "weight": 1.1,
    "amount": "1234567890123456789.10",
    "at": "2026-03-01T12:00:00.500Z",
    "note": None,
    "seal": {"base64": "Cv8="},
    "items": [{"sku": "A-1", "n": 1}, {"sku": "B-2", "n": 5}],
}


def avro(value: dict[str, Any] = VALUE) -> bytes:
    codec = compile_avro(orjson.dumps(ORDER).decode(), {}, lambda _: None).codec()
    return b"\0" + struct.pack(">i", 7) + codec.encode(value)


def user(text: str, number: int = 8) -> bytes:
    return b"\0" + struct.pack(">i", number) + text.encode()


def payloads() -> Payloads:
    orders = Schema(
        "avro", orjson.dumps(ORDER).decode(), (SchemaKey("id", 7),), (("t-value", 1), ("other", 2))
    )
    users = Schema("json", orjson.dumps(USER).decode(), (SchemaKey("id", 8),), (("t-key", 1),))
    return Payloads(KnownSchemas([orders, users]))


def frames(
    *pairs: tuple[bytes | None, bytes | None], topic: str = "t", number: int = 1
) -> tuple[bytes, bytes]:
    """A Produce of records and its response."""
    rows = [Record(i, 1_700_000_000_000, key, value, ()) for i, (key, value) in enumerate(pairs)]
    partition = {"index": 3, "records": encode_batch(rows)}
    topics = [{"name": topic, "partition_data": [partition]}]
    answer = [{"name": topic, "partition_responses": [{"index": 3, "base_offset": 5}]}]
    asked = request("Produce", 7, number, acks=-1, topic_data=topics)
    return asked, response("Produce", 7, number, responses=answer)


def produced(*pairs: tuple[bytes | None, bytes | None], topic: str = "t") -> Exchange:
    """An exchange of such frames."""
    asked, answered = frames(*pairs, topic=topic)
    (found,) = told(Wire().client(asked).broker(answered).events, Context())
    return found


def known() -> Known:
    """What a filter knows that decodes by both schemas."""
    made = payloads()
    return Known(decoding=Decoding(lambda: made, lambda: Context().names))


def schema_folder(path: Path) -> Path:
    """A folder with both schemas."""
    path.mkdir()
    (path / "order.avsc").write_bytes(orjson.dumps(ORDER))
    (path / "user.json").write_bytes(orjson.dumps(USER))
    about = ((7, "AVRO", "order.avsc", "t-value"), (8, "JSON", "user.json", "t-key"))
    index = [
        {"id": id, "type": kind, "file": file, "subjects": [{"subject": subject, "version": 1}]}
        for id, kind, file, subject in about
    ]
    (path / "index.json").write_bytes(orjson.dumps(index))
    return path


def capture_of_orders(path: Path) -> Path:
    """A capture of three Produces: an order, one with an unknown schema, one without any."""
    every = (
        frames(
            (user('{"user-id":5,"a b":{"c":[1,"x"]}}'), avro()),
            (None, avro(VALUE | {"id": "18", "amount": "5.00"})),
            number=1,
        ),
        frames((None, user("{}", 9)), number=2),
        frames((b"k", b"text"), number=3),
    )
    sides = [
        (side, data)
        for pair in every
        for side, data in zip(("client", "broker"), pair, strict=True)
    ]
    return capture_file(path, sides)
