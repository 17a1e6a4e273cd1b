"""Writes a file past the page cache, directly from our memory.

Copying into fresh pages of the page cache costs a multiple of copying into memory that is at hand.
Such writes have to be whole blocks at addresses and offsets that are multiples of one: what is
written is gathered here, and the rest that fills no block is kept until `settle`.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from typing import Final

from kafkascope.proxy.recording.packing import Part

BLOCK: Final = 4096
ROOM: Final = 2 << 20


class Direct:
    """Writes to the end of a growing file; only one thread may use it."""

    def __init__(self) -> None:
        memory = mmap.mmap(-1, ROOM)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)  # one page to tell the disk instead of 512
        self._memory = memoryview(memory)
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
        """Whether the file system supports such writes."""
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

    def write(self, parts: tuple[Part, ...], end: int) -> bool:
        """Write behind the first `end` bytes of the file. False: nothing was written, it is not
        possible. `OSError` when the file takes no more."""
        if self._known != end and not self._begin(end):
            return False
        memory, have = self._memory, self._have
        self.settled = False
        for part in parts:
            size = len(part)
            if size <= ROOM - have:
                memory[have : have + size] = part
                have += size
                end += size
                continue
            view = memoryview(part)
            while len(view):
                take = min(len(view), ROOM - have)
                memory[have : have + take] = view[:take]
                have += take
                end += take
                view = view[take:]
                if have == ROOM:
                    self._have = have
                    self._put()
                    have = self._have
        self._have = have
        self._known = end
        self._put()
        return True

    def settle(self) -> None:
        """Write the rest that fills no block."""
        if not self.settled:
            self.settled = True
            self._write_plain(0)

    def leave(self) -> bool:
        """Let somebody else write on. Returns whether we wrote anything since the last time."""
        self.settle()
        known, self._known = self._known, -1
        return known >= 0

    def _begin(self, end: int) -> bool:
        """Continue where somebody else has written; the last, partial block becomes ours."""
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
        """Write the whole blocks."""
        size = self._have - self._have % BLOCK
        done = 0
        if self.usable:
            try:
                while done < size:
                    done += os.pwrite(self._descriptor, self._memory[done:size], self._at + done)
            except OSError:
                # No more room, or a file system that wants other blocks: the usual way tells.
                os.close(self._descriptor)
                self._descriptor = -1
        if done < size:
            self._write_plain(done)
        rest = self._have - size
        self._memory[:rest] = bytes(self._memory[size : self._have])
        self._at += size
        self._have = rest

    def _write_plain(self, done: int) -> None:
        while done < self._have:
            view = self._memory[done : self._have]
            done += os.pwrite(self._plain, view, self._at + done)
