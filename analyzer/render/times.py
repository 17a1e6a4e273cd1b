"""Times as users write and read them: tshark's `-t` formats, `--from` and `--to`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from kafkascope.times import SECOND

TIME_FORMATS: Final[dict[str, str]] = {
    "a": "local clock",
    "ad": "local clock with date",
    "r": "seconds since the first exchange",
    "d": "seconds since the previous exchange",
    "dd": "seconds since the previous exchange shown",
    "e": "seconds since 1970",
    "u": "UTC clock",
    "ud": "UTC clock with date",
}


@lru_cache(maxsize=256)
def _second(seconds: int, how: str) -> str:
    try:
        when = time.gmtime(seconds) if how.startswith("u") else time.localtime(seconds)
    except (OverflowError, ValueError, OSError):
        return str(seconds)
    return time.strftime("%Y-%m-%d %H:%M:%S" if how.endswith("d") else "%H:%M:%S", when)


class Times:
    """Prints the time column; remembers what the relative formats count from."""

    def __init__(self, how: str = "a") -> None:
        self.how = how
        self.relative = how in ("r", "d", "dd")
        """Whether times are relative to another exchange."""
        self._first: int | None = None
        self._last: int | None = None
        self._shown: int | None = None

    def saw(self, time_ns: int) -> None:
        """Take note of an exchange that is not shown."""
        if self._first is None:
            self._first = time_ns
        self._last = time_ns

    def text(self, time_ns: int) -> str:
        """The time of an exchange that is shown."""
        if self._first is None:
            self._first = time_ns
        if self.relative:
            base = {"r": self._first, "d": self._last, "dd": self._shown}[self.how]
            self._last = self._shown = time_ns
            return seconds(0 if base is None else time_ns - base)
        if self.how == "e":
            return seconds(time_ns)
        whole, rest = divmod(time_ns, SECOND)
        return f"{_second(whole, self.how)}.{rest // 1_000_000:03d}"

    def behind(self, first_ns: int | None, last_ns: int | None) -> str:
        """When something began and ended, to stand after a comma; empty where that is unknown."""
        if first_ns is None:
            return ""
        first = f", {self.text(first_ns)}"
        return first if last_ns in (None, first_ns) else f"{first} to {self.text(last_ns or 0)}"


def seconds(ns: int) -> str:
    """Return a time as seconds with microseconds."""
    whole, rest = divmod(abs(ns), SECOND)
    return f"{'-' if ns < 0 else ''}{whole}.{rest // 1000:06d}"


# --- --from and --to ----------------------------------------------------------------------------

_NUMBER: Final = re.compile(r"\d{1,8}(\.\d{1,9})?\Z", re.ASCII)


class Mark(NamedTuple):
    """An end of a time range, as far as it is known before the capture is read."""

    kind: Literal["absolute", "clock", "start", "end"]
    """`start`: counts from the first exchange; `end`: before the last one."""
    ns: int

    def of(self, first_ns: int, last_ns: int) -> int:
        """Nanoseconds since 1970, given the capture's first and (for `end`) last exchange."""
        match self.kind:
            case "absolute":
                return self.ns
            case "start":
                return first_ns + self.ns
            case "end":
                return last_ns - self.ns
            case "clock":
                return _on_day_of(first_ns, self.ns)


def _on_day_of(first_ns: int, clock_ns: int) -> int:
    """The clock on the day of the first exchange, or on the next one when that is long past."""
    from kafkascope.analyzer.filter.values import DAY, Clock

    at = first_ns - Clock(0, 1).of(first_ns) + clock_ns
    # A capture that begins at 23:50 has its 00:10 on the next day.
    return at + DAY if first_ns - at > DAY // 2 else at


def mark(text: str) -> Mark:
    """Read `12:03`, an ISO date, seconds since the start, or `-5m` before the end; `ValueError`."""
    from kafkascope.analyzer.filter.values import Instant, duration, moment

    if text[:1] in ("-", "+"):
        plain = text[1:] + ("s" if text[-1:].isdigit() else "")
        return Mark("end" if text[0] == "-" else "start", duration(plain))
    if _NUMBER.match(text):
        return Mark("start", duration(text + "s"))
    try:
        found = moment(text)
    except ValueError:
        try:
            return Mark("start", duration(text))
        except ValueError:
            reason = "write 12:03, 2026-11-20T12:03Z, 30 (seconds), or -5m (before the end)"
            raise ValueError(reason) from None
    return Mark("absolute" if isinstance(found, Instant) else "clock", found.ns)


def shortened(clock: Callable[[int], str], *, short: bool) -> Callable[[int], str]:
    """Return a clock without milliseconds, unless the stretch of time is `short`."""

    def text(time_ns: int) -> str:
        full = clock(time_ns)
        return full[:-4] if not short and full[-4:-3] == "." and ":" in full else full

    return text
