"""Reads .gz, .zst, .xz and .bz2: any number of members or frames, bounded memory, no delay.

All are read like a raw file: `readinto` gives what is there and waits only when nothing is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from kafkascope.captures.errors import CutShort

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
XZ: Final = b"\xfd7zXZ\0"
BZIP2: Final = b"BZh"
_XZ_MEMORY: Final = 192 << 20
"""Memory for xz: more than `xz -9` takes, while a hostile header may ask for 4 GB."""
_READ_BYTES: Final = 1 << 16
_ZSTD_READ_BYTES: Final = 1 << 9
"""Input at once: a hostile frame makes 128 KB of 4 bytes, so these stay below 16 MB."""
_ZSTD_WINDOW: Final = 1 << 27
"""The largest window that `zstd -d` accepts without being told otherwise."""


FREE_BYTES: Final = 64 << 20
MOST_RATIO: Final = 1_000
"""Of a compressed file: what it expands to beyond `FREE_BYTES`, by its own size. Captures get
ten to a hundred times smaller; 3 KB of gzip in gzip can be gigabytes of zeros."""


class Stream(Protocol):
    """The part of a file's interface that reading needs."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; 0 at the end, None where nothing comes for a while and whoever
        reads wants to know that (`Source.patience`)."""

    def close(self) -> None:
        """Free what the stream holds."""


class Pushed:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: Stream) -> None:
        self._head = head
        self._stream = stream
        self.close = stream.close

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read the first bytes again, then the rest."""
        if not self._head:
            return self._stream.readinto(buffer)
        size = min(len(buffer), len(self._head))
        buffer[:size] = self._head[:size]
        self._head = self._head[size:]
        return size


class Counted:
    """A stream that counts its bytes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.close = stream.close
        self.bytes = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read the stream's bytes."""
        size = self._stream.readinto(buffer)
        self.bytes += size or 0
        return size


class Bounded:
    """An uncompressed stream that ends where it is too much for its compressed bytes."""

    def __init__(self, stream: Stream, compressed: Counted, name: str) -> None:
        self._stream = stream
        self.close = stream.close
        self._compressed = compressed
        self._name = name
        self._bytes = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read some bytes; raise CutShort beyond the limit."""
        size = self._stream.readinto(buffer)
        self._bytes += size or 0
        if self._bytes > FREE_BYTES + MOST_RATIO * self._compressed.bytes:
            what = f"expands to more than {MOST_RATIO} times its size"
            raise CutShort(f"{self._name} {what}: the rest is skipped")
        return size


class _Source:
    """Reads compressed bytes in small portions, and counts them for errors."""

    def __init__(self, stream: Stream, size: int, name: str) -> None:
        self._stream = stream
        self._buffer = memoryview(bytearray(size))
        self._at = 0
        self._name = name

    def read(self, inside: bool) -> bytes:
        """Return some bytes; none at the end, where CutShort is raised `inside` of something."""
        while (size := self._stream.readinto(self._buffer)) is None:
            pass
        if not size and inside:
            where = f"after byte {self._at} of the compressed file"
            raise CutShort(f"{self._name} is cut short {where}")
        self._at += size
        return bytes(self._buffer[:size])

    def damaged(self, error: Exception) -> CutShort:
        """Return the error for bytes that cannot be uncompressed."""
        where = f"about byte {self._at} of the compressed file"
        return CutShort(f"{self._name} is damaged {where}: {error}")


class Gunzip:
    """Uncompresses gzip (RFC 1952), member after member; zero padding at the end is ignored."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._source = _Source(stream, _READ_BYTES, name)
        self.close = stream.close
        self._pending = b""
        self._member = zlib.decompressobj(31)
        self._started = False

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read uncompressed bytes; raise CutShort when the file is cut or damaged."""
        while True:
            if self._member.eof:
                self._pending = (self._member.unused_data or self._pending).lstrip(b"\0")
                self._member = zlib.decompressobj(31)
                self._started = False
            try:
                out = self._member.decompress(self._pending, len(buffer))
            except zlib.error as error:
                raise self._source.damaged(error) from None
            self._started = self._started or bool(self._pending)
            self._pending = self._member.unconsumed_tail
            if out:
                buffer[: len(out)] = out
                return len(out)
            if self._pending or (self._member.eof and self._member.unused_data):
                continue
            self._pending = self._source.read(self._started and not self._member.eof)
            if not self._pending:
                return 0


class Unzstd:
    """Uncompresses Zstandard (RFC 8878), frame after frame."""

    def __init__(self, stream: Stream, name: str) -> None:
        import zstandard

        self._errors = zstandard.ZstdError
        self._context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._source = _Source(stream, _ZSTD_READ_BYTES, name)
        self.close = stream.close
        self._frame = self._context.decompressobj()
        self._started = False
        self._pending = b""
        self._out = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read uncompressed bytes; raise CutShort when the file is cut or damaged."""
        while not self._out:
            if self._frame.eof:
                self._pending = self._frame.unused_data or b""
                self._frame = self._context.decompressobj()
                self._started = False
            if not self._pending:
                self._pending = self._source.read(self._started)
                if not self._pending:
                    return 0
            try:
                self._out = memoryview(self._frame.decompress(self._pending))
            except self._errors as error:
                raise self._source.damaged(error) from None
            self._started = True
            self._pending = b""
        size = min(len(buffer), len(self._out))
        buffer[:size] = self._out[:size]
        self._out = self._out[size:]
        return size


class Packer(Protocol):
    """The interface of the decompressors of xz and bzip2."""

    @property
    def eof(self) -> bool:
        """Whether the stream is at its end."""

    @property
    def needs_input(self) -> bool:
        """Whether it has to be given more before more comes out."""

    @property
    def unused_data(self) -> bytes:
        """Bytes behind the end of the stream."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return some of the uncompressed bytes."""


class Unpack:
    """Uncompresses xz and bzip2, stream after stream; zero padding around these is ignored."""

    def __init__(
        self, stream: Stream, name: str, make: Callable[[], Packer], *errors: type[Exception]
    ) -> None:
        self._make = make
        self._errors: tuple[type[Exception], ...] = (*errors, EOFError)
        self._source = _Source(stream, _READ_BYTES, name)
        self.close = stream.close
        self._packer = make()
        self._started = False

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read uncompressed bytes; raise CutShort when the file is cut or damaged."""
        while True:
            packer, data = self._packer, b""
            if packer.eof:
                data = packer.unused_data.lstrip(b"\0")
                packer = self._packer = self._make()
                self._started = False
            if not data and packer.needs_input:
                data = self._source.read(self._started)
                if not data:
                    return 0
                if not self._started:
                    data = data.lstrip(b"\0")
            try:
                out = packer.decompress(data, len(buffer))
            except self._errors as error:
                raise self._source.damaged(error) from None
            self._started = self._started or bool(data)
            if out:
                buffer[: len(out)] = out
                return len(out)


def _xz(stream: Stream, name: str) -> Stream:
    import lzma

    limit = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_MEMORY)
    return Unpack(stream, name, limit, lzma.LZMAError)


def _bzip2(stream: Stream, name: str) -> Stream:
    import bz2

    return Unpack(stream, name, bz2.BZ2Decompressor, OSError, ValueError)


def is_compressed(head: bytes) -> bool:
    """Return whether these first bytes are those of a compressed file."""
    skippable = head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50
    bzip2 = head[:3] == BZIP2 and head[3:4].isdigit()
    return head.startswith((GZIP, ZSTD, XZ)) or skippable or bzip2


def inflate(head: bytes, stream: Stream, name: str) -> Stream | None:
    """Return an uncompressing stream if the first bytes are those of a compressed file, else
    None."""
    if not is_compressed(head):
        return None
    whole = Pushed(head, stream)
    if head.startswith(GZIP):
        return Gunzip(whole, name)
    if head.startswith(XZ):
        return _xz(whole, name)
    return _bzip2(whole, name) if head.startswith(BZIP2) else Unzstd(whole, name)
