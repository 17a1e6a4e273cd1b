"""What is known of schemas: the fields that they define, and how many are kept ready."""

import gc
from types import SimpleNamespace

import orjson
import pytest

from kafkascope.schemas import known
from kafkascope.schemas.known import KnownSchemas, field_paths
from kafkascope.schemas.limits import Limits
from kafkascope.schemas.model import Format, Schema
from tests.kit.schemas import record

AVRO = record(
    "a.Node",
    id="long",
    next=["null", "Node"],
    items={"type": "array", "items": record("Item", sku="string")},
    tags={"type": "map", "values": "Item"},
)
PROTO = """syntax = "proto3"; package p;
message Order {
  int64 id = 1; Line line = 2; map<string, Line> by = 3;
  message Line { string sku = 1; }
}
message Other { Order order = 1; }
"""
JSON = {
    "properties": {"id": {"type": "integer"}, "lines": {"items": {"$ref": "#/$defs/line"}}},
    "allOf": [{"$ref": "#"}, {"properties": {"more": {}}}],
    "$defs": {"line": {"properties": {"sku": {}, "up": {"$ref": "#"}}}},
}


def paths(format: Format, text: str, depth: int = 2) -> set[str]:
    found = field_paths(Schema(format, text))
    return {".".join(map(str, path)) for path in found if len(path) <= depth}


def test_avro() -> None:
    assert paths("avro", orjson.dumps(AVRO).decode()) == {
        *("id", "next", "items", "tags", "items.sku"),
        *("next.id", "next.next", "next.items", "next.tags"),
    }


def test_protobuf() -> None:
    assert paths("protobuf", PROTO) == {
        *("id", "line", "by", "line.sku", "order", "order.id", "order.line", "order.by")
    }


def test_json() -> None:
    found = paths("json", orjson.dumps(JSON).decode())
    assert found == {"id", "lines", "more", "lines.sku", "lines.up"}


@pytest.mark.parametrize("format", ["avro", "protobuf", "json"])
@pytest.mark.parametrize("text", ["", "{", '{"type": 7}', "message", "[]", '"x"', "\0"])
def test_what_is_no_schema_has_no_fields(format: Format, text: str) -> None:
    assert list(field_paths(Schema(format, text))) == []


def test_a_schema_that_goes_in_circles_has_an_end() -> None:
    loop = {"anyOf": [{"$ref": "#"}] * 50, "properties": {str(n): {"$ref": "#"} for n in range(50)}}
    assert len(list(field_paths(Schema("json", orjson.dumps(loop).decode())))) == 2000


# --- schemas that are ready, more than are kept


MANY = 300


def schema(kind: Format, number: int) -> Schema:
    if kind == "protobuf":
        return Schema(kind, f'syntax = "proto3"; message M{number} {{ int32 a = 1; }}')
    return Schema(kind, orjson.dumps(record(f"R{number}", a="int")).decode())


def collections_of(kind: Format, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often all objects were looked at while many schemas were made ready."""
    found: list[int] = []

    def collect() -> int:
        found.append(gc.collect())
        return found[-1]

    monkeypatch.setattr(known, "gc", SimpleNamespace(collect=collect))
    schemas = KnownSchemas(limits=Limits(compiled=5, collected_chars=20 * known.EVICTED_BYTES))
    schemas.compiled(schema(kind, MANY))  # What is imported for it is no circle of its own.
    gc.collect()
    gc.freeze()  # What other tests left in this process is not looked at a hundred times.
    for number in range(MANY):
        schemas.compiled(schema(kind, number)).codec()
    assert schemas.forgotten >= MANY - 5
    return len(found)


def test_objects_are_looked_at_often_where_that_frees_some(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collections_of("protobuf", monkeypatch) >= MANY // 25


def test_objects_are_looked_at_rarely_where_that_frees_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looking takes the longer the more there is, so it must not come with every few schemas."""
    assert 1 <= collections_of("avro", monkeypatch) <= 2 + MANY // 60
