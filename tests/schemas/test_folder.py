"""Folders of schemas, read and written."""

import json
import os
import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas.folder import assigned_of, read_folder, write_folder
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.limits import LIMITS, Limits
from kafkascope.schemas.model import Reference, Schema, SchemaKey
from tests.kit.schemas import SAMPLES

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
