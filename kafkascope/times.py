"""Instants as text: ISO-8601 in UTC, fast enough for every record of a capture."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from time import gmtime
from typing import Final

# In nanoseconds.
MS: Final = 1_000_000
SECOND: Final = 1_000_000_000

# The last second of the year 9999: ISO-8601 has four digits for a year.
LAST_SECOND: Final = 253402300799

# The first second of the year 1.
FIRST_SECOND: Final = -62135596800


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    t = gmtime(seconds)
    return (
        f"{t.tm_year:04d}-{t.tm_mon:02d}-{t.tm_mday:02d}"
        f"T{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}."
    )


@lru_cache(maxsize=4096)
def clock_of(seconds: int) -> bytes:
    """Return a second since 1970 as text, up to the point before its fractions; empty beyond the
    years 1 to 9999."""
    return _second(seconds).encode() if FIRST_SECOND <= seconds <= LAST_SECOND else b""


def iso_ns(time_ns: int) -> str:
    """Nanoseconds since 1970 with six digits of a second, or nine where they say more."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return ""
    micros, nanos = divmod(rest, 1000)
    return f"{_second(seconds)}{rest:09d}Z" if nanos else f"{_second(seconds)}{micros:06d}Z"


def iso_ms(time_ms: int | None) -> str | None:
    """Milliseconds since 1970; None for no time (-1) and times beyond the years 1 to 9999."""
    if time_ms is None or time_ms == -1:
        return None
    seconds, millis = divmod(time_ms, 1000)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    return f"{_second(seconds)}{millis:03d}Z"


_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?([0-5]\d))?")


def zone_named(name: str) -> tzinfo:
    """Return a time zone by its name (`Europe/Berlin`) or offset from UTC (`+05:30`);
    `ValueError`."""
    if match := _OFFSET.fullmatch(name):
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    if name.upper() in ("UTC", "Z"):
        return UTC  # also without a data base of zones
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("write UTC, Europe/Berlin, or an offset such as +05:30") from None
