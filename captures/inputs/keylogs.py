"""Reads key logs from files: once, or again and again while programs write them."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkascope.captures.inputs.opening import unreadable
from kafkascope.captures.limits import LIMITS, CaptureLimits

if TYPE_CHECKING:
    from kafkascope.captures.errors import CaptureError
    from kafkascope.captures.tls.keys.keylog import KeyLog

PIECE: Final = 1 << 20
# Seconds between two looks at key logs that may grow.
EVERY: Final = 0.2
# Seconds without a new byte after which a last line counts that has no end: it may be a part of one
# as long as a program writes it.
QUIET: Final = 2.0


def read_key_logs(paths: Iterable[str | os.PathLike[str]]) -> KeyLog | None:
    """Return what the files hold; None without any. Raises `NotACapture` or `NotAllowed` where one
    cannot be read."""
    log: KeyLog | None = None
    for path in paths:
        if log is None:
            from kafkascope.captures.tls.keys.keylog import KeyLog

            log = KeyLog()
        limit = Limit(log)
        try:
            with Path(path).open("rb") as file:
                while data := file.read(PIECE):
                    log.add(data)
                    limit.took(len(data))
        except OSError as error:
            raise unreadable(os.fspath(path), error) from None
        log.finish()
    return log


class Limit:
    """Ends the reading of what has no end, or is no key log: `/dev/zero`, a disk, a pipe."""

    def __init__(self, log: KeyLog, limits: CaptureLimits = LIMITS) -> None:
        self._log = log
        self._limits: Final = limits
        self._before = log.changes
        self._bytes = 0

    def took(self, size: int) -> None:
        """Count bytes that the log took; `OSError` where there are too many."""
        self._bytes += size
        most, useless = self._limits.keylog_bytes, self._limits.keylog_useless_bytes
        if self._bytes > most:
            raise OSError(errno.EFBIG, f"larger than {most >> 30} GB")
        if self._bytes > useless and self._log.changes == self._before:
            raise OSError(
                errno.EFBIG, f"no line of its first {useless >> 20} MB is one of a key log"
            )


def follow_key_logs(paths: Iterable[str | os.PathLike[str]]) -> KeyLogFollower | None:
    """Return what follows these files; None without any. Raises as `read_key_logs` does, but for a
    file that is not there: it may come."""
    found = list(paths)
    return KeyLogFollower(found) if found else None


class KeyLogFollower:
    """Reads key logs while programs write them, as `tail -F` does: they may not be there yet, be
    truncated, or be replaced."""

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        clock: Callable[[], float] = time.monotonic,
        limits: CaptureLimits = LIMITS,
    ) -> None:
        """Read what is there by now. `clock`: seconds, which never go back."""
        from kafkascope.captures.tls.keys.keylog import KeyLog

        self.log = KeyLog()
        self._files = [_Followed(os.fspath(path), self.log, limits) for path in paths]
        self._clock = clock
        self._due = clock()
        for each in self._files:
            for line in each.all():
                self.log.take(line)
            if each.error is not None and each.error.errno != errno.ENOENT:
                self.close()
                raise unreadable(each.path, each.error)

    def close(self) -> None:
        for each in self._files:
            each.close()

    def poll(self) -> float | None:
        """Take what was written since, where it is time to look; return the time, else None."""
        now = self._clock()
        if now < self._due:
            return None
        self._due = now + EVERY
        for each in self._files:
            for line in each.lines(now):
                self.log.take(line)
        return now

    def finish(self) -> float:
        """Take what was written to the end, lines without their end as well; return the time."""
        for each in self._files:
            for line in (*each.all(), *each.finish()):
                self.log.take(line)
        return self._clock()

    def errors(self) -> list[CaptureError]:
        """Return why files cannot be read now, as sentences."""
        return [unreadable(each.path, each.error) for each in self._files if each.error]


class _Followed:
    """A file that may grow."""

    def __init__(self, path: str, log: KeyLog, limits: CaptureLimits) -> None:
        from kafkascope.captures.tls.keys.keylog import LogLines

        self.path = path
        self.error: OSError | None = None
        """Why it cannot be read; None once it can."""
        self._descriptor: int | None = None
        self._at = 0
        """Bytes that were read of the file that is open."""
        self._lines = LogLines()
        self._limit = Limit(log, limits)
        self._limits: Final = limits
        self._over = False
        """It is no key log, or too large: it is read no more."""
        self._grew: float | None = None
        """Time of the last look that found new bytes."""
        self._taken = b""
        """The line without an end that was taken last."""

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def all(self) -> Iterator[bytes]:
        """Yield the new lines of the whole file, as long as it is now."""
        size = self._open() or 0
        before = -1
        while before != self._at < size:
            before = self._at
            yield from self._new()

    def lines(self, now: float) -> Iterator[bytes]:
        """Yield new lines, of some of the bytes where there are many."""
        before = self._at
        yield from self._new()
        if self._replaced():
            # What was written to the old one meanwhile comes first.
            yield from self._new()
            yield from self.finish()
            self.close()
        if self._descriptor is None:
            self._open()
            yield from self._new()
        if self._at != before or self._grew is None:
            self._grew = now
        elif now - self._grew >= QUIET and (rest := self._lines.rest) != self._taken:
            self._taken = rest
            yield rest

    def finish(self) -> list[bytes]:
        """Return a last line without its end."""
        return self._lines.finish()

    def _replaced(self) -> bool:
        """Return whether another file has the name of the one that is open, which was read."""
        if self._descriptor is None:
            return False
        try:
            there = os.stat(self.path)  # noqa: PTH116
        except OSError:
            return False  # it may be about to come
        return not os.path.samestat(there, os.fstat(self._descriptor))

    def _open(self) -> int | None:
        """Open the file where it exists; return its size, None where it is unknown."""
        if self._over:
            return None
        try:
            if self._descriptor is None:
                # Pipes are not waited for.
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
                self._at = 0
            status = os.fstat(self._descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        except OSError as error:
            self.error = error
            self.close()
            return None
        self.error = None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def _new(self) -> Iterator[bytes]:
        """Yield the next lines of the file that is open, `keylog_read_bytes` at most."""
        if self._descriptor is None:
            return
        try:
            status = os.fstat(self._descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size < self._at:
                # It was truncated: what it has now is new.
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                self._at = 0
                self._lines.finish()
            left = self._limits.keylog_read_bytes
            while left > 0 and (data := os.read(self._descriptor, min(PIECE, left))):
                left -= len(data)
                self._at += len(data)
                yield from self._lines.add(data)
                self._limit.took(len(data))
        except BlockingIOError:
            pass  # a pipe without anything new
        except OSError as error:
            self._over = error.errno == errno.EFBIG
            self.error = error
            self.close()
