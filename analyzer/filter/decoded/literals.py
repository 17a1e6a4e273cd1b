"""Values in filters about decoded keys and values: all that a text may mean; the decoded value's
own type decides. Stateless."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from kafkascope.analyzer.filter.values import Clock, Instant, moment

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,6})?\Z", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX][0-9a-fA-F]+\Z")
_OCTETS: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})*\Z")
_ZONE: Final = re.compile(r"(Z|[+-]\d{2}:?\d{2})\Z", re.IGNORECASE)
LONGEST_TIME: Final = 64
"""Characters beyond which a text is no time."""


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
    if len(text) > LONGEST_TIME:
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
