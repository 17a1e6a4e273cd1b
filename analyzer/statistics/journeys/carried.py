"""The record batches that exchanges carried, of all formats, for the joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


class Carried(NamedTuple):
    """A fetched batch, or a run of single messages of an old format."""

    time_ns: int
    """Of the last byte of the response."""
    base: int
    last: int
    asked: int
    """Fetch offset; -1 where the request did not name the partition."""
    records: int
    """At or beyond that."""
    producer_id: int
    """Of a transactional batch; -1 for all others."""
    checksum: int
    bits: int
    size: int


def fetched(batch: ExchangeBatch, at: At, parts: PartitionColumns) -> list[Carried]:
    """Return what Fetches, or a ShareFetch, brought of one partition: a broker sends whole batches,
    of which the client skips what is before the offset it asked for. Single messages of old formats
    become runs."""
    rows: list[Carried] = []
    ends, blobs, asks = map(parts.by_batch, (parts.ends, parts.blobs, parts.fetch_offsets))
    exchanges, run = parts.by_batch(range(len(parts.held))), NOWHERE
    for each, count, end, blob, ask, exchange in zip(
        *(parts.batches, parts.counts, ends, blobs, asks, exchanges), strict=True
    ):
        base, last, asked = each.base_offset, each.last_offset, NOWHERE if ask is None else ask
        if each.magic < RECORD_BATCH and each.codec:
            # The offset of a compressed message set is that of its last message.
            offsets = [message.offset for message in _opened(each, blob)]
            base, count = min(offsets, default=last), sum(offset >= asked for offset in offsets)
        elif asked > base:
            count = _beyond(asked, each, count, blob)
        single = each.magic < RECORD_BATCH and not each.codec
        if single and run == exchange and rows[-1].last + 1 == base and rows[-1].records:
            before = rows.pop()
            records, size = before.records + count, before.size + each.size
            rows.append(before._replace(last=last, checksum=0, records=records, size=size))
            continue
        run = exchange if single else NOWHERE
        bits = each.attributes if each.magic == RECORD_BATCH else 0
        producer = each.producer_id if bits & TRANSACTIONAL else NOWHERE
        rows.append(Carried(end, base, last, asked, count, producer, each.crc, bits, each.size))
    return _acquired(batch, at, parts, rows) if batch.api_key == SHARE_FETCH else rows


def _acquired(
    batch: ExchangeBatch, at: At, parts: PartitionColumns, rows: list[Carried]
) -> list[Carried]:
    """Return the rows of the records that a member of a share group may process: a broker sends
    whole batches, of which others may hold some records (KIP-932)."""
    ranges = [
        (each["first_offset"], each["last_offset"])
        for part in _returned(batch.exchange.response_body or {}, at)
        for each in part.get("acquired_records") or ()
    ]
    found = []
    # Only hostile responses of this API hold message sets, whose runs are fewer rows.
    for each, blob, row in zip(parts.batches, parts.by_batch(parts.blobs), rows, strict=False):
        for first, end in ranges[: LIMITS.acquired_ranges]:
            low, high = max(first, row.base), min(end, row.last)
            if low <= high:
                some, more = (_beyond(at, each, row.records, blob) for at in (low, high + 1))
                found.append(row._replace(base=low, last=high, records=some - more))
    return found


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
