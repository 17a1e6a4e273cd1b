"""Takes in what makes journeys of records: produced and fetched batches, and commits; and what is
said of single records that are asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from kafkascope.analyzer.merging.tables import Key, by_key
from kafkascope.analyzer.statistics.delivery.parts import commits_of
from kafkascope.analyzer.statistics.exchange_batch import (
    SHARE_FETCH,
    ExchangeBatch,
    PartitionColumns,
    replica_id,
)
from kafkascope.analyzer.statistics.groups.events import OFFSET_COMMIT
from kafkascope.analyzer.statistics.journeys.applications import (
    OFFSETS_IN_TRANSACTION,
    Applications,
)
from kafkascope.analyzer.statistics.journeys.carried import NOWHERE, At, Carried
from kafkascope.analyzer.statistics.journeys.facts import (
    COMPACTED,
    CONTENTS,
    REPLICATED,
    STABLE,
    VISIBLE,
    number_of,
)
from kafkascope.analyzer.statistics.journeys.joins import LEGS, PERCENTS, Joins
from kafkascope.analyzer.statistics.journeys.model import By
from kafkascope.analyzer.statistics.model import Column, Line, TopicNames, columns, topic_key
from kafkascope.analyzer.text import plural
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.batches import TRANSACTIONAL
from kafkascope.dissectors.records.records import Batch, open_batch

SHARE_ACKNOWLEDGE: Final = 79
# Type of an acknowledgement.
ACCEPT: Final = 1
TRACEPARENT: Final = "traceparent"
"""Header of W3C Trace Context."""


class Journeys(Applications):
    """Produced and fetched batches, commits, and ends of transactions, joined into journeys."""

    NAME = "journeys"
    KEYS = Applications.KEYS | {OFFSET_COMMIT, SHARE_ACKNOWLEDGE}
    SINGLY = Applications.SINGLY | {OFFSET_COMMIT, OFFSETS_IN_TRANSACTION, SHARE_ACKNOWLEDGE}
    COLUMNS = columns(
        "producer topic group (readers) records",
        *(
            Column(f"{leg}_p{percent}", "duration", wide=percent == 99)
            for leg in LEGS
            for percent in PERCENTS
        ),
        "lag",
        Column("lag_time", "duration"),
        Column("negative", "count", wide=True),
    )

    def __init__(self, only: Collection[tuple[int, int]] | None = None) -> None:
        """`only`: partitions and offsets of the records that are asked for; all others are left
        out then."""
        super().__init__()
        self._only = None if only is None else by_key(sorted(set(only)))
        self._unplaced = 0

    def _chosen_offsets(self, number: int, first: int, end: int) -> Sequence[int]:
        """Return the chosen offsets within a range of a partition."""
        offsets = (self._only or {}).get(number, [])
        return offsets[bisect_left(offsets, first) : bisect_left(offsets, end)]

    def _includes(self, number: int, first: int, end: int) -> bool:
        return self._only is None or bool(self._chosen_offsets(number, first, end))

    def add(self, batch: ExchangeBatch) -> None:
        self.last_ns = max(self.last_ns or 0, *batch.ends)
        super().add(batch)
        for group, (topic, number), first, end, producer in _processed(batch):
            if group and self._includes(number, first, end):
                about = number_of(group), number_of(topic), number
                self.commits.add(batch.row.time_ns, *about, first, end, producer)

    def _produced(
        self, batch: ExchangeBatch, who: Key, at: At, error: int, parts: PartitionColumns
    ) -> None:
        super()._produced(batch, who, at, error, parts)
        if error:
            return
        if self._only is not None:
            self._look_into(at, parts)
        topic, client, rows = number_of(at[0]), number_of(who), list[tuple[int, ...]]()
        for begin, end, known, base, count, batches in zip(
            *(parts.begins, parts.ends, parts.answered, parts.base_offsets),
            *(parts.sums(parts.counts), parts.by_exchange(parts.batches)),
            strict=True,
        ):
            first = NOWHERE if base is None else base
            # Without an offset it may be any; with the first one the topic may be another.
            if not count or (first > 0 and not self._includes(at[1], first, first + count)):
                continue
            one = batches[0] if len(batches) == 1 else None
            transactional = one is not None and one.attributes & TRANSACTIONAL
            producer = one.producer_id if one and transactional else NOWHERE
            about = count, client, producer, one.crc if one else 0
            rows.append((begin, topic, at[1], end if known else NOWHERE, first, *about))
        self.sent.add_rows(rows)

    def _fetched(
        self, batch: ExchangeBatch, who: Key, at: At, parts: PartitionColumns, rows: list[Carried]
    ) -> None:
        super()._fetched(batch, who, at, parts, rows)
        if self._only is not None:
            self._look_at(batch, at, parts)

    def _kept(self, number: int, rows: list[Carried], undecided: list[Carried]) -> list[Carried]:
        return [
            row for row in rows if row.records and self._includes(number, row.base, row.last + 1)
        ]

    # --- records that are asked for

    def _look_at(self, batch: ExchangeBatch, at: At, parts: PartitionColumns) -> None:
        """Take note of when records are visible and replicated, and of what they say."""
        begin_ns = min(parts.ends)
        for offset in (self._only or {}).get(at[1], ()):
            for what, marks in ((VISIBLE, parts.highs), (STABLE, parts.stables)):
                seen = self.moments[(*at, offset, what)]
                if seen.time_ns is None or begin_ns < seen.time_ns:  # else it changes nothing
                    for end, mark in zip(parts.ends, marks, strict=True):
                        seen.take(time_ns=end if mark > offset else None)
        for begin, asked in zip(parts.begins, parts.fetch_offsets, strict=True):
            self._replicated(batch, at, asked or 0, begin)
        columns = parts.by_batch(parts.ends), parts.by_batch(parts.blobs), parts.batches
        for end, blob, each in zip(*columns, strict=True):
            self._open(at, end, blob, each, each.base_offset, each.last_offset + 1)

    def _waited(self, batch: ExchangeBatch, who: Key) -> None:
        super()._waited(batch, who)
        for at, asks in batch.unanswered.items():
            for begin, _, offset in asks:
                self._replicated(batch, at, offset, begin)

    def _replicated(self, batch: ExchangeBatch, at: At, asked: int, time_ns: int) -> None:
        if batch.way == "replica":
            for offset in self._chosen_offsets(at[1], 0, asked):
                key = *at, offset, REPLICATED, replica_id(batch.request)
                self.moments[key].take(time_ns=time_ns)

    def _look_into(self, at: At, parts: PartitionColumns) -> None:
        for begin, (_, base, blob, batches, counts) in zip(
            parts.begins, parts.by_records(), strict=True
        ):
            for batch, count in zip(batches, counts, strict=True):
                if base is not None:
                    self._open(at, begin, blob, batch, base, base + count, produced=True)
                    base += count

    def _open(
        self,
        at: At,
        time_ns: int,
        blob: bytes,
        batch: Batch,
        base: int,
        end: int,
        *,
        produced: bool = False,
    ) -> None:
        """Take note of what a record says itself, if it is in a batch."""
        offsets = self._chosen_offsets(at[1], base, end)
        if not offsets or batch.control:
            return
        try:
            opened = open_batch(blob, batch)
        except DissectError:
            return
        missing = set(offsets)
        for place, record in enumerate(opened.records):
            offset = base + place if produced else record.offset
            if offset in missing:
                missing.discard(offset)
                headers = {name: data for name, data in record.headers if data}
                key = None if record.key is None else record.key.decode(errors="replace")
                created_ms = None if batch.log_append_time else record.timestamp
                parent = headers.get(TRACEPARENT, b"").decode(errors="replace") or None
                contents = *at, offset, CONTENTS, key, created_ms, parent
                self.moments[contents].take(time_ns=time_ns)
        # Of a batch that cannot be read to its end, it is not known.
        for offset in () if produced or opened.error else missing:
            self.moments[(*at, offset, COMPACTED, time_ns)].take(time_ns=time_ns)

    def rows(self, names: TopicNames | None = None, by: By = "application") -> list[Line]:
        """Return one line for each producing application, topic and group."""
        joins = Joins(self, names, by)
        lines = joins.lines()
        self._unplaced = joins.unplaced
        return lines

    def remarks(self, lines: Iterable[Line]) -> Iterator[str]:
        """Yield what is to be said of `rows`: what was left out, and times that cannot be."""
        if self.dropped:
            yield f"{plural(self.dropped, 'older batch')} left out: there are too many"
        if self._unplaced:
            yield (
                f"{plural(self._unplaced, 'produced record')} left out: no response has their "
                "offset (acks=0, or it was lost), and no fetched batch their checksum"
            )
        if negative := sum(line["negative"] for line in lines):
            yield (
                f"{plural(negative, 'record')} fetched before being sent: clocks of hosts disagree"
            )

    @property
    def dropped(self) -> int:
        """Batches and commits that were evicted, or whose topic was."""
        topics = self.labels(None)
        unnamed = [
            topic
            for rows in (self.sent, self.got)
            for topic in rows.column("topic")
            if topic not in topics
        ]
        return len(unnamed) + sum(rows.dropped for rows in (self.sent, self.got, self.commits))


def _processed(batch: ExchangeBatch) -> Iterator[tuple[str | None, At, int, int, int]]:
    """Yield (group, partition, first offset, offset behind the last, producer id) of what a group
    has committed, or a member of a share group has accepted."""
    key, exchange = batch.api_key, batch.exchange
    if key in (OFFSET_COMMIT, OFFSETS_IN_TRANSACTION) and (request := exchange.request_body):
        producer = request.get("producer_id", NOWHERE)
        response = exchange.response_body if batch.row.errors else None
        for topic, number, about in commits_of(request, response):
            if not about["error"] and about["offset"] >= 0:
                yield request.get("group_id"), (topic, number), 0, about["offset"], producer
    elif key in (SHARE_FETCH, SHARE_ACKNOWLEDGE) and (request := exchange.request_body):
        for each in request.get("topics") or ():
            topic = topic_key(each.get("topic"), each.get("topic_id"))
            for part in each["partitions"]:
                at = topic, part["partition_index"]
                for first, end in _accepted_ranges(part.get("acknowledgement_batches") or ()):
                    yield request.get("group_id"), at, first, end, NOWHERE


def _accepted_ranges(batches: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield (first offset, offset behind the last) of what is accepted: one type stands for all of
    a batch, or each offset has its own."""
    for batch in batches:
        first, last = batch["first_offset"], batch["last_offset"]
        types = list(batch.get("acknowledge_types") or ())
        runs = [(kind, len(list(run))) for kind, run in groupby(types)]
        if len(types) == 1:
            runs = [(types[0], last + 1 - first)]
        for kind, count in runs:
            if kind == ACCEPT:
                yield first, first + count
            first += count
