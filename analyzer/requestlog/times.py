"""Reads the time stamps of lines: local time of the broker without a zone, as log4j writes it, or
an instant with one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

from kafkascope.analyzer.times import FIRST_SECOND, LAST_SECOND, SECOND, clock_of

ZoneSource = Literal["", "option", "line", "container", "machine"]
"""Where the zone of the last time came from; "" before the first."""

_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d{1,9})?( ?Z\b| ?[+-]\d\d:?\d\d\b)?", re.A
)
"""Date, time, fraction and zone: ISO 8601 and most formats of log4j."""

_OTHER_STAMP: Final = re.compile(
    r"\b(?:(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)[.,]?(\d{0,9})"
    r"|(\d{4})(\d\d)(\d\d)T?(\d\d)(\d\d)(\d\d)[.,]?(\d{3})"
    r"|(\d\d) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) (\d\d:\d\d:\d\d,\d{3})"
    r"|(\d{13}))\b",
    re.A,
)
"""log4j's COMPACT and ISO8601_BASIC, DATE, UNIX_MILLIS, and a common one of operators."""
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"

QUARTER: Final = 900 * SECOND
BACK: Final = 300 * SECOND
"""Several threads write, so that lines are out of order by milliseconds. A stamp that goes back by
five minutes is after the end of summer time."""


def stamps_in(text: str) -> list[str]:
    """Return the time stamps in a text, in the form of ISO 8601."""
    if iso := [match[0] for match in _STAMP.finditer(text)]:
        return iso
    out = []
    for match in _OTHER_STAMP.finditer(text):
        *numbers, day, month, year, time, millis = match.groups()
        parts = [number for number in numbers if number is not None]
        if parts:
            date, clock, fraction = "-".join(parts[:3]), ":".join(parts[3:6]), parts[6]
            out.append(f"{date}T{clock}" + (f".{fraction}" if fraction else ""))
        elif month:
            out.append(f"{year}-{1 + _MONTHS.index(month) // 3:02d}-{day}T{time}")
        else:
            out.append(instant(int(millis[:-3]), int(millis[-3:]) * 1_000_000))
    return out


def instant(seconds: int, nanos: int) -> str:
    """Return an instant as a time stamp with a zone; "" when it is none."""
    if not 0 <= nanos < SECOND or not FIRST_SECOND <= seconds <= LAST_SECOND:
        return ""
    return f"{clock_of(seconds).decode()}{nanos:09d}Z"


def has_zone(stamp: str) -> bool:
    """Return whether a time stamp has a zone."""
    match = _STAMP.fullmatch(stamp)
    return match is not None and match[3] is not None


class LogClock:
    """Turns the time stamps of one broker's log, line after line, into UTC.

    Without `zone` the zone is that of the stamp, else follows from the time at which the container
    runtime got the line, else is this machine's.
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.zone = zone
        self.source: ZoneSource = ""
        self._last_ns = 0
        self._prefix = ""
        """Last stamp without a zone, up to tens of minutes: offsets from UTC change at full and
        half hours, so that what follows adds to both of these times."""
        self._earlier_ns = self._later_ns = 0
        """They differ in the hour that comes twice at the end of summer time."""

    def at(self, stamp: str, arrived: str = "") -> tuple[int, bool] | None:
        """Return a stamp in ns since 1970 UTC and whether it has whole seconds only; None when it
        is no time. `arrived`: the container runtime's."""
        match = _STAMP.fullmatch(stamp)
        if match is None:
            return None
        local, fraction, zone = match.groups()
        nanos = int(fraction[1:].ljust(9, "0")) if fraction else 0
        try:
            if zone:
                self.source = "line"
                time_ns = _utc_ns(local) - _offset_ns(zone.strip())
            else:
                time_ns = self._without_zone(local, arrived)
        except (ValueError, OverflowError, OSError):
            return None
        self._last_ns = time_ns
        return time_ns + nanos, not fraction

    def _without_zone(self, local: str, arrived: str) -> int:
        if self.zone is None and arrived and (arrival := LogClock(UTC).at(arrived)):
            self.source = "container"
            utc_ns = _utc_ns(local)
            # Zones differ from UTC by quarters of an hour, and a line reaches the runtime sooner
            # than in half of one. Measured: within 2 ms.
            return utc_ns - round((utc_ns - arrival[0]) / QUARTER) * QUARTER
        self.source = "machine" if self.zone is None else "option"
        if local[:15] != self._prefix:
            self._prefix = ""
            begin = datetime.fromisoformat(f"{local[:15]}0:00").replace(tzinfo=self.zone)
            # Without a zone Python takes the machine's.
            self._earlier_ns = int(begin.timestamp()) * SECOND
            self._later_ns = int(begin.replace(fold=1).timestamp()) * SECOND
            self._prefix = local[:15]
        rest = (int(local[15]) * 60 + int(local[17:19])) * SECOND
        # A stamp that clocks jump over at the begin of summer time has no later reading.
        if self._earlier_ns + rest < self._last_ns - BACK and self._earlier_ns < self._later_ns:
            return self._later_ns + rest
        return self._earlier_ns + rest


def _utc_ns(local: str) -> int:
    return int(datetime.fromisoformat(local).replace(tzinfo=UTC).timestamp()) * SECOND


def _offset_ns(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 18 or minutes > 59:  # the limits of Java's ZoneOffset
        raise ValueError("zone")
    return (hours * 60 + minutes) * 60 * SECOND * (-1 if zone[0] == "-" else 1)
