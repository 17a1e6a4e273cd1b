"""Parses the text of a schema into types; names of types that it does not define stay names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import orjson

from kafkascope.schemas.avro.types import PRIMITIVES, AvroField, AvroType, Logical, inside
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import PayloadError, is_too_much

NAME: Final = re.compile(r"[^\W\d]\w*")
NAMESPACE: Final = re.compile(r"[^\s.]+(\.[^\s.]+)*")

LOGICAL: Final = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
"""Logical types with the types they may be of."""

SIZES: Final = {"uuid": 16, "duration": 12}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text with its types."""

    root: AvroType
    defined: dict[str, AvroType]
    """Types by full name."""
    parts: int
    """Types of any kind."""

    def find(self, node: AvroType) -> AvroType | None:
        """Return the type that a name refers to; None where the text does not define it."""
        names = (name for name in (node.name, *node.aliases) if name in self.defined)
        return self.defined.get(next(names, ""))


def bad(text: str, path: str = "") -> NoReturn:
    raise PayloadError("bad-schema", text, path=path)


def parse(text: str) -> Parsed:
    """Return the types of a text; `PayloadError` with reason `bad-schema`."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        bad("the schema is not UTF-8")
    if len(data) > LIMITS.schema_chars:
        bad(f"the schema has {len(data):,} bytes, more than {LIMITS.schema_chars:,}")
    if is_too_much(data):
        bad("the schema has too many values")
    try:
        spelled = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        bad(f"the schema is not JSON: {error}")
    parser = _Parser()
    root = parser.type(spelled, "", "", 0)
    return Parsed(root, parser.defined, parser.parts)


class _Parser:
    def __init__(self) -> None:
        self.defined: dict[str, AvroType] = {}
        self.parts = 0

    def type(self, spelled: Any, space: str, path: str, depth: int) -> AvroType:
        """One frame of Python's stack for each level, to stay far from its end."""
        self.parts += 1
        if self.parts > LIMITS.avro_parts:
            bad(f"the schema has more than {LIMITS.avro_parts:,} types", path)
        if depth > LIMITS.nesting:
            bad(f"the schema is nested deeper than {LIMITS.nesting} levels", path)
        while isinstance(spelled, dict) and isinstance(spelled.get("type"), dict):
            spelled = spelled["type"]
        if isinstance(spelled, dict) and isinstance(spelled.get("type"), list):
            spelled = spelled["type"]
        if isinstance(spelled, str):
            return self.named(spelled, space, path)
        if isinstance(spelled, list):
            branches: dict[str, AvroType] = {}
            for each in spelled:
                branch = self.type(each, space, path, depth + 1)
                if branch.kind == "union":
                    bad("a union directly inside a union", path)
                if branch.label in branches:
                    bad(f"a union with two branches {branch.label}", path)
                branches[branch.label] = branch
            return AvroType("union", parts=list(branches.values()))
        if not isinstance(spelled, dict):
            bad(f"{type(spelled).__name__} where a type is expected", path)
        kind = spelled.get("type")
        match kind:
            case "array" | "map":
                key = "items" if kind == "array" else "values"
                if key not in spelled:
                    bad(f"{kind} without {key}", path)
                inner = self.type(spelled[key], space, f"{path}[]", depth + 1)
                return AvroType(kind, parts=[inner])
            case "record" | "error":
                return self.record(spelled, space, path, depth)
            case "enum":
                return self.enum(spelled, space, path)
            case "fixed":
                return self.fixed(spelled, space, path)
            case str() if kind in PRIMITIVES:
                return AvroType(kind, logical=logical(spelled, kind, 0))
            case str():
                return self.named(kind, space, path)
            case _:
                bad("an object without type", path)

    def named(self, spelled: str, space: str, path: str) -> AvroType:
        if spelled in PRIMITIVES:
            return AvroType(spelled)
        if not NAMESPACE.fullmatch(spelled):
            bad(f"{spelled[:80]!r} is not a valid type name", path)
        if "." in spelled or not space:
            return AvroType("name", spelled)
        return AvroType("name", f"{space}.{spelled}", (spelled,))

    def full_name(self, spelled: dict[str, Any], space: str, path: str) -> str:
        name, own = spelled.get("name"), spelled.get("namespace")
        if not isinstance(name, str):
            bad(f"{spelled.get('type')} without a name", path)
        given, _, simple = name.rpartition(".")
        if not NAME.fullmatch(simple):
            bad(f"{name[:80]!r} is not a valid type name", path)
        if not given:
            given = own if isinstance(own, str) else space
        if given and not NAMESPACE.fullmatch(given):
            bad(f"{given[:80]!r} is not a valid namespace", path)
        full = inside(given, simple)
        if full in PRIMITIVES:
            bad(f"{full} is not allowed as a type name", path)
        return full

    def define(self, node: AvroType, path: str) -> AvroType:
        if node.name in self.defined:
            bad(f"{node.name} is defined twice", path)
        if len(self.defined) >= LIMITS.avro_types:
            bad(f"the schema defines more than {LIMITS.avro_types:,} types", path)
        self.defined[node.name] = node
        return node

    def record(self, spelled: dict[str, Any], space: str, path: str, depth: int) -> AvroType:
        record = AvroType("record", self.full_name(spelled, space, path), aliases(spelled))
        self.define(record, path)
        space = record.name.rpartition(".")[0]
        fields = spelled.get("fields")
        if not isinstance(fields, list):
            bad(f"record {record.name} without fields", path)
        if len(fields) > LIMITS.avro_fields:
            bad(f"{record.name} has more than {LIMITS.avro_fields:,} fields", path)
        names: set[str] = set()
        for each in fields:
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or not NAME.fullmatch(name):
                bad(f"a field of {record.name} without a valid name", path)
            where = inside(path, name)
            if name in names:
                bad(f"{record.name} has two fields {name}", where)
            names.add(name)
            if "type" not in each:
                bad("a field without type", where)
            # A logical type beside the type's name belongs to nobody: Java warns, and ignores it.
            record.parts.append(self.type(each["type"], space, where, depth + 1))
            record.fields.append(AvroField(name, "default" in each, aliases(each)))
        return record

    def enum(self, spelled: dict[str, Any], space: str, path: str) -> AvroType:
        name = self.full_name(spelled, space, path)
        symbols = spelled.get("symbols")
        if not isinstance(symbols, list) or not all(
            isinstance(each, str) and NAME.fullmatch(each) for each in symbols
        ):
            bad(f"enum {name} without valid symbols", path)
        index = {symbol: at for at, symbol in enumerate(symbols)}
        if len(index) != len(symbols):
            bad(f"enum {name} has a duplicate symbol", path)
        default = spelled.get("default")
        default = default if isinstance(default, str) and default in index else None
        enum = AvroType("enum", name, aliases(spelled), symbols=tuple(index), index=index)
        enum.default = default
        return self.define(enum, path)

    def fixed(self, spelled: dict[str, Any], space: str, path: str) -> AvroType:
        name = self.full_name(spelled, space, path)
        size = spelled.get("size")
        if type(size) is not int or not 0 <= size <= LIMITS.fixed_size:
            bad(f"fixed {name} without a valid size", path)
        shown = logical(spelled, "fixed", size)
        return self.define(
            AvroType("fixed", name, aliases(spelled), logical=shown, size=size), path
        )


def aliases(spelled: dict[str, Any]) -> tuple[str, ...]:
    """Return the other names that readers know a type or field by."""
    found = spelled.get("aliases")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def logical(spelled: dict[str, Any], kind: str, size: int) -> Logical | None:
    """Return the logical type; None where there is none, it is unknown, or does not fit the type:
    Avro then reads the type alone."""
    name = spelled.get("logicalType")
    if not isinstance(name, str) or kind not in LOGICAL.get(name, ()):
        return None
    if kind == "fixed" and SIZES.get(name, size) != size:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = spelled.get("precision"), spelled.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return None
    if not 0 < precision <= LIMITS.decimal_digits or not 0 <= scale <= precision:
        return None
    # From 1750 bytes on more than LIMITS.decimal_digits fit.
    if kind == "fixed" and size < 1750 and precision >= len(str(2 ** max(8 * size - 1, 0))):
        return None
    return Logical(name, precision, scale)
