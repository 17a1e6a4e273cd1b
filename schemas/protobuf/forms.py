"""JSON forms of single values and of well-known types, in both directions.

A well-known type is first decoded as any message; `special` turns that into its own form, and
`plain` turns that back. What has no such form (a year above 9999, unknown fields) stays as it is.
"""

from __future__ import annotations

import math
import struct
from datetime import date
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

from kafkascope.schemas.model import UNKNOWN, Moment, of_bytes, of_double
from kafkascope.schemas.protobuf.kinds import KINDS
from kafkascope.schemas.protobuf.types import WRAPPERS

_FLOAT: Final = struct.Struct("<f")


def of_text(value: str | bytes) -> Any:
    """Return the form of text, which proto2 lets be anything."""
    return value if isinstance(value, str) else of_bytes(value)


def of_float(value: float) -> float | str:
    """Return the shortest number that packs to the same 32-bit float."""
    if value - value != 0.0:
        return of_double(value)
    if value.is_integer() and -16777216.0 <= value <= 16777216.0:
        return value
    pack, packed = _FLOAT.pack, _FLOAT.pack(value)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        try:
            if pack(short) == packed:
                return short
        except OverflowError:
            continue
    return float(f"{value:.9g}")


def is_negative_zero(value: Any) -> bool:
    """Return whether a value that equals 0 is written all the same."""
    return isinstance(value, float) and math.copysign(1.0, value) < 0


@lru_cache(maxsize=256)
def _date(day: int) -> str:
    return date.fromordinal(719163 + day).isoformat()


def _fraction(nanos: int) -> str:
    """Return 0, 3, 6 or 9 digits with the point before them."""
    if not nanos:
        return ""
    if nanos % 1_000_000 == 0:
        return f".{nanos // 1_000_000:03}"
    return f".{nanos // 1000:06}" if nanos % 1000 == 0 else f".{nanos:09}"


# protobuf's own `ToJsonString` makes a datetime for each: a message of some fields with one of each
# took 20.8 us in place of 17.3.
def _timestamp(message: Any) -> Moment | None:
    seconds, nanos = message.seconds, message.nanos
    if not (-62135596800 <= seconds <= 253402300799 and 0 <= nanos < 1_000_000_000):
        return None  # no year between 1 and 9999
    day, second = divmod(seconds, 86400)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return Moment(f"{_date(day)}T{hour:02}:{minute:02}:{second:02}{_fraction(nanos)}Z")


def _duration(message: Any) -> str | None:
    try:
        return str(message.ToJsonString())
    except ValueError:
        return None  # more than ten thousand years, or two signs


def _field_mask(message: Any) -> str | None:
    paths = message.paths
    if paths == [""] or any("," in path for path in paths):
        return None  # it would be read as other paths
    try:
        return str(message.ToJsonString())
    except ValueError:
        return None


TEXTS: Final = {
    "google.protobuf.Timestamp": (_timestamp, "a time such as 2026-03-01T12:00:00.5Z"),
    "google.protobuf.Duration": (_duration, "seconds such as 1.5s"),
    "google.protobuf.FieldMask": (_field_mask, "paths separated by commas"),
}
"""Types whose form is text, which protobuf's own classes read: the function from protobuf's object
to the text, None for values without such a form; and what is expected."""


@cache
def _class(name: str) -> Any:
    # One of these modules is loaded with the schema that imports it; the others cost milliseconds.
    last = name.rpartition(".")[2]
    module = "field_mask" if last == "FieldMask" else last.lower()
    return getattr(import_module(f"google.protobuf.{module}_pb2"), last)


def _parsed(name: str, text: Any) -> dict[str, Any]:
    """Return the fields of a type in `TEXTS`, given its text; `ValueError` for other text."""
    message = _class(name)()
    if not isinstance(text, str):
        raise ValueError("not text")
    message.FromJsonString(text)
    many = name.endswith("FieldMask")
    return {each.name: [*value] if many else value for each, value in message.ListFields()}


def special(name: str, value: dict[str, Any]) -> Any:
    """Return the form of a well-known type, given that of its fields."""
    if UNKNOWN in value:
        return value
    if name in WRAPPERS:
        empty = KINDS[WRAPPERS[name]].empty
        return value.get("value", of_bytes(empty) if empty == b"" else empty)
    if name in TEXTS:
        text = TEXTS[name][0](_class(name)(**value))
        return value if text is None else text
    match name.rpartition(".")[2]:
        case "Struct":
            return value.get("fields", {})
        case "ListValue":
            return value.get("values", [])
        case "Value":
            inner = None if "null_value" in value else next(iter(value.values()), None)
            return value if _has_unknown(inner) else inner
        case _:
            return value


def plain(name: str, value: Any) -> Any:
    """Return the form of a well-known type's fields, given its own; `ValueError` for none."""
    if name in WRAPPERS:
        # Bytes are an object, too: of one member with another name.
        return value if _is_plain(value, {"value"}) else {"value": value}
    if name in TEXTS:
        try:
            return value if isinstance(value, dict) else _parsed(name, value)
        except ValueError:
            raise ValueError(f"expected {TEXTS[name][1]}") from None
    match name.rpartition(".")[2]:
        case "Struct":
            return value if _is_plain(value, {"fields"}) else {"fields": value}
        case "ListValue":
            return value if _is_plain(value, {"values"}) else {"values": value}
        case "Value":
            return _plain_value(value)
        case _:
            return value


def _has_unknown(value: Any) -> bool:
    return isinstance(value, dict) and UNKNOWN in value


def _is_plain(value: Any, names: set[str]) -> bool:
    """Return whether a value has fields that the schema does not know, so that it stands as it
    is."""
    return isinstance(value, dict) and UNKNOWN in value and value.keys() <= names | {UNKNOWN}


_VALUES: Final = {
    "null_value",
    "number_value",
    "string_value",
    "bool_value",
    "struct_value",
    "list_value",
}


def _plain_value(value: Any) -> Any:
    if _is_plain(value, _VALUES):
        return value
    if isinstance(value, dict) and value.keys() in ({"struct_value"}, {"list_value"}):
        inner = next(iter(value.values()))
        return value if _has_unknown(inner) else {"struct_value": value}
    if value is None:
        return {"null_value": "NULL_VALUE"}
    if isinstance(value, bool):
        return {"bool_value": value}
    if isinstance(value, int | float):
        return {"number_value": value}
    if isinstance(value, str):
        return {"string_value": value}
    return {"list_value" if isinstance(value, list) else "struct_value": value}
