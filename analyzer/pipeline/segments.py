"""Parts of captures to TCP segments as Arrow: the rows that are shuffled to bring the connections
of each shard together. Whole blocks are processed at once, where `packets.columns` can read their
headers.

A row has the segments of one shard in one block, because the shuffle costs as much for a row with a
thousand packets as for a row with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import blake2b
from json import dumps, loads
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafkascope.analyzer.pipeline.places import open_anywhere
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.schemas import SEGMENTS
from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import Block
from kafkascope.captures.model import Packet, Resolved, StreamEvent
from kafkascope.captures.packets.columns import HeaderColumns, columns_of
from kafkascope.captures.packets.fragments import Fragments
from kafkascope.captures.packets.resolved import in_packet
from kafkascope.captures.packets.tcp import (
    UNKNOWN,
    Segment,
    endpoints,
    reverse,
    scale_in,
    segment_of,
)
from kafkascope.captures.parts.split import Split, read_split
from kafkascope.captures.streams import scan as streams_scan
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.kernel.headers import ACK, QUIET_MASK

SCHEMA: Final = pa.schema(
    [
        ("flow_id", pa.int64()),
        ("packet", pa.int64()),
        ("flows", pa.binary()),
        ("packets", pa.binary()),
        ("payload", pa.binary()),
    ]
)
"""Key of the shard, number of the first packet, directions (each after its length), `PACKET`s, and
their concatenated payloads."""

PACKET: Final = np.dtype(
    [
        ("packet", "<i8"),
        ("time_ns", "<i8"),
        ("at", "<i8"),
        ("copy", "<i8"),
        ("interface", "<i8"),
        ("file", "<i4"),
        ("captured", "<i4"),
        ("length", "<i4"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("flags", "<u2"),
        ("window", "<i4"),
        ("scale", "<i2"),
        ("flow", "<u4"),
    ]
)
"""`Segment` with the number of its flow, and how much of its payload was captured."""

Key = Callable[[bytes], int]
"""Returns the key of a flow's shard."""
COMMON: Final = ("interface", "length", "seq", "ack", "flags", "window", "scale")
"""Fields with the same name in `Segment`."""
# Bytes of a file per block: larger blocks give fewer rows.
BLOCK_BYTES: Final = 4 << 20
# In place of the first packet: the payload is the state that the previous batch left.
STATE: Final = -1
# In place of the first packet: the payload is a host name with its addresses, as JSON.
NAMES: Final = -2
# Flows whose keys are cached.
KNOWN_FLOWS: Final = 200_000


def _key_of(flow: bytes, *, by_hosts: bool) -> int:
    """Return the key of a flow's shard. `by_hosts`: the shard is all connections between two hosts,
    not a single one. A collision is harmless: two shards share a task."""
    ends = flow[:-4] + bytes(4) if by_hosts else flow
    return _digest(min(ends, reverse(ends)))


def _digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def segments(name: str, split: Split, *, by_hosts: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the segments of a part, by shard. Damage is reported by the index. An IP packet whose
    fragments lie in two parts is not reassembled: neither reader sees the other's."""
    key_of = lru_cache(KNOWN_FLOWS)(partial(_key_of, by_hosts=by_hosts))
    fragments = Fragments()
    with read_split(name, split, open_anywhere, block_bytes=BLOCK_BYTES) as source:
        try:
            for block in source.blocks():
                columns = columns_of(block) if len(block.positions) > 1 else None
                others = _others(block, columns)
                yield from _of_block(block, columns, others, key_of, fragments)
                yield from _names(block, others)
        except CutShort:
            return


def _others(block: Block, columns: HeaderColumns | None) -> list[Packet]:
    """Return the packets whose headers `columns` does not support: fragments, and rare ones."""
    if columns is None:
        return list(block.packets())
    return list(map(block.packet, columns.others))


def _names(block: Block, others: list[Packet]) -> Iterator[pa.RecordBatch]:
    names = [resolved for packet in others for resolved in in_packet(packet)]
    names += block.format.names
    block.format.names.clear()
    if names:
        keys = [_digest(resolved.name.encode("utf-8", "surrogatepass")) for resolved in names]
        rows = [
            (key, NAMES, b"", b"", dumps(resolved).encode())
            for key, resolved in zip(keys, names, strict=True)
        ]
        yield record_batch(rows, SCHEMA)


def name_of(row: SegmentRow) -> Resolved:
    name, hosts, source = loads(bytes(row.payload))
    return Resolved(name, tuple(hosts), source)


def _of_block(
    block: Block,
    columns: HeaderColumns | None,
    others: list[Packet],
    key_of: Key,
    fragments: Fragments,
) -> Iterator[pa.RecordBatch]:
    results = [result for packet in others for result in fragments.segments_of(packet)]
    if columns is not None:
        if not any(isinstance(result, Segment) for result in results):
            yield _at_once(block, columns, key_of)
            return
        numbers = set(columns.numbers)
        results += [segment_of(packet) for packet in block.packets() if packet.number in numbers]
    found = [result for result in results if isinstance(result, Segment)]
    # A fragment that waited for the first one of its packet may be in an earlier block. Such
    # fragments get rows of their own, so that rows can be sorted by their first packet.
    for segment in found:
        if segment.packet < block.number:
            yield _one_by_one([segment], key_of)
    yield _one_by_one([segment for segment in found if segment.packet >= block.number], key_of)


def _one_by_one(found: list[Segment], key_of: Key) -> pa.RecordBatch:
    packets = np.zeros(len(found), PACKET)
    for name in ("packet", "time_ns", "at", "file", "copy", *COMMON):
        packets[name] = [getattr(segment, name) for segment in found]
    payloads = pa.array([bytes(segment.payload) for segment in found], pa.binary())
    packets["captured"] = [len(segment.payload) for segment in found]
    return _packed(packets, [segment.flow for segment in found], payloads, 1, key_of)


def _at_once(block: Block, columns: HeaderColumns, key_of: Key) -> pa.RecordBatch:
    packets = np.empty(len(columns.numbers), PACKET)
    packets["packet"], packets["at"] = columns.numbers, columns.places
    packets["file"], packets["time_ns"] = block.file, columns.times
    packets["copy"], packets["interface"] = columns.prints, columns.interfaces
    packets["captured"], packets["length"] = columns.captured, columns.lengths
    packets["seq"], packets["ack"] = columns.seqs, columns.acks
    packets["flags"], packets["window"], packets["scale"] = columns.flags, columns.windows, UNKNOWN
    for at, options in columns.options.items():
        packets["scale"][at] = scale_in(options)
    start = np.array(columns.starts, np.int64)
    payloads = _between(block.buffer, start, start + packets["captured"])
    return _packed(packets, columns.flows, payloads, 2, key_of)


def _between(buffer: bytearray, start: Any, end: Any) -> pa.Array:
    """Return the bytes between each start and end, alternating with those up to the next start. An
    Arrow array is a buffer with ascending offsets, so that the block's buffer needs no copy; every
    second element is a payload (`step` of `_packed`)."""
    offsets = np.empty(2 * len(start), np.int32)
    offsets[0::2], offsets[1::2] = start, end
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    return pa.Array.from_buffers(pa.binary(), max(len(offsets) - 1, 0), buffers)


def _packed(
    packets: Any, flows: list[bytes], payloads: pa.Array, step: int, key_of: Key
) -> pa.RecordBatch:
    """Return rows of packets. The payload of each is `payloads[step * index]`."""
    # Shards are numbered in the order of their keys (`row`), packets are sorted by shard, and each
    # row gets its range of them, and of their payloads, by offsets.
    if not flows:
        return pa.RecordBatch.from_pylist([], SCHEMA)
    directions = sorted(set(flows), key=lambda flow: (key_of(flow), flow))
    ids = np.array([key_of(flow) for flow in directions], np.int64)
    first = np.ones(len(ids), np.bool_)
    first[1:] = ids[1:] != ids[:-1]
    row_of = np.cumsum(first) - 1
    heads = first.nonzero()[0]

    number_of = {flow: number for number, flow in enumerate(directions)}
    direction = np.array([number_of[flow] for flow in flows], np.int64)
    row = row_of[direction]
    packets["flow"] = direction - heads[row]
    order = np.lexsort((packets["packet"], row))
    packets = packets[order]
    begin = np.zeros(len(heads) + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=len(heads)), out=begin[1:])

    ends = np.zeros(len(order) + 1, np.int64)
    np.cumsum(packets["captured"], out=ends[1:])
    data = payloads.take(pa.array(order * step)).buffers()[2] or pa.py_buffer(b"")
    heads_of = [
        b"".join(bytes((len(flow),)) + flow for flow in directions[one:two])
        for one, two in zip(heads.tolist(), [*heads[1:].tolist(), len(directions)], strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids[heads]),
            pa.array(packets["packet"][begin[:-1]]),
            pa.array(heads_of, pa.binary()),
            _cut(begin * PACKET.itemsize, pa.py_buffer(packets.tobytes())),
            _cut(ends[begin], data),
        ],
        schema=SCHEMA,
    )


def _cut(offsets: Any, data: pa.Buffer) -> pa.Array:
    """Return bytes split at offsets, not copied."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), data]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


class SegmentRow(NamedTuple):
    """The segments of one shard in one block."""

    flow_id: int
    first: int
    """Number of the first packet."""
    flows: list[bytes]
    packets: Any
    """An array of type `PACKET`."""
    payload: memoryview


def rows_in(batch: pa.RecordBatch) -> Iterator[SegmentRow]:
    ids, firsts, heads = (batch.column(index).to_pylist() for index in range(3))
    for flow_id, first, head, packets, payload in zip(
        ids, firsts, heads, batch.column(3), batch.column(4), strict=True
    ):
        flows = []
        at = 0
        while at < len(head):
            end = at + 1 + head[at]
            flows.append(head[at + 1 : end])
            at = end
        array = np.frombuffer(packets.as_buffer(), PACKET)
        yield SegmentRow(flow_id, first, flows, array, memoryview(payload.as_buffer()))


def segments_of(row: SegmentRow) -> Iterator[Segment]:
    """Yield the segments of a row, in the order of the packets."""
    flows, data = row.flows, row.payload
    start = 0
    for number, time_ns, at, copy, interface, file, captured, *rest in row.packets.tolist():
        length, seq, ack, flags, window, scale, flow = rest
        end = start + captured
        yield Segment(
            *(number, time_ns, file, at, flows[flow], seq, ack, flags),
            *(data[start:end], length, copy, interface, window, scale),
        )
        start = end


def events_of(row: SegmentRow, reassembler: Reassembler) -> list[StreamEvent]:
    """Return the events of a row's packets, as `streams.scan` does for a block."""
    array, flows = row.packets, row.flows
    plain = (array["flags"] & QUIET_MASK == ACK) & (array["captured"] == array["length"])
    ends = np.cumsum(array["captured"], dtype=np.int64)
    made: list[Segment] = []

    def segment(index: int) -> Segment:
        """Return a segment as an object: made for all packets of the row when one is needed."""
        if not made:
            made.extend(segments_of(row))
        return made[index]

    packets = HeaderColumns(bytes(row.payload), int(array["file"][0]))
    packets.numbers, packets.times = array["packet"].tolist(), array["time_ns"].tolist()
    packets.starts, packets.places = (ends - array["captured"]).tolist(), array["at"].tolist()
    packets.lengths, packets.windows = array["length"].tolist(), array["window"].tolist()
    packets.seqs, packets.acks = array["seq"].tolist(), array["ack"].tolist()
    packets.prints, packets.interfaces = array["copy"].tolist(), array["interface"].tolist()
    packets.flows, packets.plain = [flows[n] for n in array["flow"].tolist()], plain.tolist()
    scanned = streams_scan.events_of(packets, reassembler, segment, packets.numbers[-1])
    return [event for events in scanned for event in events]


def segment_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = [
        (
            row.flow_id,
            segment.packet,
            segment.time_ns // 1000,
            segment.time_ns,
            *_addresses(segment.flow),
            segment.seq,
            segment.ack,
            segment.flags,
            segment.length,
            len(segment.payload),
            segment.file,
            segment.at,
        )
        for row in rows_in(batch)
        for segment in segments_of(row)
    ]
    rows.sort(key=itemgetter(1))
    return record_batch(rows, SEGMENTS.schema)


@lru_cache(maxsize=KNOWN_FLOWS)
def _addresses(flow: bytes) -> tuple[str, str]:
    source, target = endpoints(flow)
    return str(source), str(target)


def sized(batches: Iterator[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `rows` rows and about `size` bytes."""
    for batch in batches:
        count = batch.num_rows
        parts = max(-(-count // rows), -(-batch.nbytes // size)) if count else 0
        step = -(-count // parts) if parts else 1
        for at in range(0, count, step):
            yield batch.slice(at, step)
