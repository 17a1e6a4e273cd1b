"""The catalogue of schemas from all sources, by the ids in payloads; compiled on first use.

`find` looks an id up in this order, and stops at the first source that has it: schemas added so far
(folder, user, registry responses), input that is still read (`grows`), the registry, and at last a
pass over the capture (`complete`), which is made once.
"""

from __future__ import annotations

import gc
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.extras import missing
from kafkascope.schemas.framing import Side
from kafkascope.schemas.limits import LIMITS, Limits, SchemaBudget
from kafkascope.schemas.model import (
    Compiled,
    Format,
    PayloadError,
    Schema,
    SchemaKey,
    Selector,
    Source,
    size_of,
)
from kafkascope.schemas.paths import Path

if TYPE_CHECKING:
    from kafkascope.schemas.observed import ObservedSchemas

RANK: Final[dict[Source, int]] = {"folder": 0, "registry": 1, "capture": 2}
"""Order in which sources are preferred for an id."""
# What an evicted schema counts beside its text: compiled, a small one takes 20 times its text.
EVICTED_BYTES: Final = 300
MODULES: Final = {
    "compile": "codec",
    "breaking_changes": "changes",
    "bare": "text",
    "defined_names": "text",
    "field_paths": "text",
    "fingerprint": "text",
}
"""Modules of each format's functions, loaded with the first schema of the format."""


class Assigned(NamedTuple):
    """A schema that the user gave for the keys or values of a topic, which carry no id."""

    schema: Schema
    selector: Selector = None


class IncomingSchemas:
    """Schemas that arrive while input is read, shared by threads. A schema that arrives again, with
    another id or subject, replaces itself."""

    def __init__(self) -> None:
        self.changes = 0
        """Goes up with each schema that arrives."""
        self._lock = threading.Lock()
        self._schemas: dict[tuple[str, str], tuple[int, Schema]] = {}
        """By text and origin, with `changes` as it was; the latest are last."""

    def take(self, schemas: Iterable[Schema]) -> None:
        """Add schemas, or replace them by what is known now."""
        with self._lock:
            for schema in schemas:
                key = schema.text, schema.origin
                self._schemas.pop(key, None)
                self._schemas[key] = self.changes + 1, schema
                self.changes += 1

    def since(self, changes: int) -> list[Schema]:
        """Return the schemas that arrived since `changes` had this value."""
        new: list[Schema] = []
        with self._lock:
            for when, schema in reversed(self._schemas.values()):
                if when <= changes:
                    break
                new.append(schema)
        return new[::-1]


class KnownSchemas:
    """Schemas of all sources."""

    def __init__(
        self,
        schemas: Iterable[Schema] = (),
        *,
        assigned: dict[tuple[str, Side], Assigned] | None = None,
        registry: Callable[[SchemaKey], Schema | None] | None = None,
        complete: Callable[[], Iterable[Schema]] | None = None,
        report: Callable[[str], None] = lambda text: None,
        limits: Limits = LIMITS,
    ) -> None:
        """`registry`: looks up ids that the schemas lack. `complete`: returns the schemas of the
        capture, called for an id that no other source has. `report`: called once with each
        sentence about what is left out."""
        self.assigned = assigned or {}
        self._registry = registry
        self._complete = complete
        self._by_key: defaultdict[SchemaKey, list[Schema]] = defaultdict(list)
        self._keyless: list[Schema] = []
        """Schemas without an id, to which others refer."""
        self._by_subject: dict[tuple[str, int], Schema] = {}
        self._by_name: defaultdict[Format, dict[str, tuple[_Order, str]]] = defaultdict(dict)
        self._unnamed: defaultdict[Format, list[Schema]] = defaultdict(list)
        """Schemas whose names are not looked up yet."""
        self._compiled: dict[tuple[Format, str], tuple[Compiled, int]] = {}
        """Compiled schemas with the size of their text, the oldest first: some are evicted when
        there are too many (`_store`)."""
        self._text_bytes = self._evicted_bytes = self._evicted = 0
        self._collect_at = limits.collected_chars
        """Value of `_evicted_bytes` at which garbage is collected."""
        # Functions that make the errors, not the errors: an exception keeps all frames of its
        # traceback alive.
        self._refused: dict[tuple[Format, str], Callable[[], PayloadError]] = {}
        """The error of each schema that does not compile. Cleared by each new schema, which may be
        a missing reference."""
        self._looked_up: set[SchemaKey] = set()
        """Unknown ids for which no source is left."""
        self._growing: dict[ObservedSchemas | IncomingSchemas, int] = {}
        """Input that is still read, with its `changes` when its schemas were last added."""
        self._limits: Final = limits
        self._budget: Final = SchemaBudget(limits.schema_bytes, limits.problems, report)
        self._compiled_bytes = 0
        self.spaces: frozenset[str] = frozenset()
        """Namespaces of which a schema is known."""
        self.forgotten = 0
        """Count of evicted schemas. A cache of codecs is to be dropped when it changes, or it keeps
        them in memory."""
        self._changes = 0
        for each in schemas:
            self.add(each)

    def __iter__(self) -> Iterator[Schema]:
        """Yield the schemas, each once, in the order of their ids; those without one are last."""
        seen: set[int] = set()
        for _, schemas in sorted(self._by_key.items(), key=lambda item: _order(item[0])):
            for schema in schemas:
                if id(schema) not in seen:
                    seen.add(id(schema))
                    yield schema
        yield from self._keyless

    def add(self, schema: Schema) -> None:
        """Add a schema. Where its source gave the same text for one of its ids before, only the new
        ids and subjects are added."""
        twin = self._twin(schema)
        if twin is not None:
            merged = replace(
                twin,
                keys=tuple(dict.fromkeys((*twin.keys, *schema.keys))),
                subjects=tuple(dict.fromkeys((*twin.subjects, *schema.subjects))),
                references=twin.references or schema.references,
            )
            if merged == twin:
                return
            for key in self._keys_of(twin):
                if twin in self._by_key[key]:
                    self._by_key[key].remove(twin)
            schema = merged
        else:
            limit = f"more than {self._limits.schema_bytes >> 20} MB of schemas"
            if not self._budget.take(size_of(schema.text), f"{limit}; the later ones are left out"):
                return
        rank = RANK[schema.source]
        keys = self._keys_of(schema)
        if not keys:
            self._keyless.append(schema)
        for key in keys:
            of_key = self._by_key[key]
            if len(of_key) >= self._limits.schemas_of_key:
                limit = f"{key} has more than {self._limits.schemas_of_key} schemas"
                self._budget.refuse(f"{limit}; the later ones are left out")
                continue
            of_key.append(schema)
            of_key.sort(key=lambda other: RANK[other.source])
        for subject in schema.subjects:
            old = self._by_subject.get(subject)
            if old is None or RANK[old.source] >= rank:
                self._by_subject[subject] = schema
        self.spaces |= {key.namespace for key in keys}
        self._unnamed[schema.format].append(schema)
        self._refused.clear()
        self._changes += 1

    @property
    def changes(self) -> int:
        """Goes up with each schema: an unknown id may be known now."""
        return self._changes + sum(growing.changes for growing in self._growing)

    def _twin(self, schema: Schema) -> Schema | None:
        for key in schema.keys:
            for other in self._by_key.get(key, ()):
                if other.text == schema.text and other.source == schema.source:
                    return other
        return None

    def _keys_of(self, schema: Schema) -> list[SchemaKey]:
        keys = list(schema.keys)
        if schema.format == "avro" and schema.source != "capture":
            with suppress(PayloadError):
                fingerprint = function_of("avro", "fingerprint")(schema.text)
                keys.append(SchemaKey("fingerprint", fingerprint))
        return keys

    def find(self, key: SchemaKey) -> list[Schema]:
        """Return the schemas of an id, the preferred source first. Queries the registry, then reads
        the capture, where none is known."""
        schemas = self._by_key.get(key)
        if schemas:
            return schemas
        if self.update() and (schemas := self._by_key.get(key)):
            return schemas
        if key in self._looked_up:
            return []
        self._looked_up.add(key)
        if self._registry is not None and (schema := self._registry(key)) is not None:
            self.add(schema)
            if schemas := self._by_key.get(key):
                return schemas
        if self._complete is not None:
            complete, self._complete = self._complete, None
            for schema in complete():
                self.add(schema)
        return self._by_key.get(key) or []

    def grows(self, growing: ObservedSchemas | IncomingSchemas) -> None:
        """Add input that is still read as a source of schemas."""
        self._growing[growing] = 0

    def update(self) -> bool:
        """Add the new schemas of input that is still read; return whether there were any."""
        changed = [(growing, at) for growing, at in self._growing.items() if growing.changes != at]
        for growing, at in changed:
            self._growing[growing] = growing.changes
            for schema in growing.since(at):
                self.add(schema)
        return bool(changed)

    def knows(self, key: SchemaKey) -> bool:
        """Return whether a schema of an id is known, without a lookup elsewhere."""
        return bool(self._by_key.get(key))

    def settled(self, key: SchemaKey) -> bool:
        """Return whether `find` answers at once, without a registry or another look at the
        capture."""
        no_source = self._registry is None and self._complete is None
        return no_source or key in self._looked_up or self.knows(key)

    @property
    def empty(self) -> bool:
        """Whether no schema is known, and no source is left that could supply one."""
        sources = self._registry or self._complete or self._growing
        return not (self.spaces or self._keyless or self.assigned or sources)

    def compiled(self, schema: Schema) -> Compiled:
        """Return a schema ready to decode; `PayloadError` where it cannot be."""
        key = schema.format, schema.text
        compiled = self._compiled.get(key)
        if compiled is not None:
            return compiled[0]
        if key in self._refused:
            raise self._refused[key]()
        try:
            compile = function_of(schema.format, "compile")
            dependencies = self._dependencies(schema)
            size = len(schema.text) + sum(map(len, dependencies.values()))
            self._compiled_bytes += size
            if self._compiled_bytes > self._limits.compiling_chars:
                limit = f"more than {self._limits.compiling_chars >> 20} MB of schemas were needed"
                self._budget.refuse(f"{limit}; the later ones are left out")
                raise PayloadError("bad-schema", f"not read: {limit}")
            result: Compiled = compile(schema.text, dependencies, self._lookup(schema.format))
        except PayloadError as error:
            while len(self._refused) >= self._limits.compiled:
                self._refused.pop(next(iter(self._refused)), None)
            self._refused[key] = partial(
                PayloadError, error.reason, error.text, path=error.path, offset=error.offset
            )
            raise
        self._store(key, result, size)
        return result

    def _store(self, key: tuple[Format, str], result: Compiled, size: int) -> None:
        """Store a compiled schema, and evict the oldest ones where there are too many."""
        self._text_bytes += size
        while self._compiled and (
            len(self._compiled) >= self._limits.compiled
            or self._text_bytes > self._limits.compiled_chars
        ):
            _, evicted = self._compiled.pop(next(iter(self._compiled)))
            self._text_bytes -= evicted
            self._evicted_bytes += evicted + EVICTED_BYTES
            self._evicted += 1
            self.forgotten += 1
        # Types that refer to themselves, and all of Protobuf, are in reference cycles: they stay in
        # memory until garbage is collected, which commands do rarely.
        # Others are freed at once, and a collection, which visits all objects, would be a waste:
        # when one found no cycles, the next comes after four times as many bytes.
        if self._evicted_bytes > self._collect_at:
            in_cycles = gc.collect() > self._evicted
            self._collect_at = self._limits.collected_chars * (1 if in_cycles else 4)
            self._evicted_bytes = self._evicted = 0
        self._compiled[key] = result, size

    def _dependencies(self, schema: Schema) -> dict[str, str]:
        """Return the texts of the schemas to which a schema refers, directly or not, by the names
        of the references. Those that are missing are an error only where a type of them is used."""
        texts: dict[str, str] = {}
        pending = list(schema.references)
        total = lookups = 0
        while pending:
            reference = pending.pop()
            lookups += 1
            if reference.name in texts:
                continue
            target = self._by_subject.get((reference.subject, reference.version))
            if target is None:
                continue
            total += len(target.text)
            if len(texts) >= self._limits.references or total > self._limits.referred_chars:
                raise PayloadError("bad-schema", "it has too many references")
            texts[reference.name] = target.text
            pending += target.references
            if lookups + len(pending) > self._limits.lookups:
                raise PayloadError("bad-schema", "it has too many references")
        return texts

    def _lookup(self, format: Format) -> Callable[[str], str | None]:
        def lookup(name: str) -> str | None:
            if self._unnamed[format]:
                self._define(format)
            definition = self._by_name[format].get(name)
            return None if definition is None else definition[1]

        return lookup

    def _define(self, format: Format) -> None:
        """Index the names that new schemas define; of several the schema with the least id wins."""
        names = self._by_name[format]
        defined_names = function_of(format, "defined_names")
        for schema in self._unnamed.pop(format):
            definition = min(map(_order, schema.keys), default=LAST), schema.text
            defined = [subject for subject, _ in schema.subjects]
            with suppress(PayloadError):  # others may still refer to its subject
                defined += defined_names(schema.text)
            for name in defined:
                if name not in names or definition[0] < names[name][0]:
                    names[name] = definition


_Order: TypeAlias = tuple[str, int, str]
LAST: Final[_Order] = ("\U0010ffff", 0, "")
"""Sorts after all ids."""


def field_paths(schema: Schema) -> Iterator[Path]:
    """Yield the paths of the fields that values of a schema may have. Fields of referred schemas
    are left out."""
    try:
        yield from function_of(schema.format, "field_paths")(schema.text)
    except PayloadError:
        return  # reported where it is used


def breaking_changes(old: Schema, new: Schema) -> list[str]:
    """Return a sentence for each change that keeps readers of the new version from reading values
    of the old one; empty where a text is no schema."""
    if old.format != new.format:
        return [f"{old.format} became {new.format}"]
    try:
        changes: list[str] = function_of(new.format, "breaking_changes")(old.text, new.text)
    except PayloadError:
        return []
    return changes


def _order(key: SchemaKey) -> _Order:
    number = key.value
    return (key.namespace, number, "") if isinstance(number, int) else (key.namespace, 0, number)


def function_of(format: Format, name: str) -> Any:
    """Return a function of a format; `PayloadError` where its library is not installed."""
    if format != "avro" and (text := missing("decoding by a protobuf or JSON schema")):
        raise PayloadError("bad-schema", text)
    return getattr(import_module(f"kafkascope.schemas.{format}.{MODULES[name]}"), name)
