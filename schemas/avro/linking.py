"""Joins the types of a schema with those that other schemas define, and weighs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from kafkascope.schemas.avro.parsing import Parsed, bad, parse
from kafkascope.schemas.avro.types import CONTAINERS, AvroType
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Lookup


@dataclass(frozen=True, slots=True)
class Linked:
    """A schema whose names all lead to types."""

    root: AvroType
    deep: bool
    """Payloads may be nested without end, or deeper than we go."""
    empties: bool
    """Payloads may have many values without bytes: somebody must count."""


def link(text: str, dependencies: Mapping[str, str], lookup: Lookup) -> Linked:
    """Return a schema with all that it refers to; `PayloadError` with reason `bad-schema`."""
    linker = _Linker(dependencies, lookup)
    root = linker.read_text(text)
    if root.kind == "name":
        root = linker.resolve(root, None)
    while linker.unlinked:
        linker.link(linker.unlinked.pop())
    nodes = _inside(root)
    return Linked(root, _is_deep(nodes), _weigh(nodes))


class _Linker:
    """Knows which texts were read; each is read once."""

    def __init__(self, dependencies: Mapping[str, str], lookup: Lookup) -> None:
        self.dependencies = dependencies
        self.lookup = lookup
        self.defined: dict[str, AvroType] = {}
        self.read: dict[str, Parsed] = {}
        self.unlinked: list[Parsed] = []
        self.bytes = self.parts = 0
        self.others: Iterator[str] = iter(dependencies.values())
        """Texts of dependencies that were not read yet: their names need not be full names."""

    def read_text(self, text: str) -> AvroType:
        if text not in self.read:
            parsed = parse(text)
            self.bytes += len(text)
            self.parts += parsed.parts
            self.read[text] = parsed
            self.unlinked.append(parsed)
            for name, node in parsed.defined.items():
                self.defined.setdefault(name, node)
            if self.bytes > LIMITS.schema_chars:
                bad(f"the schema and its references have more than {LIMITS.schema_chars:,} bytes")
            if self.parts > LIMITS.avro_parts or len(self.defined) > LIMITS.avro_types:
                bad("the schema and its references have too many types")
        return self.read[text].root

    def resolve(self, node: AvroType, own: Parsed | None) -> AvroType:
        """Return the type that a name refers to: of the same text, of another one, or looked up."""
        if own is not None and (defined := own.find(node)) is not None:
            return defined
        for name in (node.name, *node.aliases):
            if name not in self.defined:
                self.search(name)
            if name in self.defined:
                return self.defined[name]
        return bad(f"undefined type {node.name}")

    def search(self, name: str) -> None:
        if name in self.dependencies:
            self.read_text(self.dependencies[name])
        while name not in self.defined:
            text = next(self.others, None)
            if text is None:
                break
            self.read_text(text)
        if name not in self.defined and (text := self.lookup(name)) is not None:
            self.read_text(text)

    def link(self, parsed: Parsed) -> None:
        nodes = [parsed.root]
        while nodes:
            node = nodes.pop()
            for at, part in enumerate(node.parts):
                if part.kind == "name":
                    node.parts[at] = self.resolve(part, parsed)
                else:
                    nodes.append(part)
            if node.kind == "union":
                node.index = {part.label: at for at, part in enumerate(node.parts)}


def _inside(root: AvroType) -> list[AvroType]:
    """Return a type and all that may be inside of it, each once."""
    found = {root}
    nodes = [root]
    for node in nodes:
        for part in node.parts:
            if part not in found:
                found.add(part)
                nodes.append(part)
    return nodes


def _is_deep(nodes: list[AvroType]) -> bool:
    """Return whether a type is inside itself, or levels are more than we go."""
    inside = {node: [part for part in node.parts if part.parts] for node in nodes if node.parts}
    depths: dict[AvroType, int] = {}
    try:
        for node in TopologicalSorter(inside).static_order():
            inner = max(depths.get(part, part.kind in CONTAINERS) for part in node.parts)
            depths[node] = inner + (node.kind in CONTAINERS)
    except CycleError:
        return True
    return max(depths.values(), default=1) > LIMITS.nesting


def _weigh(nodes: list[AvroType]) -> bool:
    """Weigh all records; return whether payloads may have many values without bytes.

    A record that holds itself without a union, array or map between has no value with an end.
    A record of records of records, ten each, has any number of values in no bytes.
    """
    records = {node: _records(node) for node in nodes if node.kind == "record"}
    try:
        order = list(TopologicalSorter(records).static_order())
    except CycleError as error:
        bad(f"{error.args[1][0].name} contains itself without end")
    for record in order:
        record.empty = all(part.empty for part in record.parts)
        record.weight = 1 + sum(part.weight for part in record.parts)
        if record.weight > LIMITS.empty_values:
            bad(f"{record.name} consists of more than {LIMITS.empty_values:,} records and nulls")
    return any(
        node.parts[0].empty if node.kind == "array" else node.weight > LIMITS.empty_per_byte
        for node in nodes
    )


def _records(record: AvroType) -> list[AvroType]:
    return [part for part in record.parts if part.kind == "record"]
