"""Folders of schemas, read and written."""

import json
import stat
from pathlib import Path

import pytest

from kafkascope.analyzer.payloads.folder import assigned_of, read_folder, write_folder
from kafkascope.analyzer.payloads.model import Reference, Schema, SchemaKey

TEXT = '"string"'


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
    entry = {
        "globalId": 3,
        "contentId": 1,
        "guid": "F0225C91-BA20-F19F-3F5C-D09FA528D344",
        "type": "AVRO",
        "file": "a.avsc",
        "subjects": [{"subject": "s", "version": 2}, "t"],
        "references": [{"name": "n", "subject": "u", "version": 1}],
    }
    (tmp_path / "index.json").write_text(json.dumps([entry]))
    folder = read_folder(tmp_path)
    assert folder.problems == []
    (found,) = folder.schemas
    assert found.keys == (
        SchemaKey("globalId", 3),
        SchemaKey("contentId", 1),
        SchemaKey("guid", "f0225c91-ba20-f19f-3f5c-d09fa528d344"),
    )
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
    schemas = [
        Schema(
            "avro",
            TEXT,
            (SchemaKey("id", 5), SchemaKey("guid", "f0225c91-ba20-f19f-3f5c-d09fa528d344")),
            (("../../evil\n", 3),),
            (Reference("n", "u", 1),),
        ),
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
    kept = [(each.format, each.text, each.keys, each.subjects, each.references) for each in schemas]
    assert kept == [
        (each.format, each.text, each.keys, each.subjects, each.references) for each in back.schemas
    ]
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
