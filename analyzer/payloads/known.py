"""The catalogue of schemas from all sources, by the ids in payloads; compiled on first use."""

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

from kafkascope.analyzer.payloads.framing import Side
from kafkascope.analyzer.payloads.limits import LIMITS, Limits, SchemaBudget
from kafkascope.analyzer.payloads.model import (
    Compiled,
    Format,
    PayloadError,
    Schema,
    SchemaKey,
    Selector,
    Source,
    size_of,
)
from kafkascope.analyzer.payloads.paths import Path
from kafkascope.extras import missing

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.observed import ObservedSchemas

RANK: Final[dict[Source, int]] = {"folder": 0, "registry": 1, "capture": 2}
"""Order in which sources are preferred for an id."""
# Size of an evicted schema beside its text: compiled, a small one takes 20 times that.
READY_BYTES: Final = 300
MODULES: Final[dict[Format, str]] = {
    "avro": "avro.canonical",
    "protobuf": "protobuf",
    "json": "json_schema",
}
ELSEWHERE: Final[dict[tuple[Format, str], str]] = {
    ("avro", "compile"): "avro.codec",
    ("avro", "breaking_changes"): "avro.changes",
    ("protobuf", "breaking_changes"): "proto.changes",
    ("protobuf", "bare"): "proto.files",
    ("json", "bare"): "json.bare",
}
"""Modules of a format's functions, loaded with the first schema of the format."""


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
            for each in schemas:
                place = each.text, each.origin
                self._schemas.pop(place, None)
                self._schemas[place] = self.changes + 1, each
                self.changes += 1

    def since(self, changes: int) -> list[Schema]:
        """Return the schemas that arrived since `changes` had this value."""
        new: list[Schema] = []
        with self._lock:
            for when, each in reversed(self._schemas.values()):
                if when <= changes:
                    break
                new.append(each)
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
        tell: Callable[[str], None] = lambda text: None,
        limits: Limits = LIMITS,
    ) -> None:
        """`registry`: looks up ids that the schemas lack. `complete`: returns the schemas of the
        capture, called for an id that no other source has. `tell`: called once with each sentence
        about what is left out."""
        self.assigned = assigned or {}
        self._registry = registry
        self._complete = complete
        self._by_key: defaultdict[SchemaKey, list[Schema]] = defaultdict(list)
        self._keyless: list[Schema] = []
        """Schemas without an id, which others refer to."""
        self._by_subject: dict[tuple[str, int], Schema] = {}
        self._by_name: defaultdict[Format, dict[str, tuple[_Order, str]]] = defaultdict(dict)
        self._unnamed: defaultdict[Format, list[Schema]] = defaultdict(list)
        """Schemas whose names are not looked up yet."""
        self._compiled: dict[tuple[Format, str], tuple[Compiled, int]] = {}
        """With the size of the text."""
        self._kept_bytes = self._gone_bytes = self._gone = 0
        self._most_gone = limits.collected_chars
        self._refused: dict[tuple[Format, str], Callable[[], PayloadError]] = {}
        """Make the error of a schema that does not compile; an exception would hold all frames
        alive. Cleared by each new schema, which may be a missing reference."""
        self._asked: set[SchemaKey] = set()
        self._growing: dict[ObservedSchemas | IncomingSchemas, int] = {}
        """Input that is still read, with the `changes` that were added already."""
        self._limits: Final = limits
        self._budget: Final = SchemaBudget(limits.schema_bytes, limits.problems, tell)
        self._compiled_bytes = 0
        self.spaces: frozenset[str] = frozenset()
        """Namespaces of which a schema is known."""
        self.forgotten = 0
        """Count of evicted schemas: who caches a codec should drop it."""
        self._changes = 0
        for each in schemas:
            self.add(each)

    def __iter__(self) -> Iterator[Schema]:
        """Yield the schemas, each once, in the order of their ids; those without one are last."""
        seen: set[int] = set()
        for _, schemas in sorted(self._by_key.items(), key=lambda item: _order(item[0])):
            for each in schemas:
                if id(each) not in seen:
                    seen.add(id(each))
                    yield each
        yield from self._keyless

    def add(self, schema: Schema) -> None:
        """Add a schema; one that its source gave before gets the new ids and subjects."""
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
            many = f"more than {self._limits.schema_bytes >> 20} MB of schemas"
            if not self._budget.take(size_of(schema.text), f"{many}; the later ones are left out"):
                return
        rank = RANK[schema.source]
        keys = self._keys_of(schema)
        if not keys:
            self._keyless.append(schema)
        for key in keys:
            found = self._by_key[key]
            if len(found) >= self._limits.schemas_of_key:
                many = f"{key} has more than {self._limits.schemas_of_key} schemas"
                self._budget.refuse(f"{many}; the later ones are left out")
                continue
            found.append(schema)
            found.sort(key=lambda each: RANK[each.source])
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
        return self._changes + sum(each.changes for each in self._growing)

    def _twin(self, schema: Schema) -> Schema | None:
        for key in schema.keys:
            for each in self._by_key.get(key, ()):
                if each.text == schema.text and each.source == schema.source:
                    return each
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
        found = self._by_key.get(key)
        if found:
            return found
        if self.update() and (found := self._by_key.get(key)):
            return found
        if key in self._asked:
            return []
        self._asked.add(key)
        if self._registry is not None and (schema := self._registry(key)) is not None:
            self.add(schema)
            if found := self._by_key.get(key):
                return found
        if self._complete is not None:
            complete, self._complete = self._complete, None
            for each in complete():
                self.add(each)
        return self._by_key.get(key) or []

    def grows(self, growing: ObservedSchemas | IncomingSchemas) -> None:
        """Look for unknown ids in input that is still read, too."""
        self._growing[growing] = 0

    def update(self) -> bool:
        """Add the new schemas of input that is still read; return whether there were any."""
        new = [(each, at) for each, at in self._growing.items() if each.changes != at]
        for growing, at in new:
            self._growing[growing] = growing.changes
            for each in growing.since(at):
                self.add(each)
        return bool(new)

    def knows(self, key: SchemaKey) -> bool:
        """Return whether a schema of an id is known, without a lookup elsewhere."""
        return bool(self._by_key.get(key))

    def settled(self, key: SchemaKey) -> bool:
        """Return whether `find` answers at once, without a registry or another look at the
        capture."""
        nobody = self._registry is None and self._complete is None
        return nobody or key in self._asked or self.knows(key)

    @property
    def empty(self) -> bool:
        """Whether no schema is known, and no source is left that could supply one."""
        asks = self._registry or self._complete or self._growing
        return not (self.spaces or self._keyless or self.assigned or asks)

    def compiled(self, schema: Schema) -> Compiled:
        """Return a schema ready to decode; `PayloadError` where it cannot be."""
        key = schema.format, schema.text
        found = self._compiled.get(key)
        if found is not None:
            return found[0]
        if key in self._refused:
            raise self._refused[key]()
        try:
            compile = function_of(schema.format, "compile")
            dependencies = self._dependencies(schema)
            size = len(schema.text) + sum(map(len, dependencies.values()))
            self._compiled_bytes += size
            if self._compiled_bytes > self._limits.compiling_chars:
                why = f"more than {self._limits.compiling_chars >> 20} MB of schemas were needed"
                self._budget.refuse(f"{why}; the later ones are left out")
                raise PayloadError("bad-schema", f"not read: {why}")
            made: Compiled = compile(schema.text, dependencies, self._lookup(schema.format))
        except PayloadError as error:
            while len(self._refused) >= self._limits.compiled:
                self._refused.pop(next(iter(self._refused)), None)
            self._refused[key] = partial(
                PayloadError, error.reason, error.text, path=error.path, offset=error.offset
            )
            raise
        self._keep(key, made, size)
        return made

    def _keep(self, key: tuple[Format, str], made: Compiled, size: int) -> None:
        self._kept_bytes += size
        while self._compiled and (
            len(self._compiled) >= self._limits.compiled
            or self._kept_bytes > self._limits.compiled_chars
        ):
            _, gone = self._compiled.pop(next(iter(self._compiled)))
            self._kept_bytes -= gone
            self._gone_bytes += gone + READY_BYTES
            self._gone += 1
            self.forgotten += 1
        if self._gone_bytes > self._most_gone:
            # Types that refer to themselves, and all of Protobuf, are in circles, which commands
            # collect rarely. Others are gone already, and looking at all objects takes long.
            in_circles = gc.collect() > self._gone
            self._most_gone = self._limits.collected_chars * (1 if in_circles else 4)
            self._gone_bytes = self._gone = 0
        self._compiled[key] = made, size

    def _dependencies(self, schema: Schema) -> dict[str, str]:
        found: dict[str, str] = {}
        waiting = list(schema.references)
        total = looked_up = 0
        while waiting:
            each = waiting.pop()
            looked_up += 1
            if each.name in found:
                continue
            meant = self._by_subject.get((each.subject, each.version))
            if meant is None:
                continue
            total += len(meant.text)
            if len(found) >= self._limits.references or total > self._limits.referred_chars:
                raise PayloadError("bad-schema", "it has too many references")
            found[each.name] = meant.text
            waiting += meant.references
            if looked_up + len(waiting) > self._limits.lookups:
                raise PayloadError("bad-schema", "it has too many references")
        return found

    def _lookup(self, format: Format) -> Callable[[str], str | None]:
        def lookup(name: str) -> str | None:
            if self._unnamed[format]:
                self._define(format)
            found = self._by_name[format].get(name)
            return None if found is None else found[1]

        return lookup

    def _define(self, format: Format) -> None:
        """Index the names that new schemas define; of several the schema with the least id wins."""
        names = self._by_name[format]
        defined_names = function_of(format, "defined_names")
        for each in self._unnamed.pop(format):
            place = min(map(_order, each.keys), default=LAST), each.text
            defined = [subject for subject, _ in each.subjects]
            with suppress(PayloadError):  # its subject may be referred to all the same
                defined += defined_names(each.text)
            for name in defined:
                if name not in names or place[0] < names[name][0]:
                    names[name] = place


_Order: TypeAlias = tuple[str, int, str]
LAST: Final[_Order] = ("\U0010ffff", 0, "")
"""Sorts after all ids."""


def field_paths(schema: Schema) -> Iterator[Path]:
    """Yield the paths of the fields that values of a schema may have, as far as its own text
    defines them."""
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
    module = ELSEWHERE.get((format, name), MODULES[format])
    return getattr(import_module(f"kafkascope.analyzer.payloads.{module}"), name)
