"""Schemas from the traffic alone are those of the folders beside the captures."""

from pathlib import Path

import orjson
import pytest

from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas, seen_in
from kafkascope.analyzer.model import HttpExchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Endpoint
from kafkascope.schemas.http_head import HttpHead
from kafkascope.schemas.model import SchemaKey
from tests.kit.schemas import by_key, capture, folder, form

ORIGINS = {
    "avro-registry": "127.0.0.1:8081",
    "avro-protobuf-apicurio-ccompat": "127.0.0.1:8082",
    "apicurio-serdes": "127.0.0.1:8082",
    "protobuf-json-schemas-topic": "topic _schemas",
}


@pytest.mark.parametrize("name", ORIGINS)
def test_the_traffic_has_the_schemas_of_the_folder(name: str) -> None:
    seen = by_key(seen_in([capture(name)]).schemas())
    for wanted in folder(name):
        # The topic has no GUIDs.
        keys = [key for key in wanted.keys if key.namespace != "guid" or key in seen]
        assert keys
        for key in keys:
            found = seen[key]
            assert form(found) == form(wanted)
            assert set(wanted.subjects) <= set(found.subjects)
            assert found.references == wanted.references
            assert (found.source, found.origin) == ("capture", ORIGINS[name])


def test_guids_come_from_http() -> None:
    wanted = {key for schema in folder("avro-registry") for key in schema.keys}
    assert wanted <= by_key(seen_in([capture("avro-registry")]).schemas()).keys()
    assert any(key.namespace == "guid" for key in wanted)


def test_a_schema_that_was_deleted_stays() -> None:
    seen = by_key(seen_in([capture("protobuf-json-schemas-topic")]).schemas())
    assert seen[SchemaKey("id", 77777)].subjects == (("gone-value", 1),)


def test_a_capture_without_schemas_has_none() -> None:
    assert seen_in([capture("bad-schemas")]).schemas() == []


def test_damaged_captures_give_what_is_there(tmp_path: Path) -> None:
    data = capture("avro-registry").read_bytes()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(data[: len(data) // 2])
    found = seen_in([cut]).schemas()
    assert 0 < len(found) <= 11


def asked(seen: SeenSchemas, path: str, status: int, value: object, port: int = 8081) -> None:
    seen.take(
        HttpExchange(
            Endpoint("10.0.0.1", 999),
            Endpoint("10.0.0.2", port),
            0,
            HttpHead("GET", path, 0, {}),
            b"",
            HttpHead("", "", status, {}),
            orjson.dumps(value),
        )
    )


def test_what_registries_do_not_have_is_told_until_they_have_it() -> None:
    seen = SeenSchemas(TopicNames())
    for number in (5, 6):
        asked(seen, f"/schemas/ids/{number}", 404, {"error_code": 40403, "message": "Schema not"})
    asked(seen, "/schemas/ids/7", 404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    asked(seen, "/schemas/ids/6", 200, {"schema": '"int"'})
    assert seen.missing() == {SchemaKey("id", 5): "10.0.0.2:8081"}
    assert [schema.keys for schema in seen.schemas()] == [(SchemaKey("id", 6),)]


def test_ids_of_two_registries_are_two_schemas_and_equal_ones_are_one() -> None:
    seen = SeenSchemas(TopicNames())
    for port, text in ((1, '"int"'), (2, '"long"'), (3, '"int"'), (4, '{"type": "int"}')):
        asked(seen, "/schemas/ids/1", 200, {"schema": text}, port)
    found = [(schema.text, schema.origin) for schema in seen.schemas()]
    assert found == [
        ('"int"', "10.0.0.2:1, 10.0.0.2:3"),
        ('"long"', "10.0.0.2:2"),
        ('{"type": "int"}', "10.0.0.2:4"),
    ]


def test_ids_of_two_contexts_are_two_schemas() -> None:
    seen = SeenSchemas(TopicNames())
    asked(seen, "/schemas/ids/1", 200, {"schema": '"int"'})
    asked(seen, "/contexts/.dev/schemas/ids/1", 200, {"schema": '"long"'})
    assert {schema.text for schema in seen.schemas()} == {'"int"', '"long"'}


def test_a_key_that_cannot_be_read_costs_nothing() -> None:
    assert seen_in([capture("bad-schemas")]).problems == []
