"""Says why readers with a new schema cannot read what was written with an old one.

By Avro's schema resolution. A type that neither text defines is taken for compatible with itself.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kafkascope.schemas.avro.parsing import Parsed, parse
from kafkascope.schemas.avro.types import NAMED, AvroType, inside
from kafkascope.schemas.limits import LIMITS

PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""Kinds that read others."""


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
        self.changes: dict[str, None] = {}
        self.pairs: list[Pair] = [(old.root, new.root, "")]
        self.seen: set[tuple[int, int]] = set()
        self.tables: dict[int, dict[str, AvroType]] = {}
        """Branches of new unions by all their names."""

    def sentences(self) -> list[str]:
        while self.pairs and len(self.changes) < LIMITS.changes:
            if len(self.seen) >= LIMITS.compared_pairs:
                break
            old, new, path = self.pairs.pop()
            old, new = self.old.find(old) or old, self.new.find(new) or new
            # A name that nothing defines has no identity: two of its mentions are two objects.
            if (id(old), id(new)) not in self.seen:
                self.seen.add((id(old), id(new)))
                self.compare(old, new, path)
        return list(self.changes)

    def add(self, path: str, text: str) -> None:
        self.changes[f"{path or 'the value'}: {text}"] = None

    def later(self, pairs: list[Pair]) -> None:
        """Compare in the order of the schema: the last is taken first."""
        self.pairs.extend(reversed(pairs))

    def compare(self, old: AvroType, new: AvroType, path: str) -> None:
        if old.kind == "union":
            self.later([(branch, new, path) for branch in old.parts])
            return
        if new.kind == "union":
            branch = self.branch(old, new)
            if branch is None:
                self.add(path, f"no branch of the union reads {old.label}")
            else:
                self.later([(old, branch, path)])
            return
        if not _reads(old, new):
            self.add(path, f"{old.label} cannot be read as {new.label}")
            return
        match new.kind if old.kind == new.kind else "":
            case "record":
                self.records(old, new, path)
            case "array" | "map":
                self.later([(old.parts[0], new.parts[0], f"{path}[]")])
            case "enum" if new.default is None:
                gone = [each for each in old.symbols if each not in new.index]
                if gone:
                    names = ", ".join(gone[: LIMITS.names_listed]) + ", ..." * (
                        len(gone) > LIMITS.names_listed
                    )
                    self.add(path, f"{new.name} has no {names}, and no default")
            case "fixed" if old.size != new.size:
                self.add(path, f"{new.name} has {new.size} bytes, not {old.size}")
            case _:
                pass
        # Numbers of another scale are read without an error, as other numbers.
        before, after = old.logical, new.logical
        if before and after and before.name == after.name and before.scale != after.scale:
            self.add(path, f"{before} cannot be read as {after}")

    def records(self, old: AvroType, new: AvroType, path: str) -> None:
        written = {field.name: part for field, part in zip(old.fields, old.parts, strict=True)}
        later: list[Pair] = []
        for field, part in zip(new.fields, new.parts, strict=True):
            where = inside(path, field.name)
            names = (field.name, *field.aliases)
            before = next((written[name] for name in names if name in written), None)
            if before is not None:
                later.append((before, part, where))
            elif not field.optional:
                self.add(where, "the new field has no default")
        self.later(later)

    def branch(self, old: AvroType, union: AvroType) -> AvroType | None:
        """Return the branch that reads a type: of the same name, then one that can."""
        table = self.tables.get(id(union))
        if table is None:
            branches = [self.new.find(branch) or branch for branch in union.parts]
            table = {branch.label: branch for branch in branches}
            for branch in branches:
                for name in _other_names(branch):
                    table.setdefault(name, branch)
            self.tables[id(union)] = table
        name = old.label
        for each in (name, f".{name.rpartition('.')[2]}", *PROMOTIONS.get(name, ())):
            branch_of_name = table.get(each)
            if branch_of_name is not None and _reads(old, branch_of_name):
                return branch_of_name
        return None


def _other_names(node: AvroType) -> set[str]:
    """Return aliases of a type as full names, and its name without namespace after a point."""
    if node.kind not in NAMED:
        return set()
    space, _, simple = node.name.rpartition(".")
    aliases = {each if "." in each or not space else f"{space}.{each}" for each in node.aliases}
    return {f".{simple}", *aliases}


def _reads(old: AvroType, new: AvroType) -> bool:
    """Return whether a type may read another, apart from what is inside."""
    before, after = old.label, new.label
    if "name" in (old.kind, new.kind):
        return before == after
    if not old.name and not new.name:
        return before == after or after in PROMOTIONS.get(before, ())
    return old.kind == new.kind and (
        before == after
        or not _other_names(new).isdisjoint((before, f".{before.rpartition('.')[2]}"))
    )
