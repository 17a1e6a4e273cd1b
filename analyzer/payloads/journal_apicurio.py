"""Schemas in the topic where Apicurio keeps its journal (kafkasql storage). Stateless.

2.x: key and value begin with a byte for the kind; JSON behind it, but contents have a binary form.
A content and the artifact versions that have it are records of their own, which name its id.
3.x: keys and values are JSON, commands that each registry carries out by itself. Only those of an
import say the ids; those that create something leave them to each registry's database.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any, Final

from kafkascope.analyzer.payloads.gathered import (
    FORMATS,
    MAX_TEXT,
    Said,
    SaidIn,
    artifact_name,
    as_json,
    as_text,
    number_of,
    references_of,
    subject_of,
)
from kafkascope.analyzer.payloads.model import Format, SchemaKey

LAST_KIND: Final = 31
"""The kinds of 2.6 go to 14."""
CONTENT: Final = 2
ARTIFACT: Final = 3
MEMBERS: Final = frozenset({"tenantId", "contentHash", "artifactId", "bootstrapId", "uuid"})
"""Of the keys of 2.x: each has one of them."""
_LENGTH: Final = struct.Struct(">i")
USUAL_TENANTS: Final = (None, "", "_")


def is_key(key: bytes) -> bool:
    """Return whether a record's key is one of Apicurio's."""
    return _old_key(key) is not None or _command(key) is not None


def _old_key(key: bytes) -> tuple[int, dict[str, Any]] | None:
    """Return kind and contents of a key of 2.x."""
    if key[0] > LAST_KIND or key[1:2] != b"{":
        return None
    value = as_json(key[1:])
    return (key[0], value) if isinstance(value, dict) and MEMBERS & value.keys() else None


def _command(key: bytes) -> str | None:
    """Return the command of a key of 3.x."""
    if key[:1] != b"{" or b'"messageType"' not in key:
        return None
    value = as_json(key)
    if not isinstance(value, dict) or not {"uuid", "partitionKey"} <= value.keys():
        return None
    found = value.get("messageType")
    return found if isinstance(found, str) else None


def said_by(key: bytes, value: bytes) -> SaidIn | None:
    """Return what a record says about a schema."""
    command = _command(key)
    if command is not None:
        said = _of_command(command, value)
        return None if said is None else SaidIn("", said)
    old = _old_key(key)
    if old is None or value[0] != old[0]:
        return None
    kind, about = old
    said = None
    if kind == CONTENT:
        said = _content(about, value)
    elif kind == ARTIFACT:
        said = _version(about, as_json(value[1:]))
    tenant = about.get("tenantId")
    context = "" if tenant in USUAL_TENANTS or not isinstance(tenant, str) else tenant
    return None if said is None else SaidIn(context, said)


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


def _version(about: dict[str, Any], value: Any) -> Said | None:
    """A version of an artifact of 2.x; the content is another record."""
    if not isinstance(value, dict):
        return None
    return _ids(value, about.get("groupId"), about.get("artifactId"))


def _ids(value: dict[str, Any], group: Any, artifact: Any) -> Said | None:
    numbers = [(number_of(value.get(name)), name) for name in ("globalId", "contentId")]
    keys = [
        SchemaKey("globalId" if name == "globalId" else "contentId", number)
        for number, name in numbers
        if number is not None and number > 0
    ]
    if not keys or _is_other(value):
        return None
    name = artifact_name(group, artifact)
    return Said(
        tuple(keys),
        format=_kind(value),
        subjects=subject_of(name, value.get("version") or value.get("versionId")),
    )


def _kind(value: dict[str, Any]) -> Format | None:
    kind = value.get("artifactType")
    return FORMATS.get(kind) if isinstance(kind, str) else None


def _is_other(value: dict[str, Any]) -> bool:
    """Return whether an artifact is no schema of records: OpenAPI, XSD and so on."""
    return isinstance(value.get("artifactType"), str) and _kind(value) is None


def _of_command(command: str, value: bytes) -> Said | None:
    """A command of 3.x; the number in its name is how many parameters it has."""
    about = as_json(value)
    if not isinstance(about, dict):
        return None
    entity = about.get("entity")
    if command.startswith(("CreateArtifact1", "CreateArtifact9", "CreateArtifactVersion")):
        kind, text = _kind(about), about.get("content")
        name = artifact_name(about.get("groupId"), about.get("artifactId"))
        there = subject_of(name, about.get("version"))
        named = bool(there) and there[0][1] > 0
        if kind is None or not isinstance(text, str) or not named or about.get("dryRun") is True:
            return None
        return Said((), text, kind, there, references_of(about.get("references")))
    if not isinstance(entity, dict):
        return None
    if command.startswith("ImportContent"):
        number, text = number_of(entity.get("contentId")), about.get("content")
        if not isinstance(text, str):
            text = _decoded(entity.get("contentBytes"))
        if number is None or text is None or _is_other(entity):
            return None
        references = entity.get("serializedReferences")
        listed = as_json(references.encode()) if isinstance(references, str) else references
        return Said(
            (SchemaKey("contentId", number),),
            text,
            _kind(entity),
            references=references_of(listed),
        )
    if command.startswith("ImportArtifactVersion"):
        return _ids(entity, entity.get("groupId"), entity.get("artifactId"))
    return None


def _decoded(value: Any) -> str | None:
    try:
        return as_text(base64.b64decode(value, validate=True)) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
