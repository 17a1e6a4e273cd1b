"""Heads of batches in a segment, without what is in them.

offset 8 | length of the rest 4 | epoch, or checksum 4 | magic 1 | ...   last offset delta at 23
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple

from kafkascope.dissectors.records.batches import CODEC_MASK

MAGIC_AT: Final = 16
NEWEST: Final = 2
_HEAD: Final = struct.Struct(">qiibb")
"""Base offset, length of the rest, epoch (or checksum), magic, attributes of the old formats."""
_NEW: Final = struct.Struct(">hi")
_ATTRIBUTES_AT: Final = 21
_HEAD_BYTES: Final = 27
LEAST_LENGTH: Final = 14
WINDOW: Final = 1 << 16
CHECKED: Final = 1 << 20
"""Bytes that are summed up at a time."""
SIGNED: Final = 127
"""Magic bytes above are negative, which brokers take for the old formats."""
_CHECKSUM: Final = struct.Struct(">I")


class BatchHead(NamedTuple):
    """A batch, or an entry of an old message set."""

    at: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    compressed: bool


def head_at(file: BinaryIO, at: int, size: int) -> BatchHead | None:
    """Return the head of the batch there; None when none begins there."""
    file.seek(at)
    return _head(file.read(_HEAD_BYTES), 0, at, size)


def sound_at(file: BinaryIO, at: int, size: int) -> bool:
    """Return whether the checksum of what begins there is right: of a batch of `size` bytes, of
    which a window at a time is read. Damaged lengths may reach over a gigabyte."""
    file.seek(at)
    data = file.read(min(size, CHECKED))
    if len(data) <= MAGIC_AT or data[MAGIC_AT] > SIGNED:
        return False
    new = data[MAGIC_AT] >= NEWEST
    begin, place = (_ATTRIBUTES_AT, 17) if new else (MAGIC_AT, 12)
    if size < begin:
        return False
    (stated,) = _CHECKSUM.unpack_from(data, place)
    more: Callable[[int, bytes], int]
    if new:
        import google_crc32c

        more = google_crc32c.extend
    else:
        more = _crc32
    found = more(0, data[begin:])
    left = size - len(data)
    while left > 0:
        data = file.read(min(left, CHECKED))
        if not data:
            return False
        found = more(found, data)
        left -= len(data)
    return bool(found == stated)


def _crc32(before: int, data: bytes) -> int:
    return zlib.crc32(data, before)


def heads(file: BinaryIO) -> Iterator[BatchHead]:
    """Yield where batches stand, up to the first nonsense. Heads of small ones are read many at a
    time."""
    size = file.seek(0, 2)
    at = begin = 0
    window = b""
    while True:
        if at + _HEAD_BYTES > begin + len(window):
            file.seek(at)
            begin, window = at, file.read(WINDOW)
        head = _head(window, at - begin, at, size)
        if head is None:
            return
        yield head
        at += head.size


def _head(data: bytes, place: int, at: int, size: int) -> BatchHead | None:
    if len(data) - place < _HEAD_BYTES:
        # An entry of 26 bytes holds nothing: no key and no value.
        return None
    base, length, _, magic, attributes = _HEAD.unpack_from(data, place)
    if length < LEAST_LENGTH or magic < 0 or at + 12 + length > size:
        return None
    delta = 0
    if magic >= NEWEST:
        attributes, delta = _NEW.unpack_from(data, place + _ATTRIBUTES_AT)
    return BatchHead(at, 12 + length, magic, base, base + delta, bool(attributes & CODEC_MASK))
