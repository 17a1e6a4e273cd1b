"""Hostile schemas and payloads: an error of ours, in little time and memory."""

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from kafkascope.schemas.avro.changes import breaking_changes
from kafkascope.schemas.avro.codec import compile as compile_avro
from kafkascope.schemas.avro.text import canonical, fingerprint
from kafkascope.schemas.limits import LIMITS
from tests.kit.schemas import nothing, record, refused, tried
from tests.schemas.avro.schemas import compiled

HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
"""2^62 - 1."""
MORE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
"""2^63 - 1."""
DEEPER = f"nested deeper than {LIMITS.nesting} levels"
LEAST = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
"""-2^63."""
NULLS = {"type": "array", "items": "null"}
EMPTY = record("Empty")
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
TREE = record("T", next=["null", "T"])
LISTS = record("L", l={"type": "array", "items": "L"})
MAP = {"type": "map", "values": "null"}


@pytest.fixture(autouse=True)
def _little_time_and_memory() -> Iterator[None]:
    """Generous: machines differ, and what this is about differs by orders of magnitude."""
    begin = time.process_time()
    yield
    assert time.process_time() - begin < 20


@pytest.mark.parametrize(
    ("schema", "data", "offset", "text"),
    [
        (NULLS, HUGE + b"\0", 9, "4,611,686,018,427,387,903 values without bytes"),
        (NULLS, LEAST + b"\0\0", 11, "9,223,372,036,854,775,808 values without bytes"),
        ({"type": "array", "items": EMPTY}, HUGE + b"\0", 9, "4,611,686,018,427,387,903 values"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, MORE, 10, "values"),
        ({"type": "array", "items": NULLS}, b"\x14" + b"\xfe\xff\x07\0" * 10, 8, "65,535 values"),
        ({"type": "array", "items": "int"}, MORE + b"\2", 11, "ends inside a number int"),
        ({"type": "map", "values": "null"}, MORE + b"\2a", 12, "ends inside the length"),
        ("string", MORE + b"a", 0, "a text of 9,223,372,036,854,775,807 bytes, 1 are left"),
        ("string", b"\1", 0, "a text with the length -1"),
        ("string", LEAST, 0, "a text with the length -9,223,372,036,854,775,808".replace(",", "")),
        ("string", b"\2\xff", 1, "a text is not UTF-8: byte 0xff"),
        ("string", b"\6\xed\xa0\x80", 1, "a text is not UTF-8: byte 0xed"),
        (MAP, b"\2\2\xff\0", 2, "the key of a map is not UTF-8: byte 0xff"),
        (ENUM, b"\4", 0, "symbol 2 of 2"),
        (ENUM, b"\1", 0, "symbol -1 of 2"),
        (ENUM, MORE, 0, "symbol 9223372036854775807 of 2"),
        (["null", "int"], b"\4", 0, "branch 2 of 2"),
        (["null", "int"], b"\3", 0, "branch -2 of 2"),
        ([], b"\0", 0, "branch 0 of 0"),
        ("boolean", b"\2", 0, "a boolean with the byte 0x02"),
        ("int", b"\x80\x80\x80\x80\x10", 0, "a number int of more than 32 bits"),
        ("long", b"\x80" * 9 + b"\2", 0, "a number long of more than 64 bits"),
        ("long", b"\xff" * 100, 0, "a number long of more than 10 bytes"),
        ("double", b"\0" * 7, 0, "a double of 8 bytes, 7 are left"),
        ({"type": "fixed", "name": "F", "size": 2**31 - 1}, b"\0", 0, "F of 2,147,483,647 bytes"),
        (TREE, b"\2" * 100_000 + b"\0", LIMITS.nesting, DEEPER),
        (LISTS, b"\2" * 100_000, LIMITS.nesting // 2, DEEPER),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
         b"\xc0\x84\x3d" + b"\x7f" * 500_000, 0, "a decimal of 500,000 bytes"),
    ],
)  # fmt: skip
def test_payloads_are_refused_where_they_break(
    schema: Any, data: bytes, offset: int, text: str
) -> None:
    codec = compiled(schema).codec("avro")
    tracemalloc.start()
    error = refused(codec.decode, data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40_000_000
    assert error.reason == "does-not-fit"
    assert text in error.text
    assert error.offset == offset
    assert codec.explain(data).end == len(data)


def test_paths_lead_to_what_broke() -> None:
    items = {"type": "array", "items": record("I", e=ENUM)}
    codec = compiled(record("R", items=items, prices=MAP | {"values": "boolean"})).codec()
    assert refused(codec.decode, b"\4\0\6\0").path == "items[1].e"
    assert refused(codec.decode, b"\0\2\4ab\7\0").path == "prices.ab"


def test_as_many_nulls_as_the_payload_pays_for() -> None:
    codec = compiled(NULLS).codec()
    some = b"\x80\x80\x08\0"
    assert len(codec.decode(some)) == LIMITS.empty_values
    assert len(codec.encode([None] * 1000)) == 3


def test_blocks_may_tell_their_size() -> None:
    codec = compiled({"type": "array", "items": "int"}).codec()
    assert codec.decode(b"\x03\x04\x02\x04\x02\x06\0") == [1, 2, 3]
    assert codec.explain(b"\x03\x04\x02\x04\x02\x06\0").pieces[0][2:5] == (2, 0, 2)


def test_a_map_of_equal_keys_has_one() -> None:
    codec = compiled(MAP).codec()
    assert codec.decode(b"\x80\x89\x7a" + b"\2a" * 1_000_000 + b"\0") == {"a": None}


def test_a_wide_payload_takes_linear_time() -> None:
    codec = compiled(LISTS).codec()
    assert len(codec.decode(b"\x80\x89\x7a" + b"\0" * 1_000_001)["l"]) == 1_000_000


def laughs(levels: int, leaf: Any) -> Any:
    """Records of two records each."""
    schema = leaf
    for level in range(levels):
        again = schema["name"] if isinstance(schema, dict) else schema
        schema = record(f"R{level}", a=schema, b=again)
    return schema


def test_a_schema_of_many_values_in_no_bytes_is_refused() -> None:
    assert "records and nulls" in refused(compiled, laughs(40, "null")).text
    assert "records and nulls" in refused(compiled, laughs(40, "boolean")).text
    # Fewer are fine, as often as bytes pay for them.
    codec = compiled({"type": "array", "items": ["null", laughs(12, "null")]}).codec()
    assert codec.decode(b"\2\2\0")
    many = b"\xd0\x0f" + b"\2" * 1000 + b"\0"
    assert "values without bytes" in refused(codec.decode, many).text


@pytest.mark.parametrize("schema", [record("R", a="R"), record("R", x="int", a=record("S", b="R"))])
def test_records_inside_themselves_are_refused(schema: Any) -> None:
    assert "contains itself without end" in refused(compiled, schema).text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "string",
        "nul",
        "1",
        "{}",
        "null",
        "[[]]",
        '["int", "int"]',
        '["int", ["null"]]',
        '{"type": "array"}',
        '{"type": "map", "values": 3}',
        '{"type": "record", "name": "R"}',
        '{"type": "record", "fields": []}',
        '{"type": "record", "name": "int", "fields": []}',
        '{"type": "record", "name": "a b", "fields": []}',
        '{"type": "record", "name": "a.", "fields": []}',
        '{"type": "record", "name": "R", "namespace": "a..b", "fields": []}',
        '{"type": "record", "name": "R", "fields": [{"name": "a"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a-b", "type": "int"}]}',
        '{"type": "record", "name": "R", "fields": [1]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        '{"type": "enum", "name": "E", "symbols": ["A", "A"]}',
        '{"type": "enum", "name": "E", "symbols": "AB"}',
        '{"type": "enum", "name": "E", "symbols": ["a b"]}',
        '{"type": "fixed", "name": "F", "size": -1}',
        '{"type": "fixed", "name": "F", "size": true}',
        '{"type": "fixed", "name": "F", "size": 1e3}',
        '{"type": "fixed", "name": "F", "size": 99999999999999999999}',
        '[{"type":"fixed","name":"F","size":1},{"type":"enum","name":"F","symbols":[]}]',
        '"x.Nobody"',
        '"\ud800"',
        "[" * 100_000,
        "[" * 1000 + "]" * 1000,
        '{"type":"array","items":' * 500 + '"int"' + "}" * 500,
    ],
    ids=range(34),
)
def test_bad_schemas(text: str) -> None:
    assert refused(compile_avro, text, {}, nothing).reason == "bad-schema"


def test_schemas_have_a_size() -> None:
    long = '{"type": "string", "doc": "' + "x" * LIMITS.schema_chars + '"}'
    assert f"more than {LIMITS.schema_chars:,}" in refused(compile_avro, long, {}, nothing).text
    assert compile_avro(long.replace("xx", ""), {}, nothing).codec().decode(b"\0") == ""
    half = '{"type": "record", "name": "%s", "doc": "' + "x" * 4_000_000 + '", "fields": []}'
    texts = {name: half % name for name in "ABC"}
    assert (
        f"more than {LIMITS.schema_chars:,}"
        in refused(compile_avro, '["A","B","C"]', texts, texts.get).text
    )


def records(count: int) -> list[dict[str, Any]]:
    fields = {f"f{number}": ["null", "int"] for number in range(3)}
    return [record(f"R{at}", **fields) for at in range(count)]


def test_ten_thousand_types() -> None:
    schema = records(10_000)
    text = orjson.dumps(schema).decode()
    codec = compiled(schema).codec()
    value = {"f0": 1, "f1": None, "f2": 2}
    # All branches have these fields; the first is taken.
    assert codec.encode(value) == b"\0\2\2\0\2\4"
    assert codec.decode(b"\xfe\x9b\1\2\2\0\2\4") == value
    assert canonical(text).count('"record"') == 10_000
    assert fingerprint(text)
    assert breaking_changes(text, text) == []
    assert "10,000 types" in refused(compiled, records(10_001)).text


def test_ten_thousand_fields() -> None:
    fields = {f"f{at}": ["null", "string"] for at in range(10_001)}
    assert "10,000 fields" in refused(compiled, record("R", **fields)).text
    del fields["f0"]
    codec = compiled(record("R", **fields)).codec()
    assert set(codec.decode(b"\0" * 10_000).values()) == {None}


def test_a_chain_of_ten_thousand_schemas() -> None:
    def text(name: str) -> str | None:
        at = int(name[1:])
        inner = "int" if at == 9_000 else f"R{at + 1}"
        return orjson.dumps(record(name, f=["null", inner])).decode()

    codec = compile_avro('"R0"', {}, text).codec()
    assert codec.decode(b"\2\2\0") == {"f": {"f": {"f": None}}}
    assert "nested deeper" in refused(codec.decode, b"\2" * 9_000 + b"\2\2").text


def test_schemas_without_end_end() -> None:
    def text(name: str) -> str | None:
        return orjson.dumps(record(name, f=["null", f"R{int(name[1:]) + 1}"])).decode()

    assert "too many types" in refused(compile_avro, '"R0"', {}, text).text


def test_branches_that_differ_deep_inside_are_found_in_time() -> None:
    """Two records alike but for their last field: each level would double the tries."""
    both = ["null", "A", "B"]
    codec = compiled([record("A", next=both, x="int"), record("B", next=both, x="string")]).codec()
    value: Any = None
    for _ in range(LIMITS.nesting):
        value = {"next": value, "x": "s"}
    assert codec.decode(codec.encode(value)) == value
    value = None
    for at in range(LIMITS.nesting):
        value = {"next": value, "x": "s" if at else 1.5}
    error = refused(codec.encode, value)
    assert error.reason == "does-not-fit"
    assert error.path.endswith("next.next.x")


def test_a_search_in_thousands_of_branches_ends() -> None:
    branches = [{"type": "enum", "name": f"E{at}", "symbols": [f"S{at}"]} for at in range(5000)]
    codec = compiled({"type": "array", "items": branches}).codec()
    assert codec.decode(codec.encode(["S4999"] * 100)) == ["S4999"] * 100
    assert "nested unions" in refused(codec.encode, ["S4999"] * 1000).text


def deep(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = {"next": value}
    return value


def test_the_deepest_value() -> None:
    codec = compiled(TREE).codec()
    json = compiled(TREE).json_codec()
    value = deep(LIMITS.nesting)
    data = codec.encode(value)
    assert codec.decode(data) == value
    assert codec.explain(data).end == len(data)
    assert json.decode(json.encode(value)) == value
    assert "nested deeper" in refused(codec.encode, deep(LIMITS.nesting + 1)).text
    assert "nested deeper" in refused(codec.encode, deep(5000)).text
    spelled = b'{"next":{"T":' * 101 + b'{"next":null}' + b"}}" * 101
    assert "nested deeper" in refused(json.decode, spelled).text
    assert refused(json.decode, b'{"next":{"T":' * 100_000).reason == "does-not-fit"


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, 1.5, 2**70, "a", "\ud800", [], {}, b"a", {1: 2}, float("nan"), [[]]),
        *({"base64": "!"}, {"base64": 1}, {"base64": "AA=="}, {"a": object()}, "9" * 5000),
    ],
)
def test_values_that_do_not_fit_are_errors_of_ours(value: Any) -> None:
    decimal = {"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 4}
    kinds = [{"type": "long", "logicalType": "timestamp-micros"}, decimal, ENUM, MAP, NULLS]
    kinds += [{"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "time-millis"}]
    kinds += [{"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, EMPTY]
    for schema in ["null", "boolean", "int", "long", "float", "double", "bytes", "string", *kinds]:
        for codec in (compiled(schema).codec("avro"), compiled(schema).json_codec()):
            data, error = tried(codec.encode, value)
            if error is None:
                codec.decode(data)
            else:
                assert error.reason == "does-not-fit"
