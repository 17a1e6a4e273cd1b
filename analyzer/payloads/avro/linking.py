"""Joins the types of a schema with those that other schemas define, and weighs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkascope.analyzer.payloads.avro.parsing import (
    MAX_NAMED,
    MAX_PARTS,
    MAX_TEXT,
    Parsed,
    bad,
    parse,
)
from kafkascope.analyzer.payloads.avro.types import (
    MAX_DEPTH,
    MAX_EMPTY,
    AvroArray,
    AvroMap,
    AvroName,
    AvroRecord,
    AvroType,
    AvroUnion,
    NamedType,
    is_empty,
    parts,
    shown,
    weight,
)
from kafkascope.analyzer.payloads.model import Lookup


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
    root = linker.take(text)
    if isinstance(root, AvroName):
        root = linker.meant(root, {})
    while linker.unlinked:
        linker.link(linker.unlinked.pop())
    order, recursive = _inside_out(root)
    return Linked(root, recursive or _depth(order) > MAX_DEPTH, _weigh(order))


class _Linker:
    """Knows which texts were read; each is read once."""

    def __init__(self, dependencies: Mapping[str, str], lookup: Lookup) -> None:
        self.dependencies = dependencies
        self.lookup = lookup
        self.defined: dict[str, NamedType] = {}
        self.read: dict[str, Parsed] = {}
        self.unlinked: list[Parsed] = []
        self.bytes = 0
        self.parts = 0
        self.others: Iterable[str] | None = None
        """Texts of dependencies that were not read yet: their names need not be full names."""

    def take(self, text: str) -> AvroType:
        """Read a text, if it is new."""
        if text not in self.read:
            parsed = parse(text)
            self.bytes += len(text)
            self.parts += parsed.parts
            self.read[text] = parsed
            self.unlinked.append(parsed)
            for name, node in parsed.defined.items():
                self.defined.setdefault(name, node)
            if self.bytes > MAX_TEXT:
                bad(f"the schema and its references have more than {MAX_TEXT:,} bytes")
            if self.parts > MAX_PARTS or len(self.defined) > MAX_NAMED:
                bad("the schema and its references have too many types")
        return self.read[text].root

    def meant(self, name: AvroName, own: Mapping[str, NamedType]) -> NamedType:
        """Return the type that a name means: of the same text, of another one, or looked up."""
        for each in name.names:
            if each in own:
                return own[each]
        for each in name.names:
            if each not in self.defined:
                self.find(each)
            if each in self.defined:
                return self.defined[each]
        return bad(f"undefined type {name.names[0]}")

    def find(self, name: str) -> None:
        """Read texts until one defines a name."""
        if name in self.dependencies:
            self.take(self.dependencies[name])
        if self.others is None:
            self.others = iter(self.dependencies.values())
        while name not in self.defined:
            text = next(self.others, None)  # type: ignore[call-overload]
            if text is None:
                break
            self.take(text)
        if name not in self.defined:
            text = self.lookup(name)
            if text is not None:
                self.take(text)

    def link(self, parsed: Parsed) -> None:
        """Replace the names of a text by types."""
        nodes: list[AvroType] = [parsed.root]
        own = parsed.defined
        while nodes:
            node = nodes.pop()
            match node:
                case AvroRecord():
                    for each in node.fields:
                        if isinstance(each.type, AvroName):
                            each.type = self.meant(each.type, own)
                        else:
                            nodes.append(each.type)
                case AvroArray() if isinstance(node.items, AvroName):
                    node.items = self.meant(node.items, own)
                case AvroMap() if isinstance(node.values, AvroName):
                    node.values = self.meant(node.values, own)
                case AvroUnion():
                    for at, branch in enumerate(node.branches):
                        if isinstance(branch, AvroName):
                            node.branches[at] = self.meant(branch, own)
                        else:
                            nodes.append(branch)
                case _:
                    nodes.extend(parts(node))


def _inside_out(root: AvroType) -> tuple[list[AvroType], bool]:
    """Return all types, parts before wholes, and whether one is inside itself."""
    order: list[AvroType] = []
    open_: set[int] = {id(root)}
    done: set[int] = set()
    stack = [(root, parts(root))]
    recursive = False
    while stack:
        node, rest = stack[-1]
        for each in rest:
            if id(each) in open_:
                recursive = True
            elif id(each) not in done:
                open_.add(id(each))
                stack.append((each, parts(each)))
                break
        else:
            stack.pop()
            open_.discard(id(node))
            done.add(id(node))
            order.append(node)
    return order, recursive


def _depth(order: list[AvroType]) -> int:
    """Return how deep values nest, of types that are not recursive."""
    depths: dict[int, int] = {}
    for node in order:
        inner = max((depths.get(id(each), 0) for each in parts(node)), default=0)
        depths[id(node)] = inner + isinstance(node, AvroRecord | AvroArray | AvroMap)
    return max(depths.values())


def _weigh(order: list[AvroType]) -> bool:
    """Weigh all records; return whether payloads may have many values without bytes.

    A record that holds itself without a union, array or map between has no value with an end.
    A record of records of records, ten each, has any number of values in no bytes.
    """
    records = [node for node in order if isinstance(node, AvroRecord)]
    state: dict[int, bool] = {}
    for top in records:
        if id(top) in state:
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
            record.empty = all(is_empty(field.type) for field in record.fields)
            record.weight = 1 + sum(weight(field.type) for field in record.fields)
            if record.weight > MAX_EMPTY:
                bad(f"{shown(record)} consists of more than {MAX_EMPTY:,} records and nulls")
    return any(
        (isinstance(node, AvroArray) and is_empty(node.items))
        or (isinstance(node, AvroRecord) and node.weight > FREE)
        for node in order
    )


FREE = 64
"""Values without bytes that a byte pays for."""


def _records(record: AvroRecord) -> list[AvroRecord]:
    return [field.type for field in record.fields if isinstance(field.type, AvroRecord)]
