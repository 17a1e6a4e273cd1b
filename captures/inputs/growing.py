"""Inputs that are read twice at once and may still be written.

The first reader leads, and waits at the end of a file that somebody writes. The second one reads
what the first one has read, and only while that has nothing to do. So both see the same bytes,
whatever happens to the file meanwhile.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

from kafkascope.captures.inputs.opening import open_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkascope.captures.inputs.inflate import Stream

PAUSE: Final = 0.1
"""Seconds between two attempts to read a file that may grow."""
HEAD: Final = 64
"""Bytes that tell what a file is."""
FRESH: Final = 10.0
"""Seconds after a change for which a file counts as being written, where the system does not tell
who has it open."""


def being_written(name: str) -> bool:
    """Whether somebody has the file open for writing.

    Linux refuses a lease for reading then (fcntl(2)). Elsewhere, and for files of other users, a
    file that changed a moment ago counts as being written.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        import fcntl

        if hasattr(fcntl, "F_SETLEASE"):
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except BlockingIOError:
                return True
            except OSError:
                pass
            else:
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                return False
        return time.time() - os.fstat(descriptor).st_mtime < FRESH
    except (ImportError, OSError):
        return False
    finally:
        os.close(descriptor)


class Pace:
    """Keeps two readers of the same inputs in step. `first` and `second` open their streams
    (`Source.opener`)."""

    def __init__(self, last: int) -> None:
        """`last`: index of the input that is followed while somebody writes it."""
        self.following = False
        """The first reader waits at the end of a file that is being written."""
        self.stopped = False
        """Set by others to let the first reader end where it is."""
        self.impatient = False
        """The first reader is told when nothing comes for a while: see `Source.patience`."""
        self.pausing: Callable[[], None] = lambda: None
        """Called in the second reader before it waits for more."""
        self.resting: Callable[[], None] = lambda: None
        """Called in the first reader before it waits for more."""
        self._last = last
        self._reached: dict[int, int] = {}
        """Bytes that the first reader has read, by the index of the input."""
        self._over: set[int] = set()
        """Inputs that the first reader has read to their end."""
        self._free = threading.Event()
        """Set while the first reader has nothing to do."""

    @property
    def begun(self) -> int:
        """How many inputs the first reader has opened."""
        return len(self._reached)

    def first(self, index: int, name: str) -> Stream:
        """Open a file for the first reader: as far as it goes, and followed."""
        raw = open_at(name, 0)
        self._reached[index] = 0
        return _Reader(raw, lambda buffer, _: self._lead(index, name, raw, buffer))

    def second(self, index: int, name: str) -> Stream:
        """Open a file for the second reader: the same bytes again."""
        raw = open_at(name, 0)
        return _Reader(raw, lambda buffer, at: self._follow(index, raw, buffer, at))

    def through(self) -> None:
        """Note that the first reader has read all inputs."""
        self.following = False
        self._over.update(range(self._last + 1))
        self._free.set()

    def _lead(self, index: int, name: str, raw: Stream, buffer: memoryview) -> int | None:
        """Read the next bytes of the file; 0 at its end, once nobody writes it any more."""
        self._free.clear()
        while True:
            # A file of which nothing was read would be no capture.
            stopped = self.stopped and self._reached[index] > HEAD
            size = 0 if stopped else raw.readinto(buffer) or 0
            if not size and not stopped and index == self._last:
                grows = being_written(name)
                size = raw.readinto(buffer) or 0  # written before it was closed
                if not size and grows:
                    self.following = True
                    self._free.set()
                    self.resting()
                    time.sleep(PAUSE)
                    if self.impatient:
                        return None
                    continue
            self._free.clear()  # the end, too, is told by the first reader first
            if size:
                self.following = False
                self._reached[index] += size
            else:
                self._over.add(index)
            return size

    def _follow(self, index: int, raw: Stream, buffer: memoryview, at: int) -> int:
        """Read what the first reader has read behind `at`, once that has nothing to do."""
        while True:
            over = index in self._over
            self._free.wait()
            left = self._reached.get(index, 0) - at
            if left > 0:
                return raw.readinto(buffer[:left]) or 0
            if over:
                return 0
            self.pausing()
            time.sleep(PAUSE)


class _Reader:
    """The stream of one reader: `fill(buffer, at)` reads bytes from offset `at` on."""

    def __init__(self, raw: Stream, fill: Callable[[memoryview, int], int | None]) -> None:
        self._fill, self._at = fill, 0
        self.close = raw.close

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; 0 at the end."""
        size = self._fill(buffer, self._at)
        self._at += size or 0
        return size
