"""Codecs of single schemas: references, raw bytes, logical types, edited values, pieces."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.schemas.avro.codec import AvroCodec
from kafkascope.schemas.avro.codec import compile as compile_avro
from kafkascope.schemas.avro.text import fingerprint
from kafkascope.schemas.model import Moment, Piece
from tests.kit.schemas import nothing, record, refused
from tests.schemas.avro.schemas import based, compiled


def logical(name: str, kind: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


TIMES = logical("timestamp-millis", "long")
NOON = "2026-03-01T12:00:00.000000Z"
DECIMAL = logical("decimal", "bytes", precision=6, scale=2)
UUID = logical("uuid", "fixed", name="F", size=16)
DURATION = logical("duration", "fixed", name="F", size=12)


@pytest.mark.parametrize("schema", ["bytes", {"type": "bytes"}])
def test_the_schema_bytes_is_the_payload_itself(schema: Any) -> None:
    codec = compiled(schema).codec()
    assert codec.type_name == "bytes"
    # The first byte could be a length.
    for data in (b"", b"\0\1", b"\2a"):
        assert codec.decode(data) == based(data)
        assert codec.encode(based(data)) == data
        assert codec.explain(data) == Piece("", "bytes", based(data), 0, len(data))
    assert refused(codec.encode, "text").reason == "does-not-fit"


def test_with_its_length_where_others_wrote_it() -> None:
    codec = compiled("bytes").codec("avro")
    assert codec.decode(b"\2a") == based(b"a")
    assert refused(codec.decode, b"\0\1").reason == "surplus"


def test_a_raw_decimal() -> None:
    schema = compiled(logical("decimal", "bytes", precision=3, scale=1))
    assert schema.codec("avro").decode(b"\2\7") == "0.7"
    codec = schema.codec()
    assert codec.decode(b"\7") == "0.7"
    assert codec.encode("0.7") == b"\7"
    assert codec.explain(b"\7") == Piece("", "decimal(3, 1)", "0.7", 0, 1)
    assert refused(codec.decode, b"\7" * 9999).reason == "does-not-fit"
    assert codec.explain(b"\7" * 9999).value is None


def test_a_schema_has_one_type() -> None:
    assert refused(compiled("int").codec, "Other").reason == "bad-schema"


ADDRESS = '{"type": "record", "name": "Address", "namespace": "p", "fields": %s}'
PERSON = (
    '{"type": "record", "name": "p.Person", "fields": [{"name": "home", "type": "%s"},'
    ' {"name": "other", "type": {"type": "array", "items": "p.Address"}}]}'
)
FIELDS = '[{"name": "street", "type": "string"}]'


@pytest.mark.parametrize("name", ["p.Address", "Address"])
@pytest.mark.parametrize("key", ["p.Address", "as-somebody-called-it"])
def test_references_by_any_name(name: str, key: str) -> None:
    codec = compile_avro(PERSON % name, {key: ADDRESS % FIELDS}, nothing).codec()
    assert codec.type_name == "p.Person"
    value = {"home": {"street": "a"}, "other": [{"street": "b"}]}
    assert codec.decode(b"\2a\2\2b\0") == value
    assert codec.encode(value) == b"\2a\2\2b\0"


def test_references_through_others_and_looked_up() -> None:
    texts = {
        "p.Address": ADDRESS
        % '[{"name": "zip", "type": "q.Zip"}, {"name": "up", "type": ["null", "p.Person"]}]',
        "q.Zip": '{"type": "fixed", "name": "Zip", "namespace": "q", "size": 2}',
    }
    asked = []

    def lookup(name: str) -> str | None:
        asked.append(name)
        return texts.get(name)

    codec = compile_avro(PERSON % "Address", {}, lookup).codec()
    value = {"home": {"zip": based(b"ab"), "up": None}, "other": []}
    assert codec.decode(b"ab\0\0") == value
    assert asked == ["p.Address", "q.Zip"]
    one = {"p.Address": texts["p.Address"]}
    assert compile_avro(PERSON % "Address", one, texts.get).codec().decode(b"ab\0\0") == value
    error = refused(compile_avro, PERSON % "Address", one, nothing)
    assert (error.reason, error.text) == ("bad-schema", "undefined type q.Zip")


def test_a_name_is_that_of_its_own_text_first() -> None:
    own = (
        '[{"type": "enum", "name": "E", "symbols": ["OWN"]},'
        ' {"type": "array", "items": "E"}, "x.R"]'
    )
    other = (
        '{"type": "record", "name": "x.R", "fields": [{"name": "e", "type":'
        ' {"type": "enum", "name": "x.E", "symbols": ["OTHER"]}}, {"name": "f", "type": "E"}]}'
    )
    codec = compile_avro(own, {"x.R": other}, nothing).codec()
    assert codec.decode(b"\2\2\0\0") == ["OWN"]
    assert codec.decode(b"\4\0\0") == {"e": "OTHER", "f": "OTHER"}


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        (logical("decimal", "bytes", precision=4, scale=2), b"\2\xfb", "-0.05"),
        (logical("decimal", "bytes", precision=4), b"\4\4\xd2", "1234"),
        (logical("decimal", "bytes", precision=4, scale=2), b"\0", "0.00"),
        (logical("decimal", "fixed", name="F", size=3, precision=4, scale=2), b"\0\4\xd2", "12.34"),
        (UUID, bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (DURATION, b"\3\0\0\0\x0e\0\0\0\x82\x14\0\0", "P3M14DT5.250S"),
        (logical("date", "int"), b"\1", "1969-12-31"),
        (logical("date", "int"), b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
        (logical("time-millis", "int"), b"\x02", "00:00:00.001000"),
        (logical("time-millis", "int"), b"\x01", -1),
        (logical("time-micros", "long"), b"\x02", "00:00:00.000001"),
        (logical("timestamp-millis", "long"), b"\x01", "1969-12-31T23:59:59.999000Z"),
        (logical("timestamp-micros", "long"), b"\x01", "1969-12-31T23:59:59.999999Z"),
        (logical("timestamp-nanos", "long"), b"\x01", "1969-12-31T23:59:59.999999999Z"),
        (logical("local-timestamp-millis", "long"), b"\0", "1970-01-01T00:00:00.000000"),
        (logical("local-timestamp-nanos", "long"), b"\2", "1970-01-01T00:00:00.000000001"),
        (logical("timestamp-millis", "long"), b"\xfe" + b"\xff" * 8 + b"\1", 2**63 - 1),
        # These do not fit their types, or nobody knows them.
        (logical("decimal", "bytes", precision=2, scale=3), b"\2\7", based(b"\7")),
        (logical("decimal", "bytes", precision=0), b"\2\7", based(b"\7")),
        (logical("decimal", "bytes"), b"\2\7", based(b"\7")),
        (logical("decimal", "fixed", name="F", size=1, precision=3), b"\7", based(b"\7")),
        (logical("decimal", "string", precision=3), b"\2a", "a"),
        (logical("uuid", "fixed", name="F", size=1), b"\7", based(b"\7")),
        (logical("duration", "fixed", name="F", size=1), b"\7", based(b"\7")),
        (logical("timestamp-millis", "int"), b"\2", 1),
        (logical("date", "long"), b"\2", 1),
        (logical("colour", "long"), b"\2", 1),
        (logical("", "long"), b"\2", 1),
        ({"type": "long", "logicalType": ["date"]}, b"\2", 1),
    ],
)  # fmt: skip
def test_logical_types(schema: Any, data: bytes, value: Any) -> None:
    codec = compiled(schema).codec("avro")
    assert codec.decode(data) == value
    assert codec.explain(data).value == value
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ("double", 1, 1.0),
        ("float", 1, 1.0),
        ("float", 0.1, 0.10000000149011612),
        ("long", 5.0, 5),
        (["null", "double"], 3, 3.0),
        (["null", "long"], 3.0, 3),
        (DECIMAL, 5, "5.00"),
        (DECIMAL, 0.1, "0.10"),
        (DECIMAL, "5.1", "5.10"),
        (DECIMAL, "5.", "5.00"),
        (DECIMAL, "5.1000", "5.10"),
        (DECIMAL, "-00.00", "0.00"),
        (["null", DECIMAL], 1.25, "1.25"),
        (TIMES, 0, "1970-01-01T00:00:00.000000Z"),
        (TIMES, "2026-03-01T12:00Z", "2026-03-01T12:00:00.000000Z"),
        (TIMES, "2026-03-01 12:00:00.5", "2026-03-01T12:00:00.500000Z"),
        (TIMES, "2026-03-01T12:00:00+02:00", "2026-03-01T10:00:00.000000Z"),
        (TIMES, "2026-03-01T12:00:00-0130", "2026-03-01T13:30:00.000000Z"),
        (["null", TIMES], "2026-03-01T12:00Z", "2026-03-01T12:00:00.000000Z"),
        (["null", TIMES], 7, "1970-01-01T00:00:00.007000Z"),
        (logical("date", "int"), 0, "1970-01-01"),
        (logical("time-millis", "int"), "12:30", "12:30:00.000000"),
        (UUID, based(bytes(16)), "00000000-0000-0000-0000-000000000000"),
        # The type that says just this, then the one that can.
        (["int", TIMES], 7, 7),
        ([TIMES, "int"], 7, 7),
        ([TIMES, "string"], "2026-03-01T12:00Z", "2026-03-01T12:00Z"),
        ([logical("date", "int"), TIMES, "string"], NOON, NOON),
        (["float", "double"], 0.1, 0.1),
        ([logical("uuid", "string"), UUID], "A", "A"),
        (["double", "long"], 1, 1),
        (["long", "double"], 1.0, 1.0),
        (["long", "boolean"], True, True),
        ([{"type": "map", "values": "string"}, "bytes"], {"base64": "x"}, {"base64": "x"}),
    ],
)  # fmt: skip
def test_what_a_user_types(schema: Any, typed: Any, value: Any) -> None:
    codec = compiled(schema).codec("avro")
    found = codec.decode(codec.encode(typed))
    assert found == value
    assert type(found) in (type(value), Moment) or isinstance(found, str)


RECORD = record(
    "R",
    a={"type": "array", "items": ["null", "int"]},
    e={"type": "enum", "name": "E", "symbols": ["A"]},
    f={"type": "fixed", "name": "F", "size": 2},
    d=logical("decimal", "fixed", name="D", size=1, precision=2),
)
GOOD = {"a": [1], "e": "A", "f": based(b"ab"), "d": "1"}


def test_a_text_that_is_no_uuid_is_rather_something_else() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A"]}
    codec = compiled([logical("uuid", "string"), enum]).codec()
    assert codec.encode("A") == b"\2\0"
    assert codec.encode("B") == b"\0\2B"


@pytest.mark.parametrize(
    ("change", "path", "text"),
    [
        ({"a": 1}, "a", "a number for an array"),
        ({"a": [1, "x"]}, "a[1]", "a text for int"),
        ({"a": [[]]}, "a[0]", "an array for one of null, int"),
        ({"a": [2**31]}, "a[0]", "the number is too large for int"),
        ({"a": [1.5]}, "a[0]", "a number for int"),
        ({"e": "B"}, "e", "E has no symbol 'B'"),
        ({"e": None}, "e", "null for E"),
        ({"f": based(b"a")}, "f", "1 bytes for F, which has 2"),
        ({"f": {"base64": "YWI"}}, "f", "not base64: Incorrect padding"),
        ({"f": "ab"}, "f", 'a text for bytes, which are {"base64": TEXT}'),
        ({"d": "200"}, "d", "a number of 2 bytes for D, which has 1"),
        ({"d": "1.5"}, "d", "'1.5' has more than 0 digits after the decimal point"),
        ({"d": "1e3"}, "d", "'1e3' is not a decimal number"),
        ({"x": 1}, "", "R has no field x"),
    ],
)
def test_values_that_do_not_fit_say_where_and_why(
    change: dict[str, Any], path: str, text: str
) -> None:
    codec = compiled(RECORD).codec()
    assert codec.decode(codec.encode(GOOD)) == GOOD
    error = refused(codec.encode, GOOD | change)
    assert (error.reason, error.path, error.text) == ("does-not-fit", path, text)
    del change[next(iter(change))]
    missing = {key: value for key, value in GOOD.items() if key != "e"}
    assert refused(codec.encode, missing).text == "R without its field e"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-02-30T12:00Z", "day"),
        ("2026-03-01T24:00Z", "not a time of day"),
        ("2026-03-01T12:00:60Z", "not a time of day"),
        ("2026-03-01T12:00:00.0001Z", "more fractional digits"),
        ("2026-03-01T12:00:00 Z", "does not end with the time"),
        ("2026-03-01", "is not a time such as"),
        ("yesterday", "is not a time such as"),
    ],
)
def test_times_that_are_none(text: str, why: str) -> None:
    assert why in refused(compiled(TIMES).codec().encode, text).text


def test_the_pieces_of_a_record() -> None:
    numbers = {"type": "map", "values": ["int", TIMES]}
    none = {"type": "array", "items": "int"}
    schema = record(
        "shop.R", id="string", note=["null", "string"], map=["null", numbers], none=none
    )
    codec = compiled(schema).codec()
    piece = codec.explain(b"\2x\2\4ab\2\2\4de\2\0\0\0")
    assert piece == Piece(
        "", "shop.R", None, 0, 15,
        (
            Piece("id", "string", "x", 0, 2),
            Piece("note", "string", "ab", 2, 6),
            Piece(
                "map", "map", None, 6, 14,
                (
                    Piece("", "union branch", 1, 6, 7),
                    Piece("", "block", 1, 7, 8),
                    Piece("de", "timestamp-millis", "1970-01-01T00:00:00.000000Z", 8, 13),
                    Piece("", "block", 0, 13, 14),
                ),
            ),
            Piece("none", "array", [], 14, 15),
        ),
    )  # fmt: skip
    broken = codec.explain(b"\2x\2\4a")
    assert broken.pieces == (Piece("id", "string", "x", 0, 2), Piece("", "not read", None, 2, 5))
    assert codec.explain(b"").pieces == (Piece("", "not read", None, 0, 0),)


def test_the_json_form() -> None:
    codec = compiled(RECORD).json_codec()
    assert codec.type_name == "R"
    data = b'{"a":[{"int":1},null],"e":"A","f":"a\xc3\xbf","d":"\x01"}'.replace(b"\x01", b"\\u0001")
    value = {"a": [1, None], "e": "A", "f": based(b"a\xff"), "d": "1"}
    assert codec.decode(data) == value
    assert codec.encode(value) == data
    for broken, path in [
        (b'{"a":[{"int":1,"x":2}]}', "a[0]"),
        (b'{"a":[{"long":1}]}', "a[0]"),
        (b'{"a":[1]}', "a[0]"),
        (b'{"a":[{"int":1.0}]}', "a[0]"),
        (b'{"a":[]}', "e"),
        (b'{"a":[],"e":"B"}', "e"),
        (b'{"a":[],"e":"A","f":"abc"}', "f"),
        (b'{"a":[],"e":"A","f":"a\xe2\x82\xac"}', "f"),
        (b'{"a":[],"e":"A","f":"ab","d":"\\u0001","x":1}', ""),
        (b"{", ""),
        (b"\xff", ""),
        (b"[]", ""),
    ]:
        error = refused(codec.decode, broken)
        assert (error.reason, error.path) == ("does-not-fit", path)
    floats = compiled({"type": "array", "items": "float"}).json_codec()
    assert floats.decode(b'[1, 0.1, "NaN"]') == [1.0, 0.10000000149011612, "NaN"]
    assert refused(floats.decode, b"[1e39]").path == "[0]"


def test_fingerprints_of_the_specification() -> None:
    """From share/test/data/schema-tests.txt of Apache Avro."""
    assert fingerprint('"null"') == 7195948357588979594
    assert fingerprint('{"type": "boolean"}') == -6970731678124411036 % 2**64
    text = '{"fields":[{"type":"boolean", "name":"f1"}], "type":"record", "name":"foo", "doc":"x"}'
    assert fingerprint(text) == 7843277075252814651


# --- values that other serializers wrote ----------------------------------------------------------


SAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "confluent.json").read_text("utf-8"))
TEXTS = {number: json.dumps(schema) for number, schema in SAMPLES["schemas"].items()}
# Person refers to Address, which is schema 5.
SCHEMAS: dict[str, AvroCodec] = {
    number: compile_avro(text, {"people.Address": TEXTS["5"]}, nothing)
    for number, text in TEXTS.items()
}


@pytest.mark.parametrize("sample", SAMPLES["values"], ids=lambda sample: sample["schema"])
def test_values_of_confluents_serializer(sample: dict[str, Any]) -> None:
    codec = SCHEMAS[sample["schema"]].codec()
    data = bytes.fromhex(sample["hex"])
    assert codec.decode(data) == sample["value"]
    assert codec.encode(sample["value"]) == data
    assert codec.explain(data).end == len(data)


def test_each_schema_is_used() -> None:
    used = {sample["schema"] for sample in SAMPLES["values"]}
    assert used == set(TEXTS) - {"5"}
