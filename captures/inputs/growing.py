"""Inputs that are read twice at once, and may still be written: the first reader leads and waits
at the end of a file that somebody writes; the second one reads what the first one has read, and
only while that has nothing to do.

So both see the same bytes, whatever happens to the file meanwhile.
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
"""Seconds between two looks at a file that may grow."""
HEAD: Final = 64
"""Bytes that tell what a file is."""
FRESH: Final = 10.0
"""Seconds for which a file counts as being written after it changed, where the system does not tell
who has it open."""


def being_written(name: str) -> bool:
    """Whether somebody has the file open for writing.

    Linux tells: a lease for reading is refused then (fcntl(2)). Elsewhere, and for files of others,
    a file that changed a moment ago counts.
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
    """What two readers of the same inputs know of each other. `first` and `second` open streams
    for them (`Source.opener`)."""

    def __init__(self, last: int) -> None:
        """`last`: index of the input that is followed when somebody writes it."""
        self.following = False
        """The first reader waits at the end of a file that is being written."""
        self.stopped = False
        """Set it to let the first reader end where it is."""
        self.pausing: Callable[[], None] = lambda: None
        """Called in the second reader before it waits for more."""
        self.resting: Callable[[], None] = lambda: None
        """Called in the first reader before it waits for more."""
        self._last = last
        self._reached: dict[int, int] = {}
        """How far the first reader is, by the index of the input."""
        self._over: set[int] = set()
        self._free = threading.Event()
        """Set while the first reader has nothing to do."""

    @property
    def begun(self) -> int:
        """How many inputs the first reader has opened."""
        return len(self._reached)

    def first(self, index: int, name: str) -> Stream:
        """Read a file as far as it goes, and follow it."""
        return _First(self, index, name)

    def second(self, index: int, name: str) -> Stream:
        """Read the same bytes again."""
        return _Second(self, index, name)

    def through(self) -> None:
        """The first reader is."""
        self.following = False
        self._over.update(range(self._last + 1))
        self._free.set()


class _First:
    def __init__(self, pace: Pace, index: int, name: str) -> None:
        self._pace, self._index, self._name = pace, index, name
        self._raw = open_at(name, 0)
        pace._reached[index] = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        """The next bytes; 0 at the end of a file that nobody writes any more."""
        pace = self._pace
        pace._free.clear()
        while True:
            # A file of which nothing was read would be none.
            stopped = pace.stopped and pace._reached[self._index] > HEAD
            size = 0 if stopped else self._raw.readinto(buffer) or 0
            if not size and not stopped and self._index == pace._last:
                grows = being_written(self._name)
                size = self._raw.readinto(buffer) or 0  # what came before it was closed
                if not size and grows:
                    pace.following = True
                    pace._free.set()
                    pace.resting()
                    time.sleep(PAUSE)
                    continue
            if size:
                pace.following = False
                pace._free.clear()
                pace._reached[self._index] += size
            else:
                pace._free.clear()  # what is told at the end comes first, too
                pace._over.add(self._index)
            return size

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


class _Second:
    def __init__(self, pace: Pace, index: int, name: str) -> None:
        self._pace, self._index = pace, index
        self._raw = open_at(name, 0)
        self._at = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        """The next bytes that the first reader has, once that has nothing to do."""
        pace = self._pace
        while True:
            over = self._index in pace._over
            pace._free.wait()
            left = pace._reached.get(self._index, 0) - self._at
            if left > 0:
                size = self._raw.readinto(buffer[:left]) or 0
                self._at += size
                return size
            if over:
                return 0
            pace.pausing()
            time.sleep(PAUSE)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
