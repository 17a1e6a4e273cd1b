"""Takes in what makes journeys of records: produced and fetched batches, and commits; and what is
said of single records that are asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby, product
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.identity import identity_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics import exchange_batch as exchanges
from kafkascope.analyzer.statistics.delivery.parts import commits_of
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, PartitionColumns
from kafkascope.analyzer.statistics.groups.events import OFFSET_COMMIT
from kafkascope.analyzer.statistics.journeys import facts
from kafkascope.analyzer.statistics.journeys.applications import (
    OFFSETS_IN_TRANSACTION,
    Applications,
    At,
)
from kafkascope.analyzer.statistics.journeys.facts import NOWHERE, Got, number_of
from kafkascope.analyzer.statistics.journeys.joins import LEGS, PERCENTS, Joins
from kafkascope.analyzer.statistics.journeys.model import By
from kafkascope.analyzer.statistics.model import Column, Line, TopicNames, columns, topic_key
from kafkascope.analyzer.text import plural
from kafkascope.dissectors.records.records import Batch, open_batch

SHARE_ACKNOWLEDGE: Final = 79
# Type of an acknowledgement.
ACCEPT: Final = 1
TRACEPARENT: Final = "traceparent"
"""Header of W3C Trace Context."""
Seen: TypeAlias = tuple[int, bytes, Batch]
"""A batch with its records, and the time at which it was sent or fetched."""


class Journeys(Applications):
    """Produced and fetched batches, commits, and ends of transactions, joined into journeys."""

    NAME = "journeys"
    KEYS = Applications.KEYS | {OFFSET_COMMIT, SHARE_ACKNOWLEDGE}
    SINGLY = Applications.SINGLY | {OFFSET_COMMIT, OFFSETS_IN_TRANSACTION, SHARE_ACKNOWLEDGE}
    COLUMNS = columns(
        "producer topic group (readers) records",
        *(
            Column(f"{leg}_p{percent}", "duration", wide=percent == PERCENTS[-1])
            for leg, percent in product(LEGS, PERCENTS)
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

    def _chosen(self, number: int, first: int, end: int) -> Sequence[int]:
        """Return the chosen offsets within a range of a partition."""
        offsets = (self._only or {}).get(number, [])
        return offsets[bisect_left(offsets, first) : bisect_left(offsets, end)]

    def _includes(self, number: int, first: int, end: int) -> bool:
        return self._only is None or bool(self._chosen(number, first, end))

    def add(self, batch: ExchangeBatch) -> None:
        self.last_ns = max(self.last_ns or 0, *batch.ends)
        super().add(batch)
        client = number_of(tuple(identity_of(batch.row)))
        for (topic, number, error), parts in batch.parts.items():
            if batch.api_key == exchanges.PRODUCE and not error:
                self._sent((topic, number), client, parts)
            elif batch.api_key != exchanges.PRODUCE and self._only:
                self._look_at(batch, (topic, number), parts)
        for at, asks in batch.unanswered.items():
            self._replicated(batch, at, ((offset, begin) for begin, _, offset in asks))
        for group, (topic, number), first, end, producer in _processed(batch):
            if group and self._includes(number, first, end):
                about = number_of(group), number_of(topic), number
                self.commits.add(batch.row.time_ns, *about, first, end, producer)

    def _sent(self, at: At, client: int, parts: PartitionColumns) -> None:
        """Keep what was produced, and look into records that are asked for."""
        rows = list[tuple[int, ...]]()
        for begin, end, known, count, (_, base, blob, batches, counts) in zip(
            *(parts.begins, parts.ends, parts.answered),
            *(parts.sums(parts.counts), parts.by_records()),
            strict=True,
        ):
            first = NOWHERE if base is None else base
            # Without an offset it may be any; with the first one the topic may be another.
            if not count or (first > 0 and not self._includes(at[1], first, first + count)):
                continue
            one = batches[0] if len(batches) == 1 else None
            about = one.producer_id if one and one.transactional else NOWHERE, one.crc if one else 0
            place = number_of(at[0]), at[1], end if known else NOWHERE
            rows.append((begin, *place, first, first + count, client, *about))
            if self._only and first >= 0:
                for each, its in zip(batches, counts, strict=True):
                    self._open(at, (begin, blob, each), first, first + its, produced=True)
                    first += its
        self.sent.add_rows(rows)

    def _kept(self, rows: list[Got], undecided: list[Got]) -> list[Got]:
        includes = self._includes
        return [row for row in rows if row.records and includes(row.partition, row.first, row.end)]

    # --- records that are asked for

    def _saw(self, time_ns: int, *key: Any) -> None:
        seen = self.moments[key]
        if seen.time_ns is None or time_ns < seen.time_ns:
            seen.time_ns = time_ns

    def _look_at(self, batch: ExchangeBatch, at: At, parts: PartitionColumns) -> None:
        """Take note of when records are visible and replicated, and of what they say."""
        for what, marks in ((facts.VISIBLE, parts.highs), (facts.STABLE, parts.stables)):
            for end, mark in zip(parts.ends, marks, strict=True):
                for offset in self._chosen(at[1], 0, mark):
                    self._saw(end, *at, offset, what)
        self._replicated(batch, at, zip(parts.fetch_offsets, parts.begins, strict=True))
        columns = parts.by_batch(parts.ends), parts.by_batch(parts.blobs), parts.batches
        for seen in zip(*columns, strict=True):
            self._open(at, seen, seen[2].base_offset, seen[2].last_offset + 1, produced=False)

    def _replicated(
        self, batch: ExchangeBatch, at: At, asks: Iterable[tuple[int | None, int]]
    ) -> None:
        if self._only and batch.way == "replica":
            what = facts.REPLICATED, exchanges.replica_id(batch.request)
            for fetch_offset, time_ns in asks:
                for offset in self._chosen(at[1], 0, fetch_offset or 0):
                    self._saw(time_ns, *at, offset, *what)

    def _open(self, at: At, seen: Seen, first: int, end: int, *, produced: bool) -> None:
        """Take note of what records say themselves, if they are in a batch."""
        (time_ns, blob, batch), missing = seen, set(self._chosen(at[1], first, end))
        if not missing or batch.control:
            return
        opened = open_batch(blob, batch)
        for place, record in enumerate(opened.records):
            offset = first + place if produced else record.offset
            if offset in missing:
                missing.discard(offset)
                key = None if record.key is None else record.key.decode(errors="replace")
                created_ms = None if batch.log_append_time else record.timestamp
                parent = (dict(record.headers).get(TRACEPARENT) or b"").decode(errors="replace")
                contents = facts.CONTENTS, key, created_ms, parent or None
                self._saw(time_ns, *at, offset, *contents)
        # Of a batch that cannot be read to its end, it is not known.
        for offset in () if produced or opened.error else missing:
            self._saw(time_ns, *at, offset, facts.COMPACTED, time_ns)

    # --- what was kept

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
        kept = [*self.sent.column("topic"), *self.got.column("topic")]
        rows = self.sent, self.got, self.commits
        return sum(topic not in topics for topic in kept) + sum(each.dropped for each in rows)


def _processed(batch: ExchangeBatch) -> Iterator[tuple[str | None, At, int, int, int]]:
    """Yield (group, partition, first offset, offset after the last, producer id) of what a group
    has committed, or a member of a share group has accepted."""
    key, request = batch.api_key, batch.exchange.request_body or {}
    group = request.get("group_id")
    if key in (OFFSET_COMMIT, OFFSETS_IN_TRANSACTION) and request:
        producer = request.get("producer_id", NOWHERE)
        response = batch.exchange.response_body if batch.row.errors else None
        for topic, number, about in commits_of(request, response):
            if not about["error"] and about["offset"] >= 0:
                yield group, (topic, number), 0, about["offset"], producer
    elif key in (exchanges.SHARE_FETCH, SHARE_ACKNOWLEDGE):
        for each in request.get("topics") or ():
            topic = topic_key(each.get("topic"), each.get("topic_id"))
            for part in each["partitions"]:
                for acknowledged in part.get("acknowledgement_batches") or ():
                    for first, end in _accepted_ranges(**acknowledged):
                        yield group, (topic, part["partition_index"]), first, end, NOWHERE


def _accepted_ranges(
    first_offset: int, last_offset: int, acknowledge_types: Sequence[int] | None, **_: Any
) -> Iterator[tuple[int, int]]:
    """Yield (first offset, offset after the last) of what is accepted: one type stands for all of
    a batch, or each offset has its own."""
    types = list(acknowledge_types or ())
    runs = [(kind, len(list(run))) for kind, run in groupby(types)]
    if len(types) == 1:
        runs = [(types[0], last_offset + 1 - first_offset)]
    for kind, count in runs:
        if kind == ACCEPT:
            yield first_offset, first_offset + count
        first_offset += count
