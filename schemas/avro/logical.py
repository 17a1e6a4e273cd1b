"""Values of logical types as text, and back.

| type | text | beyond what ISO 8601 writes |
| --- | --- | --- |
| decimal | `Exact`, with all digits of the scale: `-50.00` | |
| date | `Moment`: `2026-03-01` | the integer |
| timestamps | `Moment`: `2026-03-01T12:00:00.123456Z`, local ones without Z | the integer |
| times | `Moment`: `00:00:07.250000` | the integer |
| uuid of a fixed | `63234d15-819a-52cc-aee1-87049dc48755` | |
| duration | `P3M14DT5.250S`: months, days, milliseconds, always all three | |

Seconds have six digits, nanoseconds nine where they need them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from kafkascope.schemas.avro.types import AvroType
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Exact, Moment, of_bytes
from kafkascope.times import SECOND, iso_ns

MAX_DECIMAL: Final = LIMITS.decimal_digits * 10 // 25
"""Bytes of a decimal that have no more digits than we convert."""

ZERO_DAY: Final = date(1970, 1, 1).toordinal()
LAST_DAY: Final = date.max.toordinal()

UNITS: Final = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}
"""In nanoseconds."""

Show: TypeAlias = Callable[[Any], Any]
"""From an int or bytes as Avro has them, to the decoded value."""

Take: TypeAlias = Callable[[str], Any]
"""From text to what Avro has, of a decimal its number; ValueError with the reason."""

DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
TIME: Final = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
ZONE: Final = re.compile(r"Z|([+-])(\d\d):?(\d\d)", re.ASCII)
DECIMAL: Final = re.compile(r"(-?)(\d+)(?:\.(\d*))?", re.ASCII)
DURATION: Final = re.compile(r"P(\d{1,10})M(\d{1,10})DT(\d{1,7})\.(\d{3})S", re.ASCII)


def conversion(node: AvroType) -> tuple[Show, Take] | None:
    """Return what shows values of a logical type, and what takes their text; None where the type
    has none, or is shown as its base type is."""
    if node.logical is None:
        return None
    name, _, unit = node.logical.name.rpartition("-")
    scale, nanos = node.logical.scale, UNITS.get(unit, 0)
    match name or node.logical.name:
        case "decimal":
            return partial(_show_decimal, scale), partial(_take_decimal, scale)
        case "uuid" if node.kind == "fixed":
            return lambda data: str(UUID(bytes=data)), take_uuid
        case "uuid":
            return None
        case "date":
            return _show_date, _take_date
        case "time":
            return partial(_show_time, nanos), partial(_take_time, nanos)
        case "timestamp":
            return partial(_show_timestamp, nanos, None), partial(_take_timestamp, nanos, "Z")
        case "local-timestamp":
            return partial(_show_timestamp, nanos, -1), partial(_take_timestamp, nanos, "")
        case _:
            return _show_duration, _take_duration


def shown(node: AvroType, raw: Any) -> Any:
    """Return the decoded value of an int, bytes or another leaf; ValueError where it has none."""
    converted = conversion(node)
    if converted is not None:
        return converted[0](raw)
    return of_bytes(raw) if isinstance(raw, bytes) else raw


def _show_decimal(scale: int, data: bytes) -> Exact:
    """Return unscaled bytes in big endian as a decimal number."""
    if len(data) > MAX_DECIMAL:
        raise ValueError(f"a decimal of {len(data):,} bytes")
    unscaled = int.from_bytes(data, "big", signed=True)
    if not scale:
        return Exact(unscaled)
    digits = str(abs(unscaled)).zfill(scale + 1)
    return Exact(f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}")


def _take_decimal(scale: int, text: str) -> int:
    matched = DECIMAL.fullmatch(text)
    if not matched or len(text) > LIMITS.decimal_digits:
        raise ValueError(f"{text[:80]!r} is not a decimal number")
    sign, _whole, part = matched.groups(default="")
    if len(part.rstrip("0")) > scale:
        raise ValueError(f"{text[:80]!r} has more than {scale} digits after the decimal point")
    unscaled = int(_whole + part[:scale].ljust(scale, "0"))
    return -unscaled if sign else unscaled


def decimal_bytes(unscaled: int) -> bytes:
    """Return a number in as few bytes as hold it, as Java writes it."""
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def _show_timestamp(unit: int, cut: int | None, units: int) -> Moment | int:
    """Return a time since 1970 in units of some nanoseconds; `cut` is where its text ends."""
    text = iso_ns(units * unit)
    return Moment(text[:cut]) if text else units


def _take_timestamp(unit: int, zone: str, text: str) -> int:
    day = DATE.match(text)
    time = TIME.match(text, 11) if day and text[10:11] in ("T", " ") else None
    if not day or not time:
        raise ValueError(f"{text[:80]!r} is not a time such as 2026-03-01T12:00:00.123456{zone}")
    nanos = (_days_of(day) * 86400) * SECOND + _nanos_of(time)
    if rest := text[time.end() :]:
        offset = ZONE.fullmatch(rest)
        if not offset or not zone:
            raise ValueError(f"{text[:80]!r} does not end with the time")
        if offset[1]:
            minutes = int(offset[2]) * 60 + int(offset[3])
            nanos -= (-minutes if offset[1] == "-" else minutes) * 60 * SECOND
    return _whole(nanos, unit, text)


def _show_date(days: int) -> Moment | int:
    day = days + ZERO_DAY
    return Moment(date.fromordinal(day)) if 0 < day <= LAST_DAY else days


def _take_date(text: str) -> int:
    matched = DATE.fullmatch(text)
    if not matched:
        raise ValueError(f"{text[:80]!r} is not a date such as 2026-03-01")
    return _days_of(matched)


def _show_time(unit: int, units: int) -> Moment | int:
    """Return a time of day in units of some nanoseconds."""
    if not 0 <= units < 86400 * SECOND // unit:
        return units
    seconds, nanos = divmod(units * unit, SECOND)
    minutes, seconds = divmod(seconds, 60)
    return Moment(f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{nanos // 1000:06d}")


def _take_time(unit: int, text: str) -> int:
    matched = TIME.fullmatch(text)
    if not matched:
        raise ValueError(f"{text[:80]!r} is not a time such as 12:00:00.123456")
    return _whole(_nanos_of(matched), unit, text)


def _days_of(matched: re.Match[str]) -> int:
    """Return days since 1970; ValueError where there is no such day."""
    return date(int(matched[1]), int(matched[2]), int(matched[3])).toordinal() - ZERO_DAY


def _nanos_of(matched: re.Match[str]) -> int:
    hours, minutes, seconds = int(matched[1]), int(matched[2]), int(matched[3] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{matched[0]!r} is not a time of day")
    return ((hours * 60 + minutes) * 60 + seconds) * SECOND + int((matched[4] or "").ljust(9, "0"))


def _whole(nanos: int, unit: int, text: str) -> int:
    """Return a time in larger units; ValueError where something is lost."""
    units, rest = divmod(nanos, unit)
    if rest:
        raise ValueError(f"{text[:80]!r} has more fractional digits than the type")
    return units


def take_uuid(text: str) -> bytes:
    if len(text) != 36:
        raise ValueError(f"{text[:80]!r} is not a UUID")
    return UUID(text).bytes


def _show_duration(data: bytes) -> str:
    """Return months, days and milliseconds: three unsigned numbers in little endian."""
    months, days, millis = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8))
    return f"P{months}M{days}DT{millis // 1000}.{millis % 1000:03d}S"


def _take_duration(text: str) -> bytes:
    matched = DURATION.fullmatch(text)
    numbers = [int(matched[1]), int(matched[2]), int(matched[3] + matched[4])] if matched else []
    if not matched or max(numbers) >> 32:
        raise ValueError(f"{text[:80]!r} is not a duration such as P3M14DT5.250S")
    return b"".join(each.to_bytes(4, "little") for each in numbers)
