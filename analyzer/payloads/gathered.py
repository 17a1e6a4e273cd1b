"""What many said about schemas, put together: an id here, a text there, subjects later. No I/O."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from kafkascope.analyzer.payloads.model import Format, Reference, Schema, SchemaKey, Source

MAX_TEXT: Final = 8 << 20
"""Characters of a schema; registries take 1 MB by default."""
MAX_SCHEMAS: Final = 50_000
"""Schemas that are kept; a registry with so many is larger than any that we heard of."""
MAX_BYTES: Final = 256 << 20
"""Characters of all of them."""
MAX_LIST: Final = 10_000
"""Items that are looked at of one list of subjects, versions or references."""
MAX_NAME: Final = 4096
"""Characters of a subject or of the name of a reference."""

FORMATS: Final[dict[str, Format]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}
"""As all registries call them."""
_PROTOBUF: Final = re.compile(r"^\s*(?:syntax|package|import|message|enum|option|edition)\b", re.M)
_PRIMITIVE: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
"""Types of Avro without parts; some are types of JSON Schema, too."""


class Said(NamedTuple):
    """What one message says about one schema: any part of it may be missing."""

    keys: tuple[SchemaKey, ...] = ()
    text: str | None = None
    format: Format | None = None
    """None: not said."""
    subjects: tuple[tuple[str, int], ...] = ()
    references: tuple[Reference, ...] = ()
    firm: bool = True
    """The text is the registry's own, and not what a client asked it to register."""
    missing: bool = False
    """The registry says that it has no such schema."""


class SaidIn(NamedTuple):
    """What is said, and where in the registry."""

    context: str
    """Ids of one context or tenant mean nothing in another; empty for the usual one."""
    said: Said


@dataclass(slots=True, eq=False)
class _Entry:
    """All that was said about one schema."""

    origin: str
    keys: dict[SchemaKey, None] = field(default_factory=dict)
    subjects: dict[tuple[str, int], None] = field(default_factory=dict)
    texts: list[tuple[str, bool]] = field(default_factory=list)
    """With whether they are the registry's own."""
    format: Format | None = None
    references: tuple[Reference, ...] = ()
    missing: bool = False


Token: TypeAlias = SchemaKey | tuple[str, int]
"""What tells that two are the same: a key, or a subject with its version."""


def _versions(subjects: Iterable[tuple[str, int]]) -> list[Token]:
    return [each for each in subjects if each[1] > 0]


class Gathered:
    """Takes what is said, gives schemas. Ids are told apart by the place that gave them."""

    def __init__(self, source: Source) -> None:
        self._source: Final[Source] = source
        self._entries: dict[int, _Entry] = {}
        """By identity, in the order in which they were first named."""
        self._by_token: dict[tuple[str, Token], _Entry] = {}
        self._bytes = 0
        self.changes = 0
        """Goes up with all that is said."""
        self.problems: list[str] = []
        """Sentences about what was left out."""

    def add(self, place: str, origin: str, said: Said) -> None:
        """`place`: where ids mean the same, a registry's address say. `origin`: for people."""
        text = said.text
        if text is not None and not self._fits(text, origin):
            return
        tokens = [*said.keys, *_versions(said.subjects)]
        entry = self._entry(place, origin, tokens)
        if entry is None:
            return
        self.changes += 1
        entry.missing = entry.missing or said.missing
        entry.keys.update(dict.fromkeys(said.keys))
        entry.subjects.update(dict.fromkeys(said.subjects))
        entry.format = entry.format or said.format
        entry.references = entry.references or said.references
        if text is not None and all(_differ(text, known) for known, _ in entry.texts):
            entry.texts.append((text, said.firm))
            self._bytes += len(text)

    def _fits(self, text: str, origin: str) -> bool:
        if len(text) > MAX_TEXT:
            self._problem(f"{origin}: a schema of {len(text) >> 20} MB is left out")
            return False
        if self._bytes + len(text) > MAX_BYTES or len(self._entries) >= MAX_SCHEMAS:
            self._problem(f"{origin}: too many schemas; the later ones are left out")
            return False
        return True

    def _problem(self, text: str) -> None:
        if text not in self.problems and len(self.problems) < 20:
            self.problems.append(text)

    def _entry(self, place: str, origin: str, tokens: list[Token]) -> _Entry | None:
        """Return the one entry of all these tokens, made of those that they had so far."""
        found = [self._by_token.get((place, token)) for token in tokens]
        known = list({id(each): each for each in found if each is not None}.values())
        if known:
            entry = known[0]
        elif tokens and len(self._entries) < MAX_SCHEMAS:
            entry = _Entry(origin)
            self._entries[id(entry)] = entry
        else:
            return None
        for other in known[1:]:
            self._join(place, entry, other)
        for token in tokens:
            self._by_token[place, token] = entry
        return entry

    def _join(self, place: str, entry: _Entry, other: _Entry) -> None:
        entry.missing = entry.missing or other.missing
        entry.keys |= other.keys
        entry.subjects |= other.subjects
        entry.format = entry.format or other.format
        entry.references = entry.references or other.references
        for text, firm in other.texts:
            if all(_differ(text, known) for known, _ in entry.texts):
                entry.texts.append((text, firm))
        for token in (*other.keys, *_versions(other.subjects)):
            self._by_token[place, token] = entry
        del self._entries[id(other)]

    def schemas(self) -> list[Schema]:
        """Return those whose text is known, once for each text that was given under one key."""
        out: list[Schema] = []
        places: dict[SchemaKey, list[int]] = {}
        for entry in self._entries.values():
            for schema in self._of(entry):
                same = next(
                    (
                        at
                        for key in schema.keys
                        for at in places.get(key, ())
                        if not _differ(out[at].text, schema.text)
                    ),
                    None,
                )
                if same is None:
                    for key in schema.keys:
                        places.setdefault(key, []).append(len(out))
                    out.append(schema)
                else:
                    out[same] = _both(out[same], schema)
        return out

    def _of(self, entry: _Entry) -> Iterator[Schema]:
        texts = [text for text, firm in entry.texts if firm] or [t for t, _ in entry.texts[:1]]
        known = {subject for subject, version in entry.subjects if version > 0}
        subjects = tuple(each for each in entry.subjects if each[1] > 0 or each[0] not in known)
        for text in texts:
            kind = entry.format or format_of(text)
            if kind is not None:
                yield Schema(
                    kind,
                    text,
                    tuple(entry.keys),
                    subjects,
                    entry.references,
                    self._source,
                    entry.origin,
                )

    def missing(self) -> dict[SchemaKey, str]:
        """Return the keys that a registry said it does not know, with where it said so; those that
        it had at another time are not among them."""
        return {
            key: entry.origin
            for entry in self._entries.values()
            if entry.missing and not entry.texts
            for key in entry.keys
        }


def _both(one: Schema, other: Schema) -> Schema:
    """Return a schema with what two places say of it."""
    new = other.origin not in one.origin.split(", ")
    return replace(
        one,
        keys=tuple(dict.fromkeys(one.keys + other.keys)),
        subjects=tuple(dict.fromkeys(one.subjects + other.subjects)),
        references=one.references or other.references,
        origin=f"{one.origin}, {other.origin}" if new else one.origin,
    )


def _differ(one: str, other: str) -> bool:
    """Return whether two texts are not the same schema, written or encoded in two ways."""
    if one == other or "".join(one.split()) == "".join(other.split()):
        return False
    if _PROTOBUF.search(one) or _PROTOBUF.search(other):
        # One may be the descriptor that the other was compiled to.
        return bool(_PROTOBUF.search(one)) == bool(_PROTOBUF.search(other))
    try:
        return bool(orjson.loads(one) != orjson.loads(other))
    except orjson.JSONDecodeError:
        return True


def format_of(text: str) -> Format | None:
    """Return what a text is that nobody called by its type; None where it is no schema."""
    try:
        return _json_format(orjson.loads(text))
    except orjson.JSONDecodeError:
        pass
    if _PROTOBUF.search(text):
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
    if kind in ("record", "error", "enum", "fixed", "map"):
        return "avro"
    if kind == "array" and isinstance(value.get("items"), str):
        return "avro"
    plain = isinstance(kind, str) and kind in _PRIMITIVE
    other = {"title", "description", "enum", "format", "pattern", "minimum", "maximum", "items"}
    return "avro" if plain and not other & value.keys() else "json"


# --- parts of messages, as far as they have the right form


def as_json(data: bytes) -> Any:
    """Return the value of a body; None where it is no JSON."""
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


def subject_of(value: Any, version: Any = 0) -> tuple[tuple[str, int], ...]:
    """Return a subject with its version, if these are such."""
    if isinstance(value, str) and 0 < len(value) <= MAX_NAME:
        return ((value, number_of(version) or 0),)
    return ()


def number_of(value: Any, most: int = 2**63 - 1) -> int | None:
    """Return a whole number that is not negative, from JSON or a path."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    return None


_GUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def guid_key(value: Any) -> tuple[SchemaKey, ...]:
    """Return the key of a GUID, if it is one."""
    text = value.lower() if isinstance(value, str) else ""
    return (SchemaKey("guid", text),) if _GUID.fullmatch(text) else ()


def id_key(value: Any) -> tuple[SchemaKey, ...]:
    """Return the key of an id of Confluent's protocol, if it is one."""
    number = number_of(value, 2**31 - 1)
    return () if number is None else (SchemaKey("id", number),)


def references_of(value: Any) -> tuple[Reference, ...]:
    """Return the references of a list: Confluent's, or Apicurio's by group and artifact."""
    out = []
    for each in value[:MAX_LIST] if isinstance(value, list) else ():
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            continue
        subject = each.get("subject")
        if not isinstance(subject, str):
            subject = artifact_name(each.get("groupId"), each.get("artifactId"))
        if len(each["name"]) <= MAX_NAME and len(subject) <= MAX_NAME:
            out.append(Reference(each["name"], subject, number_of(each.get("version")) or 0))
    return tuple(out)


def artifact_name(group: Any, artifact: Any) -> str:
    """Return the name that stands for an artifact of Apicurio where others have a subject."""
    if not isinstance(artifact, str):
        return ""
    usual = not isinstance(group, str) or group in ("", "default", "null", "__$GROUPID$__")
    return artifact if usual else f"{group}/{artifact}"
