"""Parts of captures to TCP segments as Arrow: what is shuffled so that each connection comes
together. Whole blocks at once, as far as `captures.columns` knows their headers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analyzer.pipeline.arrow import record_batch
from analyzer.pipeline.places import open_anywhere
from analyzer.pipeline.schemas import SEGMENTS
from captures.columns import Columns, columns_of
from captures.errors import CutShort
from captures.files import Block
from captures.fragments import Fragments
from captures.split import Split, read_split
from captures.tcp import Segment, endpoints, reverse

SCHEMA: Final = pa.schema(
    [
        ("flow_id", pa.int64()),
        ("packet", pa.int64()),
        ("time_ns", pa.int64()),
        ("file", pa.int32()),
        ("at", pa.int64()),
        ("flow", pa.binary()),
        ("seq", pa.int64()),
        ("ack", pa.int64()),
        ("flags", pa.int16()),
        ("payload", pa.binary()),
        ("length", pa.int32()),
        ("copy", pa.int64()),
        ("interface", pa.int64()),
    ]
)
"""`Segment` behind the key of its connection: both directions have the same."""

KNOWN_FLOWS: Final = 200_000
"""Whose keys are remembered."""


class Keys(dict[bytes, int]):
    """Flow -> key of its connection. A collision does no harm: two connections share a task."""

    def __missing__(self, flow: bytes) -> int:
        if len(self) > KNOWN_FLOWS:
            self.clear()
        digest = blake2b(min(flow, reverse(flow)), digest_size=8).digest()
        key = self[flow] = int.from_bytes(digest, "big", signed=True)
        return key


def segments(name: str, split: Split) -> Iterator[pa.RecordBatch]:
    """The segments of a part. Damage is told by the index."""
    keys, fragments = Keys(), Fragments()
    with read_split(name, split, open_anywhere) as source:
        try:
            for block in source.blocks():
                yield from _of_block(block, keys, fragments)
        except CutShort:
            return


def _of_block(block: Block, keys: Keys, fragments: Fragments) -> Iterator[pa.RecordBatch]:
    columns = columns_of(block) if len(block.positions) > 1 else None
    if columns is None:
        packets = block.packets()
        yield _batch([each for packet in packets for each in fragments.segments_of(packet)], keys)
        return
    tcp = columns.tcp.nonzero()[0]
    if len(tcp):
        yield _at_once(block, columns, tcp, keys)
    if len(tcp) < len(block.positions):
        others = [
            each
            for packet, known in zip(block.packets(), columns.tcp.tolist(), strict=True)
            if not known
            for each in fragments.segments_of(packet)
        ]
        yield _batch(others, keys)


def _batch(found: list[Segment | str], keys: Keys) -> pa.RecordBatch:
    rows = [
        (
            keys[each.flow],
            each.packet,
            each.time_ns,
            each.file,
            each.at,
            each.flow,
            each.seq,
            each.ack,
            each.flags,
            bytes(each.payload),
            each.length,
            _signed(each.copy),
            each.interface,
        )
        for each in found
        if isinstance(each, Segment)
    ]
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _at_once(block: Block, columns: Columns, tcp: Any, keys: Keys) -> pa.RecordBatch:
    flows = [columns.flows[index] for index in tcp.tolist()]
    start = columns.payload[tcp]
    end = np.minimum(start + columns.length[tcp], (columns.start + columns.captured)[tcp])
    end = np.maximum(end, start)
    count = len(tcp)
    values = (
        np.array([keys[flow] for flow in flows], np.int64),
        tcp + block.number,
        columns.time_ns[tcp],
        np.full(count, block.file, np.int32),
        start + block.base,
        flows,
        columns.seq[tcp].astype(np.int64),
        columns.ack[tcp].astype(np.int64),
        columns.flags[tcp].astype(np.int16),
        None,
        columns.length[tcp].astype(np.int32),
        columns.copy[tcp].view(np.int64),
        columns.interface[tcp],
    )
    arrays = [
        _cut_out(block.buffer, start, end) if value is None else pa.array(value, field.type)
        for value, field in zip(values, SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _cut_out(buffer: bytearray, start: Any, end: Any) -> pa.Array:
    """The bytes between each start and end. They ascend, so that the whole buffer is an array of
    payloads and of what lies between them."""
    offsets = np.empty(2 * len(start), np.int32)
    offsets[0::2], offsets[1::2] = start, end
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    both = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return both.take(pa.array(np.arange(0, len(offsets), 2)))


def segment_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of the table `segments`."""
    keys, found = segments_in(batch)
    rows = [
        (
            key,
            each.packet,
            each.time_ns // 1000,
            each.time_ns,
            *_addresses(each.flow),
            each.seq,
            each.ack,
            each.flags,
            each.length,
            len(each.payload),
            each.file,
            each.at,
        )
        for key, each in zip(keys, found, strict=True)
    ]
    return record_batch(rows, SEGMENTS.schema)


@lru_cache(maxsize=KNOWN_FLOWS)
def _addresses(flow: bytes) -> tuple[str, str]:
    source, target = endpoints(flow)
    return str(source), str(target)


def segments_in(batch: pa.RecordBatch) -> tuple[list[int], list[Segment]]:
    """Keys and segments of a batch of rows."""
    columns = [column.to_pylist() for column in batch.columns]
    return columns[0], list(map(Segment._make, zip(*columns[1:], strict=True)))


def sized(batches: Iterator[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Batches of at most so many rows and about so many bytes."""
    for batch in batches:
        count = batch.num_rows
        parts = max(-(-count // rows), -(-batch.nbytes // size)) if count else 0
        step = -(-count // parts) if parts else 1
        for at in range(0, count, step):
            yield batch.slice(at, step)
