"""Schemas without docs, comments, defaults and examples."""

import base64
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas.avro import text as avro
from kafkascope.schemas.json import text as json_schema
from kafkascope.schemas.model import PayloadError
from kafkascope.schemas.protobuf import text as protobuf
from tests.kit.run import objects, output, run
from tests.kit.schemas import SAMPLES, capture

WORD = "qz7hidden"
ENUM = {"type": "enum", "name": "S", "symbols": ["A", "B"], "default": "A"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
AVRO = {
    "type": "record",
    "name": "default",
    "namespace": "shop",
    "doc": WORD,
    "aliases": [f"a.{WORD}"],
    "owner": {"mail": WORD},
    "fields": [
        {"name": "doc", "type": "string", "default": WORD, "doc": WORD, "example": WORD},
        {"name": "status", "type": ENUM, "default": "A"},
        {"name": "amount", "type": DECIMAL | {"connect.default": WORD}},
        {"name": "next", "type": ["null", "default"], "default": None, "order": "ignore"},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "S"}}},
    ],
}


def test_avro_keeps_what_says_how_bytes_are_read() -> None:
    made = avro.bare(json.dumps(AVRO))
    assert WORD not in made
    told = json.loads(made)
    assert [field["name"] for field in told["fields"]] == [
        *("doc", "status", "amount", "next", "tags")
    ]
    assert told["fields"][2]["type"]["scale"] == 2
    # The canonical form, which fingerprints are of, is the same.
    assert avro.canonical(made) == avro.canonical(json.dumps(AVRO))


PROTO = f"""// {WORD}
syntax = "proto2"; /* {WORD}
 */
package shop;
import "google/protobuf/descriptor.proto";
option java_package = "com.{WORD}";
option (secret) = {{ text: "{WORD}" more {{ a: "]; {WORD}" }} }};
extend google.protobuf.FieldOptions {{ optional string secret = 50000; }}
message option {{ // {WORD}
  option deprecated = true;
  optional string text = 1 [default = "{WORD} ]; // \\"x", deprecated = true];
  repeated int32 packed = 2 [(secret) = "{WORD}", packed = true, json_name = "{WORD}"];
  optional option next = 3;
  oneof choice {{
    option (secret) = "{WORD}";
    int64 one = 4 [default = 815];
    string url = 5 [default = "http://{WORD}"];
  }}
  enum Kind {{ option allow_alias = true; A = 0 [(secret) = "{WORD}"]; B = 0; }}
  extensions 100 to 200 [declaration = {{ number: 100 full_name: ".{WORD}" type: "x" }}];
  reserved "gone";
}}
service Shop {{ // {WORD}
  rpc Buy (option) returns (option) {{ option (secret) = "{WORD}"; }}
}}
"""


def test_protobuf_keeps_what_says_how_bytes_are_read() -> None:
    made = protobuf.bare(PROTO)
    assert WORD not in made
    assert "815" not in made
    assert "packed = true" in made
    assert "allow_alias" in made
    assert "java_package" not in made
    assert "rpc Buy" in made
    assert protobuf.proto_of(made, "") == protobuf.proto_of(PROTO, "")


def test_protobuf_as_a_descriptor_loses_the_same() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="shop", syntax="proto2")
    file.options.java_package = WORD
    file.source_code_info.location.add(leading_comments=WORD)
    message = file.message_type.add(name="Order")
    field = message.field.add(name="n", number=1, label=1, type=9, default_value=WORD)
    field.options.ParseFromString(bytes([0x10, 1, 0xFA, 0x86, 0x19, len(WORD)]) + WORD.encode())
    text = base64.b64encode(file.SerializeToString()).decode()
    assert WORD.encode() in base64.b64decode(text)
    made = base64.b64decode(protobuf.bare(text))
    assert WORD.encode() not in made
    back = descriptor_pb2.FileDescriptorProto.FromString(made)
    assert (back.message_type[0].field[0].name, back.package) == ("n", "shop")
    assert back.message_type[0].field[0].options.packed


JSON: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "http://example.com/a.json",
    "title": WORD,
    "description": WORD,
    "$comment": WORD,
    "x-owner": WORD,
    "type": "object",
    "default": {"name": WORD},
    "properties": {
        "default": {"type": "string", "default": WORD, "examples": [WORD], "maxLength": 5},
        "title": {"$ref": "#/components/schemas/Inner"},
        "list": {"type": "array", "items": {"type": "string", "example": WORD}},
        "either": {"oneOf": [{"const": "a", "title": WORD}, True]},
    },
    "components": {"schemas": {"Inner": {"type": "integer", "description": WORD}}, "x": WORD},
    "required": ["default"],
}


def test_json_schema_keeps_what_says_which_values_fit() -> None:
    made = json_schema.bare(json.dumps(JSON))
    told = json.loads(made)
    assert WORD not in made
    assert told["properties"]["default"] == {"type": "string", "maxLength": 5}
    assert told["components"]["schemas"]["Inner"] == {"type": "integer"}
    assert told["properties"]["either"] == {"oneOf": [{"const": "a"}, True]}
    assert told["required"] == ["default"]


@pytest.mark.parametrize("made", [avro.bare, protobuf.bare, json_schema.bare])
@given(text=st.one_of(st.text(max_size=60), st.text('{}[]()"type:;,=message 1', max_size=60)))
def test_any_text_gives_a_schema_or_an_error_of_ours(made: Any, text: str) -> None:
    try:
        again = made(text)
    except PayloadError:
        return
    assert made(again) == again


NAMES = sorted(path.name for path in (SAMPLES / "schemas").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_values_are_decoded_as_before(name: str, tmp_path: Path) -> None:
    def told(schemas: Path) -> list[dict[str, Any]]:
        records = objects("records", capture(name), "--schemas", schemas, "--json", codes=range(9))
        for one in records:
            for side in ("key_schema", "value_schema"):
                # The name of a JSON Schema is its title.
                if one.get(side, {}).get("format") == "json":
                    del one[side]["type"]
        return records

    out = tmp_path / "out"
    given_ = SAMPLES / "schemas" / name
    words = ["schemas", capture(name), "--schemas", given_, "--redact", "all"]
    said = output(*words, "-o", out, "--json")
    assert "127.0.0.1" not in said
    assert str(SAMPLES) not in said
    assert told(out) == told(given_)
    texts = b"".join(path.read_bytes() for path in out.iterdir())
    for word in (b'"doc"', b'"default"', b'"description"', b'"examples"', b'"title"', b"//"):
        assert word not in texts.replace(b"http://", b"")


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    home = tmp_path / "in"
    home.mkdir()
    (home / "1.avsc").write_text('{"type": "record", "doc": "' + WORD)
    (home / "2.avsc").write_bytes(orjson.dumps(AVRO))
    out = tmp_path / "out"
    done = run("schemas", capture("bad-schemas"), "--schemas", home, "--redact", "all", "-o", out)
    assert "1 schemas left out" in done.output
    assert sorted(path.name for path in out.iterdir()) == ["2.avsc", "index.json"]
    assert WORD not in done.output + (out / "2.avsc").read_text()
