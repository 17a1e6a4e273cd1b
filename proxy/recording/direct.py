"""Writes a file past the page cache, directly from our memory.

Copying into fresh pages of the page cache costs a multiple of copying into memory that is at hand.
Such writes have to be whole blocks at addresses and offsets that are multiples of one. What lies so
is written as it lies; the rest is gathered here, and what fills no block is kept until `settle`.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections import deque
from typing import Final, Generic, TypeAlias, TypeVar

from kafkascope.proxy.limits import LIMITS

Part: TypeAlias = bytes | memoryview
M = TypeVar("M", bytearray, memoryview)

# Of files that are written past the page cache: offsets and addresses are multiples of it.
BLOCK: Final = 4096
CHUNK: Final = 2 << 20


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


class Lease(Generic[M]):
    """Keeps memory unchanged while the lease exists."""

    __slots__ = ("_free", "memory")

    def __init__(self, memory: M, free: deque[M]) -> None:
        self.memory: M = memory
        self._free: deque[M] | None = free

    def __del__(self) -> None:
        # The last one may go in any thread; appending is atomic.
        if self._free is not None:
            self._free.append(self.memory)

    def leave(self) -> None:
        """Give the memory up for good: it is never used again."""
        self._free = None


class Chunks:
    """Makes chunks, as many as are needed at a time, and gives them again."""

    def __init__(self) -> None:
        self._free: deque[memoryview] = deque()
        self._made = 0

    def take(self, *, reserve: bool = False) -> Lease[memoryview] | None:
        """Return a free chunk; None when there is none. `reserve`: use the last ones, too."""
        free = self._free
        if len(free) + LIMITS.chunks - self._made <= 0 and not reserve:
            return None
        if free:
            return Lease(free.pop(), free)  # the last one: it may still be in a cache
        if self._made >= LIMITS.chunks + LIMITS.reserve_chunks:
            return None
        self._made += 1
        return Lease(huge(CHUNK), free)


ROOM: Final = 2 << 20
# From this size on it is worth to write a part as it lies.
STRAIGHT: Final = 64 * 1024


class Direct:
    """Writes to the end of a growing file; only one thread may use it."""

    def __init__(self) -> None:
        self._memory = huge(ROOM)
        self._descriptor = -1
        self._plain = -1
        self._at = 0
        """Offset in the file of what is gathered."""
        self._have = 0
        self._known = -1
        """Where the file ends for us; -1: somebody else wrote."""
        self.settled = True
        """Whether all that was written is in the file."""

    @property
    def usable(self) -> bool:
        return self._descriptor >= 0

    def open(self, plain: int) -> None:
        """Open the file of the descriptor `plain` for such writes."""
        self.close()
        self._plain = plain
        self._known = -1
        flag = getattr(os, "O_DIRECT", 0)
        if flag and stat.S_ISREG(os.fstat(plain).st_mode):
            with contextlib.suppress(OSError):
                # Not by its name, which may be another file's by now.
                self._descriptor = os.open(f"/proc/self/fd/{plain}", os.O_RDWR | flag)

    def close(self) -> None:
        """Close the file; `settle` comes first."""
        descriptor, self._descriptor = self._descriptor, -1
        self._have = 0
        self._known = -1
        self.settled = True
        if descriptor >= 0:
            os.close(descriptor)

    def write(self, parts: tuple[Part, ...], end: int, starts: tuple[int, ...] = ()) -> bool:
        """Write after the first `end` bytes of the file. False: nothing was written, it is not
        possible. `OSError` when the file takes no more. `starts`: where in a block of memory each
        part begins, if that is known."""
        if self._known != end and not self._begin(end):
            return False
        self.settled = False
        for index, part in enumerate(parts):
            size = len(part)
            if starts and size >= STRAIGHT and (end - starts[index]) % BLOCK == 0:
                self._straight(memoryview(part), -end % BLOCK)
            else:
                self._gather(part)
            end += size
        self._known = end
        self._put()
        return True

    def _straight(self, view: memoryview, at: int) -> None:
        """Write the whole blocks of a part, the first of which begins at `at`, as they lie, after
        what is gathered, which becomes whole with what is before them."""
        self._gather(view[:at])
        gathered = self._memory[: self._have]
        end = len(view) - (len(view) - at) % BLOCK
        size, done = self._have + end - at, 0
        try:
            if self.usable:
                done = os.pwritev(self._descriptor, [gathered, view[at:end]], self._at)
            while done < size and self.usable and done >= len(gathered):
                rest = view[at + done - len(gathered) : end]
                done += os.pwrite(self._descriptor, rest, self._at + done)
        except OSError:
            self._give_up()
        while done < size:
            rest = (
                gathered[done:] if done < len(gathered) else view[at + done - len(gathered) : end]
            )
            done += os.pwrite(self._plain, rest, self._at + done)
        self._at += size
        self._have = 0
        self._gather(view[end:])

    def _gather(self, part: Part) -> None:
        memory, have = self._memory, self._have
        size = len(part)
        if size <= ROOM - have:
            memory[have : have + size] = part
            self._have = have + size
            return
        view = memoryview(part)
        while len(view):
            take = min(len(view), ROOM - self._have)
            memory[self._have : self._have + take] = view[:take]
            self._have += take
            view = view[take:]
            if self._have == ROOM:
                self._put()

    def settle(self) -> None:
        """Write the rest that fills no block."""
        if not self.settled:
            self.settled = True
            self._write_plain(0)

    def leave(self) -> bool:
        """Hand the file to another writer. Return whether we wrote anything since the last time."""
        self.settle()
        known, self._known = self._known, -1
        return known >= 0

    def _begin(self, end: int) -> bool:
        """Continue where another writer ended; the last, partial block becomes ours."""
        at = end - end % BLOCK
        try:
            got = os.preadv(self._descriptor, [self._memory[:BLOCK]], at) if end > at else 0
        except OSError:
            got = -1
        if got < end - at:
            self.close()
            return False
        self._at, self._have, self._known = at, end - at, end
        return True

    def _put(self) -> None:
        size = self._have - self._have % BLOCK
        if not size:
            return
        done = 0
        if self.usable:
            try:
                while done < size:
                    done += os.pwrite(self._descriptor, self._memory[done:size], self._at + done)
            except OSError:
                self._give_up()
        if done < size:
            self._write_plain(done)
        rest = self._have - size
        self._memory[:rest] = bytes(self._memory[size : self._have])
        self._at += size
        self._have = rest

    def _give_up(self) -> None:
        """Stop to write directly: there is no more room, or the file system wants other blocks. The
        usual way tells."""
        os.close(self._descriptor)
        self._descriptor = -1

    def _write_plain(self, done: int) -> None:
        while done < self._have:
            view = self._memory[done : self._have]
            done += os.pwrite(self._plain, view, self._at + done)
