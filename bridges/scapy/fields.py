"""Fields of scapy for the wires of a layout. Their bytes are built by the reference Structs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from scapy.base_classes import BasePacket
from scapy.fields import Field, PacketField, PacketListField, RawVal
from scapy.volatile import (
    RandBin,
    RandChoice,
    RandInt,
    RandSByte,
    RandShort,
    RandSInt,
    RandSLong,
    RandSShort,
    RandString,
    VolatileValue,
)

from kafkascope.dissectors.codec.structs import build_part, construct_of, tags_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    default_of,
)
from kafkascope.dissectors.reference.names import name_of
from kafkascope.dissectors.registry import api_named
from kafkascope.dissectors.values import Uuid

RENAMED: Final[Mapping[str, str]] = {
    "name": "name_",
    "request_api_key": "api",
    "request_api_version": "version",
}
"""Fields that are called otherwise: every packet has a `name` of its own."""

NUMBERS: Final[Mapping[str, type[VolatileValue[Any]]]] = {
    "b": RandSByte,
    "h": RandSShort,
    "i": RandSInt,
    "q": RandSLong,
    "H": RandShort,
    "I": RandInt,
}


class Null(list[Any]):
    """An array that is null: reads as an empty one."""

    def __repr__(self) -> str:
        return "null"

    def copy(self) -> Null:
        """Return another one: it stays null when a packet is copied."""
        return Null()


class RandomUuid(VolatileValue[bytes]):
    """A random uuid."""

    def _fix(self) -> bytes:
        return Uuid(random.randbytes(16))


class RandomFloat(VolatileValue[float]):
    """A random double."""

    def _fix(self) -> float:
        return random.uniform(-1e9, 1e9)


def field_name(slot: Slot) -> str:
    """Return what the field of a slot is called in scapy."""
    return RENAMED.get(slot.name, slot.name)


def plain(value: Any) -> Any:
    """Return a value of a field as readers and writers have it."""
    if isinstance(value, VolatileValue):
        value = value._fix()
    if isinstance(value, RawVal):
        raise ValueError("RawVal can stand in a field of the message itself alone")
    if isinstance(value, Null) and not value:
        return None
    if isinstance(value, BasePacket):
        return value.body()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def built(field: Any, value: Any) -> bytes:
    """Return the bytes of a field's value; `DissectError` with the path of what does not fit."""
    if isinstance(value, RawVal):
        return bytes(value)
    try:
        return build_part(field.codec, plain(value))
    except DissectError as error:
        dot = "." if error.path and error.path[0] != "[" else ""
        error.path = f"{field.slot.name}{dot}{error.path}"
        raise


class _Built:
    """What the fields of slots share."""

    __slots__ = ()
    slot: Slot

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        """Append the bytes of the value; tagged fields are written in their section."""
        return s if self.slot.tag is not None else s + built(self, val)

    def do_copy(self, x: Any) -> Any:
        """Copy a value; null stays null."""
        return x.copy() if isinstance(x, Null) else super().do_copy(x)  # type: ignore[misc]


class SlotField(_Built, Field):
    """The field of a slot: a value that is no struct."""

    __slots__ = ("codec", "slot")

    def __init__(self, slot: Slot, default: Any = None) -> None:
        self.slot = slot
        self.codec = construct_of(slot.wire)
        super().__init__(field_name(slot), default_of(slot) if default is None else default)

    def any2i(self, pkt: Any, x: Any) -> Any:
        """Take what people give: names of APIs, uuids as text, bytes for text."""
        if isinstance(x, VolatileValue | RawVal):
            return x
        return taken(self.slot, self.slot.wire, x)

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Show a value with its name; a secret only by its size."""
        if isinstance(x, VolatileValue | RawVal):
            return repr(x)
        if self.slot.field.secret and x is not None:
            return f"<secret, {len(x)} bytes>"
        if x is None:
            return "null"
        if isinstance(x, list):
            return repr(x)
        around = {} if pkt is None else {**pkt.fields, "name": pkt.fields.get("name_")}
        label = name_of(self.slot.field, x, around)
        shown = str(x) if isinstance(x, Uuid) else repr(x)
        return f"{shown} ({label})" if label else shown

    def randval(self) -> Any:
        """Return random values for `fuzz`."""
        match self.slot.wire:
            case NumberWire(code=code):
                return NUMBERS[code]() if code in NUMBERS else RandomFloat()
            case BoolWire():
                return RandChoice(False, True)
            case UuidWire():
                return RandomUuid()
            case StringWire():
                return RandString()
            case BytesWire():
                return RandBin()
            case _:
                return None


class ValuesField(SlotField):
    """The field of a slot with an array of plain values."""

    __slots__ = ()
    islist = 1


class KnownField(SlotField):
    """A field that is known and not on the wire: what a response answers."""

    __slots__ = ()

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        """Append nothing."""
        return s

    def randval(self) -> Any:
        """Return nothing: it is as it is."""
        return None


class StructField(_Built, PacketField):
    """The field of a slot with a struct; None is null."""

    __slots__ = ("codec", "nullable", "slot")

    def __init__(self, slot: Slot, cls: Any) -> None:
        self.slot = slot
        self.codec = construct_of(slot.wire)
        self.cls = cls  # type: ignore[misc]
        super().__init__(field_name(slot), None if default_of(slot) is None else cls(), cls)

    def any2i(self, pkt: Any, x: Any) -> Any:
        """Take a packet, or a dict of its fields."""
        return x if x is None or isinstance(x, RawVal) else _element(self.cls, pkt, x)

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Show null as such."""
        return "null" if x is None else repr(x)


class StructsField(_Built, PacketListField):
    """The field of a slot with an array of structs."""

    __slots__ = ("codec", "slot")

    def __init__(self, slot: Slot, cls: Any) -> None:
        self.slot = slot
        self.codec = construct_of(slot.wire)
        super().__init__(field_name(slot), Null() if default_of(slot) is None else [], cls)

    def any2i(self, pkt: Any, x: Any) -> Any:
        """Take packets, or dicts of their fields."""
        if x is None:
            return Null()
        if isinstance(x, Null | RawVal):
            return x
        given = x if isinstance(x, list | tuple) else [x]
        return [_element(self.cls, pkt, each) for each in given]


class TagsField(Field):
    """The tagged section at the end of a struct. Its own value are the unknown tags, as pairs of
    tag and bytes; the known ones are fields of the packet."""

    __slots__ = ("codec", "wire")
    islist = 1

    def __init__(self, name: str, wire: StructWire) -> None:
        self.wire = wire
        self.codec = tags_of(wire)
        super().__init__(name, [])

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        """Append the section."""
        if isinstance(val, RawVal):
            return s + bytes(val)
        body = {slot.name: plain(pkt.getfieldval(field_name(slot))) for slot in self.wire.tags}
        body["_tagged_fields"] = [{"tag": tag, "data": data} for tag, data in val]
        return s + build_part(self.codec, body)

    def randval(self) -> Any:
        """Return nothing: unknown tags mean nothing."""
        return None


def field_of(slot: Slot, element: Callable[[Slot, StructWire], Any]) -> Any:
    """Return the field of a slot; `element` makes the class of a struct in it."""
    wire = slot.wire
    if isinstance(wire, StructWire):
        return StructField(slot, element(slot, wire))
    if isinstance(wire, ArrayWire):
        if isinstance(wire.element, StructWire):
            return StructsField(slot, element(slot, wire.element))
        return ValuesField(slot)
    return SlotField(slot)


def value_of(field: Any, value: Any, parent: Any) -> Any:
    """Return the value of a field for one that a reader gave."""
    if isinstance(field, StructsField):
        return Null() if value is None else [filled(field.cls, parent, each) for each in value]
    if isinstance(field, StructField):
        return None if value is None else filled(field.cls, parent, value)
    if isinstance(field, ValuesField):
        return Null() if value is None else value
    return value


def filled(cls: Any, parent: Any, body: Mapping[str, Any]) -> Any:
    """Return a packet of a struct with the values that a reader gave."""
    packet = cls(_internal=1, _parent=parent)
    packet.fill(body)
    return packet


def taken(slot: Slot, wire: Wire, x: Any) -> Any:
    """Return a value that people gave as readers give it; what does not fit stays as it is, and is
    refused when it is built."""
    match wire:
        case ArrayWire():
            if x is None:
                return Null()
            given = x if isinstance(x, list | tuple) else [x]
            return x if isinstance(x, Null) else [taken(slot, wire.element, each) for each in given]
        case UuidWire():
            return _uuid(x)
        case StringWire():
            return x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else x
        case BytesWire():
            return x.encode() if isinstance(x, str) else x
        case NumberWire():
            known = slot.field.enum == "ApiKey" and isinstance(x, str)
            return api_named(x).key if known else x
        case _:
            return x


def _uuid(x: Any) -> Any:
    if isinstance(x, UUID):
        return Uuid(x.bytes)
    if isinstance(x, str):
        return Uuid.parse(x)
    return Uuid(x) if isinstance(x, bytes) and len(x) == 16 else x


def _element(cls: Any, parent: Any, x: Any) -> Any:
    if isinstance(x, dict):
        x = cls(**{RENAMED.get(key, key): value for key, value in x.items()})
    if parent is not None and isinstance(x, BasePacket):
        x.add_parent(parent)
    return x
