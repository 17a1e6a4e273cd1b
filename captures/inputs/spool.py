"""A bounded ring on disk for bytes that cannot be read a second time. The only writer is the
reader of the source."""

from __future__ import annotations

import os
from io import FileIO
from typing import Final

from kafkascope.captures.errors import CaptureError

DEFAULT_BYTES: Final = 1 << 30
"""Bytes of disk that a live session may take."""
UNBOUNDED: Final = 1 << 62
"""Capacity of a spool that keeps everything."""


class NotKept(CaptureError):
    """Bytes were overwritten in the ring, or never got into it."""


class Spool:
    """Keeps the last `capacity` bytes written. The file has no name, so it goes with the process,
    however that ends."""

    def __init__(
        self,
        capacity: int = DEFAULT_BYTES,
        directory: str | None = None,
        descriptor: int | None = None,
    ) -> None:
        """`descriptor`: an open file in place of a new one, shared with another process."""
        self.capacity = capacity
        self.written = 0
        """Bytes written so far; the address of the next one."""
        self._kept_from = 0
        from tempfile import TemporaryFile  # slow to import, and few sources need it

        self._file = (
            TemporaryFile(buffering=0, dir=directory)  # noqa: SIM115
            if descriptor is None
            else FileIO(descriptor, "r+")
        )

    def write(self, data: bytes | memoryview) -> int:
        """Keep `data`; return its address. A full disk costs the bytes, not the session."""
        at = self.written
        view = memoryview(data)
        self.written += len(view)
        if len(view) > self.capacity:
            view = view[-self.capacity :]
        place = self.written - len(view)
        try:
            while view:
                start = place % self.capacity
                room = min(len(view), self.capacity - start)
                done = os.pwrite(self._file.fileno(), view[:room], start)
                place += done
                view = view[done:]
        except OSError:
            self._kept_from = self.written
        return at

    def read(self, at: int, size: int) -> bytes:
        """Return the bytes at an address from `write`; NotKept when others took their place."""
        first = max(self._kept_from, self.written - self.capacity)
        if at < first or at + size > self.written:
            raise NotKept("bytes no longer kept")
        parts = []
        while size:
            start = at % self.capacity
            part = os.pread(self._file.fileno(), min(size, self.capacity - start), start)
            if not part:
                raise NotKept("bytes no longer kept")
            parts.append(part)
            at += len(part)
            size -= len(part)
        return b"".join(parts)

    def fileno(self) -> int:
        """Return the descriptor of the ring's file."""
        return self._file.fileno()

    def state(self) -> tuple[int, int]:
        """Return the end and the begin of what is kept, as addresses, for `follow`."""
        return self.written, max(self._kept_from, self.written - self.capacity)

    def follow(self, state: tuple[int, int], margin: int) -> None:
        """Read what another process writes to the same file. `margin`: bytes that it may have
        written since it told its state; as many of the oldest ones count as gone."""
        self.written, kept_from = state
        self._kept_from = max(kept_from, self.written - self.capacity + margin)

    def release(self, before: int) -> None:
        """Give up the bytes before an address."""
        self._kept_from = max(self._kept_from, before)

    def close(self) -> None:
        """Free the disk."""
        self._file.close()
