"""Names of fields that schemas define."""

from __future__ import annotations

import orjson
import pytest

from kafkascope.schemas.known import field_paths
from kafkascope.schemas.model import Format, Schema

AVRO = {
    "type": "record",
    "name": "a.Node",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "next", "type": ["null", "Node"]},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [{"name": "sku", "type": "string"}],
                },
            },
        },
        {"name": "tags", "type": {"type": "map", "values": "Item"}},
    ],
}
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
