"""Checks: one comparison as a function over one value of the field. Knows types, no exchanges and
no columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.filter.bind import Relation, Test
from kafkascope.analyzer.filter.decoded import comparing
from kafkascope.analyzer.filter.decoded.comparing import Typed
from kafkascope.analyzer.filter.values import (
    ORDER,
    Clock,
    Instant,
    Loose,
    Network,
    address_number,
    release,
)

_POSITIONS: Final = {"==": (0,), ">": (1,), "<": (-1,), ">=": (0, 1), "<=": (0, -1)}
"""Where an address lies for a comparison with a network to hold: -1 is below it, 1 above."""
Check: TypeAlias = Callable[[Any], bool]


def check_of(test: Test) -> Check:
    """Return the check of one value of the test's field; back ends evaluate `has`."""
    kind = test.field.type
    if test.relation == "in":
        checks = [
            _between(kind, low, high) if high is not None else _one(kind, "==", low)
            for low, high in test.value
        ]
        plain = kind in ("int", "string", "state", "uuid", "api", "error")
        if plain and all(high is None for _, high in test.value):
            return frozenset(low for low, _ in test.value).__contains__
        return checks[0] if len(checks) == 1 else lambda value: any(c(value) for c in checks)
    return _one(kind, test.relation, test.value)


def _between(kind: str, low: Any, high: Any) -> Check:
    if isinstance(low, Typed):
        return comparing.between(low, high)
    above, below = _one(kind, ">=", low), _one(kind, "<=", high)
    if isinstance(high, Instant | Clock):
        last = high.ns + high.span - 1
        return lambda value: above(value) and high.of(value) <= last
    return lambda value: above(value) and below(value)


def _one(kind: str, relation: Relation, wanted: Any) -> Check:
    if kind == "value":
        if relation == "contains":
            return comparing.containing(wanted)
        if relation == "matches":
            return comparing.matching(wanted)
        return comparing.compared(relation, wanted)
    if relation == "contains":
        if kind in ("body", "bytes"):
            return _body_contains(wanted)
        show = shown_as(kind)
        return lambda value: wanted in show(value)
    if relation == "matches":
        search = wanted.search
        show = shown_as(kind)
        return lambda value: search(show(value))
    compare = ORDER[relation]
    match wanted:
        case Instant() | Clock():
            return _moment(relation, wanted)
        case Loose():
            return _body(relation, wanted)
    if kind == "address":
        return _address(relation, wanted)
    if kind == "release":
        return lambda value: compare(_release(value), wanted)
    return lambda value: compare(value, wanted)


def shown_as(kind: str) -> Callable[[Any], str]:
    """Return the function that gives the text of a value for `contains` and `matches`: its printed
    form."""
    if kind == "api":
        from kafkascope.dissectors.registry import APIS

        return lambda key: APIS[key].name if key in APIS else str(key)
    if kind == "error":
        from kafkascope.dissectors.reference.codes import error_name

        return error_name
    if kind in ("body", "bytes"):
        return _text
    return str


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if type(value) is bytes else str(value)


def _release(value: str) -> tuple[int, ...]:
    try:
        return release(value)
    except ValueError:
        return ()


def _moment(relation: Relation, wanted: Instant | Clock) -> Check:
    low, high, of = wanted.ns, wanted.ns + wanted.span, wanted.of
    # Equal: within the span that the text leaves open, so that 12:03:07 matches 12:03:07.114.
    if relation == "==":
        return lambda value: low <= of(value) < high
    if relation == "!=":
        return lambda value: not low <= of(value) < high
    compare = ORDER[relation]
    return lambda value: compare(of(value), low)


def _address(relation: Relation, wanted: Network) -> Check:
    version = wanted.version
    first, last = int(wanted.network_address), int(wanted.broadcast_address)

    def position(value: str) -> int | None:
        """Return -1 below the network, 0 in it, 1 above; None for the other family or no
        address."""
        number = address_number(value)
        if number is None or number[0] != version:
            return None
        return (number[1] > last) - (number[1] < first)

    if relation == "!=":
        return lambda value: position(value) != 0
    positions = _POSITIONS[relation]
    return lambda value: position(value) in positions


def _body(relation: Relation, wanted: Loose) -> Check:
    """Return the check of a value of a body: its type decides how the text is read."""
    compare = ORDER[relation]
    unequal = relation == "!="

    def check(value: Any) -> bool:
        meant: Any
        if isinstance(value, bool):
            meant = wanted.truth
            if meant is None and wanted.number in (0, 1):
                meant = bool(wanted.number)
        elif isinstance(value, int):
            meant = wanted.number if wanted.number is not None else wanted.code
        elif isinstance(value, float):
            meant = wanted.number
        elif isinstance(value, str):
            meant = wanted.text
        elif type(value) is bytes:
            octets = wanted.text.encode("utf-8", "surrogateescape")
            if value == octets:
                return relation in ("==", ">=", "<=")
            meant = octets if wanted.octets is None else wanted.octets
        elif isinstance(value, bytes):
            value, meant = str(value), wanted.text
        else:
            meant = None
        return unequal if meant is None else compare(value, meant)

    return check


def _body_contains(wanted: str) -> Check:
    import re

    octets = [wanted.encode("utf-8", "surrogateescape")]
    if re.match(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})+\Z", wanted):
        octets.append(bytes.fromhex(wanted.replace(":", "")))

    def check(value: Any) -> bool:
        if type(value) is bytes:
            return any(each in value for each in octets)
        return wanted in str(value)

    return check
