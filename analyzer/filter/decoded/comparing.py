"""Values in filters about decoded keys and values, and their comparisons: all that a text may mean;
the decoded value decides by its own type. Stateless.

Another type equals nothing and is neither more nor less. Decimals (`Exact`) and integers compare
exactly, floats with the nearest float, times (`Moment`) in the order of time.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.analyzer.filter.regex import Regex
from kafkascope.analyzer.filter.values import DAY, ORDER, Clock, Instant, moment
from kafkascope.schemas.model import Exact, Moment

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,6})?\Z", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX][0-9a-fA-F]+\Z")
_OCTETS: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})*\Z")
_ZONE: Final = re.compile(r"(Z|[+-]\d{2}:?\d{2})\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with one reading per type; None where the text has no such reading."""

    text: str | None
    """None for a number or truth value that stands without quotes: texts never equal it."""
    number: Decimal | None
    truth: bool | None
    octets: tuple[bytes, ...]
    """The text's own bytes, and those of text such as 0a:ff."""
    moment: Instant | Clock | None
    """A time; without a zone it is on the local clock."""
    naive: Instant | Clock | None
    """The same as it stands there, for values without a zone, counted as if in UTC."""


def typed(text: str, quoted: bool) -> Typed:
    """Return all readings of a text. In quotes it is a text, or a time."""
    number = None if quoted else decimal(text)
    truth = None if quoted else {"true": True, "false": False}.get(text.lower())
    octets = [text.encode("utf-8", "surrogateescape")]
    if _OCTETS.match(text):
        octets.append(bytes.fromhex(text.replace(":", "")))
    plain = None if number is not None or truth is not None else text
    return Typed(plain, number, truth, tuple(octets), when(text), naive(text))


def decimal(text: str) -> Decimal | None:
    """Return a number exactly; None for other text."""
    if _HEX.match(text):
        return Decimal(int(text, 16))
    if not _NUMBER.match(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that is out of range
        return None


def when(text: str) -> Instant | Clock | None:
    """Return a time; None for other text."""
    if len(text) > LIMITS.time_chars:
        return None
    try:
        return moment(text)
    except ValueError:
        return None


def naive(text: str) -> Instant | Clock | None:
    """Return a time as it stands there, without regard to the local clock."""
    return when(text if zoned(text) or ":" in text[:3] else f"{text}Z") or when(text)


def zoned(text: str) -> bool:
    """Return whether a time has a zone. A date has none."""
    return len(text) > len("2026-01-01") and _ZONE.search(text[10:]) is not None


Check: TypeAlias = Callable[[Any], bool]


def compared(relation: str, wanted: Typed) -> Check:
    """Return the check of one decoded value."""
    if relation == "!=":
        equal = compared("==", wanted)
        return lambda value: not equal(value)
    compare = ORDER[relation]
    number, truth, text = wanted.number, wanted.truth, wanted.text
    # An integer compares faster with an integer.
    whole = int(number) if number is not None and _is_small(number) else number
    nearest = None if number is None else float(number)
    at_time = _at_time(relation, wanted)
    plain: dict[type, Any] = {str: text, int: whole, float: nearest}

    def check(value: Any) -> bool:
        kind = type(value)
        if kind in plain:
            meant = plain[kind]
            return meant is not None and compare(value, meant)
        if kind is bool:
            return truth is not None and relation == "==" and value is truth
        if kind is Exact:
            if number is None:
                return False
            exact = _exact(value)
            return exact is not None and compare(exact, number)
        if kind is Moment:
            return at_time(value)
        octets = _octets(value)
        return octets is not None and any(compare(octets, each) for each in wanted.octets)

    return check


def between(low: Typed, high: Typed) -> Check:
    """Return the check of a range with both ends. A time ends with all that its text covers."""
    above, below, equal = compared(">=", low), compared("<=", high), compared("==", high)
    return lambda value: above(value) and (below(value) or equal(value))


def containing(text: str) -> Check:
    """Return the check whether a text has another one in it; of bytes, text or 0a:ff."""
    parts = typed(text, True).octets

    def check(value: Any) -> bool:
        if _is_text(value):
            return text in value
        octets = _octets(value)
        return octets is not None and any(each in octets for each in parts)

    return check


def matching(regex: Regex) -> Check:
    """Return the check whether matches a regular expression in a text."""
    search = regex.search
    return lambda value: _is_text(value) and bool(search(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and type(value) is not Exact


def _is_small(number: Decimal) -> bool:
    # The exponent comes first: an integer of 10^999999 is never made.
    return number.adjusted() < 40 and number == number.to_integral_value()


def _exact(value: str) -> Decimal | None:
    try:
        found = Decimal(value)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _octets(value: Any) -> bytes | None:
    if type(value) is dict and value.keys() == {"base64"} and type(value["base64"]) is str:
        try:
            return b64decode(value["base64"], validate=True)
        except ValueError:
            return None
    return None


def _place(value: str) -> tuple[int, bool, bool] | None:
    """Return (nanoseconds, whether there is a zone, whether it is a time of day) of a moment;
    without a zone as if in UTC."""
    return (
        _place_of(value)
        if isinstance(value, str) and len(value) <= LIMITS.payload_time_chars
        else None
    )


@lru_cache(maxsize=4096)
def _place_of(value: str) -> tuple[int, bool, bool] | None:
    has_zone = zoned(value)
    found = when(value) if has_zone else naive(value)
    if found is None:
        return None
    return found.ns, has_zone, isinstance(found, Clock)


def _at_time(relation: str, wanted: Typed) -> Check:
    local, plain = wanted.moment, wanted.naive
    if local is None or plain is None:
        return lambda value: False
    compare = ORDER[relation]

    def check(value: Any) -> bool:
        place = _place(value)
        if place is None:
            return False
        ns, has_zone, of_day = place
        meant = local if has_zone else plain
        if isinstance(meant, Instant):
            if of_day:
                return False
        elif has_zone:
            ns = meant.of(ns)
        else:
            ns %= DAY
        if relation == "==":
            return meant.ns <= ns < meant.ns + meant.span
        return compare(ns, meant.ns)

    return check
