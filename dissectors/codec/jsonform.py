"""Turns bodies into JSON and back, in one form everywhere (docs/json.md).

Names are snake_case; bytes and records are base64, uuids as Kafka prints them, non-finite doubles
text. Other forms of JSON (the request log's) have other names of fields: see `Form`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

import orjson

from kafkascope.dissectors.codec.reader import Body, too_large, weight
from kafkascope.dissectors.errors import Malformed
from kafkascope.dissectors.layout import (
    SIZES,
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
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.values import NonFinite, Uuid, finite


def plain(value: Any) -> Any:
    """Return the JSON form of a value that JSON has no type for; `TypeError` for others."""
    if isinstance(value, Uuid | NonFinite):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def dumps(value: Any) -> bytes:
    """Return one line of JSON, without the line feed."""
    try:
        return orjson.dumps(value, default=plain)
    except TypeError:
        # A string that was not UTF-8 holds lone surrogates; they are escaped, so that nothing is
        # lost.
        text = json.dumps(without_non_finite(value), default=plain, separators=(",", ":"))
        return text.encode("ascii")


def dumps_indented(value: Any) -> bytes:
    """Return JSON for people, indented by two spaces a level."""
    try:
        return orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2)
    except TypeError:
        return json.dumps(without_non_finite(value), default=plain, indent=2).encode("ascii")


def without_non_finite(value: Any) -> Any:
    """Return a copy with text for each NaN and infinity: the stock encoder would write words that
    are no JSON."""
    if isinstance(value, dict):
        return {key: without_non_finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_non_finite(each) for each in value]
    return str(value) if isinstance(value, NonFinite) else value


def loads(text: bytes | str) -> Any:
    """Parse JSON of `dumps`, lone surrogates included; `ValueError` when it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


Converter: TypeAlias = Callable[[Any], Any]
"""Converts a JSON value to a value of a body; the path of a `Malformed` is completed on its way
out."""


class Form(NamedTuple):
    """A form of JSON that bodies are read from."""

    names: Callable[[str, Slot], tuple[str, ...]]
    """Names of a field of a message; of several in an object the first one counts."""
    whole: bool = False
    """Whether all fields stand in an object, but for tagged ones."""
    records: bool = True
    """Whether fields of records hold their bytes; else they are empty, whatever stands there."""


OURS: Final = Form(lambda _, slot: (slot.name,))


def body_from_json(layout: Layout, value: Any, form: Form = OURS) -> Body:
    """Return the complete body of a JSON value; missing fields get their defaults. Bytes and uuids
    may be bytes in place of text, as in bodies that were read.

    `Malformed` with the path of a field that is unknown or of the wrong type, or that is missing
    where the form is `whole`.
    """
    body: Body = _converter(layout, form)(value)
    return body


def json_value(wire: Wire, value: Any) -> Any:
    """Return a value of JSON as bodies have it in a field of that kind; `Malformed`."""
    return _value_converter("", wire, OURS)(value)


@cache
def _converter(layout: Layout, form: Form) -> Converter:
    """Return a converter; it is made once per layout, for `encode --batch` takes millions of
    bodies."""
    return _of_struct(layout.message.name, layout.body, form)


def _value_converter(message: str, wire: Wire, form: Form) -> Converter:
    match wire:
        case NumberWire():
            return _float if wire.code == "d" else _of_integer(wire)
        case BoolWire():
            return _bool
        case UuidWire():
            return _uuid
        case StringWire():
            return _or_null(_text, wire.nullable)
        case BytesWire():
            if wire.records and not form.records:
                return lambda _: None if wire.nullable else b""
            return _or_null(_bytes, wire.nullable)
        case ArrayWire():
            return _or_null(_of_array(message, wire, form), wire.nullable)
        case StructWire():
            return _or_null(_of_struct(message, wire, form), wire.nullable)
        case _:
            assert_never(wire)


def _or_null(convert: Converter, nullable: bool) -> Converter:
    return (lambda value: None if value is None else convert(value)) if nullable else convert


def numbers_of(wire: NumberWire) -> range:
    """Return the integers that a field can hold."""
    bits = 8 * SIZES[wire.code]
    low = 0 if wire.code.isupper() else -(1 << bits - 1)
    return range(low, low + (1 << bits))


def _of_integer(wire: NumberWire) -> Converter:
    low, high = numbers_of(wire)[0], numbers_of(wire)[-1]

    def convert(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise _wrong(value, f"an integer from {low} to {high}")
        return value

    return convert


def _of_array(message: str, wire: ArrayWire, form: Form) -> Converter:
    element = _value_converter(message, wire.element, form)
    # An element `{}` of three characters may be a dict of defaults.
    cost = 8 + weight(wire.element)

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(value, "an array")
        if len(value) * cost > LIMITS.body_bytes:
            raise too_large(0)
        out: list[Any] = []
        try:
            out.extend(map(element, value))  # its length is the index in the error
        except Malformed as error:
            dot = "." if error.path and error.path[0] != "[" else ""
            error.path = f"[{len(out)}]{dot}{error.path}"
            raise
        return out

    return convert


def _of_struct(message: str, wire: StructWire, form: Form) -> Converter:
    slots, known = [], {"_tagged_fields"}
    for slot in (*wire.slots, *wire.tags):
        first, *others = form.names(message, slot)
        convert = _or_null(_value_converter(message, slot.wire, form), bool(slot.only))
        slots.append((slot.name, first, others, convert, slot, form.whole and slot.tag is None))
        known.update((first, *others))

    def convert_object(value: Any) -> Body:
        if not isinstance(value, dict):
            raise _wrong(value, "an object")
        body: Body = {}
        name, unread = "", len(value)
        try:
            for name, first, others, field, slot, needed in slots:
                if first not in value:
                    first = next(filter(value.__contains__, others), "") if others else ""
                if first:
                    body[name] = field(value[first])
                    unread -= 1
                elif needed:
                    raise Malformed("is missing")
                else:
                    body[name] = default_of(slot)
            if unread:
                name = next((key for key in value if key not in known), "")
                if name:
                    raise Malformed("this version has no such field")
                name = "_tagged_fields"
                if name in value and (tagged := _tagged(value[name], wire.flexible)):
                    body[name] = tagged
        except Malformed as error:
            dot = "." if error.path and error.path[0] != "[" else ""
            error.path = f"{name}{dot}{error.path}"
            raise
        return body

    return convert_object


def _tagged(value: Any, flexible: bool) -> list[Body]:
    if not isinstance(value, list):
        raise _wrong(value, "an array")
    if value and not flexible:
        raise Malformed("this version has no tagged fields")
    fields = []
    for each in value:
        tag = each.get("tag") if isinstance(each, dict) else None
        if not isinstance(tag, int) or isinstance(tag, bool):
            raise _wrong(each, 'an object {"tag": number, "data": base64}')
        fields.append({"tag": tag, "data": _bytes(each.get("data"))})
    return fields


def _wrong(value: Any, wanted: str) -> Malformed:
    return Malformed(f"{value!r:.60} is not {wanted}")


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong(value, "a number")
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        raise _wrong(value, "a number")
    try:
        return finite(float(value))
    except OverflowError:  # an integer beyond doubles
        raise _wrong("it", "a number that a double holds") from None


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, "true or false")
    return value


def _uuid(value: Any) -> Uuid:
    if isinstance(value, bytes) and len(value) == 16:
        return Uuid(value)
    if not isinstance(value, str):
        raise _wrong(value, "a uuid of 22 characters")
    return uuid_of(value)


@lru_cache(4096)
def uuid_of(text: str) -> Uuid:
    """Return the uuid of Kafka's text; `Malformed`."""
    try:
        return Uuid.parse(text)
    except ValueError:
        raise _wrong(text, "a uuid of 22 characters") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "text")
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            pass
    raise _wrong(value, "base64")
