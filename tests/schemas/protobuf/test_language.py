"""Schemas of Protobuf: protoc's descriptors are the witness; none may hang or raise another
error."""

import base64
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas.limits import LIMITS, Limits
from kafkascope.schemas.model import PayloadError
from kafkascope.schemas.protobuf import changes, files, grammar
from kafkascope.schemas.protobuf import codec as protobuf
from kafkascope.schemas.protobuf.text import defined_names
from tests.kit.schemas import nothing, refused

SAMPLES = Path(__file__).parents[1] / "samples"
KEPT = {"packed", "map_entry", "message_set_wire_format", "allow_alias", "deprecated", "features"}
PROTO3 = 'syntax = "proto3"; package p;\n'
AT_ONCE = Limits(walked=0)
"""The first messages of a type are read the fast way, too."""


def compiled(text: str, dependencies: dict[str, str] | None = None) -> protobuf.CompiledProtobuf:
    return protobuf.compile(text, dependencies or {}, nothing, AT_ONCE)


def refusal(text: str, dependencies: dict[str, str] | None = None) -> str:
    error = refused(compiled, text, dependencies)
    assert error.reason == "bad-schema"
    assert len(error.text) < 500
    return error.text


def what_counts(proto: Any) -> Any:
    """A descriptor without what bytes and JSON forms do not depend on."""
    for name in ("name", "service", "dependency", "syntax", "source_code_info"):
        proto.ClearField(name)
    if proto.HasField("options") and not proto.options.features.ListFields():
        proto.ClearField("options")
    elif proto.HasField("options"):
        clear_options(proto.options)
    stack = [*proto.message_type, *proto.enum_type, *proto.extension]
    while stack:
        each = stack.pop()
        for name in ("json_name", "default_value", "visibility"):
            if name in each.DESCRIPTOR.fields_by_name:
                each.ClearField(name)
        clear_options(each.options)
        if not each.options.ListFields():
            each.ClearField("options")
        for inner in ("field", "extension", "enum_type", "nested_type", "value", "oneof_decl"):
            stack.extend(getattr(each, inner, ()))
        for one in getattr(each, "extension_range", ()):
            one.ClearField("options")
    return proto


def clear_options(options: Any) -> None:
    for field, _ in options.ListFields():
        if field.name not in KEPT:
            options.ClearField(field.name)
    options.DiscardUnknownFields()


@pytest.mark.parametrize("name", ["odd2", "odd3", "ed"])
def test_source_text_compiles_to_protocs_descriptor(name: str) -> None:
    from google.protobuf import descriptor_pb2

    loaded = files.load((SAMPLES / f"{name}.proto").read_text(), {}, nothing)
    theirs = descriptor_pb2.FileDescriptorProto.FromString(
        base64.b64decode((SAMPLES / f"{name}.base64").read_text())
    )
    assert what_counts(loaded.protos[loaded.file.name]) == what_counts(theirs)


@pytest.mark.parametrize("name", ["odd2", "odd3", "ed"])
def test_a_descriptor_in_base64_is_the_same_schema(name: str) -> None:
    source = compiled((SAMPLES / f"{name}.proto").read_text())
    descriptor = compiled((SAMPLES / f"{name}.base64").read_text())
    names = defined_names((SAMPLES / f"{name}.base64").read_text())
    assert names == defined_names((SAMPLES / f"{name}.proto").read_text())
    assert source.codec().type_name == descriptor.codec().type_name


def test_messages_are_found_by_index_and_by_name() -> None:
    schema = compiled(
        PROTO3
        + "message A { map<string, C> m = 1; message B { message C {} } map<int32, C> n = 2; "
        "message C {} } message D { message B {} } enum E { Z = 0; }"
    )
    for which, name in (
        (None, "p.A"),
        ((0,), "p.A"),
        ((1,), "p.D"),
        ((0, 1), "p.A.B"),
        ((0, 1, 0), "p.A.B.C"),
        # As Python counts, entries of maps have numbers too; as Java counts, they have none.
        ((0, 3), "p.A.C"),
        ((0, 0), "p.A.B"),
        ("p.D", "p.D"),
        (".p.D", "p.D"),
        ("D", "p.D"),
        ("D.B", "p.D.B"),
    ):
        assert schema.codec(which).type_name == name
    for missing in ((2,), (0, 9), (0, 1, 0, 0), (-1,), "X", "B", "p", "E"):
        assert refused(schema.codec, missing).reason == "does-not-fit"


def test_the_message_decides_whether_its_index_counts_entries_of_maps() -> None:
    schema = compiled(
        PROTO3 + "message A { map<string, string> m = 1; message B { string b = 1; } "
        "message C { int32 c = 5; message D { bool d = 9; } } }"
    )
    for index, data, name in (  # the first three as schemaregistry 1.10 for JavaScript writes them
        ((0, 0), b"\x0a\2bb", "p.A.B"),
        ((0, 1), b"\x28\7", "p.A.C"),
        ((0, 1, 0), b"\x48\1", "p.A.C.D"),
        ((0, 1), b"\x0a\2bb", "p.A.B"),
        ((0, 2), b"\x28\7", "p.A.C"),
        ((0, 1), b"\x70\1", "p.A.B"),  # unknown to both
    ):
        assert schema.codec(index, data).type_name == name


def test_a_map_that_is_spelled_as_its_entries_is_one() -> None:
    entry = "message MEntry { option map_entry = true; string key = 1; int64 value = 2; }"
    codec = compiled(PROTO3 + f"message A {{ repeated MEntry m = 1; {entry} }}").codec()
    assert codec.decode(codec.encode({"m": {"": 0, "x": 1}})) == {"m": {"": 0, "x": 1}}
    assert codec.decode(b"\x0a\0") == {"m": {"": 0}}
    wrong = PROTO3 + "message A { option map_entry = true; string x = 1; }"
    assert "not a map entry" in refusal(wrong)


def test_imports_are_found_by_path_by_protobuf_and_by_asking() -> None:
    text = (
        PROTO3 + 'import "a/money.proto"; import "google/protobuf/timestamp.proto";'
        'import "options.proto"; import "asked.proto";'
        "message A { a.Money m = 1; google.protobuf.Timestamp t = 2; q.Asked q = 3; r.Type r = 4; }"
    )
    asked = []

    def lookup(name: str) -> str | None:
        asked.append(name)
        known = {
            "asked.proto": PROTO3.replace("p;", "q;") + "message Asked { int32 i = 1; }",
            "r.Type": PROTO3.replace("p;", "r;") + "message Type { int32 i = 1; }",
        }
        return known.get(name)

    money = PROTO3.replace("p;", "a;") + "message Money { int64 units = 1; }"
    schema = protobuf.compile(text, {"a/money.proto": money}, lookup, AT_ONCE)
    codec = schema.codec()
    value = {"m": {"units": 5}, "t": "2026-01-01T00:00:00Z", "q": {"i": 1}, "r": {"i": 2}}
    assert codec.decode(codec.encode(value)) == value
    assert "options.proto" in asked
    assert "google/protobuf/timestamp.proto" not in asked
    assert defined_names(text) == ["p.A"]


def test_one_file_may_be_imported_by_two_paths() -> None:
    money = "package a; message Money { optional int64 units = 1; }"
    other = PROTO3 + 'import "money.proto"; message B { a.Money m = 1; }'
    text = PROTO3 + 'import "a/money.proto"; import "b"; message A { a.Money m = 1; B b = 2; }'
    schema = compiled(text, {"a/money.proto": money, "money.proto": money, "b": other})
    assert schema.codec().decode(b"\x0a\x02\x08\x05") == {"m": {"units": 5}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("syntax = 'proto4';", "line 1: unknown syntax 'proto4'"),
        ('edition = "1999";', "unknown edition"),
        (PROTO3 + "message A {\n  int32 a = 0; }", "line 3: 0 is not a valid field number"),
        (PROTO3 + "message A { int32 a = 99999999999999999999999; }", "expected a number"),
        (PROTO3 + "message A { int32 a 1; }", "expected '=', found '1'"),
        (PROTO3 + "message A { X x = 1; }", "p.A.x: the type X is not defined"),
        (PROTO3 + 'import "x"; message A { x.X x = 1; }', "x is missing"),
        (PROTO3 + "message A { map<float, int32> m = 1; }", "is not allowed as a map key"),
        (PROTO3 + "message A {} message A {}", "duplicate symbol"),
        (PROTO3 + "message A { int32 a = 1; int32 b = 1; }", "duplicate field number"),
        (PROTO3 + "message A {" * 100, "nested deeper than 32"),
        (PROTO3 + "option (x) = " + "{" * 10000, "expected a closing bracket"),
        (PROTO3 + "/*" * 10000, "unexpected '*'"),
        (PROTO3 + "message \x00", "unexpected '\\x00'"),
        ("AAAA", "neither source text nor base64"),
        (base64.b64encode(bytes(range(200))).decode(), "neither source text nor base64"),
        ("x" * (LIMITS.schema_chars + 1), "more than"),
    ],
)
def test_an_error_says_what_is_wrong(text: str, said: str) -> None:
    assert said in refusal(text)


def test_imports_in_a_circle_are_refused() -> None:
    first = PROTO3 + 'import "b"; message A { B b = 1; }'
    second = PROTO3 + 'import "c"; message B {}'
    third = PROTO3 + 'import "b"; message C {}'
    assert "imports itself" in refusal(first, {"b": second, "c": third})
    endless = {str(n): PROTO3 + f'import "{n + 1}"; message M{n} {{}}' for n in range(1500)}
    assert "more than 1000 files" in refusal(PROTO3 + 'import "0";', endless)


def test_a_schema_of_ten_thousand_types_costs_seconds() -> None:
    types = (f"message M{n} {{ M{(n + 1) % 10000} m = 1; int32 i = 2; }}\n" for n in range(10000))
    text = PROTO3 + "".join(types)
    begin = time.perf_counter()
    codec = compiled(text).codec()
    assert codec.decode(b"\x0a\x02\x10\x05") == {"m": {"i": 5}}
    # Two seconds on a machine that does nothing else.
    assert time.perf_counter() - begin < 30


def test_names_that_protobufs_objects_have_are_names_of_fields() -> None:
    names = ["HasField", "ByteSize", "__class__", "__dict__", "from", "None", "Extensions", "m"]
    fields = "".join(f"optional int32 {name} = {n + 1}; " for n, name in enumerate(names))
    codec = compiled(f"message A {{ {fields} }}").codec()
    value = {name: n for n, name in enumerate(names)}
    assert codec.decode(codec.encode(value)) == value


def test_a_type_with_the_name_of_a_well_known_one_may_be_another() -> None:
    codec = compiled(
        "package google.protobuf; message Timestamp { optional string seconds = 1; }"
    ).codec()
    assert codec.decode(b"\x0a\x01a") == {"seconds": "a"}


SEED = (
    PROTO3 + "message A { map<string, int32> m = 1; oneof o { int32 a = 2; A b = 3; } "
    "optional int32 c = 4; repeated E e = 5; message N { reserved 1 to 3; } } "
    "enum E { Z = 0; B = 1; }"
)
PAYLOADS = (b"", b"\x0a\x05\x0a\x01a\x10\x01\x10\x01", bytes(range(12)))


def use(text: str) -> None:
    """Do all that can be done with a schema; errors of ours only."""
    try:
        codec = compiled(text).codec()
    except PayloadError:
        return
    for data in PAYLOADS:
        codec.explain(data)
        try:
            codec.encode(codec.decode(data))
        except PayloadError:
            pass


@given(st.randoms(use_true_random=False))
def test_a_changed_descriptor_gives_errors_of_ours(rnd: random.Random) -> None:
    loaded = files.load(SEED, {}, nothing)
    data = bytearray(loaded.protos[loaded.file.name].SerializeToString())
    for _ in range(rnd.randrange(1, 4)):
        at = rnd.randrange(len(data))
        data[at : at + rnd.randrange(2)] = rnd.randbytes(rnd.randrange(3))
    use(base64.b64encode(data).decode())


@given(st.randoms(use_true_random=False))
def test_a_changed_source_gives_errors_of_ours(rnd: random.Random) -> None:
    text = SEED
    pieces = [*'{}[]<>=;.,"/ 1\ud800\0é', " message ", " oneof x {", "map<", "group G = 9 {", ""]
    for _ in range(rnd.randrange(1, 4)):
        at = rnd.randrange(len(text))
        text = text[:at] + rnd.choice(pieces) + text[at + rnd.randrange(3) :]
    use(text)


@given(st.text())
def test_any_text_is_a_schema_or_an_error_of_ours(text: str) -> None:
    try:
        grammar.parse(text, "x")
    except PayloadError:
        pass


STRING, INT, MAP = "string a = 1;", "int32 a = 1;", "map<string, %s> m = 1;"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (STRING, STRING + " int32 b = 2;", []),
        (STRING, "", []),
        (INT, "uint64 a = 1;", []),
        (INT, "int32 b = 1;", []),
        (INT, "string b = 1;", ["A.a: number 1 was int32, is string, used by b"]),
        (INT, "sint32 a = 1;", ["A.a: number 1 was int32, is sint32"]),
        (INT, "bool b = 1;", ["A.a: number 1 (int32) is used by b (bool)"]),
        (INT, "int32 a = 2;", ["A.a: number 1 is now 2"]),
        (INT, "repeated int32 a = 1;", ["A.a: is repeated now"]),
        (STRING, "repeated string a = 1;", []),
        (INT + " int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }",
         ["A.o: now contains fields that were outside this oneof"]),
        (MAP % "int32", MAP % "string",
         ["A.m: number 1 was map<string, int32>, is map<string, string>"]),
    ],
)  # fmt: skip
def test_breaking_changes_of_a_message(old: str, new: str, said: list[str]) -> None:
    one, other = (PROTO3 + f"message A {{ {each} }}" for each in (old, new))
    assert changes.breaking_changes(one, other) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("message A { string a = 1; }", "message B { }", ["message A removed"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; B = 1; }", ["E.A: number 1 is now B"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; }", ["E.A: value 1 removed"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; A = 2; }", ["E.A: number 1 is now 2"]),
    ],
)
def test_breaking_changes(old: str, new: str, said: list[str]) -> None:
    assert changes.breaking_changes(PROTO3 + old, PROTO3 + new) == said


def test_required_fields_break() -> None:
    old, new = "message A { }", "message A { required int32 a = 1; }"
    assert changes.breaking_changes(old, new) == ["A.a: required field added"]
    assert changes.breaking_changes(new, old) == ["A.a: required field removed"]
