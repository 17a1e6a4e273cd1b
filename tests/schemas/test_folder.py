"""Folders of schemas, read and written."""

import gc
import json
import os
import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas import known
from kafkascope.schemas.folder import assigned_of, read_folder, write_folder
from kafkascope.schemas.known import KnownSchemas, field_paths
from kafkascope.schemas.limits import LIMITS, Limits
from kafkascope.schemas.model import Format, Reference, Schema, SchemaKey
from tests.kit.schemas import SAMPLES, record

TEXT = '"string"'
GUID = "f0225c91-ba20-f19f-3f5c-d09fa528d344"


def test_files_are_named_by_id(tmp_path: Path) -> None:
    (tmp_path / "17.avsc").write_text(TEXT)
    (tmp_path / "notes.txt").write_text("no schema")
    (found,) = read_folder(tmp_path).schemas
    assert found.format == "avro"
    assert found.keys == (SchemaKey("id", 17), SchemaKey("globalId", 17))


def test_files_without_a_number_serve_what_refers_to_them(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "money.proto").write_text('syntax = "proto3";')
    (found,) = read_folder(tmp_path).schemas
    assert (found.keys, found.subjects) == ((), (("common/money.proto", 0),))


def test_an_index_says_more(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(TEXT)
    entry = {"globalId": 3, "contentId": 1, "guid": GUID.upper(), "type": "AVRO", "file": "a.avsc"}
    entry["subjects"] = [{"subject": "s", "version": 2}, "t"]
    entry["references"] = [{"name": "n", "subject": "u", "version": 1}]
    (tmp_path / "index.json").write_text(json.dumps([entry]))
    folder = read_folder(tmp_path)
    assert folder.problems == []
    (found,) = folder.schemas
    assert list(map(str, found.keys)) == ["globalId 3", "contentId 1", f"guid {GUID}"]
    assert found.subjects == (("s", 2), ("t", 0))
    assert found.references == (Reference("n", "u", 1),)


@pytest.mark.parametrize(
    ("index", "word"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("7", "not a list"),
        ("[7]", "has no file"),
        ('[{"file": "../x.avsc"}]', "points outside"),
        ('[{"file": "/etc/passwd"}]', "points outside"),
        ('[{"file": "gone.avsc"}]', "No such file"),
        ('[{"file": "x.bin"}]', "unknown type"),
    ],
)
def test_a_wrong_index_is_a_sentence(tmp_path: Path, index: str, word: str) -> None:
    home = tmp_path / "schemas"
    home.mkdir()
    (tmp_path / "x.avsc").write_text(TEXT)
    (home / "5.avsc").write_text(TEXT)
    (home / "index.json").write_text(index)
    folder = read_folder(home)
    assert word in folder.problems[0]
    assert [each.keys[0].value for each in folder.schemas] == [5]


def test_no_folder_is_a_sentence(tmp_path: Path) -> None:
    assert "cannot read the folder" in read_folder(tmp_path / "gone").problems[0]


def test_bytes_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "5.avsc").write_bytes(b"\xff")
    folder = read_folder(tmp_path)
    assert (folder.schemas, "UTF-8" in folder.problems[0]) == ([], True)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    keys = (SchemaKey("id", 5), SchemaKey("guid", GUID))
    schemas = [
        Schema("avro", TEXT, keys, (("../../evil\n", 3),), (Reference("n", "u", 1),)),
        Schema("protobuf", "x", (SchemaKey("globalId", 5),), (("s", 1),)),
        Schema("json", "{}", (), (("t", 1),)),
        Schema("avro", '"int"', (SchemaKey("contentId", 5),)),
    ]
    home = tmp_path / "out"
    assert write_folder(home, schemas) == 4
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in home.iterdir()} == {0o600}
    back = read_folder(home)
    assert back.problems == []
    assert [replace(each, origin="") for each in back.schemas] == schemas
    with pytest.raises(FileExistsError):
        write_folder(home, schemas)


def test_a_schema_of_a_topic(tmp_path: Path) -> None:
    path = tmp_path / "a.proto"
    path.write_text("x")
    (where, given) = assigned_of(f"orders:key={path}#shop.Order")
    assert where == ("orders", "key")
    assert (given.schema.text, given.selector) == ("x", "shop.Order")
    assert assigned_of(f"orders={path}")[0] == ("orders", "value")


@pytest.mark.parametrize("text", ["orders", "=x.avsc", "orders=", "orders=x.bin", "orders=x.avsc"])
def test_a_wrong_schema_of_a_topic(text: str) -> None:
    with pytest.raises(ValueError, match=r"x\.avsc|write TOPIC|a schema is a file"):
        assigned_of(text)


# --- folders of schemas: what is in them, what is wrong with them, and written ones r -------------


def test_the_index_says_what_files_are() -> None:
    found = read_folder(SAMPLES / "schemas/bad-schemas").schemas
    schema = next(each for each in found if each.origin.endswith("/100006.json"))
    address = Reference("http://example.com/address.json", "bad-json-address", 1)
    assert schema.keys[0] == SchemaKey("id", 100006)
    assert schema.subjects == (("bad-json-value", 1),)
    assert schema.references == (address,)


def test_files_that_cannot_be_used_cost_a_sentence_each(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text('"int"')
    (tmp_path / "2.avsc").write_bytes(b"\xff\xfe")
    (tmp_path / "3.json").write_bytes(b" " * (10 << 20))
    os.mkfifo(tmp_path / "4.avsc")
    (tmp_path / "5.avsc").symlink_to("nowhere")
    (tmp_path / "6.avsc").mkdir()
    found = read_folder(tmp_path)
    assert [s.keys[0].value for s in found.schemas] == [1]
    assert len(found.problems) == 4
    assert "together" in read_folder(tmp_path, Limits(schema_bytes=3)).problems[0]


def test_thousands_of_files_are_bounded(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number}.avsc").write_bytes(b"\xff" if number % 2 else b'"int"')
    found = read_folder(tmp_path, Limits(folder_files=50))
    assert len(found.schemas) == 25
    assert len(found.problems) <= LIMITS.problems + 1
    assert "more files" in found.problems[-1]


def test_an_entry_with_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(
        '[{"file": "a\\u0000.avsc"}, {"file": "%s.avsc"}]' % ("x" * 9999)
    )
    found = read_folder(tmp_path)
    assert found.schemas == []
    assert [len(each) < 500 for each in found.problems] == [True, True]


NAMES = st.text(max_size=30) | st.sampled_from(
    ["../../x", "/etc/x", "a/b.proto", ".", "index", "con"]
)
KEYS = st.builds(SchemaKey, st.sampled_from(["id", "globalId", "contentId"]), st.integers(0, 40))
SUBJECTS = st.tuples(NAMES.filter(bool), st.integers(0, 9))
TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"))


@given(
    st.lists(
        st.builds(
            Schema,
            st.sampled_from(["avro", "protobuf", "json"]),
            TEXTS,
            st.lists(KEYS, max_size=3, unique=True).map(tuple),
            st.lists(SUBJECTS, max_size=3, unique=True).map(tuple),
            st.lists(st.builds(Reference, NAMES, NAMES, st.integers(0, 9)), max_size=2).map(tuple),
        ),
        max_size=5,
    )
)
def test_a_written_folder_reads_back(schemas: list[Schema]) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "out"
        count = write_folder(path, schemas)
        assert len(list(path.iterdir())) == count + 1
        assert {oct(each.stat().st_mode & 0o777) for each in path.iterdir()} == {"0o600"}
        assert [each.name for each in Path(place).iterdir()] == ["out"]
        back = read_folder(path)
        assert back.problems == []
        seen: set[SchemaKey] = set()
        wanted = []
        for schema in schemas:
            keys = {key for key in schema.keys if key not in seen}
            seen |= keys
            if keys or not schema.keys:
                wanted.append((schema.format, schema.text, frozenset(keys)))
        found = [(s.format, s.text, frozenset(s.keys)) for s in back.schemas]
        assert Counter(found) == Counter(wanted)


def test_files_without_a_number_are_imported_by_their_paths(tmp_path: Path) -> None:
    texts = SAMPLES / "schemas" / "protobuf-json-schemas-topic"
    (tmp_path / "common").mkdir()
    (tmp_path / "42.proto").write_text((texts / "42.proto").read_text())
    (tmp_path / "common" / "money.proto").write_text((texts / "41.proto").read_text())
    known = KnownSchemas(read_folder(tmp_path).schemas)
    assert len(list(known)) == 2
    (schema,) = known.find(SchemaKey("id", 42))
    assert known.compiled(schema).codec("shop.Order").type_name == "shop.Order"


def test_a_schema_that_gets_more_ids_is_there_once() -> None:
    known = KnownSchemas([Schema("avro", '"int"', (SchemaKey("id", n),)) for n in (1, 1, 2)])
    known.add(Schema("avro", '"int"', (SchemaKey("id", 1), SchemaKey("id", 3))))
    found = known.find(SchemaKey("id", 1))
    assert [each.keys for each in found] == [(SchemaKey("id", 1), SchemaKey("id", 3))]
    assert known.find(SchemaKey("id", 3)) == found
    assert len(list(known)) == 2


# --- fields of known schemas, and how many are kept ready -----------------------------------------


AVRO = record(
    "a.Node",
    id="long",
    next=["null", "Node"],
    items={"type": "array", "items": record("Item", sku="string")},
    tags={"type": "map", "values": "Item"},
)
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


# --- schemas that are ready, more than are kept


MANY = 300


def schema(kind: Format, number: int) -> Schema:
    if kind == "protobuf":
        return Schema(kind, f'syntax = "proto3"; message M{number} {{ int32 a = 1; }}')
    return Schema(kind, orjson.dumps(record(f"R{number}", a="int")).decode())


def collections_of(kind: Format, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often all objects were looked at while many schemas were made ready."""
    found: list[int] = []

    def collect() -> int:
        found.append(gc.collect())
        return found[-1]

    monkeypatch.setattr(known, "gc", SimpleNamespace(collect=collect))
    schemas = KnownSchemas(limits=Limits(compiled=5, collected_chars=20 * known.EVICTED_BYTES))
    schemas.compiled(schema(kind, MANY))  # What is imported for it is no circle of its own.
    gc.collect()
    gc.freeze()  # What other tests left in this process is not looked at a hundred times.
    for number in range(MANY):
        schemas.compiled(schema(kind, number)).codec()
    assert schemas.forgotten >= MANY - 5
    return len(found)


def test_objects_are_looked_at_often_where_that_frees_some(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collections_of("protobuf", monkeypatch) >= MANY // 25


def test_objects_are_looked_at_rarely_where_that_frees_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looking takes the longer the more there is, so it must not come with every few schemas."""
    assert 1 <= collections_of("avro", monkeypatch) <= 2 + MANY // 60
