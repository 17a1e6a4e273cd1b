"""Schemas in the topics where registries keep them: keys and values of records. Stateless.

Known by their keys, whatever the topic is called. Confluent and Karapace: JSON with a `keytype`.
Apicurio 2.x (kafkasql storage): key and value begin with a byte for the kind, then JSON; contents
have a binary form. A content and the artifact versions that have it are separate records, which
name its id. Apicurio 3.x: JSON commands that each registry carries out by itself. Only those of an
import carry ids; those that create something leave ids to each registry's database.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any, Final

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import SchemaKey
from kafkascope.schemas.parts import (
    SchemaObservation,
    artifact_name,
    artifact_version,
    as_json,
    as_text,
    confluent_schema,
    format_named,
    members,
    number_of,
    references_of,
    subject_of,
    text_in,
)

KEY_TYPES: Final = frozenset(
    {
        *("SCHEMA", "CONFIG", "MODE", "NOOP", "DELETE_SUBJECT", "CLEAR_SUBJECT"),
        *("CONTEXT", "ENCODER", "EXPORTER", "KEK", "DEK", "ASSOC"),
    }
)
# The kinds of 2.6 go to 14.
LAST_KIND: Final = 31
CONTENT: Final = 2
ARTIFACT: Final = 3
MEMBERS: Final = frozenset({"tenantId", "contentHash", "artifactId", "bootstrapId", "uuid"})
"""Members of the keys of 2.x: each has one of them."""
_LENGTH: Final = struct.Struct(">i")
USUAL_TENANTS: Final = ("", "_")


def is_key(key: bytes | None) -> bool:
    """Return whether a record's key is one of a registry's journal."""
    if not key or len(key) > LIMITS.journal_key:
        return False
    return any(kind(key) is not None for kind in (_key_type, _artifact_key, _command))


def _key_type(key: bytes) -> str | None:
    found = text_in(_members(key, "keytype"), "keytype")
    return found if found in KEY_TYPES else None


def _members(key: bytes, name: str) -> dict[str, Any]:
    """Return the members of a JSON object that has a member of this name; empty for other keys."""
    return members(as_json(key) if key[:1] == b"{" and f'"{name}"'.encode() in key else None)


def schema_in(key: bytes | None, value: bytes | None) -> SchemaObservation | None:
    """Return the observations of a schema in a record. A deleted one stays: values that were
    written with its id are still there."""
    if not key or not value or len(key) > LIMITS.journal_key:
        return None
    kind = _key_type(key)
    if kind is None:
        return _apicurio_schema(key, value)
    schema = confluent_schema(as_json(value)) if kind == "SCHEMA" else None
    if schema is None or not any(key.namespace == "id" for key in schema.keys):
        return None
    # Confluent writes the context in front of a subject: `:.dev:orders-value`.
    subject = schema.subjects[0][0] if schema.subjects else ""
    context, colon, _ = subject[1:].partition(":")
    named = subject.startswith(":.") and colon and context != "."
    return schema._replace(context=context if named else "")


def _artifact_key(key: bytes) -> tuple[int, dict[str, Any]] | None:
    if key[0] > LAST_KIND or key[1:2] != b"{":
        return None
    value = members(as_json(key[1:]))
    return (key[0], value) if MEMBERS & value.keys() else None


def _command(key: bytes) -> str | None:
    value = _members(key, "messageType")
    return text_in(value, "messageType") if {"uuid", "partitionKey"} <= value.keys() else None


def _apicurio_schema(key: bytes, value: bytes) -> SchemaObservation | None:
    command = _command(key)
    if command is not None:
        return _of_command(command, members(as_json(value)))
    old = _artifact_key(key)
    if old is None or value[0] != old[0]:
        return None
    kind, about = old
    schema = None
    if kind == CONTENT:
        schema = _content(about, value)
    elif kind == ARTIFACT:
        # The content is another record.
        names = about.get("groupId", ""), about.get("artifactId", "")
        schema = artifact_version(as_json(value[1:]), *names)
    tenant = about.get("tenantId")
    if schema is None or not isinstance(tenant, str) or tenant in USUAL_TENANTS:
        return schema
    return schema._replace(context=tenant)


def _content(about: dict[str, Any], value: bytes) -> SchemaObservation | None:
    """A content of 2.x: kind, action, and with their lengths its hash, itself, its references."""
    number = number_of(about.get("contentId"))
    at = 2
    parts: list[bytes] = []
    while len(parts) < 3 and at + 4 <= len(value):
        (size,) = _LENGTH.unpack_from(value, at)
        at += 4
        if not 0 <= size <= len(value) - at:
            return None
        parts.append(value[at : at + size])
        at += size
    if number is None or len(parts) < 2 or len(parts[1]) > LIMITS.schema_chars:
        return None
    text = as_text(parts[1])
    if text is None:
        return None
    references = references_of(as_json(parts[2])) if len(parts) > 2 else ()
    return SchemaObservation((SchemaKey("contentId", number),), text, references=references)


def _of_command(command: str, about: dict[str, Any]) -> SchemaObservation | None:
    """A command of 3.x; the number in its name is how many parameters it has."""
    entity, text = members(about.get("entity")), text_in(about, "content")
    if command.startswith(("CreateArtifact1", "CreateArtifact9", "CreateArtifactVersion")):
        kind = format_named(about.get("artifactType"))
        name = artifact_name(about.get("groupId"), about.get("artifactId"))
        there = subject_of(name, about.get("version"))
        named = bool(there) and there[0][1] > 0
        if kind is None or text is None or not named or about.get("dryRun") is True:
            return None
        return SchemaObservation((), text, kind, there, references_of(about.get("references")))
    if command.startswith("ImportArtifactVersion"):
        return artifact_version(entity)
    if not command.startswith("ImportContent"):
        return None
    number, kind = number_of(entity.get("contentId")), entity.get("artifactType")
    text = _decoded(entity.get("contentBytes")) if text is None else text
    if number is None or text is None or (kind and format_named(kind) is None):
        return None
    references = entity.get("serializedReferences")
    listed = as_json(references.encode()) if isinstance(references, str) else references
    keys = (SchemaKey("contentId", number),)
    return SchemaObservation(keys, text, format_named(kind), references=references_of(listed))


def _decoded(value: Any) -> str | None:
    try:
        return as_text(base64.b64decode(value, validate=True)) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
