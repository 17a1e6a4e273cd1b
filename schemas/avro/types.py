"""Types of Avro, as a schema defines them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
CONTAINERS: Final = ("record", "array", "map")
NAMED: Final = ("record", "enum", "fixed")


class Logical(NamedTuple):
    """A logical type that fits its base type."""

    name: str
    precision: int = 0
    """Precision of decimals, as `scale`: digits, and those after the point."""
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.precision else self.name


class AvroField(NamedTuple):
    """A field of a record; its type is the part of the record with the same index."""

    name: str
    optional: bool
    """It has a default: readers do without it."""
    aliases: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class AvroType:
    """A type of any kind; attributes that its kind does not have are empty."""

    kind: str
    """A primitive, `fixed`, `enum`, `record`, `array`, `map`, `union`; `name` for a type that is
    defined elsewhere, until it is linked."""
    name: str = ""
    """Full name."""
    aliases: tuple[str, ...] = ()
    """Of a type what readers call it as well; of a name what it may refer to as well: Java looks
    in the namespace around, then without one."""
    parts: list[AvroType] = field(default_factory=list)
    """Types of fields, of items or values, or branches."""
    fields: list[AvroField] = field(default_factory=list)
    logical: Logical | None = None
    size: int = 0
    symbols: tuple[str, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    """Index of an enum, by symbol; of a union, by the label of a branch once its names are
    linked."""
    default: str | None = None
    """Default of an enum, for symbols that it does not have."""
    weight: int = 0
    """Values without bytes of their own that come with one value: nulls and records."""
    empty: bool = False
    """A value has no bytes."""

    def __post_init__(self) -> None:
        self.empty = self.kind == "null" or (self.kind == "fixed" and not self.size)
        self.weight = int(self.empty or self.kind == "record")

    @property
    def label(self) -> str:
        """What Avro's JSON calls a branch of a union: full name, or kind."""
        return self.name or self.kind

    @property
    def shown(self) -> str:
        """What people call the type: its logical type, else its name."""
        return str(self.logical) if self.logical else self.label


def inside(path: str, name: str) -> str:
    """Return the path of a field."""
    return f"{path}.{name}" if path else name
