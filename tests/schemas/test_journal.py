"""Records of registries' own topics: those of Confluent, and of Apicurio 2.x and 3.x."""

import json
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.schemas import journal
from kafkascope.schemas.model import Reference, Schema, SchemaKey
from kafkascope.schemas.observed import ObservedSchemas
from tests.kit.schemas import SAMPLES

AVRO = '{"type": "record", "name": "R", "fields": []}'


def made(*records: tuple[bytes, bytes | None]) -> list[Schema]:
    gathered = ObservedSchemas("capture")
    for key, value in records:
        assert journal.is_key(key)
        found = journal.schema_in(key, value)
        if found is not None:
            gathered.add(found.context, "topic", found)
    return gathered.schemas()


def confluent(kind: str, value: Any = None, **key: Any) -> tuple[bytes, bytes | None]:
    data = None if value is None else json.dumps(value).encode()
    return json.dumps({"keytype": kind, "magic": 1, **key}).encode(), data


def schema(number: int, subject: str, version: int, **more: Any) -> tuple[bytes, bytes | None]:
    value = {"subject": subject, "version": version, "id": number, "schema": AVRO, "deleted": False}
    return confluent("SCHEMA", value | more, subject=subject, version=version)


def test_confluents_schemas_with_several_subjects_and_references() -> None:
    reference = {"name": "n", "subject": "b", "version": 2}
    found = made(
        confluent("NOOP"),
        schema(1, "a", 1),
        schema(1, "b", 2),
        confluent("CONFIG", {"compatibilityLevel": "NONE"}, subject="a"),
        schema(2, "c", 1, schema="message M {}", schemaType="PROTOBUF", references=[reference]),
    )
    assert [each.keys for each in found] == [(SchemaKey("id", 1),), (SchemaKey("id", 2),)]
    assert found[0].subjects == (("a", 1), ("b", 2))
    assert (found[1].format, found[1].references) == ("protobuf", (Reference("n", "b", 2),))


def test_what_is_deleted_can_still_be_decoded() -> None:
    found = made(
        schema(1, "a", 1),
        schema(1, "a", 1, deleted=True),
        confluent("DELETE_SUBJECT", {"subject": "a", "version": 1}, subject="a"),
        confluent("SCHEMA", None, subject="a", version=1),
    )
    assert [each.subjects for each in found] == [(("a", 1),)]


def test_ids_of_contexts_are_apart() -> None:
    found = made(schema(1, "a", 1), schema(1, ":.dev:a", 1, schema='"int"'))
    assert [each.text for each in found] == [AVRO, '"int"']


def old_key(kind: int, **members: Any) -> bytes:
    return bytes([kind]) + json.dumps(members).encode()


def old_content(text: bytes, references: bytes | None) -> bytes:
    """As KafkaSqlValueSerializer of 2.6 writes it."""
    parts = [b"c0ffee", text] + ([] if references is None else [references])
    return b"\x02\x01" + b"".join(struct.pack(">i", len(part)) + part for part in parts)


def old_version(**members: Any) -> bytes:
    return b"\x03" + json.dumps({"action": "Create", **members}).encode()


def test_apicurio_2_has_contents_and_versions_apart() -> None:
    references = b'[{"groupId":null,"artifactId":"x","version":"3","name":"x.avsc"}]'
    about = {"version": "2", "artifactType": "AVRO", "contentId": 7}
    found = made(
        (old_key(0, bootstrapId="b"), None),
        (
            old_key(2, tenantId="_", contentHash="h", contentId=7),
            old_content(AVRO.encode(), references),
        ),
        (old_key(3, tenantId="_", groupId="g", artifactId="a"), old_version(globalId=11, **about)),
        (old_key(3, tenantId="_", artifactId="b"), old_version(globalId=12, **about)),
        (old_key(2, tenantId="t", contentHash="h", contentId=7), old_content(b'"int"', None)),
    )
    assert list(map(str, found[0].keys)) == ["contentId 7", "globalId 11", "globalId 12"]
    assert found[0].subjects == (("g/a", 2), ("b", 2))
    assert found[0].references == (Reference("x.avsc", "x", 3),)
    assert found[1].text == '"int"'  # of another tenant
    assert len(found) == 2


def test_apicurio_3_as_a_real_one_wrote_it() -> None:
    found = seen_in([SAMPLES / "apicurio-journal.pcap.gz"]).schemas()
    by_id = {key: each for each in found for key in each.keys}
    assert {str(key) for key in by_id} == {
        *("globalId 1", "globalId 2", "globalId 3", "globalId 4", "globalId 5", "globalId 6"),
        *("contentId 1", "contentId 3", "contentId 4", "contentId 5"),
    }
    assert by_id[SchemaKey("globalId", 6)].subjects == (("cc-value", 1), ("a-value", 2))
    assert by_id[SchemaKey("contentId", 4)].format == "protobuf"
    used = by_id[SchemaKey("globalId", 5)]
    assert (used.format, used.subjects) == ("json", (("g/j-value", 1),))
    assert used.references == (Reference("http://x/y", "a-value", 1),)


def test_other_keys_are_none() -> None:
    others = [b"", b"\x02", b"\x02{", b'\x0e{"a":1}', b'{"id": 1}', b"{", b'{"keytype": "X"}']
    for key in [*others, None, b'{"keytype":' + b"[" * 9000]:
        assert not journal.is_key(key)
        assert journal.schema_in(key, b"{}") is None


KEYS = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [
            schema(1, "a", 1)[0],
            old_key(2, contentHash="h", contentId=7),
            old_key(3, artifactId="a"),
            b'{"uuid":"u","partitionKey":"p","messageType":"ImportContent1Message"}',
            b'{"uuid":"u","partitionKey":"p","messageType":"ImportArtifactVersion1Message"}',
            b'{"uuid":"u","partitionKey":"p","messageType":"CreateArtifact11Message"}',
        ]
    ),
)
MEMBERS = """
    schema id subject version references schemaType guid entity content contentId globalId
    contentBytes artifactType artifactId groupId serializedReferences dryRun
"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**70) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(MEMBERS.split()), inner, max_size=8)
    ),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode())


@given(KEYS, st.one_of(st.binary(max_size=40), VALUES), st.sampled_from([b"", b"\x02", b"\x03"]))
def test_garbage_says_something_or_nothing(key: bytes, value: bytes, front: bytes) -> None:
    found = journal.schema_in(key, front + value)
    if found is not None:
        gathered = ObservedSchemas("capture")
        gathered.add(found.context, "x", found)
        gathered.schemas()


@given(st.integers(0, 200))
def test_every_prefix_of_a_content_is_none(size: int) -> None:
    key, value = old_key(2, contentHash="h", contentId=7), old_content(AVRO.encode(), b"")
    if size < len(value) - 4:
        assert journal.schema_in(key, value[:size]) is None
