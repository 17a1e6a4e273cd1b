"""Types of Avro, as a schema defines them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

MAX_DEPTH: Final = 100
"""Containers inside each other, in schemas and in payloads. Our walks have up to four frames for a
level, of the thousand that Python allows; orjson writes 254 levels."""

MAX_EMPTY: Final = 65_536
"""Values without bytes (nulls, empty records) that one payload may have for nothing."""

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)


class Logical(NamedTuple):
    """A logical type that fits its base type."""

    name: str
    precision: int = 0
    """Of decimals, as `scale`: digits, and those after the point."""
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.precision else self.name


@dataclass(eq=False, slots=True)
class AvroPrimitive:
    """A type without a name of its own and without parts."""

    kind: str
    logical: Logical | None = None


@dataclass(eq=False, slots=True)
class AvroFixed:
    """Bytes of a fixed size."""

    name: str
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class AvroEnum:
    """One of some symbols, by its index."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.index = {symbol: at for at, symbol in enumerate(self.symbols)}


@dataclass(eq=False, slots=True)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    optional: bool
    """It has a default: readers do without it."""
    aliases: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class AvroRecord:
    """Fields in a row."""

    name: str
    fields: list[AvroField] = field(default_factory=list)
    aliases: tuple[str, ...] = ()
    weight: int = 1
    """Itself, and the records and nulls in it that come without bytes of their own."""
    empty: bool = False
    """A value of it has no bytes."""


@dataclass(eq=False, slots=True)
class AvroArray:
    """Items of one type, in blocks."""

    items: AvroType


@dataclass(eq=False, slots=True)
class AvroMap:
    """Values of one type by text, in blocks."""

    values: AvroType


@dataclass(eq=False, slots=True)
class AvroUnion:
    """One of some types, by its index."""

    branches: list[AvroType]


@dataclass(eq=False, slots=True)
class AvroName:
    """A type that the schema names and defines elsewhere."""

    names: tuple[str, ...]
    """What it may mean: in the namespace around, then without one, as Java takes it."""


AvroType: TypeAlias = (
    AvroPrimitive | AvroFixed | AvroEnum | AvroRecord | AvroArray | AvroMap | AvroUnion | AvroName
)
NamedType: TypeAlias = AvroFixed | AvroEnum | AvroRecord


def parts(node: AvroType) -> Iterator[AvroType]:
    """Yield the types that a type is made of."""
    match node:
        case AvroRecord():
            for each in node.fields:
                yield each.type
        case AvroArray():
            yield node.items
        case AvroMap():
            yield node.values
        case AvroUnion():
            yield from node.branches
        case _:
            pass


def branch_name(node: AvroType) -> str:
    """Return what Avro's JSON calls a branch of a union: full name, or kind."""
    match node:
        case AvroPrimitive():
            return node.kind
        case AvroFixed() | AvroEnum() | AvroRecord():
            return node.name
        case AvroArray():
            return "array"
        case AvroMap():
            return "map"
        case AvroUnion():
            return "union"
        case AvroName():
            return node.names[0]


def shown(node: AvroType) -> str:
    """Return what people call the type: its logical type, else its name."""
    if isinstance(node, AvroPrimitive | AvroFixed) and node.logical:
        return str(node.logical)
    return branch_name(node)


def is_empty(node: AvroType) -> bool:
    """Return whether values of the type have no bytes."""
    match node:
        case AvroPrimitive():
            return node.kind == "null"
        case AvroFixed():
            return node.size == 0
        case AvroRecord():
            return node.empty
        case _:
            return False


def weight(node: AvroType) -> int:
    """Return how many values without bytes come with one value."""
    if isinstance(node, AvroRecord):
        return node.weight
    return int(is_empty(node))


def inside(path: str, name: str) -> str:
    """Return the path of a field."""
    return f"{path}.{name}" if path else name
