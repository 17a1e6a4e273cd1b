"""Codecs of record batches: gzip, snappy (both framings), lz4, zstd. The output is limited
before it is allocated."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Final

from kafkascope.dissectors.errors import Malformed, TooLarge
from kafkascope.dissectors.limits import LIMITS

NAMES: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Names by number in a batch's attributes."""


# Pieces that are joined are in memory twice, and so is a buffer that is made into bytes: 200 MB of
# a batch below the limit. The bytes of a `BytesIO` become its value without a copy, and it grows
# by an eighth.

# Bytes that a decoder may return at a time.
_PIECE: Final = 16 << 20


def _buffer(size: int) -> BytesIO:
    """Return a buffer of zeros for decoders that write into one."""
    buffer = BytesIO()
    buffer.seek(size - 1)
    buffer.write(b"\0")
    return buffer


_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = len(_XERIAL) + 8
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


def name_of(codec: int) -> str:
    return NAMES.get(codec) or str(codec)


def decompress(codec: int, data: bytes, limit: int = LIMITS.batch_bytes) -> bytes:
    """Expand bytes; `Malformed` when they are not of the codec, `TooLarge` beyond `limit`."""
    if codec == 0:
        return data
    if codec not in _DECOMPRESS:
        raise Malformed(f"there is no codec {codec}")
    return _DECOMPRESS[codec](data, limit)


def compress(codec: int, data: bytes) -> bytes:
    """Compress bytes as Kafka's own clients do (snappy in xerial's framing)."""
    if codec == 0:
        return data
    if codec == 1:
        return zlib.compress(data, 6, 31)
    import cramjam

    if codec == 2:
        # The framing of xerial's snappy-java, with its block size: Kafka's Java clients write it.
        blocks = (data[at : at + 32768] for at in range(0, len(data), 32768))
        packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
        head = _XERIAL + struct.pack(">ii", 1, 1)
        return head + b"".join(struct.pack(">i", len(block)) + block for block in packed)
    if codec == 3:
        # Java's reader refuses blocks that depend on each other, which are cramjam's default.
        packer = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        packer.compress(data)
        return bytes(packer.finish())
    if codec == 4:
        return bytes(cramjam.zstd.compress(data))
    raise Malformed(f"there is no codec {codec}")


def _refused(codec: int, error: Exception) -> Malformed:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return Malformed(f"no {name_of(codec)} data: {line[:120]}")


def _too_large(codec: int, limit: int) -> TooLarge:
    return TooLarge(f"the {name_of(codec)} data expands to more than {limit} bytes")


# Bytes given to the decoder at a time from the second member on: what it does not take it copies,
# and there can be a member in every 20 bytes.
_GZIP_STEP: Final = 4096


def _gzip(data: bytes, limit: int) -> bytes:
    output = _Output()
    left, at, step = limit, 0, len(data)
    try:
        while at < len(data) or output.empty:
            member = zlib.decompressobj(31)
            full = False
            while not member.eof:
                if full:  # what is left of the last piece, which may be inside of the decoder
                    piece = member.unconsumed_tail
                elif at >= len(data):
                    raise Malformed("the gzip data ends early")
                else:
                    piece = data[at : at + step]
                    at += len(piece)
                most = min(left + 1, _PIECE)
                out = member.decompress(piece, most)
                full = len(out) == most
                left -= len(out)
                if left < 0:
                    raise _too_large(1, limit)
                output.add(out)
                del out
            at -= len(member.unused_data)
            step = _GZIP_STEP
    except zlib.error as error:
        raise _refused(1, error) from None
    return output.value()


class _Output:
    """Pieces that a decoder returned: of most batches there is one, which is not copied."""

    __slots__ = ("_buffer", "_first")

    def __init__(self) -> None:
        self._first: bytes | None = None
        self._buffer: BytesIO | None = None

    def add(self, piece: bytes) -> None:
        if self._first is None:
            self._first = piece
            return
        if self._buffer is None:
            self._buffer = BytesIO()
            self._buffer.write(self._first)
            self._first = b""  # it is in memory once, while the buffer grows
        self._buffer.write(piece)

    @property
    def empty(self) -> bool:
        return self._first is None

    def value(self) -> bytes:
        return (self._first or b"") if self._buffer is None else self._buffer.getvalue()


def _snappy(data: bytes, limit: int) -> bytes:
    """Expand raw snappy, or blocks in xerial's framing. The version words after its magic are not
    looked at: some writers have them in the other byte order."""
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    output = _Output()
    left, at = limit, 0
    while at < len(data):
        if data.startswith(_XERIAL, at):  # once more where streams were put one after the other
            at += _XERIAL_HEADER
            if at > len(data):
                raise Malformed("the snappy data ends in its header")
            continue
        length = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if at + length > len(data):
            raise Malformed("a snappy block is longer than the data")
        block = _snappy_block(data[at : at + length], left)
        left -= len(block)
        at += length
        output.add(block)
        del block
    return output.value()


def _snappy_block(data: bytes, limit: int) -> bytes:
    import cramjam

    if not data:
        raise Malformed("an empty snappy block")
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        # The length that a block claims is allocated at once; three bytes of a copy make 64 bytes
        # at most.
        if size > limit:
            raise _too_large(2, limit)
        if size > 64 * len(data):
            raise Malformed(f"a snappy block of {len(data)} bytes claims to hold {size}")
        if size <= _PIECE:
            return bytes(cramjam.snappy.decompress_raw(data))
        buffer = _buffer(size)
        with buffer.getbuffer() as room:
            cramjam.snappy.decompress_raw_into(data, room)
        return buffer.getvalue()
    except cramjam.DecompressionError as error:
        raise _refused(2, error) from None


def _lz4(data: bytes, limit: int) -> bytes:
    """Expand frames into a buffer that grows up to the limit; the library has none."""
    import cramjam

    data = _with_right_header(data)
    size = min(limit, max(1 << 16, 8 * len(data)))
    while True:
        try:
            if size <= _PIECE:
                some = bytearray(size)
                return bytes(memoryview(some)[: cramjam.lz4.decompress_into(data, some)])
            buffer = _buffer(size)
            with buffer.getbuffer() as room:
                made = cramjam.lz4.decompress_into(data, room)
            buffer.truncate(made)
            return buffer.getvalue()
        except cramjam.DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise _refused(3, error) from None
        if size >= limit:
            raise _too_large(3, limit)
        size = min(limit, size * 4)


def _with_right_header(data: bytes) -> bytes:
    """Return the frame with the header checksum that the format asks for.

    For magic 0 Kafka computed it over the frame's magic number too (KAFKA-3160): strict decoders
    refuse such a frame.
    """
    if not data.startswith(_LZ4_MAGIC) or len(data) < 7:
        raise Malformed("no lz4 frame")
    flags = data[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if end >= len(data):
        raise Malformed("the lz4 frame ends in its header")
    right = xxh32(data[4:end]) >> 8 & 0xFF
    return data if data[end] == right else data[:end] + bytes([right]) + data[end + 1 :]


def xxh32(data: bytes) -> int:
    """Compute the 32-bit xxHash of fewer than 16 bytes, seed 0: all that an lz4 frame header
    needs."""
    if len(data) >= 16:
        raise ValueError("xxh32 takes short inputs only")
    mask = 0xFFFFFFFF
    value, at = 374761393 + len(data), 0
    while at + 4 <= len(data):
        value = value + int.from_bytes(data[at : at + 4], "little") * 3266489917 & mask
        value = (value << 17 | value >> 15) * 668265263 & mask
        at += 4
    for byte in data[at:]:
        value = value + byte * 374761393 & mask
        value = (value << 11 | value >> 21) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16


# The largest window that zstd's own tools take by default.
_ZSTD_WINDOW: Final = 1 << 27

# Bytes given to the decoder at first: all of a usual batch. 128 KB come of 4 bytes at most, so 64
# MB of these.
_ZSTD_FIRST: Final = 2048

# Bytes given to it from then on: 16 MB of one step.
_ZSTD_STEP: Final = 512


def _zstd(data: bytes, limit: int) -> bytes:
    import zstandard

    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    output = _Output()
    left, at = limit, 0
    try:
        while at < len(data) or output.empty:
            frame = context.decompressobj()
            while not frame.eof:
                if at >= len(data):
                    raise Malformed("the zstd data ends early")
                piece = data[at : at + (_ZSTD_FIRST if output.empty else _ZSTD_STEP)]
                out = frame.decompress(piece)
                at += len(piece)
                left -= len(out)
                if left < 0:
                    raise _too_large(4, limit)
                output.add(out)
                del out
            at -= len(frame.unused_data)
    except zstandard.ZstdError as error:
        raise _refused(4, error) from None
    return output.value()


_DECOMPRESS: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
