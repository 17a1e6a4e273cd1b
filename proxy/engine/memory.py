"""Bounds what all connections together keep in memory.

Each connection has a bound of its own (docs/proxy.md), but there may be any number of them. From a
quarter of the common bound on, frames that are kept until they are whole are read one after the
other: the sockets of the others wait. What cannot be helped that way (frames that rules hold, peers
that take nothing) goes on to the bound itself, where the connection that keeps the most is closed.

No clock and no sockets here: the proxy calls `look` again while it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kafkascope.proxy.limits import LIMITS

if TYPE_CHECKING:
    from kafkascope.proxy.engine.handler import Handler

# It is looked each time when so large a part of the bound was added.
STEPS: Final = 64
# Up to such a part of the bound nobody waits. The rest is for the one that goes on: a frame may be
# kept as what came, what rules look at, and what was not sent yet, at 100 MB each.
QUIET: Final = 4
# Who keeps less than that need not wait.
LEAST: Final = 64 * 1024
# Looks for which the first in the row may stand still before it is another's turn.
PATIENCE: Final = 100


class Memory:
    """Counts what is kept, and lets connections wait."""

    def __init__(
        self,
        holders: Callable[[], Iterable[Handler]],
        again: Callable[[], None],
        limit: int = LIMITS.buffer_bytes,
    ) -> None:
        """`again` is called when `look` has to be called again after a while."""
        self.limit = limit
        self.cuts = 0
        self.peak = 0
        """The most that was seen."""
        self._holders = holders
        self._again = again
        self._step = max(1, limit // STEPS)
        self._grown = 0
        self._waiting: set[Handler] = set()
        self._first: Handler | None = None
        self._held = 0
        self._still = 0
        self._full = 0

    def grew(self, size: int) -> None:
        self._grown += size
        if self._grown >= self._step:
            self.look()

    def look(self) -> None:
        self._grown = 0
        held = {each: each.holds() for each in self._holders()}
        total = sum(held.values())
        self.peak = max(self.peak, total)
        if total > self.limit:
            total = self._cut(held, total)
        if not held or total <= self.limit // QUIET:
            self._first = None
            self._wait(set())
            return
        growing = {each: size for each, size in held.items() if size > LEAST and each.grows()}
        # Frames that are whole, but not gone yet, go first.
        whole = total - sum(growing.values()) > self.limit // QUIET
        self._full = self._full + 1 if whole else 0
        turn = self._next(growing) if not whole or self._full > PATIENCE else None
        self._wait(growing.keys() - {turn})
        self._again()

    def _next(self, held: dict[Handler, int]) -> Handler | None:
        """Whose turn it is: who keeps the most, being nearest to its end as a rule, until it is
        stuck."""
        first = self._first
        if first is not None and first in held:
            size = held[first]
            self._still = self._still + 1 if size == self._held else 0
            self._held = size
            if self._still < PATIENCE:
                return first
            held = {each: size for each, size in held.items() if each is not first}
        self._first = max(held, key=held.__getitem__, default=None)
        self._still = 0
        self._held = held[self._first] if self._first is not None else 0
        return self._first

    def _wait(self, waiting: set[Handler]) -> None:
        before, self._waiting = self._waiting, waiting
        for each in before - waiting:
            each.wait(False)
        for each in waiting:
            each.wait(True)

    def _cut(self, held: dict[Handler, int], total: int) -> int:
        for each in sorted(held, key=held.__getitem__, reverse=True):
            size = held.pop(each)
            total -= size
            self.cuts += 1
            self._waiting.discard(each)
            each.cut(size)
            if total <= self.limit:
                break
        return total
