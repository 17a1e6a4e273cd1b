"""Numbers as ranges of neighbours: partitions to read, and ports for a process whose one argument
cannot hold 65,535 numbers."""

from __future__ import annotations

from collections.abc import Iterable


def spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def within(ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
    """All numbers of the ranges."""
    return frozenset(number for first, last in ranges for number in range(first, last + 1))
