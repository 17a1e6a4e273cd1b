"""The memory that sockets are read into, shared by all streams of a loop.

What is read is usually used up before the next read: the same bytes of memory serve again, which
stay in the cache. Who needs them longer (a recording, a transport that could not send everything)
keeps a lease on the slab that they lie in; a slab serves again when nobody has one.
"""

from __future__ import annotations

from collections import deque
from typing import Final

READ_BYTES: Final = 512 * 1024
"""One read. Larger ones fall out of the cache, smaller ones cost more calls."""
SCARCE_BYTES: Final = 64 * 1024
"""One read, while a recording holds all slabs, or..."""
MANY: Final = 64
"""... more streams than these could not send what was read: each keeps up to a read."""
LEAST_BYTES: Final = 128 * 1024
"""With less room than that the next slab is taken."""
SLAB_BYTES: Final = 2 * READ_BYTES
MAX_SLABS: Final = 48
"""Of one arena. When all are in use nothing more is leased: then one has to copy."""


class Lease:
    """Keeps a slab of memory unchanged while somebody holds the lease."""

    __slots__ = ("_free", "memory")

    def __init__(self, memory: bytearray, free: deque[bytearray]) -> None:
        self.memory = memory
        self._free: deque[bytearray] | None = free

    def __del__(self) -> None:
        # The last one may go in any thread; appending is atomic.
        if self._free is not None:
            self._free.append(self.memory)

    def leave(self) -> None:
        """Give the memory up for good: it is never used again."""
        self._free = None


class Arena:
    """Slabs of memory for reads. `view` is where the next read goes: see `room`."""

    __slots__ = ("_at", "_free", "_lease", "_made", "held", "piles", "view")

    def __init__(self) -> None:
        self._free: deque[bytearray] = deque()
        self._made = 0
        self.held = False
        """Whether somebody keeps what was just read: see `advance`."""
        self.piles = 0
        """Streams that could not send all that was read for them."""
        self._next()

    @property
    def scarce(self) -> bool:
        """Whether all slabs are in use: nothing more is leased."""
        return self._made >= MAX_SLABS and not self._free

    @property
    def room(self) -> memoryview:
        """Where the next read goes, and how much it may be."""
        if self.piles <= MANY and self._made < MAX_SLABS:
            return self.view  # as a rule
        return self.view[:SCARCE_BYTES] if self.piles > MANY or self.scarce else self.view

    def keep(self, data: memoryview) -> Lease | None:
        """A lease on what was just read; None when it lies elsewhere, or too much is leased."""
        if data.obj is not self._lease.memory or self.scarce:
            return None
        self.held = True
        return self._lease

    def advance(self, used: int) -> None:
        """Leave the `used` bytes of the last read to those who keep them."""
        self.held = False
        self._at += used + 63 & ~63
        if SLAB_BYTES - self._at < LEAST_BYTES:
            self._next()
        else:
            self.view = memoryview(self._lease.memory)[self._at : self._at + READ_BYTES]

    def renew(self) -> None:
        """Leave the slab to a transport that still needs it and cannot be asked for how long."""
        self._lease.leave()
        self._made -= 1
        self._next()

    def _next(self) -> None:
        if self._free:
            memory = self._free.pop()  # the last one: it may still be in a cache
        else:
            memory = bytearray(SLAB_BYTES)
            self._made += 1
        self._lease = Lease(memory, self._free)
        self._at = 0
        self.view = memoryview(memory)[:READ_BYTES]
