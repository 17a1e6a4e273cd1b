"""Contents of records fields: record batches (magic 2) and message sets (magic 0 and 1).

Two steps, for most callers need the first one only: `batches` walks the headers and expands
nothing, `open_batch` reads the records of one batch.
"""

from __future__ import annotations

from functools import partial

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.batches import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Batch,
    Partial,
    aligned,
    batches,
    crc_of,
    crc_ok,
)
from kafkascope.dissectors.records.compression import decompress
from kafkascope.dissectors.records.large import BUDGET, SMALL, evictable, memory_of, read_body
from kafkascope.dissectors.records.message_sets import open_entry
from kafkascope.dissectors.records.reader import Header, Opened, Record, read_records

__all__ = [
    "CODEC_MASK",
    "CONTROL",
    "HEADER_SIZE",
    "LOG_APPEND_TIME",
    "TRANSACTIONAL",
    "Batch",
    "Header",
    "Opened",
    "Partial",
    "Record",
    "aligned",
    "batches",
    "crc_of",
    "crc_ok",
    "open_batch",
    "read_records",
]


def open_batch(data: bytes, batch: Batch, limit: int = LIMITS.batch_bytes) -> Opened:
    """Read the records of a batch of `data`; expands `limit` bytes at most.

    An error's offset is one of `data`, or one of the expanded bytes where there are such.
    """
    BUDGET.make_room()
    if batch.magic != 2:
        return _open_entry(data, batch, limit)
    expand = partial(_expand, data, batch, limit)
    stamp = batch.max_timestamp if batch.log_append_time else None
    try:
        opened = read_body(
            expand, batch.record_count or 0, batch.base_offset, batch.base_timestamp, stamp
        )
    except DissectError as error:
        error.offset = batch.at + HEADER_SIZE
        return Opened([], error.without_frames())
    if opened.error is not None and batch.codec == 0:
        opened.error.offset = batch.at + HEADER_SIZE + (opened.error.offset or 0)
    return opened


def _expand(data: bytes, batch: Batch, limit: int) -> bytes:
    start, end = batch.at + HEADER_SIZE, batch.at + batch.size
    return decompress(batch.codec, data[start:end], limit)


def _open_entry(data: bytes, entry: Batch, limit: int) -> Opened:
    opened = open_entry(data, entry, limit)
    octets = sum(len(each.key or b"") + len(each.value or b"") for each in opened.records)
    if entry.codec == 0 or memory_of(opened.records, octets) <= SMALL:
        return opened
    return Opened(
        evictable(opened.records, octets, lambda: open_entry(data, entry, limit).records),
        opened.error,
    )
