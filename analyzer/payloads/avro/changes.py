"""Says why readers with a new schema cannot read what was written with an old one.

By Avro's schema resolution. A type that neither text defines is taken for compatible with itself.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kafkascope.analyzer.payloads.avro.parsing import Parsed, parse
from kafkascope.analyzer.payloads.avro.types import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroName,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    branch_name,
    inside,
)

PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""Kinds that read others."""

MAX_SAID: Final = 100
"""Sentences: nobody reads more."""

MAX_PAIRS: Final = 100_000
"""Pairs of types compared; schemas with more are compared in part."""

MAX_NAMES: Final = 10
"""Names in one sentence."""

NAMED: Final = (AvroRecord, AvroEnum, AvroFixed)

Pair: TypeAlias = tuple[AvroType, AvroType, str]
"""An old type, the new one, and the path."""


def breaking_changes(old: str, new: str) -> list[str]:
    """Return sentences, empty where the new schema reads all that the old one wrote;
    `PayloadError` with reason `bad-schema`."""
    return _Comparison(parse(old), parse(new)).sentences()


class _Comparison:
    def __init__(self, old: Parsed, new: Parsed) -> None:
        self.old = old
        self.new = new
        self.said: dict[str, None] = {}
        self.pairs: list[Pair] = [(old.root, new.root, "")]
        self.seen: set[tuple[int, int]] = set()
        self.tables: dict[int, dict[str, AvroType]] = {}
        """Branches of new unions by all their names."""

    def sentences(self) -> list[str]:
        while self.pairs and len(self.said) < MAX_SAID and len(self.seen) < MAX_PAIRS:
            old, new, path = self.pairs.pop()
            old, new = _meant(old, self.old), _meant(new, self.new)
            # A name that nothing defines has no identity: two of its mentions are two objects.
            if (id(old), id(new)) not in self.seen:
                self.seen.add((id(old), id(new)))
                self.compare(old, new, path)
        return list(self.said)

    def say(self, path: str, text: str) -> None:
        self.said[f"{path or 'the value'}: {text}"] = None

    def later(self, pairs: list[Pair]) -> None:
        """Compare in the order of the schema: the last is taken first."""
        self.pairs.extend(reversed(pairs))

    def compare(self, old: AvroType, new: AvroType, path: str) -> None:
        if isinstance(old, AvroUnion):
            self.later([(branch, new, path) for branch in old.branches])
            return
        if isinstance(new, AvroUnion):
            branch = self.branch(old, new)
            if branch is None:
                self.say(path, f"no branch of the union reads {branch_name(old)}")
            else:
                self.later([(old, branch, path)])
            return
        if not _reads(old, new):
            self.say(path, f"{branch_name(old)} cannot be read as {branch_name(new)}")
            return
        match old, new:
            case AvroRecord(), AvroRecord():
                self.records(old, new, path)
            case AvroArray(), AvroArray():
                self.later([(old.items, new.items, f"{path}[]")])
            case AvroMap(), AvroMap():
                self.later([(old.values, new.values, f"{path}[]")])
            case AvroEnum(), AvroEnum():
                gone = [each for each in old.symbols if each not in new.index]
                if gone and new.default is None:
                    names = ", ".join(gone[:MAX_NAMES]) + ", ..." * (len(gone) > MAX_NAMES)
                    self.say(path, f"{new.name} has no {names}, and no default")
            case AvroFixed(), AvroFixed() if old.size != new.size:
                self.say(path, f"{new.name} has {new.size} bytes, not {old.size}")
            case _:
                pass
        self.decimals(old, new, path)

    def records(self, old: AvroRecord, new: AvroRecord, path: str) -> None:
        written = {field.name: field for field in old.fields}
        later: list[Pair] = []
        for field in new.fields:
            where = inside(path, field.name)
            names = (field.name, *field.aliases)
            known = next((written[name] for name in names if name in written), None)
            if known is not None:
                later.append((known.type, field.type, where))
            elif not field.optional:
                self.say(where, "the new field has no default")
        self.later(later)

    def decimals(self, old: AvroType, new: AvroType, path: str) -> None:
        """Numbers of another scale are read without an error, as other numbers."""
        leafs = AvroPrimitive | AvroFixed
        before = old.logical if isinstance(old, leafs) else None
        after = new.logical if isinstance(new, leafs) else None
        if before and after and before.name == after.name and before.scale != after.scale:
            self.say(path, f"{before} cannot be read as {after}")

    def branch(self, old: AvroType, union: AvroUnion) -> AvroType | None:
        """Return the branch that reads a type: of the same name, then one that can."""
        table = self.tables.get(id(union))
        if table is None:
            branches = [_meant(branch, self.new) for branch in union.branches]
            table = {branch_name(branch): branch for branch in branches}
            for branch in branches:
                for name in _other_names(branch):
                    table.setdefault(name, branch)
            self.tables[id(union)] = table
        name = branch_name(old)
        for each in (name, f".{name.rpartition('.')[2]}", *PROMOTIONS.get(name, ())):
            found = table.get(each)
            if found is not None and _reads(old, found):
                return found
        return None


def _meant(node: AvroType, parsed: Parsed) -> AvroType:
    """Return the type that a name means, if the text defines it."""
    if isinstance(node, AvroName):
        for name in node.names:
            if name in parsed.defined:
                return parsed.defined[name]
    return node


def _other_names(node: AvroType) -> set[str]:
    """Return aliases of a type as full names, and its name without namespace behind a point."""
    if not isinstance(node, NAMED):
        return set()
    space, _, simple = node.name.rpartition(".")
    aliases = {each if "." in each or not space else f"{space}.{each}" for each in node.aliases}
    return {f".{simple}", *aliases}


def _reads(old: AvroType, new: AvroType) -> bool:
    """Return whether a type may read another, apart from what is inside."""
    before, after = branch_name(old), branch_name(new)
    if isinstance(old, AvroName) or isinstance(new, AvroName):
        return before == after
    if type(old) is not type(new):
        return False
    return (
        before == after
        or after in PROMOTIONS.get(before, ())
        or not _other_names(new).isdisjoint((before, f".{before.rpartition('.')[2]}"))
    )
