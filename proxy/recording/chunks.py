"""Memory that packets are composed into, and that they are written from.

Chunks begin at the start of a page, so that the system can write them to the disk as they lie.
"""

from __future__ import annotations

import contextlib
import mmap
from collections import deque
from typing import Final

BLOCK: Final = 4096
"""Of files that are written past the page cache: offsets and addresses are multiples of it."""
CHUNK: Final = 2 << 20
MOST: Final = 16
"""Chunks of one recording. When all wait for the disk, or for a reader, packets are left out."""
RESERVE: Final = 4
"""More chunks than these, for small packets: how connections begin and end."""


def huge(size: int) -> memoryview:
    """Memory of `size` bytes, of huge pages where the system has them: one page to tell the disk in
    place of 512, which takes a third of the time."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(mmap.mmap(-1, size))
    # Shared memory, which is what one gets unless one asks, has none.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


class ChunkLease:
    """Keeps a chunk unchanged while somebody holds the lease."""

    __slots__ = ("_free", "memory")

    def __init__(self, memory: memoryview, free: deque[memoryview]) -> None:
        self.memory = memory
        self._free = free

    def __del__(self) -> None:
        # The last one may go in any thread; appending is atomic.
        self._free.append(self.memory)


class Chunks:
    """Makes chunks, as many as are needed at a time, and gives them again."""

    def __init__(self) -> None:
        self._free: deque[memoryview] = deque()
        self._made = 0

    def take(self, *, reserve: bool = False) -> ChunkLease | None:
        """A chunk that nobody uses; None when there is none. `reserve`: use the last ones, too."""
        free = self._free
        if len(free) + MOST - self._made <= 0 and not reserve:
            return None
        if free:
            return ChunkLease(free.pop(), free)  # the last one: it may still be in a cache
        if self._made >= MOST + RESERVE:
            return None
        self._made += 1
        return ChunkLease(huge(CHUNK), free)
