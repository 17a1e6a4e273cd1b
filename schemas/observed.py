"""Merges observations of schemas into schemas. No I/O.

Messages show parts of a schema: a registration the subject and the text, its response the id, a
later lookup the id and the text. An entry collects the parts that share a token: a key (an id with
its namespace), or a subject with its version. An observation with two tokens joins their entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, TypeAlias, TypeVar

import orjson

from kafkascope.schemas.limits import LIMITS, Limits, SchemaBudget
from kafkascope.schemas.model import (
    Format,
    Reference,
    Schema,
    SchemaKey,
    Source,
    is_too_much,
    size_of,
)
from kafkascope.schemas.parts import SOURCE, SchemaObservation, format_of

# Memory of a name, besides its characters.
NAME_BYTES: Final = 200
_T = TypeVar("_T")


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
    source = bool(SOURCE.search(text))
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
