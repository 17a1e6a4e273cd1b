"""Valid parts of the JSON that registries send about a schema. Stateless."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, NamedTuple

import orjson

from kafkascope.schemas.avro.types import PRIMITIVES
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Format, Namespace, Reference, SchemaKey, is_too_much

FORMATS: Final[dict[str, Format]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}
"""As all registries call them."""
ARTIFACT_IDS: Final[tuple[Namespace, ...]] = ("globalId", "contentId")
"""Apicurio's ids, of an artifact's version and of its content."""
SOURCE: Final = re.compile(r"^\s*(?:syntax|package|import|message|enum|option|edition)\b", re.M)
"""A line of Protobuf's source text."""
_OF_AVRO: Final = ("record", "error", "enum", "fixed", "map")
"""Types that JSON Schema does not have."""
_GUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Subjects = tuple[tuple[str, int], ...]
"""Subjects with versions, 0 for none."""


class SchemaObservation(NamedTuple):
    """The observation of a schema in one message; any part of it may be missing."""

    keys: tuple[SchemaKey, ...] = ()
    text: str | None = None
    format: Format | None = None
    """None where the message does not name it."""
    subjects: Subjects = ()
    references: tuple[Reference, ...] = ()
    firm: bool = True
    """Whether the text is from the registry, not from a client's registration, which the registry
    may refuse or normalize."""
    missing: bool = False
    """Whether the registry responded that it has no such schema."""
    context: str = ""
    """Context or tenant of the registry, within which ids are unique; empty for the default one."""


def as_json(data: bytes) -> Any:
    """Return the JSON value of a body; None where it is not JSON, or too large."""
    if is_too_much(data):
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def as_text(data: bytes) -> str | None:
    """Return a body as text; None where it is no UTF-8, or nothing."""
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        return None


def members(value: Any) -> dict[str, Any]:
    """Return an object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def elements(value: Any) -> list[Any]:
    """Return as much of a list as counts; an empty one in place of anything else."""
    return value[: LIMITS.listed] if isinstance(value, list) else []


def text_in(value: dict[str, Any], name: str) -> str | None:
    """Return the text of a member; None where it is none."""
    found = value.get(name)
    return found if isinstance(found, str) else None


def subject_of(value: Any, version: Any = 0) -> Subjects:
    """Return a subject with its version; empty where the value is no subject."""
    if isinstance(value, str) and 0 < len(value) <= LIMITS.name_chars:
        return ((value, number_of(version) or 0),)
    return ()


def subject_in(value: Any) -> Subjects:
    """Return the subject and version of an object."""
    about = members(value)
    return subject_of(about.get("subject"), about.get("version"))


def number_of(value: Any, most: int = 2**63 - 1) -> int | None:
    """Return a whole number that is not negative, from JSON or a path."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    return None


def format_named(value: Any) -> Format | None:
    """Return the format of a registry's name for it; None for other names."""
    return FORMATS.get(value) if isinstance(value, str) else None


def guid_key(value: Any) -> tuple[SchemaKey, ...]:
    """Return the key of a GUID, if it is one."""
    text = value.lower() if isinstance(value, str) else ""
    return (SchemaKey("guid", text),) if _GUID.fullmatch(text) else ()


def id_key(value: Any) -> tuple[SchemaKey, ...]:
    """Return the key of an id of Confluent's protocol, if it is one."""
    number = number_of(value, 2**31 - 1)
    return () if number is None else (SchemaKey("id", number),)


def confluent_schema(value: Any, keys: tuple[SchemaKey, ...] = ()) -> SchemaObservation | None:
    """Read the schema in a Confluent object, with keys known from elsewhere; None where there is
    none."""
    about = members(value)
    text, kind = text_in(about, "schema"), about.get("schemaType", "AVRO")  # left out for Avro
    if text is None or not isinstance(kind, str):
        return None
    keys += id_key(about.get("id")) + guid_key(about.get("guid"))
    references = references_of(about.get("references"))
    return SchemaObservation(keys, text, format_named(kind.upper()), subject_in(about), references)


def references_of(value: Any) -> tuple[Reference, ...]:
    """Return the references of a list: Confluent's, or Apicurio's by group and artifact."""
    out = []
    for item in map(members, elements(value)):
        name, subject = text_in(item, "name"), text_in(item, "subject")
        if subject is None:
            subject = artifact_name(item.get("groupId"), item.get("artifactId"))
        if name is not None and max(len(name), len(subject)) <= LIMITS.name_chars:
            out.append(Reference(name, subject, number_of(item.get("version")) or 0))
    return tuple(out)


def artifact_version(
    value: Any, group: Any = None, artifact: Any = None
) -> SchemaObservation | None:
    """Read the artifact version in an Apicurio object; None where it names no id, or the artifact
    is no schema of records: OpenAPI, XSD and so on. `group`, `artifact`: those that are known from
    elsewhere."""
    about = members(value)
    keys = tuple(
        SchemaKey(namespace, number)
        for namespace in ARTIFACT_IDS
        if (number := number_of(about.get(namespace)))
    )
    kind = about.get("artifactType", about.get("type"))
    if not keys or (kind and format_named(kind) is None):
        return None
    group = about.get("groupId") if group is None else group
    artifact = about.get("artifactId", about.get("id")) if artifact is None else artifact
    version = about.get("version") or about.get("versionId")
    return SchemaObservation(
        keys,
        format=format_named(kind),
        subjects=subject_of(artifact_name(group, artifact), version),
        references=references_of(about.get("references")),
    )


def artifact_name(group: Any, artifact: Any) -> str:
    """Return the name of an Apicurio artifact, used as its subject."""
    if not isinstance(artifact, str):
        return ""
    default = not isinstance(group, str) or group in ("", "default", "null", "__$GROUPID$__")
    return artifact if default else f"{group}/{artifact}"


# --- the format of a text


def format_of(text: str) -> Format | None:
    """Return the format of a text without a declared type; None where it is no schema."""
    if is_too_much(text.encode("utf-8", "replace")):
        return None
    try:
        return _json_format(orjson.loads(text))
    except orjson.JSONDecodeError:
        pass
    if SOURCE.search(text):
        return "protobuf"
    try:
        # A FileDescriptorProto begins with its field 1, the name.
        return "protobuf" if base64.b64decode(text, validate=True)[:1] == b"\x0a" else None
    except (binascii.Error, ValueError):
        return None


def _json_format(value: Any) -> Format | None:
    if isinstance(value, str):
        return "avro" if value else None
    if isinstance(value, list):
        return "avro"  # a union
    if isinstance(value, bool):
        return "json"
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if any(name.startswith("$") for name in value) or "properties" in value:
        return "json"
    if kind in _OF_AVRO or (kind == "array" and _are_of_avro(value.get("items"))):
        return "avro"
    plain = isinstance(kind, str) and kind in PRIMITIVES
    other = {"title", "description", "enum", "format", "pattern", "minimum", "maximum", "items"}
    return "avro" if plain and not other & value.keys() else "json"


def _are_of_avro(items: Any) -> bool:
    """Return whether the items of an array are Avro's: those of JSON Schema are never texts, and
    have none of these types."""
    while isinstance(items, dict) and items.get("type") == "array":
        items = items.get("items")
    if isinstance(items, dict):
        return items.get("type") in _OF_AVRO or "logicalType" in items
    branches = items if isinstance(items, list) else [items]
    return any(isinstance(branch, str) for branch in branches)
