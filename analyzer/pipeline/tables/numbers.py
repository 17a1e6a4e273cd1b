"""Numbers that are ranks over the whole input, before that is known: places stand for them, and
give way at the end.

A place is unlike any number that messages or counters hold, so that it is found again wherever
statistics keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

EXCHANGE: Final = 1 << 62
CONNECTION: Final = 3 << 61
FILE_BITS: Final = 17
OFFSET_BITS: Final = 44
MAX_FILES: Final = 1 << FILE_BITS
"""Of one batch."""
_END: Final = EXCHANGE + (1 << FILE_BITS + OFFSET_BITS)


def exchange_place(file: int, at: int) -> int:
    """What stands for the number of the exchange whose first byte is there."""
    return EXCHANGE + (max(file, 0) << OFFSET_BITS) + min(max(at, 0), (1 << OFFSET_BITS) - 1)


def connection_place(packet: int) -> int:
    """What stands for the number of the connection that begins with that packet."""
    return CONNECTION + packet


def is_place(value: int) -> bool:
    """Whether a number may stand for a rank."""
    return EXCHANGE <= value < _END or value >= CONNECTION


def places_in(value: Any) -> Iterator[int]:
    """All places in a state of a statistic; they may be negated."""
    if isinstance(value, list):
        for each in value:
            yield from places_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from places_in(each)
    elif isinstance(value, int) and is_place(abs(value)):
        yield abs(value)


def ranked(value: Any, rank: Callable[[int], int]) -> Any:
    """The state with ranks in the place of places."""
    if isinstance(value, list):
        return [ranked(each, rank) for each in value]
    if isinstance(value, dict):
        return {key: ranked(each, rank) for key, each in value.items()}
    if isinstance(value, int) and is_place(abs(value)):
        return rank(value) if value > 0 else -rank(-value)
    return value
