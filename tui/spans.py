"""Ports as ranges: what a reading process is told goes into one argument, where the system takes no
65,535 numbers."""

from __future__ import annotations

from collections.abc import Iterable


def spans(ports: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours."""
    found: list[tuple[int, int]] = []
    for port in sorted(set(ports)):
        if found and found[-1][1] == port - 1:
            found[-1] = found[-1][0], port
        else:
            found.append((port, port))
    return found


def within(told: Iterable[tuple[int, int]]) -> frozenset[int]:
    """All ports of the ranges."""
    return frozenset(port for first, last in told for port in range(first, last + 1))


__all__ = ["spans", "within"]
