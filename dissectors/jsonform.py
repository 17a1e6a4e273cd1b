"""Bodies as JSON and back: one form everywhere (docs/json.md).

snake_case names, integers, null; bytes and records as base64; uuids as Kafka prints them; non-
finite doubles as text.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, assert_never

import orjson

from dissectors.errors import Malformed
from dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    default_of,
)
from dissectors.reader import Body
from dissectors.values import NonFinite, Uuid, finite


def plain(value: Any) -> Any:
    """The JSON form of a value that JSON has no type for; `TypeError` for others."""
    if isinstance(value, Uuid | NonFinite):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def dumps(value: Any) -> bytes:
    """One line of JSON, without the line feed."""
    try:
        return orjson.dumps(value, default=plain)
    except TypeError:
        # A string that was not UTF-8 holds lone surrogates; they are escaped, so that nothing is
        # lost.
        return json.dumps(value, default=plain, separators=(",", ":")).encode("ascii")


def body_from_json(layout: Layout, value: Any) -> Body:
    """The complete body that a JSON value stands for: fields that are missing get their defaults.

    `Malformed` with the path of a field that is unknown or of the wrong type.
    """
    return _struct(layout.body, value, "")


def _struct(wire: StructWire, value: Any, path: str) -> Body:
    if not isinstance(value, dict):
        raise _wrong(value, "an object", path)
    body: Body = {}
    for slot in (*wire.slots, *wire.tags):
        if slot.name in value:
            body[slot.name] = _value(slot.wire, value[slot.name], f"{path}.{slot.name}")
        else:
            body[slot.name] = _default(slot)
    if len(value) > len(body) or value.keys() - body.keys():
        for name in value.keys() - body.keys() - {"_tagged_fields"}:
            raise Malformed(
                f"there is no field {name!r} in this version", path=(path + "." + name)[1:]
            )
        if value.get("_tagged_fields"):
            if not wire.flexible:
                raise Malformed("this version has no tagged fields", path=path[1:])
            body["_tagged_fields"] = _tagged(value["_tagged_fields"], f"{path}._tagged_fields")
    return body


def _default(slot: Slot) -> Any:
    value = default_of(slot)
    return Uuid(value) if isinstance(slot.wire, UuidWire) else value


def _tagged(value: Any, path: str) -> list[Body]:
    if not isinstance(value, list):
        raise _wrong(value, "an array", path)
    fields = []
    for each in value:
        if not isinstance(each, dict) or not isinstance(each.get("tag"), int):
            raise _wrong(each, 'an object {"tag": number, "data": base64}', path)
        fields.append({"tag": each["tag"], "data": _bytes(each.get("data"), path)})
    return fields


def _wrong(value: Any, wanted: str, path: str) -> Malformed:
    return Malformed(f"{value!r:.60} is not {wanted}", path=path[1:])


def _bytes(value: Any, path: str) -> bytes:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise _wrong(value, "base64", path)


def _value(wire: Wire, value: Any, path: str) -> Any:
    match wire:
        case NumberWire():
            if wire.code == "d":
                number = isinstance(value, int | float) and not isinstance(value, bool)
                if not number and value not in ("NaN", "Infinity", "-Infinity"):
                    raise _wrong(value, "a number", path)
                return finite(float(value))
            if isinstance(value, bool) or not isinstance(value, int):
                raise _wrong(value, "an integer", path)
            return value
        case BoolWire():
            if not isinstance(value, bool):
                raise _wrong(value, "true or false", path)
            return value
        case UuidWire():
            try:
                return Uuid.parse(value)
            except (ValueError, AttributeError):
                raise _wrong(value, "a uuid of 22 characters", path) from None
        case StringWire():
            if not isinstance(value, str) and not (value is None and wire.nullable):
                raise _wrong(value, "text", path)
            return value
        case BytesWire():
            return None if value is None and wire.nullable else _bytes(value, path)
        case ArrayWire():
            if value is None and wire.nullable:
                return None
            if not isinstance(value, list):
                raise _wrong(value, "an array", path)
            element = wire.element
            return [_value(element, each, f"{path}[{index}]") for index, each in enumerate(value)]
        case StructWire():
            return None if value is None and wire.nullable else _struct(wire, value, path)
        case _:
            assert_never(wire)
