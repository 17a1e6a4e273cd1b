"""Resolves a declaration over all versions into the layout of one version.

The only module that compares schema versions. A layout leaves nothing to decide; it says "compact
nullable string", "int32", "array of these slots"; every product (Struct, reader, writer, tree,
grammar) is a `match` over the wire kinds below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from kafkascope.dissectors import schema
from kafkascope.dissectors.errors import SchemaError, UnknownVersion
from kafkascope.dissectors.schema import UNSET, Field, Message
from kafkascope.dissectors.values import Uuid, Versions

NUMBER_FORMATS: Final[dict[type[Field], tuple[str, str]]] = {
    schema.Int8: ("int8", "b"),
    schema.Int16: ("int16", "h"),
    schema.Int32: ("int32", "i"),
    schema.Int64: ("int64", "q"),
    schema.Uint16: ("uint16", "H"),
    schema.Uint32: ("uint32", "I"),
    schema.Float64: ("float64", "d"),
}
"""Name in the grammar and letter in the struct module, by type."""


@dataclass(frozen=True, slots=True)
class NumberWire:
    """A big-endian number; `code` is its letter in the struct module."""

    name: str
    code: str
    size: int


@dataclass(frozen=True, slots=True)
class BoolWire:
    """One byte, 0 or 1."""


@dataclass(frozen=True, slots=True)
class UuidWire:
    """16 bytes."""


@dataclass(frozen=True, slots=True)
class StringWire:
    """UTF-8 after int16 length, or after uvarint of length + 1 when compact."""

    compact: bool
    nullable: bool
    long: bool = False
    """Whether the length is an int32."""

    @property
    def code(self) -> str:
        """The length's letter in the struct module, where it is not compact."""
        return "i" if self.long else "h"


@dataclass(frozen=True, slots=True)
class BytesWire:
    """Bytes after int32 length, or after uvarint of length + 1 when compact."""

    compact: bool
    nullable: bool
    records: bool
    """Whether the bytes hold record batches."""


@dataclass(frozen=True, slots=True)
class ArrayWire:
    """A count (int32, or uvarint of count + 1 when compact) and its elements."""

    element: Wire
    compact: bool
    nullable: bool
    operations: bool = False
    """Whether there is no count: see `schema.Operations`. Elements are structs of type, err, and
    fields of which each type has some."""


@dataclass(frozen=True, slots=True)
class StructWire:
    """Slots one after the other; a tagged section after them when `flexible`."""

    slots: tuple[Slot, ...]
    tags: tuple[Slot, ...]
    """Slots of the tagged section, by tag."""
    flexible: bool
    nullable: bool
    """Whether a marker stands before it: an int8 (-1 null, 1 there), as a tagged field a uvarint
    (0 null, 1 there)."""


Wire: TypeAlias = NumberWire | BoolWire | UuidWire | StringWire | BytesWire | ArrayWire | StructWire


@dataclass(frozen=True, slots=True)
class Slot:
    """One field of one version."""

    name: str
    wire: Wire
    field: Field
    tag: int | None
    default: Any
    """Value of a tagged slot that is not on the wire; `default_of` copies it."""
    only: frozenset[int] = frozenset()
    """Types of operations that have it; bodies of others have None. Empty for all."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A message at one version. Made once by `resolve`; equal only to itself."""

    message: Message
    version: int
    body: StructWire

    @property
    def title(self) -> str:
        """Name and version; ZooKeeper's records have no versions of their own."""
        name = self.message.name
        return name if self.message.kind == "zookeeper" else f"{name} v{self.version}"

    @property
    def flexible(self) -> bool:
        """Whether strings are compact and structs end with a tagged section."""
        return self.body.flexible

    def has(self, name: str) -> bool:
        """Whether the version has a field of that name at the top of the body."""
        return any(slot.name == name for slot in (*self.body.slots, *self.body.tags))

    def __repr__(self) -> str:
        # The whole tree would bury whatever it is printed in.
        releases = f" of {self.message.releases}" if self.message.releases else ""
        return f"<Layout {self.message.name} v{self.version}{releases}>"


# Bytes of type, end and err before each operation, and after the last one.
OPERATION_HEAD: Final = 9

# Versions that carry records of magic 0, 1 (KIP-32) and 2 (KIP-98).
MAGICS: Final = {
    "ProduceRequest": tuple(map(Versions.parse, ("0-1", "2", "3+"))),
    "FetchResponse": tuple(map(Versions.parse, ("0-1", "2-3", "4+"))),
}


def magic_of(name: str, version: int) -> int:
    """The format of the records that a message carries; 2 for messages that never had another."""
    spans = MAGICS.get(name, ())
    return next((magic for magic, span in enumerate(spans) if version in span), 2)


@cache
def resolve(message: Message, version: int) -> Layout:
    """Return the layout of a version; `UnknownVersion` when no release had it."""
    if version not in message.versions:
        raise UnknownVersion(f"{message.name} has versions {message.versions}, not {version}")
    flexible = version in message.flexible
    return Layout(message, version, _struct(message.fields, version, flexible, nullable=False))


def _struct(
    fields: tuple[Field, ...], version: int, flexible: bool, *, nullable: bool
) -> StructWire:
    slots = [_slot(field, version, flexible) for field in fields if version in field.versions]
    names = [slot.name for slot in slots]
    if len(set(names)) != len(names):
        raise SchemaError(f"version {version}: two fields of one name in {names}")
    tags = sorted((slot for slot in slots if slot.tag is not None), key=lambda slot: slot.tag or 0)
    if tags and not flexible:
        raise SchemaError(
            f"version {version}: tagged field {tags[0].name} in a version that is not flexible"
        )
    return StructWire(tuple(s for s in slots if s.tag is None), tuple(tags), flexible, nullable)


def _slot(field: Field, version: int, flexible: bool) -> Slot:
    wire = _wire(field, version, flexible)
    tag = field.tag if version in field.tagged else None
    default = implied_default(wire) if field.default is UNSET else field.default
    if isinstance(wire, UuidWire):
        default = Uuid(default or bytes(16))
    if field.only:
        default = None
    return Slot(field.name, wire, field, tag, default, field.only)


def _wire(field: Field, version: int, flexible: bool) -> Wire:
    nullable = version in field.nullable
    compact = flexible and not field.plain
    match field:
        case schema.Bool():
            return BoolWire()
        case schema.Uuid():
            return UuidWire()
        case schema.String():
            return StringWire(compact, nullable, isinstance(field, schema.Ustring))
        case schema.Bytes():
            return BytesWire(compact, nullable, isinstance(field, schema.Records))
        case schema.Array():
            if field.element is None:
                element: Wire = _struct(field.children, version, flexible, nullable=False)
            else:
                element = _wire(field.element(field.name, "0+"), version, flexible)
            return ArrayWire(element, compact, nullable, isinstance(field, schema.Operations))
        case schema.Struct():
            return _struct(field.children, version, flexible, nullable=nullable)
        case _:
            name, code = NUMBER_FORMATS[type(field)]
            return NumberWire(name, code, SIZES[code])


SIZES: Final = {"b": 1, "h": 2, "i": 4, "q": 8, "H": 2, "I": 4, "d": 8}


def implied_default(wire: Wire) -> Any:
    """Return the value of a field that declares no default and is not on the wire."""
    match wire:
        case NumberWire():
            return 0.0 if wire.code == "d" else 0
        case BoolWire():
            return False
        case UuidWire():
            return Uuid(bytes(16))
        case StringWire():
            return ""
        case BytesWire():
            return None if wire.records and wire.nullable else b""
        case ArrayWire():
            return []
        case StructWire():
            return {slot.name: default_of(slot) for slot in (*wire.slots, *wire.tags)}


def default_of(slot: Slot) -> Any:
    """Return the slot's default, of containers a fresh copy."""
    return _copied(slot.default)


def _copied(default: Any) -> Any:
    # `copy.deepcopy` takes two to three times as long; partitions of a Fetch have three such tags.
    if isinstance(default, dict):
        return {name: _copied(each) for name, each in default.items()}
    return list(default) if isinstance(default, list) else default


def minimum_size(wire: Wire) -> int:
    """Return the fewest bytes that a value can take; counts are checked against it."""
    match wire:
        case NumberWire():
            return wire.size
        case BoolWire():
            return 1
        case UuidWire():
            return 16
        case StringWire():
            return 1 if wire.compact else 4 if wire.long else 2
        case ArrayWire() if wire.operations:
            return OPERATION_HEAD
        case BytesWire() | ArrayWire():
            return 1 if wire.compact else 4
        case StructWire():
            if wire.nullable:
                return 1
            always = (slot.wire for slot in wire.slots if not slot.only)
            return sum(map(minimum_size, always)) + wire.flexible
