"""What a records field holds: record batches (magic 2) and message sets (magic 0 and 1).

Two steps, for most callers need the first one only: `batches` walks the headers and expands
nothing, `open_batch` reads the
records of one batch. A Fetch response may end inside a batch: what is not whole is a `Partial`, no
error.

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
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dissectors.compression import OUTPUT_LIMIT, decompress, name_of
from dissectors.errors import DissectError, Malformed, TooLarge, Truncated

HEADER_SIZE: Final = 61
"""Bytes of a magic 2 batch before its records."""

_START: Final = 12
"""Offset (or base offset) and length: what is there before the length counts."""
_MAGIC_AT: Final = 16
_LEAST: Final = {0: 14, 1: 22, 2: HEADER_SIZE - _START}
"""Magic -> least value of the length field."""

_PREFIX: Final = struct.Struct(">qi")
_V2: Final = struct.Struct(">qiibIhiqqqhii")
_ENTRY: Final = struct.Struct(">qiIbb")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")

CODEC_MASK: Final = 7
LOG_APPEND_TIME: Final = 8
TRANSACTIONAL: Final = 16
CONTROL: Final = 32
DELETE_HORIZON: Final = 64

MAX_DEPTH: Final = 3
"""Message sets within message sets: no release writes more than one level, nothing needs more."""

Header = tuple[str, bytes | None]


class Batch(NamedTuple):
    """A record batch, or one entry of a message set: where it lies and what its header says."""

    at: int
    """Offset in the records field."""
    size: int
    """Bytes, header included."""
    magic: int
    base_offset: int
    """Of a message set's entry: its own offset; of a compressed one that is the offset of its
    last message."""
    last_offset: int
    leader_epoch: int
    crc: int
    """As stated; `crc_of` computes it."""
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
        """Number of the codec."""
        return self.attributes & CODEC_MASK

    @property
    def codec_name(self) -> str:
        """Name of the codec."""
        return name_of(self.attributes & CODEC_MASK)

    @property
    def log_append_time(self) -> bool:
        """The broker's time stands for all records."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        """Part of a transaction."""
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Holds control records, written by brokers."""
        return self.magic == 2 and bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> bool:
        """The base timestamp is the time at which tombstones may go."""
        return self.magic == 2 and bool(self.attributes & DELETE_HORIZON)


class Partial(NamedTuple):
    """A batch that the field's end cuts."""

    at: int
    size: int


class Record(NamedTuple):
    """One record, with absolute offset and time."""

    offset: int
    timestamp: int | None
    """Milliseconds; None in magic 0."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]


class Opened(NamedTuple):
    """The records of a batch, as far as they could be read."""

    records: list[Record]
    error: DissectError | None
    """What stopped the reading; the records before it are there."""


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


def _batch_v2(data: bytes, at: int, base: int, length: int) -> Batch:
    fields = _V2.unpack_from(data, at)
    (
        _,
        _,
        epoch,
        _,
        crc,
        attributes,
        delta,
        first,
        last,
        producer,
        producer_epoch,
        sequence,
        count,
    ) = fields
    return Batch(
        at,
        _START + length,
        2,
        base,
        base + delta,
        epoch,
        crc,
        attributes,
        first,
        last,
        producer,
        producer_epoch,
        sequence,
        count,
    )


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


def crc_of(data: bytes, batch: Batch) -> int:
    """The checksum that the batch's bytes have: CRC-32C from the attributes on, CRC-32 from the
    magic on before magic 2."""
    end = batch.at + batch.size
    if batch.magic == 2:
        import google_crc32c

        return int(google_crc32c.value(data[batch.at + 21 : end]))
    return zlib.crc32(memoryview(data)[batch.at + 16 : end])


def crc_ok(data: bytes, batch: Batch) -> bool:
    """Whether the stated checksum is the right one."""
    return crc_of(data, batch) == batch.crc


def open_batch(data: bytes, batch: Batch, limit: int = OUTPUT_LIMIT) -> Opened:
    """The records of a batch of `data`; expands them up to `limit` bytes."""
    if batch.magic != 2:
        return _open_entry(data, batch, limit)
    body = data[batch.at + HEADER_SIZE : batch.at + batch.size]
    try:
        body = decompress(batch.codec, body, limit)
    except DissectError as error:
        error.offset = batch.at + HEADER_SIZE
        return Opened([], error)
    stamp = batch.max_timestamp if batch.log_append_time else None
    return read_records(
        body, batch.record_count or 0, batch.base_offset, batch.base_timestamp, stamp
    )


def read_records(
    body: bytes, count: int, base_offset: int, base_timestamp: int, stamp: int | None = None
) -> Opened:
    """The records of an expanded magic 2 body; `stamp` is the time of all of them under log append
    time.

    The one hand-written hot loop of the package: a generic reader would take three times as long.
    """
    records: list[Record] = []
    at, size, new = 0, len(body), tuple.__new__
    if count < 0 or count * 7 > size:
        # A record takes 7 bytes at least.
        reason = f"{count} records are stated, the body has {size} bytes"
        return Opened(records, Malformed(reason, path="records"))
    try:
        for _ in range(count):
            length = body[at]
            at += 1
            if length > 127:
                high = body[at]
                if high < 128:  # two bytes, the usual size: a call would cost as much as the rest
                    length = length & 0x7F | high << 7
                    at += 1
                else:
                    length, at = _varint(body, at - 1)
            length = length >> 1 ^ -(length & 1)
            end = at + length
            if length < 6 or end > size:
                raise _bad_length(length, size - at, at)
            at += 1  # attributes: no release uses them
            stamp_delta = body[at]
            at += 1
            if stamp_delta > 127:
                high = body[at]
                if high < 128:
                    stamp_delta = stamp_delta & 0x7F | high << 7
                    at += 1
                else:
                    stamp_delta, at = _varlong(body, at - 1)
            offset_delta = body[at]
            at += 1
            if offset_delta > 127:
                high = body[at]
                if high < 128:
                    offset_delta = offset_delta & 0x7F | high << 7
                    at += 1
                else:
                    offset_delta, at = _varint(body, at - 1)
            length = body[at]
            at += 1
            if length > 127:
                high = body[at]
                if high < 128:
                    length = length & 0x7F | high << 7
                    at += 1
                else:
                    length, at = _varint(body, at - 1)
            if length & 1:
                key = None
            else:
                stop = at + (length >> 1)
                key = body[at:stop]
                at = stop
            length = body[at]
            at += 1
            if length > 127:
                high = body[at]
                if high < 128:
                    length = length & 0x7F | high << 7
                    at += 1
                else:
                    length, at = _varint(body, at - 1)
            if length & 1:
                value = None
            else:
                stop = at + (length >> 1)
                value = body[at:stop]
                at = stop
            headers: Sequence[Header] = ()
            length = body[at]
            at += 1
            if length:
                headers, at = _read_headers(body, at - 1, end)
            if at != end:
                raise Malformed(f"a record of {end} bytes has {at}", offset=at)
            records.append(
                new(
                    Record,
                    (
                        base_offset + (offset_delta >> 1 ^ -(offset_delta & 1)),
                        base_timestamp + (stamp_delta >> 1 ^ -(stamp_delta & 1))
                        if stamp is None
                        else stamp,
                        key,
                        value,
                        headers,
                    ),
                )
            )
    except IndexError:
        error: DissectError = Truncated("the bytes end inside a record", offset=at)
    except DissectError as found:
        error = found
    else:
        if at == size:
            return Opened(records, None)
        error = Malformed(f"{size - at} bytes follow the last record", offset=at)
    error.path = f"records[{len(records)}]"
    return Opened(records, error)


def _bad_length(length: int, left: int, at: int) -> DissectError:
    if length > left:
        return Truncated(f"a record of {length} bytes, {left} are left", offset=at)
    return Malformed(f"a record cannot be {length} bytes long", offset=at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 5 bytes; the caller undoes the zigzag."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, at
        shift += 7
        if shift > 28:
            raise Malformed("a varint of more than 5 bytes", offset=at)


def _varlong(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varlong of at most 10 bytes."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise Malformed("a varlong of more than 10 bytes", offset=at)


def _read_headers(body: bytes, at: int, end: int) -> tuple[list[Header], int]:
    headers: list[Header] = []
    count, at = _varint(body, at)
    if count & 1 or count > end - at:
        # A header takes two bytes at least, and the count stands doubled.
        raise Malformed(f"{count >> 1 ^ -(count & 1)} headers are stated", offset=at)
    for _ in range(count >> 1):
        length, at = _varint(body, at)
        stop = at + (length >> 1)
        if length & 1 or stop > end:
            raise Malformed("the key of a header does not fit", offset=at)
        key = body[at:stop].decode("utf-8", "surrogateescape")
        length, at = _varint(body, stop)
        if length & 1:
            headers.append((key, None))
            continue
        stop = at + (length >> 1)
        if stop > end:
            raise Malformed("the value of a header does not fit", offset=at)
        headers.append((key, body[at:stop]))
        at = stop
    return headers, at


def _open_entry(data: bytes, batch: Batch, limit: int, depth: int = 0) -> Opened:
    """The messages of one entry of a message set."""
    at = batch.at + (26 if batch.magic else 18)
    end = batch.at + batch.size
    try:
        key, at = _plain_bytes(data, at, end, "key")
        value, at = _plain_bytes(data, at, end, "value")
        if at != end:
            raise Malformed(f"{end - at} bytes follow the value", offset=at)
        if batch.codec == 0:
            time = batch.base_timestamp if batch.magic else None
            return Opened([Record(batch.base_offset, time, key, value, ())], None)
        if value is None:
            raise Malformed("a compressed message has no value", offset=at)
        if depth >= MAX_DEPTH:
            raise TooLarge(f"message sets nested more than {MAX_DEPTH} deep", offset=batch.at)
        inner = decompress(batch.codec, value, limit)
    except DissectError as error:
        return Opened([], error)
    return _open_wrapped(inner, batch, limit, depth)


def _open_wrapped(inner: bytes, wrapper: Batch, limit: int, depth: int) -> Opened:
    records: list[Record] = []
    error: DissectError | None = None
    try:
        for each in batches(inner):
            if isinstance(each, Partial):
                raise Truncated("the message set ends inside a message", offset=each.at)
            if each.magic == 2:
                raise Malformed("a record batch inside a message set", offset=each.at)
            opened = _open_entry(inner, each, limit, depth + 1)
            records += opened.records
            if opened.error is not None:
                raise opened.error
    except DissectError as found:
        error = found
    if wrapper.magic == 0 or not records:
        return Opened(records, error)
    # Magic 1: offsets inside are relative, the wrapper has the absolute one of the last message.
    base = wrapper.base_offset - records[-1].offset
    time = wrapper.base_timestamp if wrapper.log_append_time else None
    return Opened(
        [
            Record(
                r.offset + base, r.timestamp if time is None else time, r.key, r.value, r.headers
            )
            for r in records
        ],
        error,
    )


def _plain_bytes(data: bytes, at: int, end: int, name: str) -> tuple[bytes | None, int]:
    if at + 4 > end:
        raise Truncated(f"the {name} is missing", offset=at, path=name)
    (length,) = _INT.unpack_from(data, at)
    at += 4
    if length == -1:
        return None, at
    if length < 0 or at + length > end:
        raise Malformed(
            f"a {name} of {length} bytes, {end - at} are left", offset=at - 4, path=name
        )
    return data[at : at + length], at + length


def aligned(data: bytes) -> Iterator[Batch | Partial]:
    """Like `batches`, of bytes that may begin inside a batch: what stands before the first whole
    one is a `Partial`.

    FetchSnapshot hands out a snapshot in pieces that end and begin at any byte (KIP-630).
    """
    at = _find_batch(data)
    if at:
        yield Partial(0, at)
    for each in batches(data[at:]):
        yield each._replace(at=each.at + at)


def _find_batch(data: bytes) -> int:
    """Offset of the first magic 2 batch that is whole with a right checksum, or that ends beyond
    the data with a header that makes sense; the length of the data when there is none."""
    # Made-up bytes could look like the head of a long batch everywhere: the work stays linear.
    budget = 16 * len(data)
    for at in range(len(data)):
        magic = data[at + _MAGIC_AT : at + _MAGIC_AT + 1]
        if not magic:
            # Too short to tell: taken for the start of a batch only where the field begins.
            return at if at == 0 else len(data)
        if magic != b"\2" or (batch := _possible_batch(data, at)) is None:
            continue
        if at + batch.size > len(data) or crc_ok(data, batch):
            return at
        budget -= batch.size
        if budget < 0:
            break
    return len(data)


def _possible_batch(data: bytes, at: int) -> Batch | None:
    if at + HEADER_SIZE > len(data):
        return None
    base, length = _PREFIX.unpack_from(data, at)
    if base < 0 or length < _LEAST[2]:
        return None
    batch = _batch_v2(data, at, base, length)
    plausible = batch.last_offset >= base and batch.attributes >> 7 == 0 and batch.codec <= 4
    return batch if plausible else None
