"""Reads the time stamps of lines: local time of the broker without a zone, as log4j writes it, or
an instant with one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

from kafkascope.times import FIRST_SECOND, LAST_SECOND, MS, SECOND, clock_of

ZoneSource = Literal["", "option", "line", "container", "machine"]
"""Where the zone of the last time came from; "" before the first."""

_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d{1,9})?"
    r"( ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b|[+-]\d\d\b)?",
    re.A,
)
"""Date, time, fraction and zone: ISO 8601 and most formats of log4j. Other names of zones are not
unique."""
_HALF_DAY: Final = re.compile(rf"({_STAMP.pattern}) ?([AP])M\b", re.A)

_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH: Final = rf"(?P<month>{'|'.join(re.findall('...', _MONTHS))})"
_CLOCK: Final = r"(?P<clock>\d\d:\d\d:\d\d)"
_REST: Final = r"(?P<rest>[.,]\d{1,9})?(?P<zone> ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
_NO_MONTH: Final = r"1[3-9]|2\d|3[01]"
_OTHER_STAMPS: Final = (
    # log4j's COMPACT and ISO8601_BASIC, UNIX_MILLIS, DATE, and what operators use. Of `28/11/2026`
    # and `11/28/2026` one number is no month; not `11/12/2026`, a day in November or December.
    r"(?P<year>\d{4})/(?P<month>\d\d)/(?P<day>\d\d) " + _CLOCK + _REST,
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)T?(?P<clock>\d{6})(?P<rest>[.,]?\d{3})\b",
    r"(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{4}) " + _CLOCK + _REST,
    rf"(?P<day>{_NO_MONTH})/(?P<month>\d\d)/(?P<year>\d{{4}}) {_CLOCK}{_REST}",
    rf"(?P<month>\d\d)/(?P<day>{_NO_MONTH})/(?P<year>\d{{4}}) {_CLOCK}{_REST}",
    rf"(?P<day>\d\d)[ /-]{_MONTH}[ /-](?P<year>\d{{4}})[ :]{_CLOCK}{_REST}",
    rf"{_MONTH} (?P<day>\d\d?), (?P<year>\d{{4}}) {_CLOCK}{_REST}",
    rf"{_MONTH} (?P<day>\d\d) {_CLOCK}(?P<zone> \w{{3,5}})? (?P<year>\d{{4}})",
    r"(?P<millis>\d{13})\b",
)
_OTHER_STAMP: Final = tuple(re.compile(rf"\b{pattern}", re.A) for pattern in _OTHER_STAMPS)

_UTC: Final = {"Z", "UTC", "GMT"}
QUARTER: Final = 900 * SECOND
BACK: Final = 300 * SECOND
"""Several threads write, so that lines are out of order by milliseconds. A stamp that goes back by
five minutes is after the end of summer time."""


def stamps_in(text: str) -> list[str]:
    """Return the time stamps in a text, in the form of ISO 8601."""
    if "M" in text:
        text = _HALF_DAY.sub(_of_whole_day, text)
    if iso := [match[0] for match in _STAMP.finditer(text)]:
        return iso
    return [_iso(match) for form in _OTHER_STAMP for match in form.finditer(text)][:1]


def _of_whole_day(match: re.Match[str]) -> str:
    """Return a stamp of a clock of 12 hours as one of 24 hours."""
    stamp = match[1]
    hour = int(stamp[11:13]) % 12 + (12 if match[5] == "P" else 0)
    return f"{stamp[:11]}{hour:02d}{stamp[13:]}"


def _iso(match: re.Match[str]) -> str:
    part = match.groupdict("")
    if millis := part.get("millis"):
        return instant_of(int(millis))
    month, clock, zone = part["month"], part["clock"], part.get("zone", "").strip()
    number = month if month.isdigit() else f"{1 + _MONTHS.index(month) // 3:02d}"
    if ":" not in clock:
        clock = f"{clock[:2]}:{clock[2:4]}:{clock[4:]}"
    rest = part.get("rest", "")
    fraction = f".{rest.lstrip('.,')}" if rest else ""
    known = zone if _STAMP.fullmatch(f"2000-01-01 00:00:00{zone}") else ""
    return f"{part['year']}-{number}-{int(part['day']):02d}T{clock}{fraction}{known}"


def instant_of(value: object) -> str:
    """Return an instant in seconds, or in thousandths, millionths or billionths of them, as a time
    stamp with a zone; "" when it is none."""
    if isinstance(value, str) and re.fullmatch(r"\d{10,19}", value, re.A):
        value = int(value)
    if type(value) is float and 1e9 <= value < 1e11:
        value = round(value * 1_000_000)  # more is not in a double
    if type(value) is not int or not 10**9 <= value < 10**20:
        return ""
    scale = next(scale for scale in (1, 10**3, 10**6, 10**9) if value < 10**11 * scale)
    seconds, rest = divmod(value, scale)
    return instant(seconds, rest * (SECOND // scale))


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
        self._fine = False
        """A fraction had more than milliseconds."""
        self._prefix = ""
        """Last stamp without a zone, up to tens of minutes: offsets from UTC change at full and
        half hours, so that what follows adds to both of these times."""
        self._earlier_ns = self._later_ns = 0
        """They differ in the hour that comes twice at the end of summer time."""

    def at(self, stamp: str, arrived: str = "") -> int | None:
        """Return a stamp in ns since 1970 UTC; None when it is no time. `arrived`: the container
        runtime's."""
        match = _STAMP.fullmatch(stamp)
        if match is None:
            return None
        local, fraction, zone = match.groups()
        nanos = self._nanos(fraction[1:]) if fraction else 0
        try:
            if zone:
                self.source = "line"
                offset = zone.strip()
                time_ns = _utc_ns(local, "+00:00" if offset in _UTC else offset)
            else:
                time_ns = self._without_zone(local, arrived)
        except (ValueError, OverflowError, OSError):
            return None
        self._last_ns = time_ns
        return time_ns + nanos

    def _nanos(self, digits: str) -> int:
        # `SSSSSS` of log4j 1 are milliseconds with zeros before them (SimpleDateFormat): 7 ms is
        # .000007. Of microseconds one in a thousand begins so.
        if len(digits) > 3 and not self._fine:
            self._fine = bool(digits[:-3].strip("0"))
            if not self._fine:
                return int(digits) * MS
        return int(digits.ljust(9, "0"))

    def _without_zone(self, local: str, arrived: str) -> int:
        if self.zone is None and arrived and (arrival_ns := LogClock(UTC).at(arrived)):
            self.source = "container"
            utc_ns = _utc_ns(local)
            # Zones differ from UTC by quarters of an hour, and a line reaches the runtime sooner
            # than in half of one. Measured: within 2 ms.
            return utc_ns - round((utc_ns - arrival_ns) / QUARTER) * QUARTER
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


def _utc_ns(local: str, offset: str = "+00:00") -> int:
    return int(datetime.fromisoformat(local + offset).timestamp()) * SECOND
