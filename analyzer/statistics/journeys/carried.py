"""Columns of the record batches that exchanges carried, of all formats, for the joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

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

RECORD_BATCH: Final = 2
"""The magic of record batches; message sets have 0 or 1."""
SPECIAL: Final = CONTROL | TRANSACTIONAL
NOWHERE: Final = -1
"""An offset, a time or a producer id that is not known."""
MARKER_KEY: Final = 4
"""Bytes of the key of a control record: version and type."""


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


NO_BATCHES: Final = CarriedBatches(*((),) * 9)


def fetched(
    batch: ExchangeBatch, at: tuple[str | None, int], parts: PartitionColumns
) -> CarriedBatches:
    """Return the columns of what Fetches, or a ShareFetch, brought of one partition."""
    if not parts.batches:
        return NO_BATCHES
    whole = _fetched(parts)
    return whole if batch.api_key != SHARE_FETCH else _acquired(batch, at, parts, whole)


def _acquired(
    exchange_batch: ExchangeBatch,
    at: tuple[str | None, int],
    parts: PartitionColumns,
    whole: CarriedBatches,
) -> CarriedBatches:
    """Return the columns of the records that a member of a share group may process: a broker sends
    whole batches, of which others may hold some records (KIP-932)."""
    rows: list[list[int]] = []
    body = exchange_batch.exchange.response_body or {}
    ranges = [
        (each["first_offset"], each["last_offset"])
        for topic in body.get("responses") or ()
        for part in topic["partitions"]
        if (topic_key(topic.get("topic"), topic.get("topic_id")), part["partition_index"]) == at
        for each in part.get("acquired_records") or ()
    ]
    blobs = parts.by_batch(parts.blobs)
    for number, row in enumerate(zip(*whole, strict=True)):
        batch, (_, base, last, _, count, *_) = parts.batches[number], row
        for first, end in ranges[: LIMITS.acquired_ranges]:
            low, high = max(first, base), min(end, last)
            if low > high:
                continue
            some = _beyond(low, batch, count, blobs[number])
            some -= _beyond(high + 1, batch, count, blobs[number])
            rows.append([row[0], low, high, NOWHERE, some, *row[5:]])
    return CarriedBatches(*zip(*rows, strict=True)) if rows else NO_BATCHES


def _fetched(parts: PartitionColumns) -> CarriedBatches:
    _, sizes, magics, bases, lasts, _, checksums, bits, *_ = zip(*parts.batches, strict=True)
    ends = parts.by_batch(parts.ends)
    asks = [NOWHERE if offset is None else offset for offset in parts.by_batch(parts.fetch_offsets)]
    if any(magic != RECORD_BATCH for magic in magics):
        return _of_old_formats(parts, ends, asks)
    counts: Sequence[int] = parts.counts
    inside = [number for number, base in enumerate(bases) if asks[number] > base]
    if inside:
        # A broker sends whole batches; the client skips what is before the offset it asked for.
        blobs, counts = parts.by_batch(parts.blobs), list(counts)
        for number in inside:
            batch = parts.batches[number]
            counts[number] = _beyond(asks[number], batch, counts[number], blobs[number])
    if any(map(SPECIAL.__and__, bits)):
        producers = [
            batch.producer_id if batch.attributes & TRANSACTIONAL else NOWHERE
            for batch in parts.batches
        ]
    else:
        producers = [NOWHERE] * len(bases)
    return CarriedBatches(ends, bases, lasts, asks, counts, producers, checksums, bits, sizes)


def _beyond(offset: int, batch: Batch, count: int, blob: bytes) -> int:
    """Return how many records of a batch are at an offset or beyond. Only compaction makes it
    necessary to open the batch: it leaves out offsets."""
    if offset > batch.last_offset:
        return 0
    if count == batch.last_offset - batch.base_offset + 1:
        return batch.last_offset - offset + 1
    records = open_batch(blob, batch, COUNTING_LIMIT).records
    return sum(record.offset >= offset for record in records)


def _of_old_formats(
    parts: PartitionColumns, ends: Sequence[int], asks: Sequence[int]
) -> CarriedBatches:
    """Return the columns where there are message sets. The offset of a compressed one is that of
    its last message: it is opened, as it was to count its messages. Single ones become runs."""
    rows: list[list[int]] = []
    blobs, run = parts.by_batch(parts.blobs), -1
    exchanges = parts.by_batch(range(len(parts.held)))
    for number, (batch, count) in enumerate(zip(parts.batches, parts.counts, strict=True)):
        base, last, ask = batch.base_offset, batch.last_offset, asks[number]
        single = batch.magic < RECORD_BATCH and not batch.codec
        bits, producer = 0, NOWHERE
        if batch.magic == RECORD_BATCH:
            count = _beyond(ask, batch, count, blobs[number]) if ask > base else count
            bits = batch.attributes
            producer = batch.producer_id if bits & TRANSACTIONAL else NOWHERE
        elif batch.codec:
            offsets = [
                record.offset for record in open_batch(blobs[number], batch, COUNTING_LIMIT).records
            ]
            base = min(offsets, default=last)
            count = sum(offset >= ask for offset in offsets)
        else:
            count = int(last >= ask)
        if single and run == exchanges[number] and rows[-1][2] + 1 == base and rows[-1][4]:
            rows[-1][2], rows[-1][6] = last, 0
            rows[-1][4] += count
            rows[-1][8] += batch.size
            continue
        run = exchanges[number] if single else -1
        row = [ends[number], base, last, ask, count, producer, batch.crc, bits, batch.size]
        rows.append(row)
    return CarriedBatches(*zip(*rows, strict=True))


class Marker(NamedTuple):
    """The end of a transaction in a partition."""

    offset: int
    producer_id: int
    committed: bool


def markers(
    batch: ExchangeBatch, at: tuple[str | None, int], parts: PartitionColumns
) -> list[Marker]:
    """Return the ends of transactions among what was fetched of a partition, and where the response
    lists a transaction as aborted whose end is not in it: behind its last record there."""
    out: list[Marker] = []
    fields = parts.by_exchange(parts.batches)
    for number, blob, batches in zip(parts.numbers, parts.blobs, fields, strict=True):
        last: dict[int, int] = {}
        for each in batches:
            if each.control:
                out += _ends(each, blob)
                last.pop(each.producer_id, None)
            elif each.transactional:
                last[each.producer_id] = each.last_offset
        if last:
            aborted = _aborted(batch.exchange_of(number).response_body or {}, at)
            out += (Marker(last[each] + 1, each, False) for each in aborted & last.keys())
    return out


def _ends(batch: Batch, blob: bytes) -> Iterator[Marker]:
    try:
        records = open_batch(blob, batch).records
    except DissectError:
        return
    for record in records:
        kind = int.from_bytes((record.key or b"")[2:MARKER_KEY])
        if record.key is not None and len(record.key) >= MARKER_KEY and kind < 2:
            yield Marker(record.offset, batch.producer_id, bool(kind))


def _aborted(body: Mapping[str, Any], at: tuple[str | None, int]) -> set[int]:
    """Return the producers of aborted transactions that a Fetch response lists for a partition."""
    return {
        each["producer_id"]
        for topic in body.get("responses") or ()
        for part in topic["partitions"]
        if (topic_key(topic.get("topic"), topic.get("topic_id")), part["partition_index"]) == at
        for each in part.get("aborted_transactions") or ()
    }
