"""Schemas in the topic where Apicurio keeps its journal (kafkasql storage). Stateless.

2.x: key and value begin with a byte for the kind; JSON behind it, but contents have a binary form.
A content and the artifact versions that have it are records of their own, which name its id.
3.x: keys and values are JSON, commands that each registry carries out by itself. Only those of an
import carry ids; those that create something leave them to each registry's database.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any, Final

from kafkascope.analyzer.payloads.gathered import (
    MAX_TEXT,
    Said,
    artifact_name,
    artifact_version,
    as_json,
    as_text,
    format_named,
    number_of,
    references_of,
    subject_of,
)
from kafkascope.analyzer.payloads.model import SchemaKey

LAST_KIND: Final = 31
"""The kinds of 2.6 go to 14."""
CONTENT: Final = 2
ARTIFACT: Final = 3
MEMBERS: Final = frozenset({"tenantId", "contentHash", "artifactId", "bootstrapId", "uuid"})
"""Of the keys of 2.x: each has one of them."""
_LENGTH: Final = struct.Struct(">i")
USUAL_TENANTS: Final = ("", "_")


def is_key(key: bytes) -> bool:
    """Return whether a record's key is one of Apicurio's."""
    return _old_key(key) is not None or _command(key) is not None


def _old_key(key: bytes) -> tuple[int, dict[str, Any]] | None:
    if key[0] > LAST_KIND or key[1:2] != b"{":
        return None
    value = as_json(key[1:])
    return (key[0], value) if isinstance(value, dict) and MEMBERS & value.keys() else None


def _command(key: bytes) -> str | None:
    if key[:1] != b"{" or b'"messageType"' not in key:
        return None
    value = as_json(key)
    if not isinstance(value, dict) or not {"uuid", "partitionKey"} <= value.keys():
        return None
    found = value.get("messageType")
    return found if isinstance(found, str) else None


def schema_in(key: bytes, value: bytes) -> Said | None:
    """Return the observations of a schema in a record."""
    command = _command(key)
    if command is not None:
        return _of_command(command, as_json(value))
    old = _old_key(key)
    if old is None or value[0] != old[0]:
        return None
    kind, about = old
    said = None
    if kind == CONTENT:
        said = _content(about, value)
    elif kind == ARTIFACT:
        # The content is another record.
        names = about.get("groupId", ""), about.get("artifactId", "")
        said = artifact_version(as_json(value[1:]), *names)
    tenant = about.get("tenantId")
    if said is None or not isinstance(tenant, str) or tenant in USUAL_TENANTS:
        return said
    return said._replace(context=tenant)


def _content(about: dict[str, Any], value: bytes) -> Said | None:
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
    if number is None or len(parts) < 2 or len(parts[1]) > MAX_TEXT:
        return None
    text = as_text(parts[1])
    if text is None:
        return None
    references = references_of(as_json(parts[2])) if len(parts) > 2 else ()
    return Said((SchemaKey("contentId", number),), text, references=references)


def _of_command(command: str, about: Any) -> Said | None:
    """A command of 3.x; the number in its name is how many parameters it has."""
    if not isinstance(about, dict):
        return None
    entity, text = about.get("entity"), about.get("content")
    if command.startswith(("CreateArtifact1", "CreateArtifact9", "CreateArtifactVersion")):
        kind = format_named(about.get("artifactType"))
        name = artifact_name(about.get("groupId"), about.get("artifactId"))
        there = subject_of(name, about.get("version"))
        named = bool(there) and there[0][1] > 0
        if kind is None or not isinstance(text, str) or not named or about.get("dryRun") is True:
            return None
        return Said((), text, kind, there, references_of(about.get("references")))
    if not isinstance(entity, dict):
        return None
    if command.startswith("ImportArtifactVersion"):
        return artifact_version(entity)
    if not command.startswith("ImportContent"):
        return None
    number, kind = number_of(entity.get("contentId")), entity.get("artifactType")
    text = text if isinstance(text, str) else _decoded(entity.get("contentBytes"))
    if number is None or text is None or (kind and format_named(kind) is None):
        return None
    references = entity.get("serializedReferences")
    listed = as_json(references.encode()) if isinstance(references, str) else references
    keys = (SchemaKey("contentId", number),)
    return Said(keys, text, format_named(kind), references=references_of(listed))


def _decoded(value: Any) -> str | None:
    try:
        return as_text(base64.b64decode(value, validate=True)) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
