"""A bounded ring on disk for bytes that cannot be read a second time, and what is kept in such
rings. The only writer is the reader of the source."""

from __future__ import annotations

import os
import struct
from io import FileIO
from typing import TYPE_CHECKING, Final

from kafkascope.captures.errors import CaptureError
from kafkascope.captures.model import Packet

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import Block
    from kafkascope.private import PrivateFile

# Bytes of disk that a live session may take.
DEFAULT_BYTES: Final = 1 << 30
# Capacity of a spool that keeps everything.
UNBOUNDED: Final = 1 << 62


_PLACE: Final = struct.Struct("<qIIiIqI")
"""Time, link type, size, interface, file, offset, size on the wire."""


class NotKept(CaptureError):
    """Bytes were overwritten in the ring, or never got into it."""


class Spool:
    """Keeps the last `capacity` bytes written. The file has no name, so it goes with the process,
    however that ends."""

    def __init__(self, capacity: int = DEFAULT_BYTES, descriptor: int | None = None) -> None:
        """`descriptor`: an open file in place of a new one, shared with another process."""
        self.capacity = capacity
        self.written = 0
        """Bytes written so far; the address of the next one."""
        self._kept_from = 0
        from tempfile import TemporaryFile  # slow to import, and few sources need it

        self._file = (
            TemporaryFile(buffering=0)  # noqa: SIM115
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
        return self._file.fileno()

    def state(self) -> tuple[int, int]:
        """Return the end and the start of what is kept, as addresses, for `follow`."""
        return self.written, max(self._kept_from, self.written - self.capacity)

    def follow(self, state: tuple[int, int], margin: int) -> None:
        """Read what another process writes to the same file. `margin`: bytes that it may have
        written since it gave its state; as many of the oldest ones count as gone."""
        self.written, kept_from = state
        self._kept_from = max(kept_from, self.written - self.capacity + margin)

    def release(self, before: int) -> None:
        """Give up the bytes before an address."""
        self._kept_from = max(self._kept_from, before)

    def close(self) -> None:
        self._file.close()


class Tee(Spool):
    """Writes all bytes to `copy`; the last `capacity` ones can be read again."""

    def __init__(
        self, copy: PrivateFile, capacity: int = DEFAULT_BYTES, descriptor: int | None = None
    ) -> None:
        """`copy` is unbuffered; the caller publishes, closes or discards it."""
        self._copy = copy.file
        super().__init__(capacity, descriptor=descriptor)

    def write(self, data: bytes | memoryview) -> int:
        view = memoryview(data)
        while view:
            view = view[self._copy.write(view) :]
        return super().write(data)


class PacketPlaces:
    """The places of all packets of a source, by number; of blocks one after the other."""

    def __init__(self) -> None:
        self._spool = Spool(UNBOUNDED)
        self._first: int | None = None

    def add(self, block: Block) -> None:
        if self._first is None:
            self._first = block.number
        self._spool.write(
            b"".join(
                _PLACE.pack(
                    each.time_ns,
                    each.link_type,
                    len(each.data),
                    each.interface,
                    each.file,
                    each.at,
                    each.length,
                )
                for each in block.packets()
            )
        )

    def get(self, number: int) -> tuple[Packet, int] | None:
        """Return a packet without its data, and the bytes of it that were captured; None for one
        that was not read."""
        at = (number - (self._first or 0)) * _PLACE.size
        if self._first is None or at < 0 or at >= self._spool.written:
            return None
        found = _PLACE.unpack(self._spool.read(at, _PLACE.size))
        time_ns, link_type, size, interface, file, offset, wire = found
        return Packet(number, time_ns, link_type, b"", wire, file, offset, interface), size

    def close(self) -> None:
        self._spool.close()
