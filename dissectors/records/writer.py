"""Writes record batches and message sets as Kafka's clients do, for fixtures, the proxy and
tests."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import google_crc32c

from kafkascope.dissectors.errors import Malformed
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    Batch,
    Record,
    crc_of,
)

_V2_REST: Final = struct.Struct(">hiqqqhii")
"""Fields from the attributes to the count, which the CRC covers before the records."""


def varint(value: int) -> bytes:
    """Encode a zigzag varint or varlong."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _size_of(data: bytes | None) -> bytes:
    """Encode the length of a key or value: -1 for none."""
    return varint(-1 if data is None else len(data))


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """Encode one record of a magic 2 batch, length first."""
    key, value = record.key, record.value
    head = b"\0" + varint((record.timestamp or 0) - base_timestamp)
    head += varint(record.offset - base_offset) + _size_of(key)
    tail = bytearray(varint(len(record.headers)))
    for name, octets in record.headers:  # in place: there may be millions
        text = name.encode("utf-8", "surrogateescape")
        tail += _size_of(text) + text + _size_of(octets)
        tail += octets or b""
    # Joined once: a value may be a hundred megabytes.
    parts = (head, key or b"", _size_of(value), value or b"", tail)
    return b"".join((varint(sum(map(len, parts))), *parts))


def encode_batch(
    records: Sequence[Record],
    *,
    codec: int = 0,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int | None = None,
    last_offset: int | None = None,
) -> bytes:
    """Encode a magic 2 batch; offsets and times come from the records. `attributes` is or-ed to the
    codec."""
    first = records[0].offset if records else 0
    base = first if base_offset is None else base_offset
    last = (records[-1].offset if records else base) if last_offset is None else last_offset
    times = [record.timestamp or 0 for record in records] or [-1]
    start = times[0]
    body = compress(codec, b"".join(encode_record(each, base, start) for each in records))
    rest = _V2_REST.pack(
        attributes | codec,
        last - base,
        start,
        max(times),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    crc = google_crc32c.value(rest + body)
    length = HEADER_SIZE - 12 + len(body)
    return struct.pack(">qiibI", base, length, leader_epoch, 2, crc) + rest + body


def encode_like(
    batch: Batch, records: Sequence[Record], *, codec: int, last_offset: int | None = None
) -> bytes:
    """Encode a magic 2 batch with these records, in all else like another one."""
    return encode_batch(
        records,
        codec=codec,
        attributes=batch.attributes & ~CODEC_MASK,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        base_offset=batch.base_offset,
        last_offset=last_offset,
    )


def sized(data: bytes | None) -> bytes:
    """Return a key or value of a message set after its length."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def encode_message(magic: int, record: Record, attributes: int = 0) -> bytes:
    """Encode one entry of a message set of magic 0 or 1."""
    if magic not in (0, 1):
        raise Malformed(f"a message set has magic 0 or 1, not {magic}")
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", -1 if record.timestamp is None else record.timestamp)
    body += sized(record.key) + sized(record.value)
    return struct.pack(">qiI", record.offset, len(body) + 4, zlib.crc32(body)) + body


def encode_message_set(
    magic: int, records: Iterable[Record], *, codec: int = 0, log_append_time: int | None = None
) -> bytes:
    """Encode a message set; with a codec one entry that holds the others, offsets relative in magic
    1."""
    records = list(records)
    if codec == 0:
        return b"".join(encode_message(magic, each) for each in records)
    if not records:
        raise Malformed("a compressed message set holds a message at least")
    first = records[0].offset if magic else 0
    inner = b"".join(
        encode_message(magic, each._replace(offset=each.offset - first)) for each in records
    )
    last = records[-1]
    time = last.timestamp if log_append_time is None else log_append_time
    attributes = codec | (0 if log_append_time is None else LOG_APPEND_TIME)
    wrapper = Record(last.offset, time, None, compress(codec, inner), ())
    return encode_message(magic, wrapper, attributes)


def with_right_crc(data: bytes, batch: Batch) -> bytes:
    """Return the field with the batch's checksum computed anew."""
    at = batch.at + (17 if batch.magic == 2 else 12)
    return data[:at] + struct.pack(">I", crc_of(data, batch)) + data[at + 4 :]
