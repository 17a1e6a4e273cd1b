"""Folders of schemas: what is in them, what is wrong with them, and written ones read back."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.payloads.folder import read_folder, write_folder
from kafkascope.analyzer.payloads.known import KnownSchemas
from kafkascope.analyzer.payloads.limits import LIMITS, Limits
from kafkascope.analyzer.payloads.model import Reference, Schema, SchemaKey
from tests.analyzer.schema_samples import SAMPLES


def test_the_index_says_what_files_are() -> None:
    found = read_folder(SAMPLES / "schemas/bad-schemas").schemas
    schema = next(each for each in found if each.origin.endswith("/100006.json"))
    address = Reference("http://example.com/address.json", "bad-json-address", 1)
    assert schema.keys[0] == SchemaKey("id", 100006)
    assert schema.subjects == (("bad-json-value", 1),)
    assert schema.references == (address,)


def test_files_that_cannot_be_used_cost_a_sentence_each(
    tmp_path: Path,
) -> None:
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
        assert sorted(found, key=repr) == sorted(wanted, key=repr)


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
