"""What HTTP with registries says about schemas, request by request."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas import rest
from kafkascope.schemas.http_head import HttpHead
from kafkascope.schemas.model import Reference, Schema, SchemaKey
from kafkascope.schemas.observed import ObservedSchemas
from kafkascope.schemas.parts import SchemaObservation, format_of

AVRO = '{"type": "record", "name": "R", "fields": []}'
GUID = "f0225c91-ba20-f19f-3f5c-d09fa528d344"


def told(
    method: str,
    path: str,
    answer: Any,
    *,
    sent: Any = b"",
    status: int = 200,
    headers: dict[str, str] | None = None,
    answered: dict[str, str] | None = None,
) -> list[SchemaObservation]:
    asked = sent if isinstance(sent, bytes) else orjson.dumps(sent)
    data = answer if isinstance(answer, bytes) else orjson.dumps(answer)
    request = HttpHead(method, path, 0, headers or {})
    found = rest.observations(request, asked, HttpHead("", "", status, answered or {}), data)
    if found:
        assert rest.wants(request)
    return found


@pytest.mark.parametrize("artifact", ["", "a" * 5000])
def test_references_of_an_artifact_without_a_usable_name_are_left_out(artifact: str) -> None:
    path = f"/apis/registry/v2/groups/default/artifacts/{artifact}/versions/1/references"
    assert told("GET", path, [{"name": "other", "artifactId": "o", "version": "1"}]) == []


def made(*facts: list[SchemaObservation]) -> list[Schema]:
    gathered = ObservedSchemas("capture")
    for several in facts:
        for said in several:
            gathered.add("here", "here", said)
    return gathered.schemas()


def key(number: int) -> tuple[SchemaKey, ...]:
    return (SchemaKey("id", number),)


@pytest.mark.parametrize("prefix", ["", "/apis/ccompat/v7", "/registry/api", "http://host:81"])
def test_an_id_and_what_is_below_it(prefix: str) -> None:
    base = f"{prefix}/schemas/ids/17"
    reference = {"name": "other", "subject": "s", "version": 2}
    (schema,) = made(
        told("GET", f"{base}?subject=hint&fetchMaxId=false", {"schema": AVRO, "guid": GUID}),
        told("GET", f"{base}/versions", [{"subject": "a", "version": 3}]),
        told("GET", f"{base}/subjects", ["a", "b"]),
        told("GET", f"{base}/schema", AVRO.encode()),
        told("GET", base, {"schema": AVRO, "references": [reference]}),
    )
    assert schema.keys == (SchemaKey("id", 17), SchemaKey("guid", GUID))
    assert schema.subjects == (("hint", 0), ("a", 3), ("b", 0))
    assert schema.references == (Reference("other", "s", 2),)
    assert (schema.format, schema.text) == ("avro", AVRO)


def test_what_was_registered_has_the_id_of_the_answer() -> None:
    sent = {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"}
    (schema,) = made(
        told("POST", "/subjects/a%2Fb/versions?normalize=true", {"id": 5}, sent=sent),
        told("POST", "/subjects/a%2Fb", {"subject": "a/b", "id": 5, "version": 2}, sent=sent),
    )
    assert (schema.format, schema.text, schema.keys) == ("protobuf", sent["schema"], key(5))
    assert schema.subjects == (("a/b", 2),)


def test_the_registrys_text_is_better_than_what_a_client_sent() -> None:
    sent = {"schema": "message  A{}", "schemaType": "PROTOBUF"}
    own = 'syntax = "proto3";\nmessage A {}'
    (schema,) = made(
        told("POST", "/subjects/a/versions", {"id": 5}, sent=sent),
        told("GET", "/schemas/ids/5", {"schema": own, "schemaType": "PROTOBUF"}),
    )
    assert schema.text == own


def test_a_version_of_a_subject() -> None:
    path = "/subjects/a/versions/"
    answer = {"subject": "a", "version": 2, "id": 9, "schema": AVRO}
    (schema,) = made(
        told("GET", f"{path}2/schema", AVRO.encode()), told("GET", f"{path}latest", answer)
    )
    assert (schema.keys, schema.subjects) == (key(9), (("a", 2),))
    assert made(told("GET", f"{path}latest/schema", AVRO.encode())) == []


def test_all_schemas_at_once_and_by_guid() -> None:
    listed = [{"subject": "a", "version": 1, "id": n, "schema": f'"{n}"'} for n in (1, 2)]
    assert len(told("GET", "/schemas?subjectPrefix=a", listed)) == 2
    (schema,) = made(
        told("GET", f"/schemas/guids/{GUID.upper()}", {"schema": AVRO}),
        told("GET", f"/schemas/guids/{GUID}/ids", [{"context": ".", "id": 4}]),
    )
    assert schema.keys == (SchemaKey("guid", GUID), SchemaKey("id", 4))


@pytest.mark.parametrize(
    ("status", "answer", "missing"),
    [
        (404, {"error_code": 40403, "message": "Schema 17 not found"}, True),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}, False),
        (404, b"<html>", False),
        (500, {"error_code": 50001}, False),
    ],
)
def test_only_a_registry_says_that_a_schema_is_missing(
    status: int, answer: Any, missing: bool
) -> None:
    found = told("GET", "/schemas/ids/17", answer, status=status)
    assert found == ([SchemaObservation(key(17), missing=True)] if missing else [])


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_apicurio_by_global_id(version: str) -> None:
    base = f"/prefix/apis/registry/{version}"
    about = {"globalId": 7, "contentId": 5, "artifactId": "a", "version": "3"}
    about["artifactType" if version == "v3" else "type"] = "JSON"
    reference = {"groupId": "g", "artifactId": "b", "version": "1", "name": "b.json"}
    (schema,) = made(
        told("GET", f"{base}/ids/globalIds/7?dereference=false", b'{"type": "string"}'),
        told("GET", f"{base}/ids/globalIds/7/references", [reference]),
        told("GET", f"{base}/groups/default/artifacts/a/versions/3/meta", about),
    )
    assert schema.keys == (SchemaKey("globalId", 7), SchemaKey("contentId", 5))
    assert (schema.format, schema.subjects) == ("json", (("a", 3),))
    assert schema.references == (Reference("b.json", "g/b", 1),)


def test_apicurio_v2_registers_contents_as_they_are_or_wrapped() -> None:
    path = "/apis/registry/v2/groups/g/artifacts"
    about = {"globalId": 1, "contentId": 1, "id": "a", "groupId": "g", "version": "1"}
    about["type"] = "AVRO"
    (plain,) = made(told("POST", path, about, sent=AVRO.encode()))
    reference = {"artifactId": "b", "version": "1", "name": "B"}
    wrapped = {"content": AVRO, "references": [reference]}
    kind = {"content-type": "application/create.extended+json"}
    (other,) = made(told("POST", path, about, sent=wrapped, headers=kind))
    assert plain.text == other.text == AVRO
    assert plain.subjects == (("g/a", 1),)
    assert other.references == (Reference("B", "b", 1),)


def test_apicurio_v3_wraps_all() -> None:
    path = "/apis/registry/v3/groups/default/artifacts"
    content = {"content": AVRO, "contentType": "application/json", "references": []}
    sent = {"artifactId": "a", "artifactType": "AVRO", "firstVersion": {"content": content}}
    about = {"globalId": 1, "contentId": 2, "artifactId": "a", "version": "1"}
    answer = {"artifact": {"artifactId": "a", "artifactType": "AVRO"}, "version": about}
    more = {"content": content | {"content": '"int"'}}
    found = made(
        told("POST", path, answer, sent=sent),
        told("POST", f"{path}/a/versions", about | {"globalId": 3, "version": "2"}, sent=more),
    )
    assert found[0].text == AVRO
    assert found[0].format == "avro"
    # The same content id stands for the same content: that one lied.
    assert found[0].keys[:2] == (SchemaKey("globalId", 1), SchemaKey("contentId", 2))
    version = told("GET", f"{path}/a/versions/1", about)
    assert version[0].text is None
    content_of = told("GET", f"{path}/a/versions/1/content", AVRO.encode())
    assert content_of == [SchemaObservation((), AVRO, None, (("a", 1),))]


def test_other_artifacts_of_apicurio_are_no_schemas() -> None:
    about = {"globalId": 1, "contentId": 1, "id": "a", "type": "OPENAPI", "version": "1"}
    path = "/apis/registry/v2/groups/default/artifacts"
    assert told("POST", path, about, sent=b'{"openapi": "3"}') == []


@pytest.mark.parametrize(
    ("name", "missing"),
    [("ArtifactNotFoundException", True), ("NotFoundException", False), (["x"], False)],
)
def test_apicurio_says_what_it_does_not_find(name: Any, missing: bool) -> None:
    answer = {"error_code": 404, "name": name}
    found = told("GET", "/apis/registry/v2/ids/globalIds/4", answer, status=404)
    assert bool(found) is missing


def test_glue() -> None:
    head = {"x-amz-target": "AWSGlue.GetSchemaVersion"}
    answer = {"SchemaVersionId": GUID, "SchemaDefinition": AVRO, "DataFormat": "AVRO"}
    answer |= {"SchemaArn": "arn:aws:glue:eu:1:schema/registry/name", "VersionNumber": 4}
    (schema,) = made(told("POST", "/", answer, sent={"SchemaVersionId": GUID}, headers=head))
    assert (schema.keys, schema.subjects) == ((SchemaKey("guid", GUID),), (("name", 4),))
    sent = {"SchemaId": {"SchemaName": "n"}, "SchemaDefinition": AVRO}
    answer = {"SchemaVersionId": GUID, "DataFormat": "AVRO", "Status": "AVAILABLE"}
    head = {"x-amz-target": "AWSGlue.GetSchemaByDefinition"}
    (schema,) = made(told("POST", "/", answer, sent=sent, headers=head))
    assert (schema.text, schema.subjects) == (AVRO, (("n", 0),))


MEMBERS = """
    schema schemaType id guid subject version references name globalId contentId artifactId type
    versions content firstVersion error_code groupId SchemaId SchemaVersionId SchemaDefinition
    DataFormat SchemaArn
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS.split()),
            inner | st.sampled_from([AVRO, GUID, "AVRO", 1, "1"]),
            max_size=6,
        )
    ),
    max_leaves=20,
)
PARTS = """
    schemas ids guids subjects versions schema 1 latest apis registry v2 v3 groups artifacts
    globalIds contentIds meta references content search contexts .a %2F%00
"""
PATHS = st.lists(st.sampled_from(PARTS.split()), max_size=9).map("/".join)


@given(
    st.sampled_from(["GET", "POST", "PUT"]),
    st.one_of(PATHS, st.text(max_size=40)),
    st.one_of(JSON, st.binary(max_size=40)),
    st.one_of(JSON, st.binary(max_size=40)),
    st.sampled_from([200, 404, 500]),
    st.booleans(),
)
def test_garbage_says_something_or_nothing(
    method: str, path: str, sent: Any, answer: Any, status: int, glue: bool
) -> None:
    head = {"x-amz-target": "AWSGlue.GetSchemaVersion"} if glue else {}

    def data(value: Any) -> bytes:
        return value if isinstance(value, bytes) else orjson.dumps(value)

    asked, answered = data(sent), data(answer)
    request = HttpHead(method, "/" + path, 0, head)
    gathered = ObservedSchemas("capture")
    for said in rest.observations(request, asked, HttpHead("", "", status, {}), answered):
        gathered.add(said.context, "x", said)
    for schema in gathered.schemas():
        assert schema.text
    gathered.missing()


@pytest.mark.parametrize(
    ("schema", "format"),
    [
        ({"type": "array", "items": "x.Y"}, "avro"),
        ({"type": "array", "items": ["null", "int"]}, "avro"),
        ({"type": "array", "items": {"type": "int", "logicalType": "date"}}, "avro"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "map"}}}, "avro"),
        ({"type": "array", "items": {"type": "string"}}, "json"),
        ({"type": "array", "items": [{"type": "string"}]}, "json"),
        ({"type": "array", "items": {"type": ["string"]}}, "json"),
        ({"type": ["array"], "items": True}, "json"),
        ({"type": "array"}, "json"),
    ],
)
def test_arrays_of_avro_and_of_json_schema(schema: Any, format: str) -> None:
    assert format_of(orjson.dumps(schema).decode()) == format
