"""The kinds of fields: their numbers in descriptors, their bytes on the wire, their ranges."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

VARINT, FIXED64, LENGTH, START, STOP, FIXED32 = range(6)
"""Wire types."""
WIRES: Final = ("varint", "fixed64", "bytes", "group", "end of group", "fixed32")


class FieldKind(NamedTuple):
    """A type that the schema language names, or one of those that a schema defines."""

    number: int
    """Number of FieldDescriptorProto.Type."""
    wire: int
    empty: Any = 0
    """The value of a field that is absent."""
    bits: int = 0
    """Bits of integers and enums; 0 for others."""
    signed: bool = False
    zigzag: bool = False
    fixed: Struct | None = None

    def in_range(self, value: int) -> bool:
        size = 1 << (self.bits - self.signed)
        return (-size if self.signed else 0) <= value < size


KINDS: Final = {
    "double": FieldKind(1, FIXED64, 0.0, fixed=Struct("<d")),
    "float": FieldKind(2, FIXED32, 0.0, fixed=Struct("<f")),
    "int64": FieldKind(3, VARINT, bits=64, signed=True),
    "uint64": FieldKind(4, VARINT, bits=64),
    "int32": FieldKind(5, VARINT, bits=32, signed=True),
    "fixed64": FieldKind(6, FIXED64, bits=64, fixed=Struct("<Q")),
    "fixed32": FieldKind(7, FIXED32, bits=32, fixed=Struct("<I")),
    "bool": FieldKind(8, VARINT, False),
    "string": FieldKind(9, LENGTH, ""),
    "group": FieldKind(10, START),
    "message": FieldKind(11, LENGTH),
    "bytes": FieldKind(12, LENGTH, b""),
    "uint32": FieldKind(13, VARINT, bits=32),
    "enum": FieldKind(14, VARINT, bits=32, signed=True),
    "sfixed32": FieldKind(15, FIXED32, bits=32, signed=True, fixed=Struct("<i")),
    "sfixed64": FieldKind(16, FIXED64, bits=64, signed=True, fixed=Struct("<q")),
    "sint32": FieldKind(17, VARINT, bits=32, signed=True, zigzag=True),
    "sint64": FieldKind(18, VARINT, bits=64, signed=True, zigzag=True),
}
FIXED: Final = {name: kind.fixed for name, kind in KINDS.items() if kind.fixed is not None}
NAMES: Final = {kind.number: name for name, kind in KINDS.items()}
"""As the schema language spells them."""
GROUP: Final = KINDS["group"].number
MESSAGE: Final = KINDS["message"].number
ENUM: Final = KINDS["enum"].number
SCALARS: Final = {
    name: kind.number for name, kind in KINDS.items() if kind.number not in (GROUP, MESSAGE, ENUM)
}
MAP_KEYS: Final = SCALARS.keys() - {"double", "float", "bytes"}
