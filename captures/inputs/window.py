"""A window over a stream of bytes, and how reading goes on after damage."""

from __future__ import annotations

from typing import Final

from kafkascope.captures.formats.records import CUT, WINDOW, FileGap, Format, add_gap
from kafkascope.captures.inputs.inflate import ByteStream
from kafkascope.captures.inputs.restored import (
    LINE_FEEDS,
    has_line_feeds_changed,
    is_epilogue,
    text_in_place,
)
from kafkascope.captures.inputs.spool import Spool
from kafkascope.captures.limits import LIMITS

# Bytes after damage that are compared with what capturing programs say.
LOOKED: Final = 4096
# Spare bytes after a buffer: headers may be read before their lengths are checked.
SLACK: Final = 64


class Window:
    """A buffer that moves over a stream as its front is done with."""

    def __init__(
        self, stream: ByteStream, head: bytes, size: int, spool: Spool | None, base: int
    ) -> None:
        """`head`: bytes of the stream that were read before, the first of them byte `base` of the
        file; `size`: bytes to have at once."""
        self.buffer = bytearray(max(size, len(head)) + SLACK)
        self.buffer[: len(head)] = head
        self.base = base
        """Offset of the buffer's first byte in the (uncompressed) file."""
        self.at = 0
        """Position in the buffer; the bytes before it are done with."""
        self.keep = 0
        """Position from which on bytes stay in the buffer; never after `at`."""
        self.end = len(head)
        """Position after the last byte that was read."""
        self._stream, self._spool = stream, spool

    @property
    def offset(self) -> int:
        """Offset of `at` in the file."""
        return self.base + self.at

    def more(self, wanted: int) -> bool | None:
        """Read on, in a buffer that has room for `wanted` bytes from `at`; False at the end of the
        stream, None where nothing comes for a while."""
        keep = min(self.keep, self.at)
        rest, wanted = self.end - keep, wanted + self.at - keep
        if wanted > len(self.buffer) - SLACK:
            # Twice as large at least: records that grow by little would be copied each time.
            larger = bytearray(max(wanted, 2 * (len(self.buffer) - SLACK)) + SLACK)
            larger[:rest] = self.buffer[keep : self.end]
            self.buffer = larger
        elif rest and keep:
            self.buffer[:rest] = self.buffer[keep : self.end]
        self.base += keep
        self.at -= keep
        self.keep, self.end = 0, rest
        size = self._read(memoryview(self.buffer)[rest : len(self.buffer) - SLACK])
        self.end += size or 0
        return None if size is None else size > 0

    def fill(self, size: int) -> bool:
        """Read until there are so many bytes from `at` on; False when the stream ends before."""
        while self.end - self.at < size:
            if self.more(size) is False:
                return False
        return True

    def skip(self, size: int) -> bool:
        """Go on `size` bytes further, or back into what is kept; False when the stream ends."""
        here = min(size, self.end - self.at)
        self.at += here
        size -= here
        if size:
            self.base += self.at
            self.at = self.keep = self.end = 0
        while size:
            read = self._read(memoryview(self.buffer)[: min(size, len(self.buffer) - SLACK)])
            if read == 0:
                return False
            self.base += read or 0
            size -= read or 0
        return True

    def _read(self, room: memoryview) -> int | None:
        size = self._stream.readinto(room)
        if self._spool is not None:
            self._spool.write(room[: size or 0])
        return size


def passed(format_: Format, window: Window, gaps: list[FileGap]) -> bool:
    """Go on after damage, or after a record that is not whole at the end of the file; False when
    nothing can be read there."""
    begin, reason, beyond = window.offset, format_.damage or CUT, format_.beyond
    format_.damage, format_.beyond = "", 0
    whole = window.fill(LOOKED)
    ahead = bytes(window.buffer[window.at : min(window.end, window.at + LOOKED)])
    if not whole and is_epilogue(ahead):
        return False
    reason = text_in_place(ahead) or reason
    if not gaps and has_line_feeds_changed(window.buffer, window.end):
        reason += f" ({LINE_FEEDS}: capture without -t)"
    resume: int | None = None
    if beyond:
        window.at += beyond
        resume = window.offset
    elif not format_.hopeless and len(gaps) < LIMITS.gaps:
        resume = _searched(format_, window)
    add_gap(gaps, FileGap(begin, resume, reason))
    return resume is not None


def _searched(format_: Format, window: Window) -> int | None:
    """Move the window to the next record that is surely one; return its offset in the file.

    The damage may be the length of the record before, which then hides others: so it is searched,
    too.
    """
    damaged = window.offset
    window.at = min(window.keep, window.at) + 1
    while True:
        whole = window.fill(WINDOW)
        size = min(window.end - window.at, WINDOW)
        data = window.buffer[window.at : window.at + size]
        found = format_.search(data, not whole, damaged - window.offset)
        if found.at is not None:
            window.at = window.keep = window.at + found.at
            return window.offset
        if not whole:
            return None
        window.at = window.keep = window.at + max(found.rest, WINDOW >> 2)
