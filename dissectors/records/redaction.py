"""Redacts records: keys, values and headers become asterisks of the same length; offsets, times,
producers and codecs stay. Checksums are set right, but for those that were wrong: that a batch is
damaged is no secret. Control records stay, as far as they are what Kafka writes: transaction
markers, leaders, voters."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.internal import decode_control
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.batches import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    Batch,
    Partial,
    batches,
    crc_ok,
)
from kafkascope.dissectors.records.compression import compress, decompress
from kafkascope.dissectors.records.large import BUDGET, read_body
from kafkascope.dissectors.records.message_sets import read_sized
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_record, sized, with_right_crc
from kafkascope.dissectors.registry import write_layout

Change: TypeAlias = Callable[[Layout, Body], Body]
"""Replaces a message inside a record."""

STAR: Final = b"*"
# Bytes of a control record's key: version and type.
CONTROL_KEY: Final = 4
# Offset, size, checksum or leader epoch, and the magic, in all formats.
_MAGIC_END: Final = 17
# Offset of the checksum in batches.
_CRC_AT: Final = 17


def redacted_records(data: bytes, *, keys: bool = False, names: Change | None = None) -> bytes:
    """Return a records field without values; with `keys` also without keys; with `names` also
    without names of headers, and with its replacements of messages in control records.

    A batch that cannot be opened becomes asterisks behind its header, so that nothing stays.
    """
    return _field(data, keys, names, 0)


def _field(data: bytes, keys: bool, names: Change | None, depth: int) -> bytes:
    def redacted(batch: Batch) -> bytes:
        if batch.magic != 2:
            return _entry(data, batch, keys, names, depth)
        change = _control if batch.attributes & CONTROL else _plain
        return _rewritten(data, batch, lambda record: change(record, keys, names))[0]

    return _replaced(data, redacted)


def with_values(data: bytes, value_of: Callable[[Record], bytes | None]) -> bytes:
    """Return a records field with other values of its records. Batches without a change keep their
    bytes, control batches too; what cannot be opened becomes asterisks behind its header."""

    def replaced(batch: Batch) -> bytes:
        if batch.magic != 2:
            return _entry(data, batch, False, None, 0)
        if batch.attributes & CONTROL:
            return data[batch.at : batch.at + batch.size]
        return _with_values(data, batch, value_of)

    return _replaced(data, replaced)


def _replaced(data: bytes, replace: Callable[[Batch], bytes]) -> bytes:
    """Return a records field with other batches; asterisks from where it cannot be read."""
    out, end = [], 0
    try:
        for batch in batches(data):
            end = batch.at + batch.size
            if isinstance(batch, Partial):
                out.append(_partial(data[batch.at : end]))
            else:
                out.append(replace(batch))
    except DissectError:
        pass
    out.append(STAR * (len(data) - end))
    return b"".join(out)


def _partial(data: bytes) -> bytes:
    """Redact the cut last batch of a Fetch, of which clients read no more than the magic."""
    kept = _MAGIC_END if len(data) >= _MAGIC_END and data[_MAGIC_END - 1] <= 2 else 0
    return data[:kept] + STAR * (len(data) - kept)


def _with_values(data: bytes, batch: Batch, value_of: Callable[[Record], bytes | None]) -> bytes:
    differs = False

    def changed(record: Record) -> Record:
        nonlocal differs
        value = value_of(record)
        differs = differs or value != record.value
        return record._replace(value=value)

    made, readable = _rewritten(data, batch, changed)
    return made if differs or not readable else data[batch.at : batch.at + batch.size]


def _rewritten(data: bytes, batch: Batch, change: Callable[[Record], Record]) -> tuple[bytes, bool]:
    """Return a batch with its records changed, and whether they could be read: asterisks else."""
    whole = data[batch.at : batch.at + batch.size]
    count = batch.record_count or 0
    try:
        expand = partial(decompress, batch.codec, whole[HEADER_SIZE:])
        BUDGET.make_room()
        opened = read_body(expand, count, batch.base_offset, batch.base_timestamp, None)
        if opened.error is not None:
            raise opened.error
    except DissectError:
        readable, packed = False, STAR * (batch.size - HEADER_SIZE)
    else:
        readable = True
        hidden = BytesIO()
        # Not a loop: it would hold a record of megabytes while others are made of it.
        first, start = batch.base_offset, batch.base_timestamp
        encoded = partial(encode_record, base_offset=first, base_timestamp=start)
        hidden.writelines(map(encoded, map(change, opened.records)))
        del opened
        packed = compress(batch.codec, hidden.getvalue())
    length = HEADER_SIZE - 12 + len(packed)
    head = whole[:8] + struct.pack(">i", length) + whole[12:HEADER_SIZE]
    written = head + packed
    new = batch._replace(at=0, size=len(written))
    sealed = with_right_crc(written, new)
    if not crc_ok(data, batch):
        sealed = sealed[:_CRC_AT] + bytes([sealed[_CRC_AT] ^ 1]) + sealed[_CRC_AT + 1 :]
    return sealed, readable


def _plain(record: Record, keys: bool, names: Change | None) -> Record:
    return record._replace(
        key=stars(record.key) if keys else record.key,
        value=stars(record.value),
        headers=tuple(
            ("*" * len(_octets(name)) if names else name, stars(value))
            for name, value in record.headers
        ),
    )


def _control(record: Record, keys: bool, names: Change | None) -> Record:
    """Redact a control record. Who sets the bit of control batches need not be Kafka, so only what
    reads as one of its messages is left."""
    hidden = _plain(record, True, names)
    key = record.key or b""
    if len(key) != CONTROL_KEY:
        return hidden
    found = decode_control(key, record.value).value
    if found is None or found.layout is None or found.surplus:
        return hidden._replace(key=key)
    value = record.value or b""
    body = found.body if names is None else names(found.layout, found.body)
    if body != found.body:
        start = len(value) - len(write_layout(found.layout, found.body))
        value = value[:start] + write_layout(found.layout, body)
    return hidden._replace(key=key, value=value)


def _entry(data: bytes, batch: Batch, keys: bool, names: Change | None, depth: int) -> bytes:
    """Redact one entry of a message set; a compressed one holds another set."""
    whole = data[batch.at : batch.at + batch.size]
    at = 18 + 8 * batch.magic
    try:
        key, at_value = read_sized(whole, at, len(whole), "key")
        value, _ = read_sized(whole, at_value, len(whole), "value")
        if value is not None and batch.attributes & CODEC_MASK:
            if depth >= LIMITS.message_set_depth:
                raise DissectError("too deep")
            inner = decompress(batch.codec, value, LIMITS.batch_bytes)
            value = compress(batch.codec, _field(inner, keys, names, depth + 1))
        else:
            value = stars(value)
    except DissectError:
        return whole[:at] + STAR * (len(whole) - at)
    body = whole[16:at] + sized(stars(key) if keys else key) + sized(value)
    size = len(body) + 4
    crc = zlib.crc32(body) ^ (not crc_ok(data, batch))
    return whole[:8] + struct.pack(">iI", size, crc) + body


def stars(value: bytes | None) -> bytes | None:
    """Return asterisks of the same length; null stays null, for that is a tombstone."""
    return None if value is None else STAR * len(value)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
