"""Joins the types of a schema with those that other schemas define, and weighs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafkascope.schemas.avro.parsing import (
    Parsed,
    bad,
    parse,
)
from kafkascope.schemas.avro.types import (
    CONTAINERS,
    AvroType,
)
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
    order, recursive = _inside_out(root)
    return Linked(root, recursive or _depth(order) > LIMITS.nesting, _weigh(order))


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


def _inside_out(root: AvroType) -> tuple[list[AvroType], bool]:
    """Return all types, parts before wholes, and whether one is inside itself."""
    order: list[AvroType] = []
    open_: set[int] = {id(root)}
    done: set[int] = set()
    stack = [(root, iter(root.parts))]
    recursive = False
    while stack:
        node, rest = stack[-1]
        for each in rest:
            if id(each) in open_:
                recursive = True
            elif id(each) not in done:
                open_.add(id(each))
                stack.append((each, iter(each.parts)))
                break
        else:
            stack.pop()
            open_.discard(id(node))
            done.add(id(node))
            order.append(node)
    return order, recursive


def _depth(order: list[AvroType]) -> int:
    depths: dict[int, int] = {}
    for node in order:
        inner = max((depths.get(id(each), 0) for each in node.parts), default=0)
        depths[id(node)] = inner + (node.kind in CONTAINERS)
    return max(depths.values())


def _weigh(order: list[AvroType]) -> bool:
    """Weigh all records; return whether payloads may have many values without bytes.

    A record that holds itself without a union, array or map between has no value with an end.
    A record of records of records, ten each, has any number of values in no bytes.
    """
    state: dict[int, bool] = {}
    for top in order:
        if top.kind != "record" or id(top) in state:
            continue
        stack = [(top, _records(top))]
        state[id(top)] = False
        while stack:
            record, inner = stack[-1]
            if inner:
                each = inner.pop()
                if state.get(id(each)) is False:
                    bad(f"{each.name} contains itself without end")
                if id(each) not in state:
                    state[id(each)] = False
                    stack.append((each, _records(each)))
                continue
            stack.pop()
            state[id(record)] = True
            record.empty = all(part.empty for part in record.parts)
            record.weight = 1 + sum(part.weight for part in record.parts)
            if record.weight > LIMITS.empty_values:
                bad(
                    f"{record.name} consists of more than {LIMITS.empty_values:,} records and nulls"
                )
    return any(
        node.parts[0].empty if node.kind == "array" else node.weight > LIMITS.empty_per_byte
        for node in order
    )


def _records(record: AvroType) -> list[AvroType]:
    return [part for part in record.parts if part.kind == "record"]
