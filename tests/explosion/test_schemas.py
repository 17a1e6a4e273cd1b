"""What registries, and topics that pretend to be theirs, can say without end; with
`tests/explosion/schemas.py` in `test_growth`."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.schemas import known
from kafkascope.schemas.avro import text as avro_text
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.json import codec as json_schema
from kafkascope.schemas.known import IncomingSchemas, KnownSchemas
from kafkascope.schemas.limits import LIMITS, Limits
from kafkascope.schemas.model import PayloadError, Reference, Schema, SchemaKey
from kafkascope.schemas.observed import ObservedSchemas
from kafkascope.schemas.parts import SchemaObservation
from tests.explosion.measuring import assert_fits
from tests.explosion.schemas import (
    http_list,
    journal,
    json_values,
    proto_fields,
    records_of_items,
    schema,
    subjects,
    value,
    write_http,
    written,
)
from tests.explosion.turns import Turn, write_capture
from tests.kit.run import run

LEFT_OUT = f"id 1 has more than {LIMITS.texts_of_entry} schemas; the later ones are left out"


def enum(number: int) -> str:
    return json.dumps({"type": "enum", "name": f"E{number}", "symbols": ["A"]})


def key(number: int) -> SchemaKey:
    return SchemaKey("id", number)


def avro(number: int) -> Schema:
    return Schema("avro", enum(number), (key(number),))


def add(
    told: ObservedSchemas, number: int, text: str = "", host: str = "here", **more: Any
) -> None:
    """A host tells of a schema."""
    told.add(host, host, SchemaObservation((key(number),), text, **more))


@pytest.mark.timeout(60)
def test_one_id_has_some_schemas_and_a_sentence() -> None:
    # Each text was compared with all others: 3,000 took half a minute.
    told = ObservedSchemas("capture")
    for number in range(20_000):
        add(told, 1, enum(number))
    assert [each.text for each in told.schemas()] == [enum(n) for n in range(LIMITS.texts_of_entry)]
    assert told.problems == [LEFT_OUT]


@pytest.mark.timeout(60)
def test_one_id_of_very_many_registries_has_some_schemas() -> None:
    told = ObservedSchemas("capture")
    for number in range(20_000):
        add(told, 1, enum(number), f"host{number}")
    assert len(told.schemas()) == LIMITS.texts_of_entry
    assert told.problems == [LEFT_OUT]


@pytest.mark.timeout(60)
def test_one_schema_of_very_many_registries_names_some_of_them() -> None:
    told = ObservedSchemas("capture")
    for number in range(20_000):
        add(told, 1, '"int"', f"host{number}")
    (found,) = told.schemas()
    assert found.origin.endswith("host8, host9 and 19,990 more")


@pytest.mark.timeout(60)
def test_schemas_that_turn_out_to_be_one_are_not_moved_again_and_again() -> None:
    # 10,000 took twenty seconds.
    told = ObservedSchemas("capture")
    for number in range(1, 40_000):
        add(told, number, '"int"')
        add(told, number, '"int"', subjects=(("s", 1),))
    (found,) = told.schemas()
    assert len(found.keys) == LIMITS.names_of_entry
    assert "subjects or other ids" in told.problems[0]


def test_names_count_as_memory() -> None:
    told = ObservedSchemas("capture", Limits(gathered_bytes=100_000))
    for number in range(100):
        names = tuple(Reference(f"{number}-{each}" + "x" * 4000) for each in range(10))
        add(told, number, '"int"', references=names)
    assert 1 < len(told.schemas()) < 10
    assert told.problems == ["here: too many schemas; the later ones are left out"]


def test_wide_characters_count_as_what_they_take() -> None:
    told = ObservedSchemas("capture", Limits(gathered_bytes=100_000))
    for number in range(40):
        add(told, number, enum(number) + " " * 5000 + "\U0001f600")
    assert len(told._entries) < 6


def test_news_are_what_changed() -> None:
    told = ObservedSchemas("capture")
    for number in range(5):
        add(told, number, enum(number))
    assert len(told.since(0)) == 5
    before = told.changes
    add(told, 3, enum(3))
    assert (told.since(before), told.changes) == ([], before)
    add(told, 3, subjects=(("s", 1),))
    (found,) = told.since(before)
    assert (found.text, found.subjects) == (enum(3), (("s", 1),))
    assert len(told.schemas()) == 5


def test_what_comes_again_and_again_is_kept_once() -> None:
    # A proxy kept all schemas anew with each record of a registry's topic.
    told, seen = IncomingSchemas(), ObservedSchemas("capture")
    for number in range(300):
        before = seen.changes
        add(seen, 1, '"int"', subjects=((f"s{number}", 1),))
        told.take(seen.since(before))
    assert told.changes == 300
    (found,) = told.since(0)
    assert len(found.subjects) == 300
    assert told.since(told.changes) == []


def test_a_schema_that_is_refused_keeps_nothing_of_its_text() -> None:
    # The error held what was read: 12,000 took a gigabyte, and more with each value.
    schemas = KnownSchemas()
    bad = Schema("avro", '{"type": "record"}', (key(1),))
    errors = []
    for _ in range(3):
        with pytest.raises(PayloadError) as raised:
            schemas.compiled(bad)
        errors.append(raised.value)
    assert len({id(each) for each in errors}) == 3
    assert {each.text for each in errors} == {errors[0].text}
    kept = vars(schemas)["_refused"].values()
    assert not any(isinstance(each, BaseException) for each in kept)


def refusal(schemas: KnownSchemas, schema: Schema) -> str:
    """Why a schema cannot be used; empty when it can."""
    try:
        schemas.compiled(schema)
    except PayloadError as error:
        return error.text
    return ""


def test_schemas_are_compiled_until_that_takes_too_long() -> None:
    told: list[str] = []
    schemas = KnownSchemas(report=told.append, limits=Limits(compiling_chars=1000))
    made = list(map(avro, range(100)))
    said = [refusal(schemas, each) for each in made]
    assert 10 < said.count("") < 30
    assert said[-1].startswith("not read: more than")
    assert len(told) == 1


def test_schemas_that_are_ready_make_room() -> None:
    # 300 that refer to a large one took 400 MB.
    made = list(map(avro, range(1, 101)))
    schemas = KnownSchemas(made, limits=Limits(compiled_chars=1000))
    payloads = Payloads(schemas)
    for number in range(1, 101):
        decoded = payloads.decode("t", "value", value(number, b"\0"), ())
        assert decoded is not None
        assert decoded.value == "A"
    assert schemas.forgotten > 60
    assert len(vars(schemas)["_compiled"]) < 40
    assert len(vars(payloads)["_prefixes"]) < 40


def test_small_schemas_that_are_let_go_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only their texts counted: 40,000 of Protobuf took half a gigabyte.
    collected: list[int] = []
    monkeypatch.setattr(known.gc, "collect", lambda: collected.append(1) or 0)
    schemas = KnownSchemas(limits=Limits(compiled=10))
    for number in range(30_000):
        schemas.compiled(avro(number))
    assert 0 < len(collected) < 4


def test_schemas_of_json_share_the_classes_of_their_draft() -> None:
    # Each had two of its own: 20,000 took a minute and 570 MB.
    classes = set()
    for number in range(10):
        made = json_schema.compile(json.dumps({"title": f"T{number}"}), {}, lambda _: None)
        classes.add(type(made.codec()._validator))
    assert len(classes) == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_a_schema_inside_that_says_its_draft_is_bounded_as_well(draft: str) -> None:
    # The library took its own classes there, with Python's patterns: each character more took
    # twice as long.
    inner = {"$schema": f"http://json-schema.org/{draft}/schema#", "pattern": "^(a+)+$"}
    text = json.dumps({"properties": {"a": inner, "b": {"items": inner}}})
    codec = json_schema.compile(text, {}, lambda _: None).codec()
    assert codec.decode(b'{"a": "aaa"}') == {"a": "aaa"}
    for wrong in ({"a": "a" * 5_000 + "b"}, {"b": ["a" * 5_000 + "b"]}):
        with pytest.raises(PayloadError) as raised:
            codec.decode(json.dumps(wrong).encode())
        assert raised.value.text.startswith("pattern: ")


def test_schemas_of_an_id_that_a_folder_has_without_end_are_limited() -> None:
    told: list[str] = []
    made = [Schema("avro", enum(number), (key(1),)) for number in range(2_000)]
    schemas = KnownSchemas(made, report=told.append)
    assert len(schemas.find(key(1))) == LIMITS.schemas_of_key
    assert told == [
        f"id 1 has more than {LIMITS.schemas_of_key} schemas; the later ones are left out"
    ]


def test_names_are_looked_up_in_new_schemas_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    defined = avro_text.defined_names
    monkeypatch.setattr(avro_text, "defined_names", lambda text: read.append(text) or defined(text))
    schemas = KnownSchemas()
    for number in range(50):
        uses = {"type": "array", "items": f"E{number}"}
        schemas.add(avro(number))
        schemas.add(Schema("avro", json.dumps(uses), (key(1000 + number),)))
        schemas.compiled(schemas.find(key(1000 + number))[0])
    assert len(read) == 100


def test_of_two_schemas_that_define_a_name_the_one_with_the_lower_id_is_meant() -> None:
    user = Schema("avro", json.dumps({"type": "array", "items": "E"}), (key(9),))
    for order in (((1, "A"), (2, "B")), ((2, "B"), (1, "A"))):
        made = [
            Schema("avro", json.dumps({"type": "enum", "name": "E", "symbols": [each]}), (key(n),))
            for n, each in order
        ]
        codec = KnownSchemas([*made, user]).compiled(user).codec()
        assert codec.decode(b"\x02\x00\x00") == ["A"]


def test_a_command_says_what_it_leaves_out(tmp_path: Path) -> None:
    said = journal(schema(1, enum(each), subject=f"s{each}") for each in range(40))
    path = write_capture(tmp_path / "a.pcapng", [said + written(1, b"\0", 3)])
    for command in ("records", "schemas"):
        result = run(command, path)
        assert result.exit_code == 0, result.output
        assert LEFT_OUT in result.output


def test_very_many_schemas_are_all_used(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.pcapng", [subjects(300)])
    result = run("schemas", path, "--json")
    assert len(result.output.splitlines()) == 300


LARGE = {
    "avro": ({"type": "array", "items": {"type": "record", "name": "I", "fields": []}}, b"\0"),
    "protobuf": ('syntax = "proto3"; message M { repeated M m = 2; }', b"\0" + b"\x12\0"),
    "json": ({"type": "array"}, b"[]"),
}


@pytest.mark.parametrize("format", LARGE)
def test_a_payload_that_could_become_too_much_is_not_decoded(format: str) -> None:
    # A kilobyte of zstd took more than a gigabyte.
    text, small = LARGE[format]
    spelled = text if isinstance(text, str) else json.dumps(text)
    payloads = Payloads(KnownSchemas([Schema(format, spelled, (key(1),))]))  # type: ignore[arg-type]
    most = LIMITS.payload(format)
    for _ in range(2):
        decoded = payloads.decode("t", "value", value(1, small), ())
        assert decoded is not None
        assert decoded.error is None
        decoded = payloads.decode("t", "value", value(1, small + bytes(most)), ())
        assert decoded is not None
        assert decoded.error is not None
        assert decoded.error.reason == "bad-schema"
        assert decoded.error.text.startswith("not read: ")


@pytest.mark.slow
@pytest.mark.parametrize("attack", [records_of_items, proto_fields, json_values])
@pytest.mark.parametrize("count", [700_000, 3_000_000])
def test_values_that_are_decoded_take_no_gigabyte(
    attack: Callable[[int], list[Turn]], count: int, tmp_path: Path
) -> None:
    path = write_capture(tmp_path / "a.pcapng", [attack(count)])
    assert_fits(["records", path, "--json"])


def test_json_of_too_many_values_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_http(path, http_list(2_000_000))
    result = run("schemas", path)
    assert "10.64.0.0:8081: JSON of 5 MB is left out" in result.output


@pytest.mark.timeout(60)
def test_values_that_unfold_to_much_are_left_out_some_time() -> None:
    # Each was unfolded to 64 MB, three times, whether its schema was known or not.
    guid = "2" * 8 + "-2222-2222-2222-" + "2" * 12
    schemas = KnownSchemas([Schema("avro", '"bytes"', (SchemaKey("guid", guid),))])
    payloads = Payloads(schemas)
    packed = zlib.compress(b"\xfe\xff\x7f" + bytes(2_000_000))
    said = set()
    for key in (b"\x33", b"\x22"):
        for _ in range(1_000):
            decoded = payloads.decode("t", "value", b"\3\5" + key * 16 + packed, ())
            said.add("" if decoded is None or decoded.error is None else decoded.error.text)
    assert any("more than 100 times their size" in each for each in said), said
