"""Tables of message types: the fields of the numbers on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kafkascope.schemas.model import UNKNOWN
from kafkascope.schemas.protobuf.files import Loaded
from kafkascope.schemas.protobuf.kinds import KINDS, NAMES

WRAPPERS: Final = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}

SPECIAL: Final = {
    **{name: f"1 {kind} value" for name, kind in WRAPPERS.items()},
    "google.protobuf.Timestamp": "1 int64 seconds, 2 int32 nanos",
    "google.protobuf.Duration": "1 int64 seconds, 2 int32 nanos",
    "google.protobuf.FieldMask": "1 string[] paths",
    "google.protobuf.Any": "1 string type_url, 2 bytes value",
    "google.protobuf.Struct": "1 message{} fields",
    "google.protobuf.ListValue": "1 message[] values",
    "google.protobuf.Value": "1 enum null_value, 2 double number_value, 3 string string_value, "
    "4 bool bool_value, 5 message struct_value, 6 message list_value",
}
"""Types with a JSON form of their own. A file may define a message of such a name that has other
fields: that is one like any other."""


@dataclass(slots=True, eq=False)
class MessageField:
    """A field of a message, or an extension of it."""

    name: str
    """In the JSON form; an extension has its full name in brackets."""
    number: int
    kind: str
    wire: int
    """The wire type of one value."""
    descriptor: Any
    repeated: bool
    packed: bool
    presence: bool
    required: bool
    utf8: bool
    """Whether text has to be UTF-8."""
    oneof: str
    map: bool
    message: MessageType | None
    values: dict[int, str]
    """Names of an enum's values."""

    @property
    def type(self) -> str:
        """The type as the schema spells it."""
        if self.map and self.message is not None:
            key, value = (self.message.fields[number] for number in (1, 2))
            return f"map<{key.type}, {value.type}>"
        if self.kind == "enum":
            return str(self.descriptor.enum_type.full_name)
        return self.message.full_name if self.message is not None else self.kind


class MessageType:
    """A message type with its fields, which are made on first use."""

    def __init__(self, descriptor: Any, types: Types) -> None:
        self.full_name: Final[str] = descriptor.full_name
        self.descriptor: Final = descriptor
        self._types = types

    @cached_property
    def fields(self) -> dict[int, MessageField]:
        """The fields by their number, in that order."""
        return self._types.fields_of(self.descriptor)

    @cached_property
    def names(self) -> dict[str, MessageField]:
        """The fields by their name in the JSON form."""
        return {each.name: each for each in self.fields.values()}

    @cached_property
    def special(self) -> str:
        """The name of a type that has a JSON form of its own; else empty."""
        wanted = SPECIAL.get(self.full_name)
        return self.full_name if wanted and wanted == _spelled(self) else ""

    @cached_property
    def unknown(self) -> str:
        """Name of the member that lists what the schema does not know."""
        name = UNKNOWN
        while name in self.names:
            name += "_"
        return name

    def reached(self) -> list[MessageType]:
        """Return the types of the message and of all that may be inside of it."""
        out = [self]
        seen = {self}
        for message in out:
            for each in message.fields.values():
                if each.message is not None and each.message not in seen:
                    seen.add(each.message)
                    out.append(each.message)
        return out

    @cached_property
    def is_set(self) -> bool:
        """Whether extensions are items of a group, as before extensions had numbers."""
        return bool(self.descriptor.GetOptions().message_set_wire_format)


def _spelled(message: MessageType) -> str:
    out = []
    for each in message.fields.values():
        many = "{}" if each.map else "[]" if each.repeated else ""
        out.append(f"{each.number} {each.kind}{many} {each.name}")
    return ", ".join(out)


class Types:
    """All message types of a schema."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._types: dict[str, MessageType] = {}
        self._enums: dict[str, dict[int, str]] = {}

    def of(self, descriptor: Any) -> MessageType:
        name = descriptor.full_name
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = MessageType(descriptor, self)
        return found

    def fields_of(self, descriptor: Any) -> dict[int, MessageField]:
        fields = [(each, each.name) for each in descriptor.fields]
        if descriptor.is_extendable:
            extensions = self._loaded.pool.FindAllExtensions(descriptor)
            fields += [(each, f"[{each.full_name}]") for each in extensions]
        fields.sort(key=lambda pair: pair[0].number)
        return {each.number: self._field(each, name) for each, name in fields}

    def _field(self, descriptor: Any, name: str) -> MessageField:
        kind = NAMES[descriptor.type]
        message = self.of(descriptor.message_type) if kind in ("message", "group") else None
        repeated, required = _label(descriptor)
        return MessageField(
            name=name,
            number=descriptor.number,
            kind=kind,
            wire=KINDS[kind].wire,
            descriptor=descriptor,
            repeated=repeated,
            packed=repeated and bool(descriptor.is_packed),
            presence=bool(descriptor.has_presence),
            required=required,
            utf8=kind == "string" and self._is_utf8(descriptor),
            oneof=descriptor.containing_oneof.name if descriptor.containing_oneof else "",
            map=repeated
            and kind == "message"
            and bool(descriptor.message_type.GetOptions().map_entry),
            message=message,
            values=self._values(descriptor.enum_type) if kind == "enum" else {},
        )

    def _is_utf8(self, descriptor: Any) -> bool:
        """Return whether the text of a field has to be UTF-8: in proto3, and in editions
        unless features override it."""
        proto = self._loaded.protos[descriptor.file.name]
        if proto.syntax != "editions":
            return bool(proto.syntax == "proto3")
        owner = descriptor
        while owner is not None:
            features = owner.GetOptions().features
            if features.HasField("utf8_validation"):
                return bool(features.utf8_validation != _NONE)
            owner = getattr(owner, "extension_scope", None) or owner.containing_type
        return bool(proto.options.features.utf8_validation != _NONE)

    def _values(self, enum: Any) -> dict[int, str]:
        values = self._enums.get(enum.full_name)
        if values is None:
            values = self._enums[enum.full_name] = {}
            for each in enum.values:
                # Of aliases the first counts.
                values.setdefault(each.number, each.name)
        return values


def _label(descriptor: Any) -> tuple[bool, bool]:
    if hasattr(descriptor, "is_repeated"):
        return descriptor.is_repeated, descriptor.is_required
    # protobuf before 6.31.
    return (
        descriptor.label == descriptor.LABEL_REPEATED,
        descriptor.label == descriptor.LABEL_REQUIRED,
    )


# FeatureSet.Utf8Validation.NONE.
_NONE: Final = 3
