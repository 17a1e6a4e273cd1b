"""Columns of the record batches that exchanges carried, of all formats, for the joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.bodies.contents import COUNTING_LIMIT
from kafkascope.analyzer.statistics.exchange_batch import (
    SHARE_FETCH,
    ExchangeBatch,
    PartitionColumns,
)
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.batches import CONTROL, TRANSACTIONAL
from kafkascope.dissectors.records.records import Batch, open_batch

# The magic of record batches; message sets have 0 or 1.
RECORD_BATCH: Final = 2
SPECIAL: Final = CONTROL | TRANSACTIONAL
# An offset, a time or a producer id that is not known.
NOWHERE: Final = -1
# Bytes of the key of a control record: version and type.
MARKER_KEY: Final = 4

At: TypeAlias = tuple[str | None, int]
"""Topic key and partition."""


class CarriedBatches(NamedTuple):
    """Fetched batches: one value for each, or for a run of single messages of an old format."""

    ends: Sequence[int]
    """Times of the last bytes of the responses."""
    bases: Sequence[int]
    lasts: Sequence[int]
    asks: Sequence[int]
    """Fetch offsets; -1 where the request did not name the partition."""
    counts: Sequence[int]
    """Records at or beyond that."""
    producers: Sequence[int]
    """Producer ids of transactional batches; -1 for all others."""
    checksums: Sequence[int]
    bits: Sequence[int]
    sizes: Sequence[int]

    def without_control(self) -> CarriedBatches:
        data = [not bits & CONTROL for bits in self.bits]
        return CarriedBatches(*(list(compress(column, data)) for column in self))


def fetched(batch: ExchangeBatch, at: At, parts: PartitionColumns) -> CarriedBatches:
    """Return the columns of what Fetches, or a ShareFetch, brought of one partition."""
    if not parts.batches:
        return CarriedBatches(*((),) * 9)
    _, sizes, magics, bases, lasts, _, checksums, bits, *_ = zip(*parts.batches, strict=True)
    asks = [NOWHERE if offset is None else offset for offset in parts.by_batch(parts.fetch_offsets)]
    ends, shared = parts.by_batch(parts.ends), batch.api_key == SHARE_FETCH
    if not (
        shared
        or any(magic != RECORD_BATCH for magic in magics)
        or any(map(SPECIAL.__and__, bits))
        or any(map(int.__gt__, asks, bases))
    ):
        nobody = [NOWHERE] * len(bases)
        return CarriedBatches(
            *(ends, bases, lasts, asks, parts.counts, nobody, checksums, bits, sizes)
        )
    rows = _acquired(batch, at, parts, ends) if shared else _rows(parts, ends, asks)
    return CarriedBatches(*(zip(*rows, strict=True) if rows else ((),) * 9))


def _rows(parts: PartitionColumns, ends: Sequence[int], asks: Sequence[int]) -> list[list[int]]:
    """Return the rows of batches with anything out of the ordinary: a broker sends whole batches,
    of which the client skips what is before the offset it asked for. Single messages of old formats
    become runs."""
    rows: list[list[int]] = []
    blobs, run = parts.by_batch(parts.blobs), NOWHERE
    exchanges = parts.by_batch(range(len(parts.held)))
    for number, (batch, count) in enumerate(zip(parts.batches, parts.counts, strict=True)):
        base, last, ask = batch.base_offset, batch.last_offset, asks[number]
        if batch.magic < RECORD_BATCH and batch.codec:
            # The offset of a compressed message set is that of its last message.
            offsets = [each.offset for each in _opened(batch, blobs[number])]
            base, count = min(offsets, default=last), sum(offset >= ask for offset in offsets)
        elif ask > base:
            count = _beyond(ask, batch, count, blobs[number])
        single = batch.magic < RECORD_BATCH and not batch.codec
        if single and run == exchanges[number] and rows[-1][2] + 1 == base and rows[-1][4]:
            rows[-1][2], rows[-1][6] = last, 0
            rows[-1][4] += count
            rows[-1][8] += batch.size
            continue
        run = exchanges[number] if single else NOWHERE
        bits = batch.attributes if batch.magic == RECORD_BATCH else 0
        producer = batch.producer_id if bits & TRANSACTIONAL else NOWHERE
        rows.append([ends[number], base, last, ask, count, producer, batch.crc, bits, batch.size])
    return rows


def _acquired(
    exchange_batch: ExchangeBatch, at: At, parts: PartitionColumns, ends: Sequence[int]
) -> list[list[int]]:
    """Return the rows of the records that a member of a share group may process: a broker sends
    whole batches, of which others may hold some records (KIP-932)."""
    ranges = [
        (each["first_offset"], each["last_offset"])
        for part in _returned(exchange_batch.exchange.response_body or {}, at)
        for each in part.get("acquired_records") or ()
    ]
    rows: list[list[int]] = []
    blobs = parts.by_batch(parts.blobs)
    whole = _rows(parts, ends, [NOWHERE] * len(parts.batches))
    # Only hostile responses of this API hold message sets, whose runs are fewer rows.
    for batch, blob, row in zip(parts.batches, blobs, whole, strict=False):
        for first, end in ranges[: LIMITS.acquired_ranges]:
            low, high = max(first, row[1]), min(end, row[2])
            if low <= high:
                some = _beyond(low, batch, row[4], blob) - _beyond(high + 1, batch, row[4], blob)
                rows.append([row[0], low, high, NOWHERE, some, *row[5:]])
    return rows


def _beyond(offset: int, batch: Batch, count: int, blob: bytes) -> int:
    """Return how many records of a batch are at an offset or beyond. Only compaction makes it
    necessary to open the batch: it leaves out offsets."""
    if offset > batch.last_offset:
        return 0
    if count == batch.last_offset - batch.base_offset + 1:
        return batch.last_offset - offset + 1
    return sum(record.offset >= offset for record in _opened(batch, blob))


def _opened(batch: Batch, blob: bytes) -> Sequence[Any]:
    return open_batch(blob, batch, COUNTING_LIMIT).records


def _returned(body: Mapping[str, Any], at: At) -> Iterator[dict[str, Any]]:
    """Yield what a response says of a partition."""
    for topic in body.get("responses") or ():
        if topic_key(topic.get("topic"), topic.get("topic_id")) == at[0]:
            yield from (each for each in topic["partitions"] if each["partition_index"] == at[1])


def markers(
    batch: ExchangeBatch, at: At, parts: PartitionColumns
) -> Iterator[tuple[int, int, int, bool]]:
    """Yield the ends of transactions in what was fetched of a partition, as (time of the response,
    offset, producer id, whether it was committed); where the response lists a transaction as
    aborted whose end is not in it, the end is behind its last record there."""
    fields = parts.by_exchange(parts.batches)
    for number, end, blob, batches in zip(
        parts.numbers, parts.ends, parts.blobs, fields, strict=True
    ):
        last: dict[int, int] = {}
        for each in batches:
            if each.control:
                yield from ((end, *marker) for marker in _markers(each, blob))
                last.pop(each.producer_id, None)
            elif each.transactional:
                last[each.producer_id] = each.last_offset
        if last:
            aborted = {
                each["producer_id"]
                for part in _returned(batch.exchange_of(number).response_body or {}, at)
                for each in part.get("aborted_transactions") or ()
            }
            yield from ((end, last[each] + 1, each, False) for each in aborted & last.keys())


def _markers(batch: Batch, blob: bytes) -> Iterator[tuple[int, int, bool]]:
    try:
        records = open_batch(blob, batch).records
    except DissectError:
        return
    for record in records:
        kind = int.from_bytes((record.key or b"")[2:MARKER_KEY])
        if record.key is not None and len(record.key) >= MARKER_KEY and kind < 2:
            yield record.offset, batch.producer_id, bool(kind)
