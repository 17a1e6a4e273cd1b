"""Reads .gz, .zst, .xz and .bz2: any number of members or frames, bounded memory, no delay.

All are read like a raw file: `readinto` gives what is there and waits only when nothing is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Protocol

from kafkascope.captures.errors import CutShort
from kafkascope.captures.limits import LIMITS

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
XZ: Final = b"\xfd7zXZ\0"
BZIP2: Final = b"BZh"
# Memory for xz: more than `xz -9` takes, while a hostile header may ask for 4 GB.
_XZ_MEMORY: Final = 192 << 20
_READ_BYTES: Final = 1 << 16
# Input at once: a hostile frame makes 128 KB of 4 bytes, so these stay below 16 MB.
_ZSTD_READ_BYTES: Final = 1 << 9
# The largest window that `zstd -d` accepts by default.
_ZSTD_WINDOW: Final = 1 << 27
# Uncompressed bytes at first: what shows the format is there even if damage follows it.
_FIRST: Final = 64
# Uncompressed bytes that a decoder may return at a time, where it can be limited.
_PIECE: Final = 1 << 20


class ByteStream(Protocol):
    """The part of a file's interface that reading needs."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; 0 at the end, None after a silence of `Source.patience` where that
        is set."""

    def close(self) -> None:
        """Free what the stream holds."""


class Pieces:
    """A stream of pieces that are made as they are needed."""

    def __init__(
        self, pieces: Iterator[bytes | None], close: Callable[[], object] | None = None
    ) -> None:
        """`pieces`: none of them empty; None where the stream inside is silent. `close` frees what
        they are made of."""
        self._pieces, self._close = pieces, close
        self.ready = memoryview(b"")
        """What is left of the last piece."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; 0 at the end, None for a silence. Raises what making a piece
        does."""
        ready = self.ready
        if not ready:
            piece = next(self._pieces, b"")
            if piece is None:
                return None
            ready = memoryview(piece)
        size = min(len(buffer), len(ready))
        buffer[:size] = ready[:size]
        self.ready = ready[size:]
        return size

    def close(self) -> None:
        if self._close is not None:
            self._close()


class Compressed:
    """Reads compressed bytes in small portions, and counts them."""

    def __init__(self, head: bytes, stream: ByteStream, name: str) -> None:
        """`head`: the first bytes, which were read already."""
        self._head, self._stream, self._name = head, stream, name
        self.bytes = 0

    def read(self, size: int, inside: bool) -> bytes:
        """Return some bytes, `size` at most; none at the end, where CutShort is raised `inside` of
        something."""
        data, self._head = self._head, b""
        if not data:
            room = memoryview(bytearray(size))
            while (count := self._stream.readinto(room)) is None:
                pass
            data = bytes(room[:count])
        if not data and inside:
            where = f"after byte {self.bytes} of the compressed file"
            raise CutShort(f"{self._name} is cut short {where}")
        self.bytes += len(data)
        return data

    def damaged(self, error: Exception) -> CutShort:
        where = f"about byte {self.bytes} of the compressed file"
        return CutShort(f"{self._name} is damaged {where}: {error}")


class Inflated(Pieces):
    """The uncompressed bytes of a stream; ends where they are too much for the compressed ones."""

    def __init__(
        self, pieces: Iterator[bytes], stream: ByteStream, compressed: Compressed, name: str
    ) -> None:
        super().__init__(pieces, stream.close)
        self.compressed = compressed
        """The bytes of the file; of a stream inside of another one the outer ones."""
        self._name, self._bytes = name, 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read some bytes; raise CutShort beyond the limit, and where the file is cut or
        damaged."""
        size = super().readinto(buffer)
        self._bytes += size or 0
        if self._bytes > LIMITS.inflated_free_bytes + LIMITS.inflated_ratio * self.compressed.bytes:
            what = f"expands to more than {LIMITS.inflated_ratio} times its size"
            raise CutShort(f"{self._name} {what}: the rest is skipped")
        return size


def _gunzip(source: Compressed) -> Iterator[bytes]:
    return _unpacked(source, partial(zlib.decompressobj, 31), zlib.error)  # RFC 1952


def _unzstd(source: Compressed) -> Iterator[bytes]:
    import zstandard

    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    return _unpacked(
        source,
        context.decompressobj,
        zstandard.ZstdError,
        padding=b"",
        unlimited=_ZSTD_READ_BYTES,
    )


def _unxz(source: Compressed) -> Iterator[bytes]:
    import lzma

    make = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_MEMORY)
    return _unpacked(source, make, lzma.LZMAError, EOFError)


def _unbzip2(source: Compressed) -> Iterator[bytes]:
    import bz2

    return _unpacked(source, bz2.BZ2Decompressor, OSError, ValueError, EOFError)


def _unpacked(
    source: Compressed,
    make: Callable[[], Any],
    *errors: type[Exception],
    padding: bytes = b"\0",
    unlimited: int = 0,
) -> Iterator[bytes]:
    """Uncompress members, streams or frames, one after the other; `padding` around these is
    ignored. `make` makes a decompressor of one, whose output has no limit where it is given so many
    bytes at once in place of one."""
    packer, started, most = make(), False, _FIRST
    out = b""
    while True:
        # That of zlib gives back what it had no room for; those of bz2 and lzma keep it.
        data: bytes = getattr(packer, "unconsumed_tail", b"")
        if packer.eof:
            data = packer.unused_data.lstrip(padding)
            packer, started = make(), False
        if not data and not out and getattr(packer, "needs_input", True):
            data = source.read(unlimited or _READ_BYTES, started)
            if not data:
                return
            if not started:
                data = data.lstrip(padding)
        try:
            out = packer.decompress(data) if unlimited else packer.decompress(data, most)
        except errors as error:
            raise source.damaged(error) from None
        started = started or bool(data)
        if out:
            yield out
            most = _PIECE


def is_compressed(head: bytes) -> bool:
    skippable = head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50
    bzip2 = head[:3] == BZIP2 and head[3:4].isdigit()
    return head.startswith((GZIP, ZSTD, XZ)) or skippable or bzip2


def inflate(head: bytes, stream: ByteStream, name: str) -> Inflated | None:
    """Return an uncompressing stream if the first bytes are those of a compressed file, else
    None."""
    if not is_compressed(head):
        return None
    source = Compressed(head, stream, name)
    expand = next((each for magic, each in _EXPAND if head.startswith(magic)), _unzstd)
    outer = stream.compressed if isinstance(stream, Inflated) else source
    return Inflated(expand(source), stream, outer, name)


_EXPAND: Final = ((GZIP, _gunzip), (XZ, _unxz), (BZIP2, _unbzip2))
