"""Laws of all schemas and values."""

import io
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkascope.schemas.avro.codec import compile as compile_avro
from kafkascope.schemas.avro.text import canonical, defined_names, fingerprint
from kafkascope.schemas.avro.walk import BLOCK, MARKS, UNREAD
from kafkascope.schemas.model import Exact, Moment, Piece
from tests.kit.schemas import nothing, record, refused, tried
from tests.schemas.avro.schemas import based, cases, compiled, named, schemas

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def leaves(piece: Piece) -> list[Piece]:
    if not piece.pieces:
        return [piece]
    return [leaf for each in piece.pieces for leaf in leaves(each)]


def assert_tiles(piece: Piece, size: int) -> None:
    at = 0
    for leaf in leaves(piece):
        assert leaf.begin == at
        at = leaf.end
    assert at == piece.end == size
    stack = [piece]
    while stack:
        each = stack.pop()
        if each.pieces:
            assert (each.begin, each.end) == (each.pieces[0].begin, each.pieces[-1].end)
            assert each.value is None
        stack.extend(each.pieces)


def value_of(piece: Piece) -> Any:
    if not piece.pieces:
        return piece.value
    values = [each for each in piece.pieces if not (each.type in MARKS and not each.name)]
    if piece.type == "array":
        assert [each.name for each in values] == [f"[{at}]" for at in range(len(values))]
        counts = [each.value for each in piece.pieces if each.type == BLOCK and not each.name]
        assert sum(counts) == len(values)
        return [value_of(each) for each in values]
    return {each.name: value_of(each) for each in values}


@LAW
@given(cases())
def test_what_is_encoded_decodes_to_the_same(case: tuple[Any, Any]) -> None:
    schema, value = case
    codec = compiled(schema).codec("avro")
    data = codec.encode(value)
    assert codec.decode(data) == value
    # Plain JSON is enough to encode again: no type of ours is needed.
    plain = orjson.loads(orjson.dumps(codec.decode(data)))
    assert codec.decode(codec.encode(plain)) == value


@LAW
@given(cases())
def test_every_proper_prefix_is_refused(case: tuple[Any, Any]) -> None:
    """Avro's binary form is prefix-free: a decoder asks for the next byte before it knows the rest.
    Without exception, whatever the schema; what is raw is no such form."""
    schema, value = case
    codec = compiled(schema).codec("avro")
    data = codec.encode(value)
    for end in range(len(data)):
        error = refused(codec.decode, data[:end])
        assert error.reason == "does-not-fit"
        assert 0 <= error.offset <= end
        piece = codec.explain(data[:end])
        assert_tiles(piece, end)
        assert leaves(piece)[-1].type == UNREAD
    error = refused(codec.decode, data + b"\0")
    assert (error.reason, error.offset) == ("surplus", len(data))
    assert_tiles(codec.explain(data + b"\0"), len(data) + 1)


@LAW
@given(cases())
def test_pieces_tile_the_payload_and_have_its_values(case: tuple[Any, Any]) -> None:
    schema, value = case
    codec = compiled(schema).codec("avro")
    data = codec.encode(value)
    piece = codec.explain(data)
    assert_tiles(piece, len(data))
    assert value_of(piece) == codec.decode(data) == value


@LAW
@given(cases())
def test_the_json_form_has_the_same_values(case: tuple[Any, Any]) -> None:
    schema, value = case
    codec = compiled(schema).json_codec()
    data = codec.encode(value)
    assert codec.decode(data) == value
    assert codec.explain(data) == ("", codec.explain(data).type, value, 0, len(data), ())


@LAW
@given(cases(), st.data())
def test_reader_and_walk_agree_on_broken_payloads(case: tuple[Any, Any], data: Any) -> None:
    schema, value = case
    codec = compiled(schema).codec("avro")
    payload = bytearray(codec.encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    broken = bytes(payload)
    piece = codec.explain(broken)
    assert_tiles(piece, len(broken))
    found, error = tried(codec.decode, broken)
    if error is not None:
        assert leaves(piece)[-1].type == UNREAD
        assert error.text != "the payload does not match the schema"
        return
    if "NaN" not in str(found):
        assert value_of(piece) == found
    assert codec.decode(codec.encode(found)) == found


@LAW
@given(st.data())
def test_mutated_schemas_are_schemas_or_bad(data: Any) -> None:
    text = bytearray(orjson.dumps(data.draw(schemas())))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(
            st.binary(max_size=2) | st.sampled_from([b"null", b"[]", b"{}", b"-1", b'"a.b0.T3"'])
        )
        text[at : at + data.draw(st.integers(0, 8))] = piece
    schema, bad = tried(compile_avro, text.decode(errors="surrogateescape"), {}, nothing)
    if bad is not None:
        assert bad.reason == "bad-schema"
        return
    codec = schema.codec("avro")
    found, error = tried(codec.decode, data.draw(st.binary(max_size=8)))
    if error is None:
        assert codec.decode(codec.encode(found)) == found


@LAW
@given(schemas())
def test_the_canonical_form_is_that_of_fastavro(schema: Any) -> None:
    import fastavro.schema

    text = orjson.dumps(schema).decode()
    theirs = fastavro.schema.to_parsing_canonical_form(schema)
    assert canonical(text) == theirs
    hexed = fastavro.schema.fingerprint(theirs, "CRC-64-AVRO")
    assert fingerprint(text) == int.from_bytes(bytes.fromhex(hexed), "little")
    assert sorted(defined_names(text)) == sorted(named(schema))


# What fastavro reads and writes.


def plain(value: Any) -> Any:
    """A value of fastavro's, in the form of `decode`."""
    match value:
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case bytes():
            return based(value)
        case Decimal() | UUID() | date() | time() | datetime():
            if isinstance(value, datetime):
                text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
                return text + ("Z" if value.tzinfo else "")
            if isinstance(value, time):
                return value.isoformat("microseconds")
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case float() if value - value != 0:
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


OTHERWISE = ("nanos", "duration")
"""Logical types that fastavro does not have."""


def fits_fastavro(schema: Any, value: Any) -> bool:
    text = orjson.dumps(schema).decode()
    far = str(2**31 - 1), str(-(2**31)), str(2**63 - 1), str(-(2**63)), "2932897", "-719163"
    shown = orjson.dumps(value).decode()
    return (
        not any(word in text for word in OTHERWISE)
        and not any(word in shown for word in (*far, "-1"))
        # Of a fixed that is a uuid it makes none.
        and '"uuid","size"' not in text
        and '"size":16' not in text
        # A union of these it writes as the first that may be.
        and not ('"float"' in text and '"double"' in text)
    )


def has_union(schema: Any) -> bool:
    if isinstance(schema, list):
        return True
    if isinstance(schema, dict):
        inner = [field["type"] for field in schema.get("fields", ())]
        return any(map(has_union, [*inner, schema.get("items"), schema.get("values")]))
    return False


@LAW
@given(cases())
def test_fastavro_reads_what_we_write_and_we_what_it_writes(case: tuple[Any, Any]) -> None:
    import fastavro

    schema, value = case
    if not fits_fastavro(schema, value):
        return
    codec = compiled(schema).codec("avro")
    parsed = fastavro.parse_schema(schema)
    stream = io.BytesIO(codec.encode(value))
    read = fastavro.schemaless_reader(stream, parsed, None)
    assert plain(read) == value
    assert not stream.read()
    if has_union(schema) and "logicalType" in str(schema):
        return  # whether a text is a date it asks with an exception that nobody catches
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, read)
    # Of the branches that may be it takes another one than we do.
    again = fastavro.schemaless_reader(io.BytesIO(out.getvalue()), parsed, None)
    assert codec.decode(out.getvalue()) == plain(again)


def test_values_say_what_they_are() -> None:
    logical = {"precision": 4, "scale": 2}
    schema = record(
        "R",
        a={"type": "long", "logicalType": "timestamp-micros"},
        b=logical | {"type": "bytes", "logicalType": "decimal"},
        c={"type": "string", "logicalType": "uuid"},
    )
    codec = compiled(schema).codec("avro")
    value = {"a": "2026-03-01T12:00:00.123456Z", "b": "-0.05", "c": "no uuid, but text"}
    found = codec.decode(codec.encode(value))
    assert found == value
    assert [type(found[name]) for name in "abc"] == [Moment, Exact, str]
