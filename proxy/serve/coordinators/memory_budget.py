"""Limits the memory that clients may fill: one account for all groups, offsets and producers.

Sizes are estimates. What is freed is not paid back one by one: when the account seems full,
everybody who holds something counts anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from kafkascope.dissectors.codec.reader import Body

STATE_LIMIT: Final = 64 << 20
"""Bytes of state that clients may make. A thousand members with subscriptions of a hundred topics
take 5 MB."""
ENTRY: Final = 400
"""Bytes that a small object takes beside its texts, with its place in a dict."""
RECOUNT_S: Final = 1.0
"""A full account is counted anew so often at most: to count takes milliseconds, a flood goes on."""


class MemoryBudget:
    """Admits what clients want to be kept, up to a limit."""

    def __init__(self, limit: int = STATE_LIMIT) -> None:
        self._limit = limit
        self._taken = 0
        self._holders: list[Callable[[], int]] = []
        self._counted = float("-inf")
        self.refusals = 0
        """How often there was no room."""

    def holds(self, holder: Callable[[], int]) -> None:
        """Register a function that says how many bytes somebody holds."""
        self._holders.append(holder)

    def admit(self, size: int) -> bool:
        """Whether so many bytes more may be kept; if so they are accounted for."""
        if self._taken + size > self._limit and not self._recounted(size):
            self.refusals += 1
            return False
        self._taken += size
        return True

    def _recounted(self, size: int) -> bool:
        now = time.monotonic()
        if now - self._counted < RECOUNT_S:
            return False
        self._counted = now
        self._taken = sum(holder() for holder in self._holders)
        return self._taken + size <= self._limit


def size_of(*texts: str | bytes | None) -> int:
    """Bytes of an entry with these texts."""
    return ENTRY + sum(2 * len(each) for each in texts if each)


def size_of_names(names: Iterable[str]) -> int:
    """Bytes of a list of names."""
    return sum(100 + 2 * len(name) for name in names)


def size_of_protocols(protocols: list[Body]) -> int:
    """Bytes of what a member of a classic group says about itself."""
    return sum(size_of(each["name"], each["metadata"]) for each in protocols)
