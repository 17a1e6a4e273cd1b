"""The ways of records: sent, acknowledged, fetched by groups, committed behind.

Kept are columns of batches, not of records: produced ones with the offsets that the broker gave
them, fetched ones, commits. `joins` puts them together at the end, so that neither the order of
exchanges nor their division matters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.identity import identity_of
from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.merging.tables import Keyed
from kafkascope.analyzer.statistics.delivery.parts import commits_of
from kafkascope.analyzer.statistics.exchange_batch import (
    FETCH,
    PRODUCE,
    SHARE_FETCH,
    ExchangeBatch,
    PartitionColumns,
    replica_id,
)
from kafkascope.analyzer.statistics.groups.events import OFFSET_COMMIT
from kafkascope.analyzer.statistics.journeys.applications import (
    OFFSETS_IN_TRANSACTION,
    READ_COMMITTED,
    Applications,
    Who,
    number_of,
    who_of,
)
from kafkascope.analyzer.statistics.journeys.carried import NOWHERE, CarriedBatches, fetched
from kafkascope.analyzer.statistics.journeys.facts import JourneyFacts
from kafkascope.analyzer.statistics.journeys.joins import Joins
from kafkascope.analyzer.statistics.journeys.model import Journey
from kafkascope.analyzer.statistics.model import (
    Line,
    TopicNames,
    columns,
    topic_key,
)
from kafkascope.analyzer.text import plural
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.batches import CONTROL, TRANSACTIONAL
from kafkascope.dissectors.records.records import Batch, Record, open_batch

SHARE_ACKNOWLEDGE: Final = 79
ACCEPT: Final = 1
"""Type of an acknowledgement."""
TRACEPARENT: Final = "traceparent"
"""Header of W3C Trace Context."""

At: TypeAlias = tuple[str | None, int]
"""Topic key and partition."""


class Journeys(JourneyFacts):
    """Produced and fetched batches, commits, and ends of transactions."""

    NAME = "journeys"
    KEYS = Applications.KEYS | {OFFSET_COMMIT, SHARE_ACKNOWLEDGE}
    COLUMNS = columns(
        *("producer", "topic", "group", "readers", "records"),
        *("produce_p50", "produce_p95", "produce_p99", "deliver_p50", "deliver_p95"),
        *("deliver_p99", "commit_p50", "commit_p95", "commit_p99", "lag", "lag_time"),
        "negative",
        wide=("produce_p99", "deliver_p99", "commit_p99", "readers", "negative"),
        kinds={
            **dict.fromkeys(
                (
                    *("produce_p50", "produce_p95", "produce_p99", "deliver_p50", "deliver_p95"),
                    *("deliver_p99", "commit_p50", "commit_p95", "commit_p99", "lag_time"),
                ),
                "duration",
            ),
            "negative": "count",
        },
    )

    def __init__(self, only: Collection[tuple[int, int]] | None = None) -> None:
        """`only`: partitions and offsets of the records that are asked for; all others are left
        out then."""
        super().__init__()
        self._only: dict[int, list[int]] | None = None
        if only is not None:
            self._only = {}
            for number, offset in sorted(set(only)):
                self._only.setdefault(number, []).append(offset)

    # --- taking in

    def add(self, batch: ExchangeBatch) -> None:
        key = batch.api_key
        self.take(last_ns=max(batch.ends))
        if key == PRODUCE:
            who = who_of(identity_of(batch.row))
            for (topic, number, error), parts in batch.parts.items():
                self.map.produced(batch, who, topic, error, parts)
                if not error:
                    self._produced(who, (topic, number), parts)
        elif key in (FETCH, SHARE_FETCH):
            self._fetch(batch, who_of(identity_of(batch.row)))
        else:
            self.map.take_request(batch)
        if key in (OFFSET_COMMIT, OFFSETS_IN_TRANSACTION):
            self._committed(batch)
        elif key in (SHARE_FETCH, SHARE_ACKNOWLEDGE):
            self._accepted(batch)

    def _produced(self, who: Who, at: At, parts: PartitionColumns) -> None:
        counts = parts.sums(parts.counts)
        client = number_of(who)
        producers, checksums = [], []
        for batches in parts.by_exchange(parts.batches):
            one = batches[0] if len(batches) == 1 else None
            bits = one.attributes if one is not None else 0
            producers.append(one.producer_id if one and bits & TRANSACTIONAL else NOWHERE)
            checksums.append(one.crc if one is not None else 0)
        columns: tuple[Sequence[int], ...] = (
            parts.begins,
            [
                end if known else NOWHERE
                for end, known in zip(parts.ends, parts.answered, strict=True)
            ],
            [NOWHERE if base is None else base for base in parts.base_offsets],
            counts,
            [client] * len(counts),
            producers,
            checksums,
        )
        if not all(counts):
            columns = _some(columns, counts)
        if self._only is not None:
            self._look_into(at, parts)
            offsets = self._only.get(at[1], ())
            columns = _some(
                columns,
                [
                    first < 0 or _holds(offsets, first, first + count)
                    for first, count in zip(columns[2], columns[3], strict=True)
                ],
            )
        if columns[0]:
            self.produces[at].rows.add_all(*columns)

    def _fetch(self, batch: ExchangeBatch, who: Who) -> None:
        follower = replica_id(batch.request)
        client = number_of(who)
        judged = int(batch.request.get("isolation_level") == READ_COMMITTED)
        for (topic, number, _), parts in batch.parts.items():
            at = topic, number
            rows = fetched(batch, at, parts)
            self.map.fetched(batch, who, at, parts, rows, follower=follower >= 0)
            if self._only is not None:
                self._look_at(at, parts, follower)
            if follower < 0 and rows.bases:
                self._fetched(at, rows, client, judged)
        self.map.waited(batch, who)
        if self._only is not None and follower >= 0:
            for at, asks in batch.unanswered.items():
                for begin, _, offset in asks:
                    self._replicated(at, offset, follower, begin)

    def _fetched(self, at: At, rows: CarriedBatches, client: int, judged: int) -> None:
        size = len(rows.bases)
        columns: Sequence[Sequence[int]] = (
            *(rows.ends, rows.bases, rows.lasts, rows.asks, rows.counts, [client] * size),
            *(rows.producers, rows.checksums, [judged] * size),
        )
        if any(map(CONTROL.__and__, rows.bits)) or not all(rows.counts):
            columns = _some(
                columns,
                [
                    count and not bits & CONTROL
                    for count, bits in zip(rows.counts, rows.bits, strict=True)
                ],
            )
        if self._only is not None:
            offsets = self._only.get(at[1], ())
            columns = _some(
                columns,
                [
                    _holds(offsets, base, last + 1)
                    for base, last in zip(columns[1], columns[2], strict=True)
                ],
            )
        if columns[0]:
            self.fetches[at].rows.add_all(*columns)

    def _committed(self, batch: ExchangeBatch) -> None:
        asked, response = batch.exchange.request_body, batch.exchange.response_body
        if asked is None:
            return
        time_ns = batch.row.time_ns
        producer = asked.get("producer_id", NOWHERE)
        for topic, number, about in commits_of(asked, response):
            if not about["error"] and about["offset"] >= 0:
                self._commit(asked, (topic, number), time_ns, 0, about["offset"], producer)

    def _commit(
        self, asked: Mapping[str, Any], at: At, time_ns: int, first: int, end: int, producer: int
    ) -> None:
        group = asked.get("group_id")
        if group and (self._only is None or _holds(self._only.get(at[1], ()), first, end)):
            self.commits[(group, *at)].rows.add(time_ns, first, end, producer)

    def _accepted(self, batch: ExchangeBatch) -> None:
        """Take note of records that a member of a share group has accepted."""
        asked = batch.exchange.request_body
        if asked is None:
            return
        for topic in asked.get("topics") or ():
            at = topic_key(topic.get("topic"), topic.get("topic_id"))
            for part in topic["partitions"]:
                for first, end in _ranges(part.get("acknowledgement_batches") or ()):
                    where = at, part["partition_index"]
                    self._commit(asked, where, batch.row.time_ns, first, end, NOWHERE)

    # --- one record

    def _look_at(self, at: At, parts: PartitionColumns, follower: int) -> None:
        """Take note of when records are visible and replicated."""
        assert self._only is not None
        for offset in self._only.get(at[1], ()):
            facts, begin = self.records[(*at, offset)], min(parts.ends)
            if begin >= max(facts.visible_ns or begin + 1, facts.stable_ns or begin + 1):
                continue  # what comes later changes nothing
            for end, high, stable in zip(parts.ends, parts.highs, parts.stables, strict=True):
                facts.take(
                    visible_ns=end if high > offset else None,
                    stable_ns=end if stable > offset else None,
                )
        if follower >= 0:
            for begin, asked in zip(parts.begins, parts.fetch_offsets, strict=True):
                self._replicated(at, asked or 0, follower, begin)
        for blob, batch in zip(parts.by_batch(parts.blobs), parts.batches, strict=True):
            self._open(at, blob, batch, batch.base_offset, batch.last_offset + 1)

    def _replicated(self, at: At, asked: int, follower: int, time_ns: int) -> None:
        assert self._only is not None
        for offset in self._only.get(at[1], ()):
            if asked > offset:
                self.replications[(*at, offset, follower)].take(time_ns=time_ns)

    def _look_into(self, at: At, parts: PartitionColumns) -> None:
        for _, base, blob, batches, counts in parts.by_records():
            for batch, count in zip(batches, counts, strict=True):
                if base is not None:
                    self._open(at, blob, batch, base, base + count, produced=True)
                    base += count

    def _open(
        self, at: At, blob: bytes, batch: Batch, base: int, end: int, *, produced: bool = False
    ) -> None:
        """Take note of what a record says itself, if it is in a batch."""
        assert self._only is not None
        offsets = [each for each in self._only.get(at[1], ()) if base <= each < end]
        if not offsets or batch.control:
            return
        try:
            records: Sequence[Record] = open_batch(blob, batch).records
        except DissectError:
            return
        for place, record in enumerate(records):
            offset = base + place if produced else record.offset
            if offset in offsets:
                headers = {name: data for name, data in record.headers if data}
                self.records[(*at, offset)].take(
                    created_ms=None if batch.log_append_time else record.timestamp,
                    key=None if record.key is None else record.key.decode(errors="replace"),
                    traceparent=headers.get(TRACEPARENT, b"").decode(errors="replace") or None,
                )

    # --- telling

    def joins(self, names: TopicNames | None = None) -> Joins:
        """Return what joins produced and fetched batches."""
        return Joins(self, names)

    def journey(
        self, topic: str, partition: int, offset: int, names: TopicNames | None = None
    ) -> Journey:
        """Return the way of one record."""
        return self.joins(names).journey(topic, partition, offset)

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line for each producing application, topic and group."""
        return self.joins(names).lines()

    def remarks(self, lines: Iterable[Line]) -> Iterator[str]:
        """Yield what is to be said of `rows`: what was left out, and times that cannot be."""
        if self.dropped:
            yield f"{plural(self.dropped, 'older batch')} left out: there are too many"
        if negative := sum(line["negative"] for line in lines):
            yield (
                f"{plural(negative, 'record')} fetched before being sent: clocks of hosts disagree"
            )

    @property
    def dropped(self) -> int:
        """Batches and commits that were evicted."""
        tables: list[Keyed[Any]] = [self.produces, self.fetches, self.commits]
        evicted: list[int]
        evicted = [each.rows.dropped for those in tables for each in those.values()]
        rest: list[IntegerRows] = [
            those.others.rows for those in tables if those.others is not None
        ]
        return sum(evicted) + sum(len(rows) + rows.dropped for rows in rest)


def _some(columns: Sequence[Sequence[int]], chosen: Sequence[Any]) -> Any:
    """Return the rows of columns that are chosen."""
    return tuple(
        [value for value, one in zip(column, chosen, strict=True) if one] for column in columns
    )


def _holds(offsets: Sequence[int], first: int, end: int) -> bool:
    """Return whether one of some offsets, in their order, is in a range."""
    at = bisect_left(offsets, first)
    return at < len(offsets) and offsets[at] < end


def _ranges(batches: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield (first offset, offset behind the last) of what is accepted: one type stands for all of
    a batch, or each offset has its own."""
    for batch in batches:
        first, last = batch["first_offset"], batch["last_offset"]
        types = list(batch.get("acknowledge_types") or ())
        if len(types) == 1:
            if types[0] == ACCEPT:
                yield first, last + 1
            continue
        begin = None
        for offset, kind in enumerate((*types, None), first):
            if kind == ACCEPT and begin is None:
                begin = offset
            elif kind != ACCEPT and begin is not None:
                yield begin, offset
                begin = None
