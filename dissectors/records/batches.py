"""Headers of record batches (magic 2) and of message sets' entries (magic 0 and 1).

A Fetch response may end inside a batch: what is not whole is a `Partial`, no error.

    batch, magic 2       base offset 8 | length 4 | leader epoch 4 | magic 1 | crc 4 | attributes 2
    | last offset delta 4 |
                         base timestamp 8 | max timestamp 8 | producer id 8 | producer epoch 2 |
                         base sequence 4 | count 4 | records
    entry, magic 0 and 1 offset 8 | length 4 | crc 4 | magic 1 | attributes 1 | timestamp 8 (magic
    1) | key 4+n | value 4+n
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final, NamedTuple

from kafkascope.dissectors.errors import Malformed
from kafkascope.dissectors.records.compression import name_of

# Bytes of a magic 2 batch before its records.
HEADER_SIZE: Final = 61

# Bytes of offset (or base offset) and length, which the length does not count.
_START: Final = 12
_MAGIC_AT: Final = 16
_LEAST: Final = {0: 14, 1: 22, 2: HEADER_SIZE - _START}
"""Least value of the length field, by magic."""

_PREFIX: Final = struct.Struct(">qi")
_V2: Final = struct.Struct(">qiibIhiqqqhii")
_v2_of: Final = _V2.unpack_from
_ENTRY: Final = struct.Struct(">qiIbb")
_LONG: Final = struct.Struct(">q")

CODEC_MASK: Final = 7
LOG_APPEND_TIME: Final = 8
TRANSACTIONAL: Final = 16
CONTROL: Final = 32
DELETE_HORIZON: Final = 64


class Batch(NamedTuple):
    """A record batch, or one entry of a message set: where it lies and what its header says."""

    at: int
    """Offset in the records field."""
    size: int
    """Bytes, header included."""
    magic: int
    base_offset: int
    """For a message set's entry: its own offset; of a compressed one that is the offset of its last
    message."""
    last_offset: int
    leader_epoch: int
    crc: int
    """Checksum as stated; `crc_of` computes it."""
    attributes: int
    base_timestamp: int
    """Milliseconds; -1 in magic 0."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int | None
    """Records; None for a compressed message set that was not opened."""

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def codec_name(self) -> str:
        return name_of(self.attributes & CODEC_MASK)

    @property
    def log_append_time(self) -> bool:
        """Return whether the broker's time applies to all records."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return self.magic == 2 and bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> bool:
        """Whether the base timestamp is the time from which on tombstones may go."""
        return self.magic == 2 and bool(self.attributes & DELETE_HORIZON)


# Makes a `Batch` of a tuple without a Python frame.
_batch = partial(tuple.__new__, Batch)


class Partial(NamedTuple):
    """A batch that the field's end cuts."""

    at: int
    size: int


def batches(data: bytes) -> Iterator[Batch | Partial]:
    """Walk a records field without expanding anything; `Malformed` at the first nonsense."""
    at, size = 0, len(data)
    while at < size:
        left = size - at
        if left < _MAGIC_AT + 1:
            yield Partial(at, left)
            return
        base, length = _PREFIX.unpack_from(data, at)
        magic = data[at + _MAGIC_AT]
        if magic not in _LEAST:
            raise Malformed(f"there is no magic {magic}", offset=at + _MAGIC_AT)
        if length < _LEAST[magic]:
            raise Malformed(
                f"a batch of magic {magic} cannot be {length} bytes long", offset=at + 8
            )
        if _START + length > left:
            yield Partial(at, left)
            return
        yield _batch_v2(data, at, base, length) if magic == 2 else _entry(data, at, length)
        at += _START + length


def only_batch(data: bytes) -> Batch | None:
    """Return the batch that a records field is, when it is one of magic 2 and no more: by far most
    are. None else, also for damaged ones."""
    size = len(data)
    if size < HEADER_SIZE or data[_MAGIC_AT] != 2:
        return None
    base, length, epoch, _, crc, bits, delta, first, last, who, its, at, count = _v2_of(data)
    if _START + length != size:
        return None
    end = base + delta
    return _batch((0, size, 2, base, end, epoch, crc, bits, first, last, who, its, at, count))


def _batch_v2(data: bytes, at: int, base: int, length: int) -> Batch:
    fields = _V2.unpack_from(data, at)
    _, _, epoch, _, crc, attributes, delta = fields[:7]
    # What is after them stands in the same order in a `Batch`.
    head = at, _START + length, 2, base, base + delta, epoch, crc, attributes
    return _batch(head + fields[7:])


def _entry(data: bytes, at: int, length: int) -> Batch:
    offset, _, crc, magic, attributes = _ENTRY.unpack_from(data, at)
    time = _LONG.unpack_from(data, at + 18)[0] if magic else -1
    # A message may carry any attribute bits above the ones its magic knows.
    attributes &= 0xF if magic else CODEC_MASK
    count = None if attributes & CODEC_MASK else 1
    return Batch(
        at,
        _START + length,
        magic,
        offset,
        offset,
        -1,
        crc,
        attributes,
        time,
        time,
        -1,
        -1,
        -1,
        count,
    )


@cache
def _crc32c() -> Callable[[bytes], int]:
    """Return what computes a CRC-32C; loaded when the first batch is there."""
    import google_crc32c

    value: Callable[[bytes], int] = google_crc32c.value
    return value


def crc_of(data: bytes, batch: Batch) -> int:
    """Compute the checksum of the batch's bytes: CRC-32C from the attributes on, CRC-32 from the
    magic on before magic 2."""
    end = batch.at + batch.size
    if batch.magic == 2:
        return _crc32c()(data[batch.at + 21 : end])
    return zlib.crc32(memoryview(data)[batch.at + 16 : end])


def crc_ok(data: bytes, batch: Batch) -> bool:
    return crc_of(data, batch) == batch.crc


def aligned(data: bytes) -> Iterator[Batch | Partial]:
    """Walk bytes that may begin inside a batch, as `batches` does; what stands before the first
    whole one is a `Partial`.

    FetchSnapshot hands out a snapshot in pieces that end and begin at any byte (KIP-630).
    """
    at = _find_batch(data)
    if at:
        yield Partial(0, at)
    for each in batches(data[at:]):
        yield each._replace(at=each.at + at)


def _find_batch(data: bytes) -> int:
    """Return the offset of the first magic 2 batch with a right checksum, else of the first that
    ends beyond the data and has a header that makes sense, else the length of the data."""
    if len(data) <= _MAGIC_AT:
        # Too short to tell: taken for the start of a batch where the field begins.
        return 0
    # Made-up bytes could look like the head of a long batch everywhere: the work stays linear.
    budget = 16 * len(data)
    cut, found = len(data), _MAGIC_AT - 1
    while budget > 0 and (found := data.find(b"\2", found + 1)) >= 0:
        at = found - _MAGIC_AT
        batch = _possible_batch(data, at)
        if batch is None:
            continue
        if at + batch.size > len(data):
            cut = min(cut, at)
        elif crc_ok(data, batch):
            return at
        else:
            budget -= batch.size
    return cut


def _possible_batch(data: bytes, at: int) -> Batch | None:
    if at + HEADER_SIZE > len(data):
        return None
    base, length = _PREFIX.unpack_from(data, at)
    if base < 0 or length < _LEAST[2]:
        return None
    batch = _batch_v2(data, at, base, length)
    count = batch.record_count or 0
    plausible = batch.last_offset >= base and batch.attributes >> 7 == 0 and batch.codec <= 4
    return batch if plausible and 0 <= count <= batch.last_offset - base + 1 else None
