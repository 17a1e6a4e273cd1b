"""Reads the time stamps of lines: local time of the broker without a zone, as log4j writes it, or
an instant with one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

ZoneSource = Literal["", "option", "line", "container", "machine"]
"""Where the zone of the last time came from; "" before the first."""

STAMP: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d{1,9})?( ?Z\b| ?[+-]\d\d:?\d\d\b)?"
)
"""Date, time, fraction and zone: ISO 8601 and the formats of log4j (`DEFAULT`, `ISO8601`,
`ISO8601_OFFSET_DATE_TIME_HHCMM`)."""

SECOND: Final = 1_000_000_000
QUARTER: Final = 900 * SECOND
BACK: Final = 300 * SECOND
"""Several threads write, so that lines are out of order by milliseconds. A stamp that goes back by
five minutes is after the end of summer time."""


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
        match = STAMP.fullmatch(stamp.encode("ascii", "replace"))
        if match is None:
            return None
        local, fraction, zone = (part.decode() if part else "" for part in match.groups())
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
