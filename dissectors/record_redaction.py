"""Records without what people put into them: keys, values and headers become asterisks of the same
length; offsets, times, producers and codecs stay, checksums are set right."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from dissectors.batches import CODEC_MASK, CONTROL, HEADER_SIZE, Batch, Partial, batches
from dissectors.compression import OUTPUT_LIMIT, compress, decompress
from dissectors.errors import DissectError
from dissectors.message_sets import MAX_DEPTH
from dissectors.record_reader import read_records
from dissectors.record_writer import encode_record, with_right_crc

STAR: Final = b"*"
_MAGIC_END: Final = 17
"""Offset, size, checksum or leader epoch, and the magic, in all formats."""


def redacted_records(data: bytes, *, keys: bool = False, names: bool = False) -> bytes:
    """A records field without values; without keys when `keys`, without names of headers when
    `names`. Control records stay: Kafka wrote them.

    A batch that cannot be opened becomes asterisks behind its header, so that nothing stays.
    """
    return _field(data, keys, names, 0)


def _field(data: bytes, keys: bool, names: bool, depth: int) -> bytes:
    out, end = [], 0
    try:
        for batch in batches(data):
            end = batch.at + batch.size
            if isinstance(batch, Partial):
                out.append(_partial(data[batch.at : batch.at + batch.size]))
            elif batch.magic == 2:
                out.append(_batch(data, batch, keys, names))
            else:
                out.append(_entry(data, batch, keys, names, depth))
    except DissectError:
        pass
    out.append(STAR * (len(data) - end))
    return b"".join(out)


def _partial(data: bytes) -> bytes:
    """The cut last batch of a Fetch: clients look as far as its magic and do without it."""
    kept = _MAGIC_END if len(data) >= _MAGIC_END and data[_MAGIC_END - 1] <= 2 else 0
    return data[:kept] + STAR * (len(data) - kept)


def _batch(data: bytes, batch: Batch, keys: bool, names: bool) -> bytes:
    whole = data[batch.at : batch.at + batch.size]
    if batch.attributes & CONTROL:
        return whole
    count = batch.record_count or 0
    try:
        body = decompress(batch.codec, whole[HEADER_SIZE:])
        opened = read_records(body, count, batch.base_offset, batch.base_timestamp, None)
        if opened.error is not None:
            raise opened.error
    except DissectError:
        packed = STAR * (batch.size - HEADER_SIZE)
    else:
        records = (
            record._replace(
                key=stars(record.key) if keys else record.key,
                value=stars(record.value),
                headers=tuple(
                    ("*" * len(_octets(name)) if names else name, stars(value))
                    for name, value in record.headers
                ),
            )
            for record in opened.records
        )
        base = batch.base_offset, batch.base_timestamp
        packed = compress(batch.codec, b"".join(encode_record(each, *base) for each in records))
    length = HEADER_SIZE - 12 + len(packed)
    head = whole[:8] + struct.pack(">i", length) + whole[12:HEADER_SIZE]
    written = head + packed
    return with_right_crc(written, batch._replace(at=0, size=len(written)))


def _entry(data: bytes, batch: Batch, keys: bool, names: bool, depth: int) -> bytes:
    """One entry of a message set; a compressed one holds another set."""
    whole = data[batch.at : batch.at + batch.size]
    at = 18 + 8 * batch.magic
    try:
        key, at_value = _blob(whole, at)
        value, _ = _blob(whole, at_value)
        if value is not None and batch.attributes & CODEC_MASK:
            if depth >= MAX_DEPTH:
                raise DissectError("too deep")
            inner = decompress(batch.codec, value, OUTPUT_LIMIT)
            value = compress(batch.codec, _field(inner, keys, names, depth + 1))
        else:
            value = stars(value)
    except (DissectError, struct.error):
        return whole[:at] + STAR * (len(whole) - at)
    body = whole[16:at] + _sized(stars(key) if keys else key) + _sized(value)
    size = len(body) + 4
    return whole[:8] + struct.pack(">iI", size, zlib.crc32(body)) + body


def _blob(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", data, at)
    end = at + 4 + max(size, 0)
    if size < -1 or end > len(data):
        raise DissectError("a length does not fit", offset=at)
    return (None if size < 0 else data[at + 4 : end]), end


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def stars(value: bytes | None) -> bytes | None:
    """As many asterisks; null stays null, for that is a tombstone."""
    return None if value is None else STAR * len(value)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
