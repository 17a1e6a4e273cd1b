"""Writes a message from its JSON form."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import NON_FINITE, PayloadError, Value, misfit, varint
from kafkascope.schemas.protobuf import forms
from kafkascope.schemas.protobuf.kinds import FIXED, KINDS, LENGTH, START, STOP, VARINT
from kafkascope.schemas.protobuf.types import MessageField, MessageType

AnyBytes = Callable[[Any], dict[str, Any] | None]
"""Returns type and bytes of the form of a google.protobuf.Any; None if it stands as it is."""


def encode(message: MessageType, value: Value, any_bytes: AnyBytes) -> bytes:
    """Return the bytes of a message; `PayloadError` with the path of what does not fit."""
    return _Writer(any_bytes).message(message, value, 0)


@contextmanager
def _within(part: object) -> Iterator[None]:
    try:
        yield
    except PayloadError as error:
        error.within(str(part)[:100])
        raise


class _Writer:
    def __init__(self, any_bytes: AnyBytes) -> None:
        self._any_bytes = any_bytes

    def message(self, message: MessageType, value: Any, depth: int) -> bytes:
        if depth > LIMITS.nesting:
            raise misfit(f"messages nested deeper than {LIMITS.nesting}")
        if message.special == "google.protobuf.Any":
            value = self._any_bytes(value) or value
        elif message.special:
            try:
                value = forms.plain(message.special, value)
            except ValueError as error:
                raise misfit(str(error)) from None
        if not isinstance(value, dict):
            raise _wrong(value, f"an object of {message.full_name}")
        names = message.names
        surplus = [name for name in value if name not in names and name != message.unknown]
        if surplus:
            with _within(surplus[0]):
                raise misfit(f"{message.full_name} has no such field")
        out = bytearray()
        oneofs: dict[str, str] = {}
        for field in message.fields.values():
            with _within(field.name):
                if field.name not in value:
                    if field.required:
                        raise misfit("is required, but missing")
                    continue
                if field.oneof and oneofs.setdefault(field.oneof, field.name) != field.name:
                    raise misfit(f"beside {oneofs[field.oneof]}, of which oneof is either")
                self._field(out, field, value[field.name], depth)
        with _within(message.unknown):
            out += self._unknown(value.get(message.unknown, []), depth)
        return bytes(out)

    def _field(self, out: bytearray, field: MessageField, value: Any, depth: int) -> None:
        if field.map:
            self._map(out, field, value, depth)
        elif not field.repeated:
            data = self._value(field, value, depth)
            if field.presence or data.strip(b"\0"):
                out += _tag(field.number, field.wire) + data
        else:
            if not isinstance(value, list):
                raise _wrong(value, "an array")
            parts = []
            for index, each in enumerate(value):
                with _within(f"[{index}]"):
                    parts.append(self._value(field, each, depth))
            if field.packed and parts:
                data = b"".join(parts)
                out += _tag(field.number, LENGTH) + _varint(len(data)) + data
            else:
                tag = _tag(field.number, field.wire)
                out += b"".join(tag + part for part in parts)

    def _map(self, out: bytearray, field: MessageField, value: Any, depth: int) -> None:
        assert field.message is not None
        key, element = (field.message.fields[number] for number in (1, 2))
        if not isinstance(value, dict):
            raise _wrong(value, "an object")
        for name, each in value.items():
            with _within(name):
                first = self._value(key, _key(key, name), depth + 1)
                second = self._value(element, each, depth + 1)
            data = (
                _tag(1, KINDS[key.kind].wire) + first + _tag(2, KINDS[element.kind].wire) + second
            )
            out += _tag(field.number, LENGTH) + _varint(len(data)) + data

    def _value(self, field: MessageField, value: Any, depth: int) -> bytes:
        if field.message is not None:
            data = self.message(field.message, value, depth + 1)
            if field.kind == "group":
                return data + _tag(field.number, STOP)
            return _varint(len(data)) + data
        match field.kind:
            case "string":
                data = self._text(field, value)
                return _varint(len(data)) + data
            case "bytes":
                data = _bytes(value)
                return _varint(len(data)) + data
            case "bool":
                if not isinstance(value, bool):
                    raise _wrong(value, "true or false")
                return b"\1" if value else b"\0"
            case "double" | "float" as kind:
                return _float(kind, value)
            case "enum":
                return _varint(_integer("enum", self._number(field, value)))
            case kind:
                number = _integer(kind, value)
                if kind in FIXED:
                    return FIXED[kind].pack(number)
                if KINDS[kind].zigzag:
                    number = (number << 1) ^ (number >> 63)
                return _varint(number)

    def _text(self, field: MessageField, value: Any) -> bytes:
        if isinstance(value, dict) and not field.utf8:
            return _bytes(value)
        if not isinstance(value, str):
            raise _wrong(value, "text")
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise misfit("text with an unpaired surrogate") from None

    def _number(self, field: MessageField, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for number, name in field.values.items():
            if name == value:
                return number
        # An alias is not in the table, where a number has one name.
        found = field.descriptor.enum_type.values_by_name.get(value)
        if found is None:
            raise _wrong(value, f"a value of {field.type}")
        return found.number

    def _unknown(self, value: Any, depth: int) -> bytes:
        if depth > LIMITS.nesting:
            raise misfit(f"groups nested deeper than {LIMITS.nesting}")
        if not isinstance(value, list):
            raise _wrong(value, "an array")
        out = bytearray()
        for index, each in enumerate(value):
            with _within(f"[{index}]"):
                out += self._unknown_field(each, depth)
        return bytes(out)

    def _unknown_field(self, entry: Any, depth: int) -> bytes:
        if not isinstance(entry, dict) or entry.keys() != {"field", "type", "value"}:
            raise _wrong(entry, "an object of field, type and value")
        number, value = entry["field"], entry["value"]
        if type(number) is not int or not 0 < number < 1 << 29:
            raise _wrong(number, "the number of a field")
        match entry["type"]:
            case "varint":
                return _tag(number, VARINT) + _varint(_integer("uint64", value))
            case "fixed64" | "fixed32" as kind:
                return _tag(number, KINDS[kind].wire) + FIXED[kind].pack(_integer(kind, value))
            case "bytes":
                data = _bytes(value)
                return _tag(number, LENGTH) + _varint(len(data)) + data
            case "group":
                inner = self._unknown(value, depth + 1)
                return _tag(number, START) + inner + _tag(number, STOP)
            case other:
                raise _wrong(other, "varint, fixed64, bytes, group or fixed32")


def _wrong(value: Any, wanted: str) -> PayloadError:
    return misfit(f"{value!r:.60} is not {wanted}")


def _varint(value: int) -> bytes:
    return varint(value & 0xFFFFFFFFFFFFFFFF)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _integer(kind: str, value: Any) -> int:
    if type(value) is not int:
        raise _wrong(value, "an integer")
    if not KINDS[kind].in_range(value):
        raise _wrong(value, f"an {kind}" if kind[0] in "aeiou" else f"a {kind}")
    return value


def _float(kind: str, value: Any) -> bytes:
    if isinstance(value, str):
        value = NON_FINITE.get(value, value)
    if type(value) not in (int, float):
        raise _wrong(value, "a number")
    try:
        if type(value) is int and kind == "double" and int(float(value)) != value:
            raise _wrong(value, "a double")
        return FIXED[kind].pack(value)
    except OverflowError:
        raise _wrong(value, f"a {kind}") from None


def _bytes(value: Any) -> bytes:
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except ValueError:
            pass
    raise _wrong(value, 'an object {"base64": text}')


def _key(field: MessageField, name: Any) -> Any:
    if not isinstance(name, str):
        raise _wrong(name, "text")
    if field.kind == "string":
        return name
    if field.kind == "bool":
        return {"true": True, "false": False}.get(name, name)
    digits = name.removeprefix("-")
    return int(name) if digits.isascii() and digits.isdigit() and len(digits) <= 20 else name
