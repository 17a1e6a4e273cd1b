"""Places: provisional numbers of exchanges and connections, replaced at the end by ranks over the
whole input.

A place differs from any number in messages or counters, so that it is found wherever statistics
keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

EXCHANGE: Final = 1 << 62
CONNECTION: Final = 3 << 61
FILE_BITS: Final = 17
OFFSET_BITS: Final = 44
MAX_FILES: Final = 1 << FILE_BITS
"""Limit of files per batch."""
_END: Final = EXCHANGE + (1 << FILE_BITS + OFFSET_BITS)


def exchange_place(file: int, at: int) -> int:
    """Return the provisional number of the exchange whose first byte is at an offset of a file."""
    return EXCHANGE + (max(file, 0) << OFFSET_BITS) + min(max(at, 0), (1 << OFFSET_BITS) - 1)


def connection_place(packet: int) -> int:
    """Return the provisional number of the connection that begins with a packet."""
    return CONNECTION + packet


def is_place(value: int) -> bool:
    """Return whether a number may be a place."""
    return EXCHANGE <= value < _END or value >= CONNECTION


def places_in(value: Any) -> Iterator[int]:
    """Yield all places in the state of a statistic; they may be negated."""
    if isinstance(value, list):
        for each in value:
            yield from places_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from places_in(each)
    elif isinstance(value, int) and is_place(abs(value)):
        yield abs(value)


def ranked(value: Any, rank: Callable[[int], int]) -> Any:
    """Return the state with places replaced by ranks."""
    if isinstance(value, list):
        return [ranked(each, rank) for each in value]
    if isinstance(value, dict):
        return {key: ranked(each, rank) for key, each in value.items()}
    if isinstance(value, int) and is_place(abs(value)):
        return rank(value) if value > 0 else -rank(-value)
    return value
