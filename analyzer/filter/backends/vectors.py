"""One comparison over an array of numbers, as `filter.checks` does it for one number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from kafkascope.analyzer.filter.values import DAY, Clock, Instant, local_offset
from kafkascope.analyzer.times import SECOND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kafkascope.analyzer.filter.bind import Test

    Bools: TypeAlias = NDArray[np.bool_]
    Numbers: TypeAlias = NDArray[np.int64]

QUARTER: Final = 900
"""Seconds; offsets of time zones change at most every quarter of an hour."""
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1

_ORDER: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def holds(test: Test, values: Numbers) -> Bools:
    """Return for each number whether the test's comparison holds; not for `contains` and
    `matches`."""
    if test.relation != "in":
        return _one(test.relation, values, test.value)
    plain = [low for low, high in test.value if high is None and isinstance(low, int)]
    found: Bools = np.isin(values, [low for low in plain if _LEAST <= low <= _MOST])
    for low, high in test.value:
        if high is not None:
            found |= _one(">=", values, low) & _upto(values, high)
        elif not isinstance(low, int):
            found |= _one("==", values, low)
    return found


def _upto(values: Numbers, high: Any) -> Bools:
    if isinstance(high, Instant | Clock):
        return _compared("<=", _of(high, values), high.ns + high.span - 1)
    return _compared("<=", values, high)


def _one(relation: str, values: Numbers, wanted: Any) -> Bools:
    if not isinstance(wanted, Instant | Clock):
        return _compared(relation, values, wanted)
    moments = _of(wanted, values)
    low, high = wanted.ns, wanted.ns + wanted.span
    if relation in ("==", "!="):
        # Equal: within the span that the text leaves open.
        within = _compared(">=", moments, low) & _compared("<", moments, high)
        return within if relation == "==" else ~within
    return _compared(relation, moments, low)


def _compared(relation: str, values: Numbers, wanted: int) -> Bools:
    if _LEAST <= wanted <= _MOST:
        found: Bools = _ORDER[relation](values, wanted)
        return found
    # No number of a column is that large or small: one result applies to all.
    return np.full(len(values), _ORDER[relation](0, wanted), dtype=np.bool_)


def _of(wanted: Instant | Clock, values: Numbers) -> Numbers:
    if isinstance(wanted, Instant):
        return values
    quarters, place = np.unique(values // (QUARTER * SECOND), return_inverse=True)
    offsets = np.array([local_offset(int(quarter)) for quarter in quarters], dtype=np.int64)
    return (values + offsets[place] * SECOND) % DAY
