"""`kafkascope schemas`: what is known, used and missing, and the folder that it writes."""

import json
from pathlib import Path
from typing import Any

from kafkascope.schemas.folder import read_folder
from tests.kit.run import run
from tests.kit.schemas import SAMPLES, by_key, capture, folder, form


def ran(*words: str, code: int = 0) -> str:
    result = run("schemas", *words)
    assert result.exit_code == code, result.output
    return result.stdout


def lines(*words: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in map(json.loads, ran(*words, "--json").splitlines())}


def test_schemas_of_the_capture_with_their_uses() -> None:
    found = lines(str(capture("avro-registry")))
    assert list(found) == [f"id {number}" for number in range(1, 12)]
    assert {each["source"] for each in found.values()} == {"capture"}
    key = found["id 1"]
    assert (key["type"], key["subjects"], key["origin"]) == (
        "shop.OrderKey",
        ["orders-key v1"],
        "127.0.0.1:8081",
    )
    # Produced once, fetched once.
    assert (key["keys"], key["values"], key["topics"]) == (38, 0, ["orders"])
    assert found["id 6"]["references"] == ["people.Address"]


def test_what_is_missing() -> None:
    found = lines(str(capture("bad-schemas")))
    assert found["id 999999"]["source"] == "missing"
    assert found["id 999999"]["values"] == 2
    given = lines(str(capture("bad-schemas")), "--schemas", str(SAMPLES / "schemas/bad-schemas"))
    assert given["id 100002"]["source"] == "folder"
    assert given["id 999999"]["source"] == "missing"


def test_a_filter_chooses_whose_uses_count() -> None:
    found = lines(str(capture("avro-registry")), "-Y", "kafka.api == Produce")
    assert (found["id 1"]["keys"], found["id 2"]["values"]) == (19, 10)


def test_the_folder_that_is_written_serves_as_well(tmp_path: Path) -> None:
    out = tmp_path / "schemas"
    ran(str(capture("protobuf-json-schemas-topic")), "-o", str(out))
    back = by_key(read_folder(out).schemas)
    for wanted in folder("protobuf-json-schemas-topic"):
        assert form(back[wanted.keys[0]]) == form(wanted)
    again = lines(str(capture("protobuf-json-schemas-topic")), "--schemas", str(out))
    assert again["id 42"]["values"] == 40
    ran(str(capture("avro-registry")), "-o", str(out), code=3)


def test_a_table_for_people() -> None:
    text = ran(str(capture("apicurio-serdes")))
    assert text.splitlines()[0].startswith("ID\tFormat\tType\tSubjects")
    assert "globalId 7\tjson\tItem\tap-js-value v1" in text


def test_a_registry_whose_address_is_none() -> None:
    result = run("schemas", capture("bad-schemas"), "--registry", "http://me:s3cret@host")
    assert result.exit_code == 2
    assert "s3cret" not in result.output
