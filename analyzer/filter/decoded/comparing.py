"""Comparisons of decoded values with the literals of a filter, by the value's own type. Stateless.

Another type equals nothing and is neither more nor less. Decimals (`Exact`) and integers compare
exactly, floats with the nearest float, times (`Moment`) in the order of time.
"""

from __future__ import annotations

import operator
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.filter.decoded.literals import Typed, naive, when, zoned
from kafkascope.analyzer.filter.regex import Regex
from kafkascope.analyzer.filter.values import DAY, Clock, Instant
from kafkascope.analyzer.payloads.model import Exact, Moment

Check: TypeAlias = Callable[[Any], bool]

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def compared(relation: str, wanted: Typed) -> Check:
    """Return the check of one decoded value."""
    if relation == "!=":
        equal = compared("==", wanted)
        return lambda value: not equal(value)
    compare = _ORDER[relation]
    number, truth, text = wanted.number, wanted.truth, wanted.text
    # An integer compares faster with an integer.
    whole = int(number) if number is not None and _is_small(number) else number
    nearest = None if number is None else float(number)
    at_time = _at_time(relation, wanted)

    def check(value: Any) -> bool:
        kind = type(value)
        if kind is str:
            return text is not None and compare(value, text)
        if kind is int:
            return whole is not None and compare(value, whole)
        if kind is float:
            return nearest is not None and compare(value, nearest)
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
    from kafkascope.analyzer.filter.decoded.literals import typed

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


LONGEST: Final = 100
"""Characters of what may be a moment."""


def _place(value: str) -> tuple[int, bool, bool] | None:
    """Return (nanoseconds, whether there is a zone, whether it is a time of day) of a moment;
    without a zone as if in UTC."""
    return _place_of(value) if isinstance(value, str) and len(value) <= LONGEST else None


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
    compare = _ORDER[relation]

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
