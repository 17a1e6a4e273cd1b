"""Messages of Protobuf: real serializers' bytes, protobuf's own JSON as a witness, and laws."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas.limits import LIMITS, Limits
from kafkascope.schemas.model import Moment, PayloadError, Piece, varint
from kafkascope.schemas.protobuf import codec as protobuf
from kafkascope.schemas.protobuf import walk
from kafkascope.schemas.protobuf.kinds import KINDS
from tests.kit.schemas import nothing, refused, tried
from tests.schemas.protobuf.messages import mapped, messages

RECORDS = json.loads((Path(__file__).parents[1] / "samples" / "records.json").read_text())

PROTO3 = """
syntax = "proto3"; package t;
import "google/protobuf/struct.proto"; import "google/protobuf/any.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto"; import "google/protobuf/field_mask.proto";
import "google/protobuf/empty.proto";
message R {
  R r = 1; int32 i = 2; repeated R rs = 3; string s = 4; repeated sint64 p = 5;
  map<string, R> m = 6; E e = 7; oneof o { int64 a = 8; R b = 9; string c = 10; }
  float f = 11; double d = 12; bytes by = 13; bool bo = 14; fixed32 f3 = 15;
  optional uint64 u = 16; google.protobuf.Struct st = 20; google.protobuf.Value v = 21;
  google.protobuf.Int64Value w = 23; google.protobuf.BytesValue wb = 24;
  google.protobuf.Timestamp ts = 25; google.protobuf.Duration du = 26;
  google.protobuf.FieldMask fm = 27; map<int32, E> me = 28; map<bool, bytes> mb = 29;
  repeated float rf = 30; sint32 si = 31; uint32 ui = 32; sfixed64 sf = 33;
  google.protobuf.FloatValue wf = 34; google.protobuf.ListValue lv = 35;
  google.protobuf.Empty em = 36; optional E oe = 37; repeated string class = 38;
  repeated int32 un = 39 [packed = false]; map<string, google.protobuf.Timestamp> mt = 40;
}
enum E { Z = 0; A = 1; B = -2; }
"""
PROTO2 = """
package t;
message R {
  optional R r = 1; optional int32 i = 2;
  repeated group G = 3 { optional string x = 1; optional R r = 2; }
  optional string s = 4; repeated sint64 p = 5 [packed = true]; map<string, R> m = 6;
  optional E e = 7; oneof o { int64 a = 8; R b = 9; string c = 10; }
  repeated E es = 11 [packed = true]; map<string, E> me = 12; repeated string rs = 13;
  required int32 must = 14; optional group H = 15 { optional int32 y = 1; }
  extensions 100 to 200;
}
extend R { optional int32 ext = 100; repeated R exs = 101; }
enum E { Z = 0; A = 1; B = -2; }
"""


def parsed(codec: protobuf.MessageCodec, data: bytes) -> Any:
    return GetMessageClass(codec._message.descriptor).FromString(data)


AT_ONCE = Limits(walked=0)
"""The first messages of a type are read the fast way, too."""


def codec_of(text: str, limits: Limits = AT_ONCE) -> protobuf.MessageCodec:
    return protobuf.compile(text, {}, nothing, limits).codec()


CODEC3, CODEC2 = codec_of(PROTO3), codec_of(PROTO2)
CODECS = pytest.mark.parametrize("codec", [CODEC3, CODEC2], ids=["proto3", "proto2"])


@pytest.mark.parametrize("record", RECORDS["protobuf"], ids=lambda each: each["hex"][:24])
def test_what_real_serializers_wrote(record: dict[str, Any]) -> None:
    schema = RECORDS["schemas"][record["schema"]]
    compiled = protobuf.compile(schema["text"], schema["dependencies"], nothing, AT_ONCE)
    codec = compiled.codec(tuple(record["index"]) or None)
    assert codec.type_name == record["message"]
    data = bytes.fromhex(record["hex"])
    value = codec.decode(data)
    assert mapped(codec._message, value) == record["value"]
    assert codec.walk(data) == value
    assert codec.decode(codec.encode(value)) == value


@CODECS
@given(st.data())
def test_protobufs_own_json_is_the_same(codec: protobuf.MessageCodec, data: st.DataObject) -> None:
    value = data.draw(messages(codec._message))
    payload = codec.encode(value)
    assert codec.decode(payload) == value
    assert codec.walk(payload) == value
    theirs = parsed(codec, payload)
    said = MessageToDict(theirs, preserving_proto_field_name=True)
    if "_unknown_fields" not in repr(value) and not closed_unknown(codec, value):
        assert said == mapped(codec._message, value)
        # protobuf prints the largest float, and does not read what it printed.
        if "3.4028235e+38" not in repr(value):
            again = ParseDict(said, type(theirs)()).SerializeToString()
            assert codec.decode(again) == value


def closed_unknown(codec: protobuf.MessageCodec, value: Any) -> bool:
    """protobuf has numbers that an enum of proto2 does not name among the unknown fields."""
    return codec is CODEC2 and any(str(number) in repr(value) for number in range(1000, 2001))


@CODECS
@given(st.data())
def test_the_leaves_of_explain_are_the_values_of_decode(
    codec: protobuf.MessageCodec, data: st.DataObject
) -> None:
    value = data.draw(messages(codec._message))
    payload = codec.encode(value)
    piece = codec.explain(payload)
    assert (piece.begin, piece.end, piece.name) == (0, len(payload), "")
    assert value_of(piece, value) == value
    tiles(piece)
    for field in piece.pieces:
        # A field's bytes alone are a message with that field.
        if not any(each.required for each in codec._message.fields.values()):
            alone = codec.decode(payload[field.begin : field.end])
            assert list(alone) in ([field.name], [])


def value_of(piece: Piece, like: Any) -> Any:
    """The value that pieces tell."""
    if not piece.pieces:
        return piece.value
    if piece.type.startswith("map<"):
        out = {}
        for entry in piece.pieces:
            parts = {each.name: each for each in entry.pieces}
            name = walk.key_name(parts["key"].value)
            out[name] = value_of(parts["value"], like[name])
        return out
    if isinstance(like, list):
        return [value_of(*pair) for pair in zip(piece.pieces, like, strict=True)]
    return {each.name: value_of(each, like.get(each.name)) for each in piece.pieces}


def tiles(piece: Piece) -> None:
    """Each piece begins where the one before it ends; only a tag and a length come before them."""
    if not piece.pieces:
        return
    assert piece.pieces[0].begin - piece.begin <= 10
    for one, other in zip(piece.pieces, piece.pieces[1:], strict=False):
        assert one.end == other.begin
    # Behind the parts of a group is its end.
    assert piece.pieces[-1].end <= piece.end <= piece.pieces[-1].end + 5
    for each in piece.pieces:
        tiles(each)


@CODECS
@given(st.data())
def test_a_prefix_is_refused_or_ends_between_fields(
    codec: protobuf.MessageCodec, data: st.DataObject
) -> None:
    value = data.draw(messages(codec._message, 2))
    payload = codec.encode(value)
    borders = {0} | {each.end for each in codec.explain(payload).pieces}
    for each in codec.explain(payload).pieces:
        borders |= {part.end for part in each.pieces}
    for end in range(len(payload)):
        if (error := tried(codec.decode, payload[:end])[1]) is None:
            assert end in borders
        else:
            assert error.offset <= end


def scramble(codec: protobuf.MessageCodec, rnd: random.Random, depth: int = 0) -> bytes:
    """Fields of all wire types, mostly the right ones."""
    out = b""
    for _ in range(rnd.randrange(4)):
        number = rnd.choice([*codec._message.fields, 50, 51])
        field = codec._message.fields.get(number)
        wire = KINDS[field.kind].wire if field else rnd.choice([0, 1, 2, 5])
        if rnd.random() < 0.03:
            wire = rnd.randrange(6)
        out += varint(number << 3 | wire)
        match wire:
            case 0:
                big = rnd.randrange(1 << 64)
                out += varint(rnd.choice([0, 1, 2, big, big & 0xFFFFFFFF, (1 << 64) - 2]))
            case 1:
                out += rnd.randbytes(8) if rnd.random() < 0.8 else bytes(8)
            case 5:
                out += rnd.randbytes(4)
            case 3:
                out += scramble(codec, rnd, depth + 1) if depth < 5 else b""
                out += varint(number << 3 | 4)
            case 2:
                inner = rnd.choice([b"", b"abc", "é".encode(), b"\xff", rnd.randbytes(3)])
                if field is not None and field.message is not None and depth < 5:
                    inner = scramble(codec, rnd, depth + 1)
                out += varint(len(inner)) + inner
    if out and rnd.random() < 0.1:
        out = out[: rnd.randrange(len(out))]
    if out and rnd.random() < 0.1:
        at = rnd.randrange(len(out))
        out = out[:at] + rnd.randbytes(1) + out[at + 1 :]
    return out


@CODECS
@given(st.randoms(use_true_random=False))
def test_the_fast_way_the_walk_and_protobuf_agree_on_any_bytes(
    codec: protobuf.MessageCodec, rnd: random.Random
) -> None:
    for _ in range(20):
        data = scramble(codec, rnd)
        if codec is CODEC2 and rnd.random() < 0.9:
            data += b"\x70\x01"
        codec.explain(data)
        try:
            value = codec.decode(data)
        except PayloadError as error:
            refused(codec.walk, data)
            # protobuf takes a wrong wire type for an unknown field, and keys of maps for bytes.
            known = "expected" in error.text or "UTF-8" in error.text or "required" in error.text
            if not known:
                with pytest.raises(DecodeError):
                    parsed(codec, data)
            continue
        parsed(codec, data)
        assert repr(codec.walk(data)) == repr(value)
        assert codec.decode(codec.encode(value)) == value


@CODECS
@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_an_error_of_ours(
    codec: protobuf.MessageCodec, data: bytes
) -> None:
    codec.explain(data)
    error = tried(codec.decode, data)[1]
    if error is None:
        codec.encode(codec.decode(data))
    else:
        assert error.reason == "does-not-fit"
        assert 0 <= error.offset <= len(data)


@pytest.mark.parametrize(
    ("hexadecimal", "path", "offset", "said"),
    [
        ("0a", "r", 1, "the end in a length"),
        ("0a05", "r", 1, "length 5, 0 bytes are left"),
        ("1005 0a04 1a02 2203", "r.rs[0].s", 7, "length 3, 0 bytes are left"),
        ("1105", "i", 0, "fixed64, expected varint of int32"),
        ("2202 c328", "s", 2, "text that is not UTF-8"),
        ("00", "", 0, "0 is not a field number and type"),
        ("14", "", 0, "end of group 2, which did not start"),
        ("10 ffffffffffffffffffff01", "i", 1, "int32 of more than 10 bytes"),
        ("5d 0000", "f", 1, "2 of 4 bytes of float"),
        ("2a 03 020480", "p[2]", 4, "the end in sint64"),
        ("9303", "", 2, "the end in a field's number"),
    ],
)
def test_what_does_not_fit_says_where(hexadecimal: str, path: str, offset: int, said: str) -> None:
    error = refused(CODEC3.decode, bytes.fromhex(hexadecimal))
    assert (error.reason, error.path, error.offset, error.text) == (
        "does-not-fit",
        path,
        offset,
        said,
    )


def test_a_required_field_that_is_missing_is_named() -> None:
    error = refused(CODEC2.decode, b"\x70\x01\x0a\x02\x10\x05")
    assert (error.path, error.text) == ("r.must", "is required, but missing")
    piece = CODEC2.explain(b"\x10\x05")
    assert "must: is required" in piece.pieces[-1].type


def test_unknown_fields_are_listed_as_they_came() -> None:
    data = bytes.fromhex("1005 c03e07 c93e0100000000000000 d23e0161 db3e c03e01 dc3e e53e02000000")
    value = CODEC3.decode(data)
    assert value == {
        "i": 5,
        "_unknown_fields": [
            {"field": 1000, "type": "varint", "value": 7},
            {"field": 1001, "type": "fixed64", "value": 1},
            {"field": 1002, "type": "bytes", "value": {"base64": "YQ=="}},
            {
                "field": 1003,
                "type": "group",
                "value": [{"field": 1000, "type": "varint", "value": 1}],
            },
            {"field": 1004, "type": "fixed32", "value": 2},
        ],
    }
    assert CODEC3.encode(value) == data


def test_forms_of_well_known_types() -> None:
    value = {
        "d": "NaN",
        "f": 0.1,
        "by": {"base64": "AP8="},
        "u": 0,
        "v": None,
        "w": 0,
        "e": 7,
        "st": {"a": [None, True, 1.5, "x", {}]},
        "fm": "a,bC.d",
        "em": {},
        "ts": "2026-03-01T12:00:01.001Z",
        "du": "-1.500s",
    }
    decoded = CODEC3.decode(CODEC3.encode(value))
    assert decoded == value
    assert type(decoded["ts"]) is Moment
    local = CODEC3.encode({"ts": "2026-03-01T14:00:01.001+02:00"})
    assert CODEC3.decode(local) == {"ts": "2026-03-01T12:00:01.001Z"}
    # What has no form of its own is shown by its fields.
    for odd in (
        {"ts": {"seconds": 1 << 60}},
        {"ts": {"nanos": -1}},
        {"du": {"seconds": 1, "nanos": -1}},
        {"fm": {"paths": ["aB"]}},
        {"w": {"value": 3, "_unknown_fields": [{"field": 9, "type": "varint", "value": 1}]}},
    ):
        assert CODEC3.decode(CODEC3.encode(odd)) == odd


def test_a_message_in_any_is_decoded_if_its_type_is_known() -> None:
    text = (
        'syntax = "proto3"; package t; import "google/protobuf/any.proto"; '
        'import "google/protobuf/timestamp.proto"; '
        "message A { google.protobuf.Any a = 1; int64 i = 2; }"
    )
    other = 'syntax = "proto3"; package u; message Other { string s = 1; }'
    asked = {"u.Other": other}
    codec = protobuf.compile(text, {}, asked.get, AT_ONCE).codec()
    for value in (
        {"a": {"@type": "type.googleapis.com/t.A", "i": 5, "a": {"@type": "x/t.A"}}},
        {"a": {"@type": "x/google.protobuf.Timestamp", "value": "2026-01-01T00:00:00Z"}},
        {"a": {"@type": "x/u.Other", "s": "text"}},
        {"a": {"type_url": "x/y.Unknown", "value": {"base64": "YQ=="}}},
        {"a": {}},
    ):
        data = codec.encode(value)
        assert codec.decode(data) == value
        assert codec.walk(data) == value
        assert codec.explain(data).pieces[0].value == value["a"]
    broken = bytes.fromhex("0a0a 0a05782f742e41 120110")
    error = refused(codec.decode, broken)
    assert error.path == "a.i"
    shown = codec.explain(broken).pieces[0]
    assert [(each.name, each.value) for each in shown.pieces] == [
        ("type_url", "x/t.A"),
        ("value", {"base64": "EA=="}),
    ]


def test_any_inside_of_any_costs_no_more_than_its_bytes() -> None:
    text = (
        'syntax = "proto3"; package t; import "google/protobuf/any.proto"; '
        "message A { google.protobuf.Any a = 1; int64 i = 2; }"
    )
    codec = codec_of(text)
    data = b"\x10\x05"
    for _ in range(3000):
        data = b"\x0a\x05x/t.A\x12" + varint(len(data)) + data
        data = b"\x0a" + varint(len(data)) + data
    assert "more than 16 nested Any messages" in refused(codec.decode, data).text


def test_what_reads_fast_is_made_for_types_that_come_often() -> None:
    codec = codec_of('syntax = "proto3"; message A { int32 a = 1; }', Limits(walked=3))
    for count in range(6):
        assert codec.decode(b"\x08\5") == {"a": 5}
        assert (codec._read is not None) == (count >= 3)


def nested(depth: int) -> bytes:
    data = b"\x10\x01"
    for _ in range(depth):
        data = b"\x0a" + varint(len(data)) + data
    return data


def test_depth_is_bounded_where_protobuf_bounds_it() -> None:
    assert CODEC3.decode(nested(LIMITS.nesting)) == CODEC3.walk(nested(LIMITS.nesting))
    assert "nested deeper" in refused(CODEC3.decode, nested(LIMITS.nesting + 1)).text
    with pytest.raises(DecodeError):
        parsed(CODEC3, nested(LIMITS.nesting + 1))
    assert "nested deeper" in refused(CODEC3.decode, b"\x93\x03" * 100000).text
    value: dict[str, Any] = {}
    for _ in range(LIMITS.nesting + 1):
        value = {"r": value}
    refused(CODEC3.encode, value)


def test_many_small_parts_cost_time_in_proportion() -> None:
    assert len(CODEC3.decode(b"\x1a\x00" * 200000)["rs"]) == 200000
    alternating = b"\x40\x01\x52\x00" * 100000
    assert CODEC3.walk(alternating) == {"c": ""}
    assert CODEC3.decode(alternating) == {"c": ""}


@pytest.mark.parametrize(
    ("value", "path", "said"),
    [
        ([], "", "[] is not an object of t.R"),
        ({"x": 1}, "x", "t.R has no such field"),
        ({"r": {"i": 1 << 31}}, "r.i", "2147483648 is not an int32"),
        ({"rs": [{}, {"s": 5}]}, "rs[1].s", "5 is not text"),
        ({"rs": {}}, "rs", "{} is not an array"),
        ({"m": {"a": {"bo": 1}}}, "m.a.bo", "1 is not true or false"),
        ({"me": {"x": 1}}, "me.x", "'x' is not an integer"),
        ({"e": "NOPE"}, "e", "'NOPE' is not a value of t.E"),
        ({"by": "AA"}, "by", "'AA' is not an object {\"base64\": text}"),
        ({"f": 1e300}, "f", "1e+300 is not a float"),
        ({"v": (1 << 53) + 1}, "v.number_value", "9007199254740993 is not a double"),
        ({"ts": "yesterday"}, "ts", "expected a time such as 2026-03-01T12:00:00.5Z"),
        ({"a": 1, "c": "x"}, "c", "beside a, of which oneof is either"),
        ({"s": "\ud800"}, "s", "text with an unpaired surrogate"),
        ({"_unknown_fields": [{"field": 0}]}, "_unknown_fields[0]", None),
    ],
)
def test_what_cannot_be_encoded_says_where(value: Any, path: str, said: str | None) -> None:
    error = refused(CODEC3.encode, value)
    assert error.path == path
    assert said is None or error.text == said


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*CODEC3._message.names, "_unknown_fields", "field", "type", "value"]),
            inner,
            max_size=4,
        )
    ),
)


@given(JSON)
def test_any_json_is_encoded_or_refused(value: Any) -> None:
    data, error = tried(CODEC3.encode, value)
    if error is None:
        CODEC3.decode(data)


def test_text_of_proto2_that_is_not_utf8_stays_bytes() -> None:
    data = b"\x70\x01\x22\x01\xff"
    value = CODEC2.decode(data)
    assert value == {"s": {"base64": "/w=="}, "must": 1}
    assert CODEC2.decode(CODEC2.encode(value)) == value


def test_keys_of_proto2_that_are_not_utf8_are_refused() -> None:
    codec = codec_of('syntax = "proto2"; message A { map<string, int32> m = 1; }', LIMITS)
    good, bad = b"\x0a\x05\x0a\x01a\x10\1", b"\x0a\x05\x0a\x01\xff\x10\1"
    for _ in range(LIMITS.walked + 2):
        assert codec.decode(good) == {"m": {"a": 1}}
    for data in (bad, good + bad):
        assert refused(codec.decode, data).text == "a key that is not UTF-8"


def test_extensions_have_their_full_names() -> None:
    value = {"must": 1, "[t.ext]": 5, "[t.exs]": [{"must": 2}]}
    assert CODEC2.decode(CODEC2.encode(value)) == value
