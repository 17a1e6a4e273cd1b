"""Reads time stamps of log lines: the broker's local time, as log4j writes it, or a time with a
zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

from kafkascope.times import FIRST_SECOND, LAST_SECOND, MS, SECOND, clock_of

ZoneSource = Literal["", "option", "line", "container", "machine"]
"""Where the zone of the last time stamp came from; "" before the first."""

_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d{1,9})?"
    r"( ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b|[+-]\d\d\b)?",
    re.A,
)
"""Date, time, fraction and zone: ISO 8601 and most formats of log4j. Other names of zones (CST) are
ambiguous."""
_12_HOURS: Final = re.compile(rf"({_STAMP.pattern}) ?([AP])M\b", re.A)

_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH: Final = rf"(?P<month>{'|'.join(re.findall('...', _MONTHS))})"
_CLOCK: Final = r"(?P<clock>\d\d:\d\d:\d\d)"
_FRACTION: Final = r"(?P<rest>[.,]\d{1,9})?(?P<zone> ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
_DAY_FROM_13: Final = r"1[3-9]|2\d|3[01]"
_OTHER_STAMPS: Final = (
    # log4j's COMPACT, ISO8601_BASIC, UNIX_MILLIS and DATE, and formats that operators configure.
    # `28/11/2026` and `11/28/2026` are read, as only one order gives a month; `11/12/2026` is not,
    # which may be in November or December.
    r"(?P<year>\d{4})/(?P<month>\d\d)/(?P<day>\d\d) " + _CLOCK + _FRACTION,
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)T?(?P<clock>\d{6})(?P<rest>[.,]?\d{3})\b",
    r"(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{4}) " + _CLOCK + _FRACTION,
    rf"(?P<day>{_DAY_FROM_13})/(?P<month>\d\d)/(?P<year>\d{{4}}) {_CLOCK}{_FRACTION}",
    rf"(?P<month>\d\d)/(?P<day>{_DAY_FROM_13})/(?P<year>\d{{4}}) {_CLOCK}{_FRACTION}",
    rf"(?P<day>\d\d)[ /-]{_MONTH}[ /-](?P<year>\d{{4}})[ :]{_CLOCK}{_FRACTION}",
    rf"{_MONTH} (?P<day>\d\d?), (?P<year>\d{{4}}) {_CLOCK}{_FRACTION}",
    rf"{_MONTH} (?P<day>\d\d) {_CLOCK}(?P<zone> \w{{3,5}})? (?P<year>\d{{4}})",
    r"(?P<millis>\d{13})\b",
)
_OTHER_STAMP: Final = tuple(re.compile(rf"\b{pattern}", re.A) for pattern in _OTHER_STAMPS)

_UTC: Final = {"Z", "UTC", "GMT"}
QUARTER_HOUR: Final = 900 * SECOND
SUMMER_TIME_ENDED: Final = 300 * SECOND
"""A stamp this far before the last one is taken for the hour that local clocks repeat. Threads of a
broker write lines out of order, too, but by milliseconds."""


def stamps_in(text: str) -> list[str]:
    """Return the time stamps in a text, in the form of ISO 8601."""
    if "M" in text:
        text = _12_HOURS.sub(_to_24_hours, text)
    if iso := [match[0] for match in _STAMP.finditer(text)]:
        return iso
    return [_iso(match) for form in _OTHER_STAMP for match in form.finditer(text)][:1]


def _to_24_hours(match: re.Match[str]) -> str:
    stamp = match[1]
    hour = int(stamp[11:13]) % 12 + (12 if match[5] == "P" else 0)
    return f"{stamp[:11]}{hour:02d}{stamp[13:]}"


def _iso(match: re.Match[str]) -> str:
    """Return the match of one of `_OTHER_STAMP` in the form of ISO 8601."""
    part = match.groupdict("")
    if millis := part.get("millis"):
        return instant_of(int(millis))
    month, clock, zone = part["month"], part["clock"], part.get("zone", "").strip()
    number = month if month.isdigit() else f"{1 + _MONTHS.index(month) // 3:02d}"
    if ":" not in clock:
        clock = f"{clock[:2]}:{clock[2:4]}:{clock[4:]}"
    rest = part.get("rest", "")
    fraction = f".{rest.lstrip('.,')}" if rest else ""
    zone = zone if _STAMP.fullmatch(f"2000-01-01 00:00:00{zone}") else ""
    return f"{part['year']}-{number}-{int(part['day']):02d}T{clock}{fraction}{zone}"


def instant_of(value: object) -> str:
    """Return a number of seconds, ms, us or ns since 1970 as a time stamp in UTC; "" if it has none
    of these magnitudes. The number may be text."""
    if isinstance(value, str) and re.fullmatch(r"\d{10,19}", value, re.A):
        value = int(value)
    if type(value) is float and 1e9 <= value < 1e11:
        value = round(value * 1_000_000)  # a double has no more digits
    if type(value) is not int or not 10**9 <= value < 10**20:
        return ""
    scale = next(scale for scale in (1, 10**3, 10**6, 10**9) if value < 10**11 * scale)
    seconds, rest = divmod(value, scale)
    return instant(seconds, rest * (SECOND // scale))


def instant(seconds: int, nanos: int) -> str:
    """Return a time since 1970 as a time stamp in UTC; "" if it is out of range."""
    if not 0 <= nanos < SECOND or not FIRST_SECOND <= seconds <= LAST_SECOND:
        return ""
    return f"{clock_of(seconds).decode()}{nanos:09d}Z"


def has_zone(stamp: str) -> bool:
    match = _STAMP.fullmatch(stamp)
    return match is not None and match[3] is not None


class LogClock:
    """Converts the time stamps of one broker's log, line by line, to UTC.

    The zone is `zone`; without one that of the stamp; else it follows from the time at which the
    container runtime received the line; else it is this machine's.
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.zone = zone
        self.source: ZoneSource = ""
        self._last_ns = 0
        self._has_micros = False
        """Whether a fraction had digits below milliseconds."""
        self._prefix = ""
        """The last stamp without a zone, up to its tens of minutes. Offsets from UTC change at full
        and half hours, so that stamps with the same prefix have the same offset."""
        self._earlier_ns = self._later_ns = 0
        """UTC of the prefix, in summer time and after it; they differ in the hour that is
        repeated."""

    def at(self, stamp: str, arrived: str = "") -> int | None:
        """Return a stamp in ns since 1970 UTC; None if it is no time. `arrived`: the container
        runtime's stamp of the line."""
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
        if len(digits) > 3 and not self._has_micros:
            self._has_micros = bool(digits[:-3].strip("0"))
            if not self._has_micros:
                return int(digits) * MS
        return int(digits.ljust(9, "0"))

    def _without_zone(self, local: str, arrived: str) -> int:
        if self.zone is None and arrived and (arrival_ns := LogClock(UTC).at(arrived)):
            self.source = "container"
            utc_ns = _utc_ns(local)
            # Zones differ from UTC by quarters of an hour, and a line reaches the runtime sooner
            # than in half of one. Measured: within 2 ms.
            return utc_ns - round((utc_ns - arrival_ns) / QUARTER_HOUR) * QUARTER_HOUR
        self.source = "machine" if self.zone is None else "option"
        if local[:15] != self._prefix:
            # Without a zone Python takes the machine's.
            begin = datetime.fromisoformat(f"{local[:15]}0:00").replace(tzinfo=self.zone)
            self._earlier_ns, self._later_ns = (
                int(begin.replace(fold=fold).timestamp()) * SECOND for fold in (0, 1)
            )
            self._prefix = local[:15]
        rest = (int(local[15]) * 60 + int(local[17:19])) * SECOND
        # The hour that clocks skip when summer time begins has no second reading.
        if (
            self._earlier_ns + rest < self._last_ns - SUMMER_TIME_ENDED
            and self._earlier_ns < self._later_ns
        ):
            return self._later_ns + rest
        return self._earlier_ns + rest


def _utc_ns(local: str, offset: str = "+00:00") -> int:
    return int(datetime.fromisoformat(local + offset).timestamp()) * SECOND
