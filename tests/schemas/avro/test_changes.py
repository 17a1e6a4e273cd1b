"""Changes of schemas that readers cannot read."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings

from kafkascope.schemas.avro.changes import breaking_changes
from tests.schemas.avro.schemas import schemas


def record(*fields: dict[str, Any], name: str = "shop.R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def decimal(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}


def changes(old: Any, new: Any) -> list[str]:
    return breaking_changes(orjson.dumps(old).decode(), orjson.dumps(new).decode())


LONGS, INTS = ({"type": "array", "items": kind} for kind in ("long", "int"))
NEXT = field("next", ["null", "R"])
FIXED = {"type": "fixed", "name": "F", "size": 4}
FINE: list[tuple[Any, Any]] = [
    ("int", "long"),
    ("int", "double"),
    ("long", "float"),
    ("string", "bytes"),
    ("bytes", "string"),
    ("int", ["null", "int"]),
    ("int", ["null", "double"]),
    (["null", "int"], ["long", "null"]),
    (["int"], "int"),
    (record(field("a", "int")), record()),
    (record(), record(field("a", "int", default=1))),
    (record(), record(field("a", ["null", "int"], default=None))),
    (record(field("a", "int")), record(field("b", "int", aliases=["a"]))),
    (record(), record(name="other.R")),
    (record(), record(name="other.S", aliases=["shop.R"])),
    (record(), record(name="shop.S", aliases=["R"])),
    (enum("A"), enum("B", "A")),
    (enum("A", "B"), enum("A", default="A")),
    (decimal(2), decimal(2)),
    # Nothing here defines it.
    (record(field("a", "x.Y")), record(field("a", "x.Y"))),
    # Itself, without end.
    (record(NEXT), record(NEXT, field("more", "int", default=0))),
]
BROKEN: list[tuple[Any, Any, list[str]]] = [
    ("long", "int", ["the value: long cannot be read as int"]),
    ("int", "string", ["the value: int cannot be read as string"]),
    ("int", ["null", "string"], ["the value: no branch of the union reads int"]),
    (["null", "int"], "int", ["the value: null cannot be read as int"]),
    (record(), record(field("a", "int")), ["a: the new field has no default"]),
    (
        record(field("a", LONGS)),
        record(field("a", LONGS | {"items": "int"})),
        ["a[]: long cannot be read as int"],
    ),
    (
        record(field("a", {"type": "map", "values": record(name="I")})),
        record(field("a", {"type": "map", "values": record(field("b", "int"), name="I")})),
        ["a[].b: the new field has no default"],
    ),
    (record(), record(name="shop.S"), ["the value: shop.R cannot be read as shop.S"]),
    (enum("A", "B", "C"), enum("B"), ["the value: E has no A, C, and no default"]),
    (FIXED, FIXED | {"size": 5}, ["the value: F has 5 bytes, not 4"]),
    (decimal(2), decimal(3), ["the value: decimal(9, 2) cannot be read as decimal(9, 3)"]),
    (record(field("a", "x.Y")), record(field("a", "x.Z")), ["a: x.Y cannot be read as x.Z"]),
    (record(NEXT), record(NEXT, field("more", "int")), ["more: the new field has no default"]),
]


@pytest.mark.parametrize(("old", "new"), FINE)
def test_what_readers_can_read(old: Any, new: Any) -> None:
    assert changes(old, new) == []


@pytest.mark.parametrize(("old", "new", "said"), BROKEN)
def test_what_they_cannot(old: Any, new: Any, said: list[str]) -> None:
    assert changes(old, new) == said


@settings(deadline=None)
@given(schemas())
def test_every_schema_reads_its_own_payloads(schema: Any) -> None:
    assert changes(schema, schema) == []


def test_a_reader_of_many_types_is_compared_in_a_moment() -> None:
    branches = [record(name=f"R{at}") for at in range(3000)]
    assert changes(branches, list(reversed(branches))) == []
    missing = changes(branches, branches[:10])
    assert 100 <= len(missing) < 3000
    assert missing[0] == "the value: no branch of the union reads R10"
