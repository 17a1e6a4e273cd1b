"""Merges observations of schemas into schemas. No I/O.

Messages show parts of a schema: a registration the subject and the text, its response the id, a
later lookup the id and the text. An entry collects the parts that share a token: a key (an id with
its namespace), or a subject with its version. An observation with two tokens joins their entries.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import orjson

from kafkascope.schemas.avro.types import PRIMITIVES
from kafkascope.schemas.limits import LIMITS, Limits, SchemaBudget
from kafkascope.schemas.model import (
    Format,
    Namespace,
    Reference,
    Schema,
    SchemaKey,
    Source,
    is_too_much,
    size_of,
)

# Memory of a name, besides its characters.
NAME_BYTES: Final = 200
FORMATS: Final[dict[str, Format]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}
"""As all registries call them."""
ARTIFACT_IDS: Final[tuple[Namespace, ...]] = ("globalId", "contentId")
"""Apicurio's ids, of an artifact's version and of its content."""
_T = TypeVar("_T")

_PROTOBUF: Final = re.compile(r"^\s*(?:syntax|package|import|message|enum|option|edition)\b", re.M)
_OF_AVRO: Final = ("record", "error", "enum", "fixed", "map")
"""Types that JSON Schema does not have."""


class SchemaObservation(NamedTuple):
    """The observation of a schema in one message; any part of it may be missing."""

    keys: tuple[SchemaKey, ...] = ()
    text: str | None = None
    format: Format | None = None
    """None where the message does not name it."""
    subjects: tuple[tuple[str, int], ...] = ()
    references: tuple[Reference, ...] = ()
    firm: bool = True
    """Whether the text is from the registry, not from a client's registration, which the registry
    may refuse or normalize."""
    missing: bool = False
    """Whether the registry responded that it has no such schema."""
    context: str = ""
    """Context or tenant of the registry, within which ids are unique; empty for the default one."""


@dataclass(slots=True, eq=False)
class _Entry:
    origin: str
    keys: dict[SchemaKey, None] = field(default_factory=dict)
    subjects: dict[tuple[str, int], None] = field(default_factory=dict)
    texts: dict[Form, tuple[str, bool]] = field(default_factory=dict)
    """Texts, with whether the registry sent them."""
    format: Format | None = None
    references: tuple[Reference, ...] = ()
    missing: bool = False

    def extent(self) -> tuple[object, ...]:
        """Return a value that changes with each observation that has something new."""
        counts = len(self.keys), len(self.subjects), len(self.texts), len(self.references)
        return (*counts, self.format, self.missing)


Form: TypeAlias = tuple[bool, bytes]
"""Equal for texts of one schema: see `_form`."""
Token: TypeAlias = SchemaKey | tuple[str, int]
"""Identifies a schema: a key, or a subject with its version."""


def _versions(subjects: Iterable[tuple[str, int]]) -> list[Token]:
    return [subject for subject in subjects if subject[1] > 0]


class ObservedSchemas:
    """Merges observations into schemas. An id is unique within the place that assigned it."""

    def __init__(self, source: Source, limits: Limits = LIMITS) -> None:
        self._source: Final[Source] = source
        self._limits: Final = limits
        self._budget: Final = SchemaBudget(limits.gathered_bytes, limits.problems)
        self._entries: dict[int, _Entry] = {}
        """By identity, in the order in which they were first named."""
        self._by_token: dict[tuple[str, Token], _Entry] = {}
        self.changes = 0
        """Goes up with each observation that has something new."""
        self._changed: dict[int, tuple[int, _Entry]] = {}
        """Entries with `changes` at their last new observation; the latest are last."""

    @property
    def problems(self) -> list[str]:
        """Sentences about what was left out."""
        return self._budget.problems

    def add(self, scope: str, origin: str, observation: SchemaObservation) -> None:
        """Add an observation. `scope`: within which ids are unique, such as a registry's address.
        `origin`: the name of the source for people."""
        text = observation.text
        if not self._fits(observation, origin):
            return
        tokens = [*observation.keys, *_versions(observation.subjects)]
        count = len(self._entries)
        entry = self._entry(scope, origin, tokens)
        if entry is None:
            return
        joined = len(self._entries) < count
        before = entry.extent()
        names = [
            name for name, version in observation.subjects if (name, version) not in entry.subjects
        ]
        if not entry.references:
            names += [name for reference in observation.references for name in reference[:2]]
        self._budget.used += sum(NAME_BYTES + size_of(name) for name in names)
        self._merge(entry, observation)
        if text is not None and self._take(entry, _form(text), (text, observation.firm)):
            self._budget.used += size_of(text)
        if joined or entry.extent() != before:
            self.changes += 1
            self._changed.pop(id(entry), None)
            self._changed[id(entry)] = self.changes, entry

    def _merge(self, entry: _Entry, other: _Entry | SchemaObservation) -> None:
        """Add the parts of another entry or an observation, except texts."""
        entry.missing = entry.missing or other.missing
        entry.format = entry.format or other.format
        entry.references = entry.references or other.references
        entry.keys |= dict.fromkeys(other.keys)
        entry.subjects |= dict.fromkeys(other.subjects)
        most = self._limits.names_of_entry
        if max(len(entry.keys), len(entry.subjects)) > most:
            for names in (entry.keys, entry.subjects):
                while len(names) > most:
                    names.popitem()
            name = next(iter(entry.keys), "a schema")
            names_of = f"{most:,} subjects or other ids"
            self._budget.refuse(f"{name} has more than {names_of}; the later ones are left out")

    def _take(self, entry: _Entry, form: Form, text: tuple[str, bool]) -> bool:
        """Add a text unless the entry has it; return whether it was added."""
        if _same(form, entry.texts) is not None:
            return False
        if len(entry.texts) >= self._limits.texts_of_entry:
            self._too_many(str(next(iter(entry.keys), "a subject")))
            return False
        entry.texts[form] = text
        return True

    def _fits(self, observation: SchemaObservation, origin: str) -> bool:
        text = observation.text or ""
        if len(text) > self._limits.schema_chars:
            self._budget.refuse(f"{origin}: a schema of {len(text) >> 20} MB is left out")
            return False
        full = observation.text is not None and len(self._entries) >= self._limits.schemas
        if full or not self._budget.holds(size_of(text)):
            self._budget.refuse(f"{origin}: too many schemas; the later ones are left out")
            return False
        return True

    def leave_out(self, origin: str, data: bytes) -> None:
        """Report the origin of a JSON text that is too large to read."""
        if is_too_much(data):
            self._budget.refuse(f"{origin}: JSON of {len(data) >> 20} MB is left out")

    def _too_many(self, name: str) -> None:
        most = self._limits.texts_of_entry
        self._budget.refuse(f"{name} has more than {most} schemas; the later ones are left out")

    def _entry(self, scope: str, origin: str, tokens: list[Token]) -> _Entry | None:
        """Return the entry of all these tokens; entries that they connect are joined."""
        of_tokens = [self._by_token.get((scope, token)) for token in tokens]
        entries = list({id(entry): entry for entry in of_tokens if entry is not None}.values())
        if entries:
            # Smaller entries are moved into the largest (union by size): an entry that grows by
            # one join after another would be moved each time.
            entry = max(entries, key=lambda entry: len(entry.keys) + len(entry.subjects))
        elif tokens and len(self._entries) < self._limits.schemas:
            entry = _Entry(origin)
            self._entries[id(entry)] = entry
        else:
            return None
        for other in entries:
            if other is not entry:
                self._join(scope, entry, other)
        for token in tokens:
            self._by_token[scope, token] = entry
        return entry

    def _join(self, scope: str, entry: _Entry, other: _Entry) -> None:
        self._changed.pop(id(other), None)
        self._merge(entry, other)
        for form, text in other.texts.items():
            self._take(entry, form, text)
        for token in (*other.keys, *_versions(other.subjects)):
            self._by_token[scope, token] = entry
        del self._entries[id(other)]

    def schemas(self) -> list[Schema]:
        """Return the schemas whose text is known, one for each text of a key."""
        return self._schemas(self._entries.values())

    def since(self, changes: int) -> list[Schema]:
        """Return the schemas with new observations since `changes` had this value."""
        new: list[_Entry] = []
        for when, entry in reversed(self._changed.values()):
            if when <= changes:
                break
            new.append(entry)
        return self._schemas(reversed(new))

    def _schemas(self, entries: Iterable[_Entry]) -> list[Schema]:
        # Entries of several registries may have one key with the same text: they are one schema.
        groups: list[list[Schema]] = []
        by_key: dict[SchemaKey, dict[Form, list[Schema]]] = {}
        for entry in entries:
            for form, schema in self._of(entry):
                texts = [by_key.setdefault(key, {}) for key in schema.keys]
                same = next((group for forms in texts if (group := _same(form, forms))), None)
                if same is None:
                    if any(len(forms) >= self._limits.texts_of_entry for forms in texts):
                        self._too_many(str(schema.keys[0]))
                        continue
                    same = []
                    groups.append(same)
                same.append(schema)
                for forms in texts:
                    forms.setdefault(form, same)
        return list(map(_merged, groups))

    def _of(self, entry: _Entry) -> Iterator[tuple[Form, Schema]]:
        own = {form: text for form, (text, firm) in entry.texts.items() if firm}
        texts = own or {form: text for form, (text, _) in list(entry.texts.items())[:1]}
        versioned = {name for name, version in entry.subjects if version > 0}
        subjects = tuple(
            (name, version)
            for name, version in entry.subjects
            if version > 0 or name not in versioned
        )
        for form, text in texts.items():
            kind = entry.format or format_of(text)
            if kind is not None:
                names = tuple(entry.keys), subjects, entry.references
                yield form, Schema(kind, text, *names, self._source, entry.origin)

    def missing(self) -> dict[SchemaKey, str]:
        """Return the keys of which a registry responded that it has no schema, with the origin of
        the response; without those that it had at another time."""
        return {
            key: entry.origin
            for entry in self._entries.values()
            if entry.missing and not entry.texts
            for key in entry.keys
        }


def _merged(schemas: list[Schema]) -> Schema:
    origins = list(dict.fromkeys(schema.origin for schema in schemas))
    more = len(origins) - LIMITS.origins
    return replace(
        schemas[0],
        keys=tuple(dict.fromkeys(key for schema in schemas for key in schema.keys)),
        subjects=tuple(dict.fromkeys(one for schema in schemas for one in schema.subjects)),
        references=next((schema.references for schema in schemas if schema.references), ()),
        origin=", ".join(origins[: LIMITS.origins]) + (f" and {more:,} more" if more > 0 else ""),
    )


def _form(text: str) -> Form:
    """Return a value that is equal for texts that differ in white space and order of members:
    whether they are source text of Protobuf, and a digest."""
    source = bool(_PROTOBUF.search(text))
    if not source and not is_too_much(text.encode("utf-8", "replace")):
        try:
            text = orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS).decode()
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            pass  # a descriptor, or deeper than it can be written
    squeezed = "".join(text.split()).encode("utf-8", "surrogatepass")
    return source, blake2b(squeezed, digest_size=16).digest()


def _same(form: Form, texts: Mapping[Form, _T]) -> _T | None:
    """Return the value of the same schema in `texts`; None without one."""
    if form in texts:
        return texts[form]
    # A descriptor may be the compiled form of a source text: without compiling, one of each counts
    # as the same schema.
    return next((value for (source, _), value in texts.items() if source != form[0]), None)


def format_of(text: str) -> Format | None:
    """Return the format of a text without a declared type; None where it is no schema."""
    if is_too_much(text.encode("utf-8", "replace")):
        return None
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


# --- parts of messages, as far as they have the right form


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


def subject_of(value: Any, version: Any = 0) -> tuple[tuple[str, int], ...]:
    """Return a subject with its version; empty where the value is no subject."""
    if isinstance(value, str) and 0 < len(value) <= LIMITS.name_chars:
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
    if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
        return None
    kind = value.get("schemaType", "AVRO")  # left out for Avro
    if not isinstance(kind, str):
        return None
    return SchemaObservation(
        keys + id_key(value.get("id")) + guid_key(value.get("guid")),
        value["schema"],
        format_named(kind.upper()),
        subject_of(value.get("subject"), value.get("version")),
        references_of(value.get("references")),
    )


def references_of(value: Any) -> tuple[Reference, ...]:
    """Return the references of a list: Confluent's, or Apicurio's by group and artifact."""
    out = []
    for item in value[: LIMITS.listed] if isinstance(value, list) else ():
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            continue
        subject = item.get("subject")
        if not isinstance(subject, str):
            subject = artifact_name(item.get("groupId"), item.get("artifactId"))
        if len(item["name"]) <= LIMITS.name_chars and len(subject) <= LIMITS.name_chars:
            out.append(Reference(item["name"], subject, number_of(item.get("version")) or 0))
    return tuple(out)


def artifact_version(
    value: Any, group: Any = None, artifact: Any = None
) -> SchemaObservation | None:
    """Read the artifact version in an Apicurio object; None where it names no id, or the artifact
    is no schema of records: OpenAPI, XSD and so on. `group`, `artifact`: those that are known from
    elsewhere."""
    if not isinstance(value, dict):
        return None
    keys = tuple(
        SchemaKey(namespace, number)
        for namespace in ARTIFACT_IDS
        if (number := number_of(value.get(namespace)))
    )
    kind = value.get("artifactType", value.get("type"))
    if not keys or (kind and format_named(kind) is None):
        return None
    group = value.get("groupId") if group is None else group
    artifact = value.get("artifactId", value.get("id")) if artifact is None else artifact
    version = value.get("version") or value.get("versionId")
    return SchemaObservation(
        keys,
        format=format_named(kind),
        subjects=subject_of(artifact_name(group, artifact), version),
        references=references_of(value.get("references")),
    )


def artifact_name(group: Any, artifact: Any) -> str:
    """Return the name of an Apicurio artifact, used as its subject."""
    if not isinstance(artifact, str):
        return ""
    default = not isinstance(group, str) or group in ("", "default", "null", "__$GROUPID$__")
    return artifact if default else f"{group}/{artifact}"
