"""Keys and values with the schemas that are known: which is taken, what is said where none fits."""

import base64
import json
from typing import Any
from uuid import UUID

import pytest

from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import Assigned, KnownSchemas
from kafkascope.schemas.model import Reference, Schema, SchemaKey, Source
from tests.kit.schemas import record

POINT = json.dumps(record("Point", x="int"))
NAME = json.dumps(record("N", n="string"))
LINE = json.dumps(record("L", p="Point"))
PROTO = 'syntax = "proto3"; message A { string a = 1; } message B { message C { int32 c = 1; } }'


def avro(text: str, number: int, source: Source = "folder", **more: Any) -> Schema:
    return Schema("avro", text, (SchemaKey("id", number),), source=source, **more)


def decode(known: KnownSchemas, data: bytes, topic: str = "t", headers: Any = ()) -> Any:
    return Payloads(known).decode(topic, "value", data, headers)


def test_a_value_is_decoded_by_the_schema_that_it_names() -> None:
    known = KnownSchemas([avro(POINT, 7, subjects=(("other", 1), ("t-value", 2)))])
    found = decode(known, b"\0\0\0\0\7\2")
    assert (found.value, found.error) == ({"x": 1}, None)
    assert found.found.as_json() == {
        "format": "avro",
        "id": 7,
        "subject": "t-value",
        "type": "Point",
        "source": "folder",
    }


def test_the_first_source_that_knows_an_id_wins() -> None:
    known = KnownSchemas([avro(NAME, 7, "capture"), avro(POINT, 7)])
    assert decode(known, b"\0\0\0\0\7\2").value == {"x": 1}
    assert decode(known, b"\0\0\0\0\7\2").found.schema.source == "folder"


def test_of_two_schemas_with_one_id_that_is_taken_which_fits() -> None:
    known = KnownSchemas([avro(POINT, 7, "capture"), avro(NAME, 7, "capture")])
    assert decode(known, b"\0\0\0\0\7\4ab").value == {"n": "ab"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\0\7", "does-not-fit"),
        (b"\0\0\0\0\7\2\2", "surplus"),
        (b"\0\0\0\0\x08\2", "unknown-schema"),
        (b"\0\0\0\0\x09\2", "bad-schema"),
    ],
)
def test_what_cannot_be_decoded_says_why(data: bytes, reason: str) -> None:
    known = KnownSchemas([avro(POINT, 7), avro("{", 9)])
    found = decode(known, data)
    assert (found.value, found.error.reason) == (None, reason)


@pytest.mark.parametrize(
    "data", [b"\0", b"\0hello there", bytes(8), b"\0\0\0\0\x08\0\0\0", b"plain", b""]
)
def test_what_only_looks_like_a_schema_stays_what_it_is(data: bytes) -> None:
    assert decode(KnownSchemas([avro(POINT, 7)]), data) is None


def test_of_eight_bytes_a_known_schema_that_fits_is_believed() -> None:
    assert decode(KnownSchemas([avro(NAME, 7)]), b"\0\0\0\0\7\4ab").value == {"n": "ab"}


def test_apicurios_int64_is_read_and_the_artifact_comes_first() -> None:
    known = KnownSchemas(
        [
            Schema("avro", POINT, (SchemaKey("globalId", 4), SchemaKey("contentId", 2))),
            Schema("avro", POINT, (SchemaKey("contentId", 4),), source="capture"),
        ]
    )
    found = decode(known, b"\0" + bytes(7) + b"\4\2")
    assert (found.value, found.key) == ({"x": 1}, SchemaKey("globalId", 4))


UNION = json.dumps(record("U", a=["null", "string"], b="bytes"))


@pytest.mark.parametrize("head", [b"\0" + bytes(7) + b"\4", b"\0\0\0\0\4"], ids=["long", "int"])
@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (POINT, b'{"x": 7}', {"x": 7}),
        (
            UNION,
            b'{"a":{"string":"\xc3\xa9"},"b":"\\u00ff"}',
            {"a": "\u00e9", "b": {"base64": "/w=="}},
        ),
        (UNION, b'{"a": null, "b": ""}', {"a": None, "b": {"base64": ""}}),
    ],
    ids=["numbers", "unions", "null"],
)
def test_apicurios_json_encoding_behind_an_id(
    head: bytes, schema: str, text: bytes, value: Any
) -> None:
    """No header says that the payload is JSON."""
    known = KnownSchemas([Schema("avro", schema, (SchemaKey("globalId", 4),))])
    found = decode(known, head + text)
    assert (found.error, found.found.at) == (None, len(head))
    assert found.value == value
    assert found.found.codec.explain(found.found.data) is not None


@pytest.mark.parametrize("text", [b'{"x": "seven"}', b'{"x": 7', b'{"y": 7}', b"[7]"])
def test_json_that_its_schema_does_not_fit(text: bytes) -> None:
    known = KnownSchemas([Schema("avro", POINT, (SchemaKey("globalId", 4),))])
    found = decode(known, b"\0" + bytes(7) + b"\4" + text)
    assert (found.value, found.error.reason) == (None, "surplus")


def test_protobuf_says_which_message_it_is() -> None:
    known = KnownSchemas(
        [Schema("protobuf", PROTO, (SchemaKey("id", 3), SchemaKey("globalId", 5)))]
    )
    assert decode(known, b"\0\0\0\0\3\0\x0a\1z").value == {"a": "z"}
    assert decode(known, b"\0\0\0\0\3\4\2\0\x08\1").value == {"c": 1}
    named = b"\0" + bytes(7) + b"\5\3\x0a\1A\x0a\1z"
    assert decode(known, named).value == {"a": "z"}
    assert decode(known, b"\0\0\0\0\3\2\x12\x0a\1z").error.reason == "does-not-fit"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"\x0a\x01x", {"a": "x"}),  # as KafkaJS writes it: no index
        (b"\0\x0a\x01x", {"a": "x"}),
        (b"\x02\x02", {}),  # the index of B
        (b"", None),
        (b"\x10\x05", None),  # a field that A does not know
        (b"\x0a\x01x\x10\x05", None),
        (b"\x0a\x05x", None),
        (b"\x01\x01", {}),  # the index of B in Confluent's deprecated format
        (b"\x02\x01\0\x08\5", {"c": 5}),  # of B.C
        (b"\x02\x08", None),  # the index of no message
        (b"\x04\x02\x08\x0a", None),
    ],
)
def test_protobuf_without_an_index_is_the_first_message(payload: bytes, expected: object) -> None:
    known = KnownSchemas([Schema("protobuf", PROTO, (SchemaKey("id", 3),))])
    found = Payloads(known).decode("t", "value", b"\0\0\0\0\3" + payload, ())
    assert (found.value, found.error is None) == (expected, expected is not None)


@pytest.mark.parametrize(
    ("payload", "name"),
    [  # as schema-registry-serde 1.1.24 writes them
        ("000a0176", "p.Alpha"),
        ("020a0176", "p.Mid"),
        ("040a0176", "p.Zeta"),
        ("060a0176", "p.Zeta.Inner.Deep"),
        ("070a0176", None),
    ],
)
def test_glue_counts_the_messages_of_a_file_by_name(payload: str, name: str | None) -> None:
    text = (
        'syntax = "proto3"; package p; message Zeta { string v = 1; message Inner { string v = 1; '
        "message Deep { string v = 1; } } } message Alpha { string v = 1; message In {} } "
        "message Mid { string v = 1; map<string, string> m = 2; }"
    )
    guid = UUID(int=9)
    known = KnownSchemas([Schema("protobuf", text, (SchemaKey("guid", str(guid)),))])
    decoded = decode(known, b"\3\0" + guid.bytes + bytes.fromhex(payload))
    assert decoded.found is None if name is None else decoded.found.as_json()["type"] == name
    assert decoded.value == (name and {"v": "v"})


def test_a_single_object_of_avro_is_found_by_its_fingerprint() -> None:
    from kafkascope.schemas.avro.text import fingerprint

    data = b"\xc3\1" + fingerprint(POINT).to_bytes(8, "little") + b"\2"
    assert decode(KnownSchemas([avro(POINT, 7)]), data).value == {"x": 1}


def test_confluent_writes_bytes_without_their_length_and_nobody_else_does() -> None:
    known = KnownSchemas(
        [Schema("avro", '"bytes"', (SchemaKey("id", 7), SchemaKey("globalId", 8)))]
    )
    shown = {"base64": base64.b64encode(b"ab").decode()}
    assert decode(known, b"\0\0\0\0\7ab").value == shown
    assert decode(known, b"\0\0\0\0\x08\4ab").value == shown


def test_a_schema_that_the_user_gave_serves_values_without_an_id() -> None:
    known = KnownSchemas(assigned={("t", "value"): Assigned(Schema("avro", POINT))})
    assert decode(known, b"\2").value == {"x": 1}
    assert decode(known, b"\2").found.as_json()["type"] == "Point"
    assert decode(known, b"\2", "u") is None
    assert decode(known, b"\2\2").error.reason == "surplus"


def test_references_are_found_by_subject_and_by_name() -> None:
    for references, subjects in (((Reference("Point", "points", 1),), (("points", 1),)), ((), ())):
        known = KnownSchemas(
            [avro(POINT, 1, subjects=subjects), avro(LINE, 2, references=references)]
        )
        assert decode(known, b"\0\0\0\0\2\2").value == {"p": {"x": 1}}


def test_the_registry_is_asked_once_and_the_capture_read_last() -> None:
    asked: list[SchemaKey] = []
    reads: list[int] = []

    def registry(key: SchemaKey) -> Schema | None:
        asked.append(key)
        return avro(POINT, 7, "registry") if key == SchemaKey("id", 7) else None

    def complete() -> list[Schema]:
        reads.append(1)
        return [avro(NAME, 8, "capture")]

    payloads = Payloads(KnownSchemas(registry=registry, complete=complete))
    for _ in range(2):
        seven = payloads.decode("t", "value", b"\0\0\0\0\7\2", ())
        eight = payloads.decode("t", "value", b"\0\0\0\0\x08\4ab", ())
        nine = payloads.decode("t", "value", b"\0\0\0\0\x09\6abc", ())
    assert seven.found.schema.source == "registry"
    assert eight.value == {"n": "ab"}
    assert nine.error is not None
    assert payloads.decode("t", "value", b"\0text of a million", ()) is None
    assert len(asked) == len(set(asked))
    assert all(isinstance(each.value, int) and each.value < 10 for each in asked)
    assert reads == [1]


def test_what_comes_later_serves_as_well() -> None:
    known = KnownSchemas()
    payloads = Payloads(known)
    before = payloads.decode("t", "value", b"\0\0\0\0\7\2", ())
    assert before.error is not None
    known.add(avro(POINT, 7, "capture"))
    after = payloads.decode("t", "value", b"\0\0\0\0\7\2", ())
    assert after.value == {"x": 1}


def test_what_refers_to_a_schema_waits_for_it() -> None:
    known = KnownSchemas([avro(LINE, 2, "capture")])
    assert decode(known, b"\0\0\0\0\2\2").error.reason == "bad-schema"
    known.add(avro(POINT, 1, "capture"))
    assert decode(known, b"\0\0\0\0\2\2").value == {"p": {"x": 1}}


def test_the_parts_count_from_the_start_of_the_value() -> None:
    payloads = Payloads(KnownSchemas([avro(POINT, 7)]))
    decoded = payloads.decode("t", "value", b"\0\0\0\0\7\2", ())
    assert decoded.found is not None
    piece = payloads.explain(decoded.found)
    assert (piece.begin, piece.end, piece.pieces[0].name, piece.pieces[0].value) == (5, 6, "x", 1)
