"""Values of the filter language: text to the value that a field of some type is compared with.

Each function returns the value of a text, or raises `ValueError` with a sentence; `Nearest` adds a
remedy.
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.filter.errors import nearest
from kafkascope.analyzer.filter.fields import Type
from kafkascope.analyzer.model import STATES
from kafkascope.times import SECOND

DAY: Final = 86_400 * SECOND

DURATIONS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "h": 3600 * SECOND,
}
SIZES: Final = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1000,
    "kib": 1024,
    "m": 1000**2,
    "mb": 1000**2,
    "mib": 1024**2,
    "g": 1000**3,
    "gb": 1000**3,
    "gib": 1024**3,
}
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*([A-Za-zµ]*)\Z", re.ASCII | re.I)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\Z", re.ASCII)
_ISO: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?\Z",
    re.ASCII | re.I,
)
_BASE64_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}\Z")
_HEX_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.I)

_TRUTHS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}

Network: TypeAlias = IPv4Network | IPv6Network
Release: TypeAlias = tuple[int, ...]


class Nearest(ValueError):
    """An unknown value, with the one that is probably meant."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment: nanoseconds since 1970 UTC, and the span of time that the text covers."""

    ns: int
    span: int

    def of(self, time_ns: int) -> int:
        """Return the part of a time that is compared."""
        return time_ns


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day on the local clock, in nanoseconds since midnight."""

    ns: int
    span: int

    def of(self, time_ns: int) -> int:
        """Return the part of a time that is compared."""
        seconds, rest = divmod(time_ns, SECOND)
        local = local_offset(seconds // 900)
        return (seconds + local) % 86_400 * SECOND + rest


@lru_cache(maxsize=4096)
def local_offset(quarter: int) -> int:
    """Return the offset of the local clock from UTC in seconds, for a quarter of an hour counted
    from 1970."""
    # Offsets change at most every quarter of an hour.
    return time.localtime(quarter * 900).tm_gmtoff


def integer(text: str) -> int:
    """Return a number, decimal or 0x."""
    try:
        return int(text, 0) if re.match(r"[+-]?0[xX]", text) else int(text)
    except ValueError:
        raise ValueError("expected a number") from None


def _quantity(text: str, units: dict[str, int], wanted: str) -> int:
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"expected {wanted}")
    factor = units.get(match[2].lower())
    if factor is None:
        known = ", ".join(dict.fromkeys(unit for unit in units if unit.isascii() and unit))
        raise Nearest(f'unknown unit "{match[2]}"', f"units: {known}")
    try:
        return int(Decimal(match[1]) * factor)
    except (InvalidOperation, OverflowError):
        raise ValueError(f"expected {wanted}") from None


def duration(text: str) -> int:
    """Return a duration in nanoseconds; a number without unit is in milliseconds, as everywhere in
    Kafka."""
    return _quantity(text, DURATIONS, "a duration such as 250ms or 1.5s")


def size(text: str) -> int:
    """Return a size in bytes."""
    return _quantity(text, SIZES, "a size such as 512, 18KB or 1MiB")


def _fraction(text: str | None) -> tuple[int, int]:
    """Return the nanoseconds of the digits after the point, and the span that they leave open."""
    digits = text or ""
    return int(digits.ljust(9, "0")), 10 ** (9 - len(digits))


def moment(text: str) -> Instant | Clock:
    """Return the value of a clock time, a date with or without a clock time, or seconds since
    1970."""
    if match := _CLOCK.match(text):
        hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError("no such time")
        rest, span = _fraction(match[4])
        whole = (hour * 3600 + minute * 60 + second) * SECOND
        return Clock(whole + rest, span if match[3] else 60 * SECOND)
    if match := _ISO.match(text):
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        zone = match[8].upper() if match[8] else ""
        try:
            when = datetime(year, month, day, hour, minute, second)
            if zone:
                zone = "+00:00" if zone == "Z" else zone
                offset = datetime.strptime(zone, "%z").tzinfo
                seconds = int(when.replace(tzinfo=offset).timestamp())
            else:
                seconds = int(when.timestamp())
        except (ValueError, OverflowError, OSError):
            raise ValueError("no such time") from None
        rest, span = _fraction(match[7])
        if match[4] is None:
            span = DAY
        elif match[6] is None:
            span = 60 * SECOND
        return Instant(seconds * SECOND + rest, span)
    if re.match(r"\d{9,12}(\.\d{1,9})?\Z", text, re.ASCII):
        whole_text, _, digits = text.partition(".")
        rest, span = _fraction(digits)
        return Instant(int(whole_text) * SECOND + rest, span)
    raise ValueError("expected a time such as 12:03:07 or 2026-11-20T12:03:07Z")


def boolean(text: str) -> bool:
    """Return a truth value."""
    if text.lower() not in _TRUTHS:
        raise ValueError("expected true or false")
    return _TRUTHS[text.lower()]


def network(text: str) -> Network:
    """Return an address or a network in CIDR notation."""
    try:
        return ip_network(text.strip("[]"), strict=False)
    except ValueError:
        raise ValueError(
            "expected an address such as 10.0.0.7 or a network such as 10.0.0.0/24"
        ) from None


@lru_cache(maxsize=65_536)
def address_number(text: str) -> tuple[int, int] | None:
    """Return (version, number) of an address in its printed form; None for other text."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        address = mapped
    return address.version, int(address)


def api_key(text: str) -> int:
    """Return the key of an API by name or number."""
    from kafkascope.dissectors.registry import APIS
    from kafkascope.dissectors.zookeeper.types import BY_NAME

    if re.match(r"-?\d+\Z", text, re.ASCII):
        return int(text)
    wanted = text.lower().replace("_", "")
    for api in APIS.values():
        if api.name.lower() == wanted:
            return api.key
    if wanted in BY_NAME:
        return BY_NAME[wanted]
    known = (*(api.name for api in APIS.values()), *BY_NAME)
    raise _unknown("API", text, known, "grammar")


def _unknown(kind: str, text: str, names: Iterable[str], command: str) -> Nearest:
    near = nearest(text, names)
    hint = f"did you mean {near}?   " if near else ""
    return Nearest(f'unknown {kind} "{text}"', f"{hint}(list: kafkascope {command})")


def error_code(text: str) -> int:
    """Return the code of an error by name, former name or number."""
    from kafkascope.dissectors.reference.codes import ENUMS, ERRORS
    from kafkascope.dissectors.reference.codes import error_code as of_kafka

    code = of_kafka(text)
    zookeeper = {name: int(code) for code, name in ENUMS["ZooKeeperError"].items() if code}
    if code is None:
        code = {name.upper(): number for name, number in zookeeper.items()}.get(text.upper())
    if code is None:
        names = [name for each in ERRORS.values() for name in (*each.former_names, each.name)]
        raise _unknown("error", text, [*names, *zookeeper], "error")
    return code


def state(text: str) -> str:
    """Return the state of an exchange."""
    wanted = text.lower().replace("_", "-")
    wanted = "no-reply" if wanted == "noreply" else wanted
    if wanted in STATES:
        return wanted
    near = nearest(text, STATES)
    raise Nearest(
        f'unknown state "{text}"',
        f"did you mean {near}?" if near else "one of " + ", ".join(STATES),
    )


def release(text: str) -> Release:
    """Return the numbers of a dotted version, without trailing zeros."""
    match = re.match(r"[vV]?(\d+(?:\.\d+)*)", text, re.ASCII)
    if match is None or len(match[1]) > 100:
        raise ValueError("expected a version such as 2.3 or 4.0.0")
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def uuid(text: str) -> str:
    """Return an id in Kafka's form, from that form or the one with dashes."""
    if _BASE64_UUID.match(text):
        return text
    if _HEX_UUID.match(text):
        import base64

        return base64.urlsafe_b64encode(bytes.fromhex(text.replace("-", "")))[:22].decode("ascii")
    raise ValueError("expected an ID of 22 characters")


@dataclass(frozen=True, slots=True)
class Loose:
    """A value for a field whose type is known only when it is evaluated."""

    text: str
    number: int | float | None
    truth: bool | None
    octets: bytes | None
    """The bytes of text such as 0a:ff."""
    code: int | None
    """The code of an error's name."""


def loose(text: str) -> Loose:
    """Return all readings of the text."""
    number: int | float | None = None
    converts: tuple[Callable[[str], int | float], ...] = (integer, float, duration_ms, size)
    for convert in converts:
        with suppress(ValueError):
            number = convert(text)
            break
    code = None
    if re.match(r"[A-Z][A-Z_]{3,}\Z", text):
        with suppress(ValueError):
            code = error_code(text)
    truth = {"true": True, "false": False}.get(text.lower())
    octets = None
    if re.match(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})*\Z", text):
        octets = bytes.fromhex(text.replace(":", ""))
    return Loose(text, number, truth, octets, code)


def duration_ms(text: str) -> int:
    """Return a duration with a unit in milliseconds, the unit of durations in bodies."""
    if not re.search(r"(ms|s|m|min|h)\Z", text):
        raise ValueError("expected a duration")
    return duration(text) // 1_000_000


CONVERT: Final[dict[Type, Callable[[str], Any]]] = {
    "int": integer,
    "size": size,
    "duration": duration,
    "time": moment,
    "string": str,
    "bool": boolean,
    "address": network,
    "api": api_key,
    "error": error_code,
    "state": state,
    "release": release,
    "uuid": uuid,
    "body": loose,
    "bytes": loose,
}
