"""JSON forms of single values and of well-known types, in both directions.

A well-known type is first decoded as any message; `special` turns that into its own form, and
`plain` turns that back. What has no such form (a year above 9999, unknown fields) stays as it is.
"""

from __future__ import annotations

import math
import re
import struct
from functools import lru_cache
from typing import Any, Final

from kafkascope.analyzer.payloads.model import Moment, of_bytes, of_double
from kafkascope.analyzer.payloads.proto.types import EMPTY, WRAPPERS

UNKNOWN: Final = "_unknown_fields"

_FLOAT: Final = struct.Struct("<f")
_SECONDS_OF_DAY: Final = 86400
_FIRST_SECOND: Final = -62135596800
_LAST_SECOND: Final = 253402300799
_MOST_DURATION: Final = 315576000000
"""Seconds of ten thousand years: google.protobuf.Duration's bound."""

_BILLION: Final = 1_000_000_000


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
    from datetime import date

    return date.fromordinal(719163 + day).isoformat()


def _fraction(nanos: int) -> str:
    """Return 0, 3, 6 or 9 digits with the point before them."""
    if not nanos:
        return ""
    if nanos % 1_000_000 == 0:
        return f".{nanos // 1_000_000:03}"
    return f".{nanos // 1000:06}" if nanos % 1000 == 0 else f".{nanos:09}"


def timestamp(seconds: int, nanos: int) -> Moment | None:
    """Return ISO 8601 in UTC; None for what is no time between the years 1 and 9999."""
    if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < _BILLION):
        return None
    day, second = divmod(seconds, _SECONDS_OF_DAY)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return Moment(f"{_date(day)}T{hour:02}:{minute:02}:{second:02}{_fraction(nanos)}Z")


def duration(seconds: int, nanos: int) -> str | None:
    """Return seconds with `s`; None for what is out of range or has two signs."""
    if abs(seconds) > _MOST_DURATION or abs(nanos) >= _BILLION or seconds * nanos < 0:
        return None
    sign = "-" if seconds < 0 or nanos < 0 else ""
    return f"{sign}{abs(seconds)}{_fraction(abs(nanos))}s"


def special(name: str, value: dict[str, Any]) -> Any:
    """Return the form of a well-known type, given that of its fields."""
    if UNKNOWN in value:
        return value
    if name in WRAPPERS:
        empty = EMPTY[WRAPPERS[name]]
        return value.get("value", of_bytes(empty) if empty == b"" else empty)
    match name.rpartition(".")[2]:
        case "Timestamp":
            text = timestamp(value.get("seconds", 0), value.get("nanos", 0))
            return value if text is None else text
        case "Duration":
            span = duration(value.get("seconds", 0), value.get("nanos", 0))
            return value if span is None else span
        case "FieldMask":
            paths = value.get("paths", [])
            mask = ",".join(_camel(path) for path in paths)
            return mask if _paths(mask) == paths else value
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
    match name.rpartition(".")[2]:
        case "Timestamp":
            return value if isinstance(value, dict) else _plain_timestamp(value)
        case "Duration":
            return value if isinstance(value, dict) else _plain_duration(value)
        case "FieldMask":
            if isinstance(value, dict):
                return value
            if not isinstance(value, str):
                raise ValueError("expected paths separated by commas")
            return {"paths": _paths(value)}
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


_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_DURATION: Final = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s")


def _plain_timestamp(value: Any) -> dict[str, int]:
    from datetime import UTC, datetime

    matched = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        raise ValueError("expected a time such as 2026-03-01T12:00:00.5Z")
    try:
        when = datetime.fromisoformat(matched[1] + matched[3])
    except ValueError as error:
        raise ValueError(f"not a time: {error}") from None
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = since.days * _SECONDS_OF_DAY + since.seconds
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise ValueError("expected a time between the years 1 and 9999")
    return {"seconds": seconds, "nanos": int((matched[2] or "").ljust(9, "0"))}


def _plain_duration(value: Any) -> dict[str, int]:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected seconds such as 1.5s")
    sign = -1 if found[1] else 1
    seconds, nanos = int(found[2]) * sign, int((found[3] or "").ljust(9, "0")) * sign
    if abs(seconds) > _MOST_DURATION:
        raise ValueError("expected at most 10000 years")
    return {"seconds": seconds, "nanos": nanos}


def _camel(path: Any) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path) if type(path) is str else ","


def _paths(text: str) -> list[str]:
    if not text:
        return []
    return [re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", path) for path in text.split(",")]
