"""Keys and values by schema in Kafka's own files."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.analyzer.filter.decoded.orders import ORDER, VALUE, avro, schema_folder, user
from tests.kit.batches import batch
from tests.kit.run import objects, run

SEGMENT = "00000000000000000000.log"
SMALL = VALUE | {"count": 5, "id": "18"}


def segment(folder: Path, *batches: list[tuple[bytes | None, bytes | None]]) -> Path:
    folder.mkdir(parents=True)
    data, at = b"", 0
    for pairs in batches:
        data += batch(pairs, base_offset=at)
        at += len(pairs)
    (folder / SEGMENT).write_bytes(data)
    return folder


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return segment(
        tmp_path / "log" / "t-0",
        [(user('{"user-id": 1}'), avro()), (None, avro(SMALL))],
        [(None, avro(SMALL)), (b"k", b"text"), (None, user("{}", 9))],
    )


def records(*words: str | Path) -> list[dict[str, Any]]:
    return objects("records", *words, "--json")


def test_records_are_decoded(orders: Path, tmp_path: Path) -> None:
    schemas = schema_folder(tmp_path / "schemas")
    found = records(orders, "--schemas", schemas)
    counts = [each.get("value_decoded", {}).get("count") for each in found]
    assert counts == [VALUE["count"], 5, 5, None, None]
    assert found[0]["key_decoded"] == {"user-id": 1}
    assert found[0]["value_schema"]["subject"] == "t-value"
    assert found[4]["value_error"]["reason"] == "unknown-schema"
    plain = records(orders, "--schemas", schemas, "--no-schemas")
    assert not any("value_decoded" in each for each in plain)


@pytest.mark.parametrize(
    ("text", "offsets", "batches"),
    [
        ("record.value.count > 100", [0], [1]),
        ("record.value.count == 5", [1, 2], [1, 2]),
        ("not record.value.count == 5", [0, 3, 4], []),
        ("record.key.user-id == 1 and record.value.items.sku contains A", [0], [1]),
        ("schema.error == unknown-schema or offset == 3", [3, 4], [2]),
        ("schema.subject == t-key", [0], [1]),
    ],
)
def test_filters_choose_by_decoded_values(
    orders: Path, tmp_path: Path, text: str, offsets: list[int], batches: list[int]
) -> None:
    schemas = schema_folder(tmp_path / "schemas")
    found = records(orders, "--schemas", schemas, "-Y", text)
    assert [each["offset"] for each in found] == offsets
    lines = objects("ls", orders, "--schemas", schemas, "-Y", text, "--json")
    assert [each["number"] for each in lines if each["schema"] == "batch/1"] == batches


def test_schemas_in_a_registrys_topic_beside_it_serve(orders: Path) -> None:
    key = b'{"keytype":"SCHEMA","subject":"t-value","version":1,"magic":1}'
    said = {"subject": "t-value", "version": 1, "id": 7, "schema": orjson.dumps(ORDER).decode()}
    value = orjson.dumps(said | {"deleted": False})
    segment(orders.parent / "_schemas-0", [(b'{"keytype":"NOOP","magic":0}', None)], [(key, value)])
    segment(orders.parent / "others-0", [(b"k", b"v")])
    (orders.parent / "empty-1").mkdir()
    (orders.parent / "broken-1").mkdir()
    (orders.parent / "broken-1" / SEGMENT).write_bytes(b"\xff" * 100)
    found = records(orders, "-Y", "record.value.count > 100")
    assert [each["value_schema"]["source"] for each in found] == ["capture"]
    # The file alone as well as its folder.
    assert records(orders / SEGMENT, "-Y", "record.value.count > 100") == found
    shown = run("show", orders, "1")
    assert "(avro shop.Order, schema 7)" in shown.stdout


def test_without_schemas_the_filter_is_refused(orders: Path) -> None:
    ran = run("records", orders, "--no-schemas", "-Y", "record.value.count > 100")
    assert ran.exit_code == 2
    assert "decoded with a schema" in ran.output
    assert records(orders, "-Y", "record.value.count > 100") == []
