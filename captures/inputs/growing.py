"""Inputs that may still be written: a reader waits at the end of a file until nobody writes it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from kafkascope.captures.inputs.opening import StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkascope.captures.inputs.inflate import ByteStream

# Seconds between two attempts to read a file that may grow.
PAUSE: Final = 0.1
# Bytes that tell what a file is.
HEAD: Final = 64
# Seconds after a change for which a file counts as being written, where the system does not tell
# who has it open.
FRESH: Final = 10.0


def being_written(name: str) -> bool:
    """Return whether a process has the file open for writing.

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
    """Follows the last input while it is being written. `open` is a `Source.opener`."""

    def __init__(self, last: int) -> None:
        """`last`: index of the input that is followed."""
        self.following = False
        """The reader waits at the end of a file that is being written."""
        self.stopped = False
        """Set by others to let the reader end where it is."""
        self.impatient = False
        """The reader is notified when nothing comes for a while: see `Source.patience`."""
        self.resting: Callable[[], None] = lambda: None
        """Called before the reader waits for more."""
        self.begun = 0
        """How many inputs were opened."""
        self._last = last

    def open(self, index: int, name: str) -> ByteStream:
        self.begun = max(self.begun, index + 1)
        return _Followed(self, name, last=index == self._last)


class _Followed:
    """The stream of a file that may grow."""

    def __init__(self, pace: Pace, name: str, *, last: bool) -> None:
        self._pace, self._name, self._last = pace, name, last
        self._raw = StoredFile(name, 0)
        self._read = 0
        self.close = self._raw.close
        self.peek = self._raw.peek

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; 0 at the end, once no process writes the file any more."""
        pace, raw = self._pace, self._raw
        while True:
            # A file of which nothing was read would be no capture.
            stopped = pace.stopped and self._read > HEAD
            size = 0 if stopped else raw.readinto(buffer) or 0
            if not size and not stopped and self._last:
                grows = being_written(self._name)
                size = raw.readinto(buffer) or 0  # written before it was closed
                if not size and grows:
                    pace.following = True
                    pace.resting()
                    time.sleep(PAUSE)
                    if pace.impatient:
                        return None
                    continue
            pace.following = False
            self._read += size
            return size
