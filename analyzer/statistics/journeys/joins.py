"""The ways of records: what was produced, fetched and committed is joined at the end, partition by
partition, so that neither the order of exchanges nor their division matters."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from heapq import heappop, heappush
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.merging.integer_rows import IntegerRows, R
from kafkascope.analyzer.merging.tables import Key, Keyed, M, by_key, sums
from kafkascope.analyzer.statistics.journeys.batches import (
    Commit,
    Got,
    JourneyBatches,
    RecordFacts,
    Sent,
)
from kafkascope.analyzer.statistics.journeys.clients import MapClients
from kafkascope.analyzer.statistics.journeys.facts import number_of
from kafkascope.analyzer.statistics.journeys.model import (
    By,
    Fetched,
    Journey,
    Outcome,
    Produced,
    Replicated,
)
from kafkascope.analyzer.statistics.model import Line, TopicNames, topic_label

LEGS: Final = ("produce", "deliver", "commit")
PERCENTS: Final = (50, 95, 99)


class PartitionLog(NamedTuple):
    """A partition, in the time in which it was one log."""

    topic: str
    partition: int
    begin_ns: int = 0
    end_ns: int = sys.maxsize


class RecordRange(NamedTuple):
    """Offsets that one batch brought to a group first, of one produced batch."""

    start: int
    end: int
    time_ns: int
    records: int
    sent: Sent

    def cut(self, start: int, end: int) -> RecordRange:
        records = _part(self.records, self.end - self.start, end - start)
        return RecordRange(start, end, self.time_ns, records, self.sent)


@dataclass(slots=True)
class Legs:
    """The times of records of an application, in a topic, to a group."""

    records: int = 0
    negative: int = 0
    """Records that a group got before they were sent: clocks disagree."""
    lag: int = 0
    lag_ns: int = 0
    readers: set[str] = field(default_factory=set)
    produce: Counter[int] = field(default_factory=Counter)
    deliver: Counter[int] = field(default_factory=Counter)
    commit: Counter[int] = field(default_factory=Counter)

    def take(self, piece: RecordRange) -> None:
        """Add records that the group got."""
        sent, count = piece.sent, piece.records
        self.records += count
        if sent.acknowledged_ns >= 0:
            self.produce[sent.acknowledged_ns - sent.time_ns] += count
        deliver = piece.time_ns - sent.time_ns
        if deliver < 0:
            self.negative += count
        else:
            self.deliver[deliver] += count

    def line(self) -> Line:
        """Return percentiles, and the rest."""
        out: Line = {"readers": sorted(self.readers), "records": self.records}
        for leg in LEGS:
            histogram = Histogram()
            histogram.add_counts(getattr(self, leg))
            for percent in PERCENTS:
                out[f"{leg}_p{percent}"] = histogram.percentile(percent / 100)
        return out | {"lag": self.lag, "lag_time": self.lag_ns, "negative": self.negative}


class Joins:
    """What journeys have kept, joined."""

    def __init__(
        self, counted: JourneyBatches, names: TopicNames | None = None, by: By = "application"
    ) -> None:
        self._counted, self._names = counted, names
        self._clients = MapClients(counted, names, by)
        self._sent = self._by_place(counted.sent)
        self._got = self._by_place(counted.got)
        self._commits = self._by_place(counted.commits, "group")
        self._facts = self._labelled(counted.records)
        self._replicated = by_key(
            (key[:3], Replicated(key[3], each.time_ns or 0))
            for key, each in self._labelled(counted.replications).items()
        )
        # Of a large capture one partition is in memory at a time.
        self._sent_to = lru_cache(1)(partial(_rows, self._sent))
        self._produced = lru_cache(1)(self._produced_to)
        self._visible = lru_cache(2)(self._visible_of)

    def _by_place(self, rows: IntegerRows[R], *first: str) -> dict[Key, list[IntegerRows[R]]]:
        """Return rows by what their topics mean: some messages have the name of one, others its
        id."""
        labels = self._clients.labels
        return by_key(
            ((*group, labels[topic], number), part)
            for (*group, topic, number), part in rows.split(*first, "topic", "partition").items()
            if topic in labels
        )

    def _labelled(self, table: Keyed[M]) -> dict[Key, M]:
        """Return what is known of records by the names of their topics."""
        return sums(
            table.kind,
            (
                ((str(topic_label(topic, self._names)), *rest), each)
                for (topic, *rest), each in table.items()
            ),
        )

    # --- one partition

    def _logs(self, topic: str, partition: int) -> list[PartitionLog]:
        """Return the partition once for each time its topic was created. A batch that gets offset 0
        where another one had been acknowledged before tells so, unless it was sent again."""
        place = PartitionLog(topic, partition)
        begins, first, acknowledged_ns = [0], set[int](), sys.maxsize
        for sent in self._sent_to(place):
            if sent.first == 0 and acknowledged_ns < sent.time_ns and sent.checksum not in first:
                begins.append(sent.time_ns)
                first, acknowledged_ns = set(), sys.maxsize
            if sent.first <= 0:
                first.add(sent.checksum)
            if sent.first >= 0 and sent.acknowledged_ns >= 0:
                acknowledged_ns = min(acknowledged_ns, sent.acknowledged_ns)
        return [place._replace(begin_ns=b, end_ns=e) for b, e in pairwise([*begins, sys.maxsize])]

    def _produced_to(self, place: PartitionLog) -> list[Sent]:
        """Return what was produced to a partition, by offset; of what was sent again, the first.

        Without a response (acks=0, or it was lost) there is no offset. A broker changes the base
        offset of a batch and its leader epoch, which its checksum leaves out: the batch that
        somebody fetched tells the offset.
        """
        out: dict[int, Sent] = {}
        lost = []
        for sent in self._sent_to(PartitionLog(*place[:2])):
            if not place.begin_ns <= sent.time_ns < place.end_ns:
                continue
            if sent.first < 0:
                lost.append(sent)
            else:
                out.setdefault(sent.first, sent)
        bases = by_key(
            ((got.checksum, got.records), got.base)
            for got in (_rows(self._got, place) if lost else ())
            if got.checksum and got.records == got.last - got.base + 1
        )
        for sent in lost:
            for base in sorted(set(bases.get((sent.checksum, sent.records), ())) - out.keys())[:1]:
                out[base] = sent._replace(first=base)
        return [out[first] for first in sorted(out)]

    def _visible_of(
        self, place: PartitionLog, aborted: bool = False
    ) -> dict[str | None, list[tuple[int, Got]]]:
        """Return, by group, what its members got, in the order of time, and from which offset on.
        `aborted`: instead what read_committed ones were not shown, as its transaction was."""
        positions: dict[int, int] = {}
        found: dict[int, list[tuple[int, Got]]] = {}
        for got in _rows(self._got, place):
            start = max(got.base, got.asked)
            if got.asked < 0 and got.base < positions.get(got.client, -1) <= got.last:
                # Within a session, only requests with a new offset name the partition.
                start = positions[got.client]
            positions[got.client] = got.last + 1
            hidden = (
                bool(got.judged)
                and got.producer_id >= 0
                and not self._clients.outcomes.shown(
                    *place[:2], got.producer_id, got.last, got.time_ns
                )
            )
            if hidden == aborted and start <= got.last:
                found.setdefault(got.client, []).append((start, got))
        groups = by_key(
            (self._clients.group_of(self._clients.of(client), place.topic), rows)
            for client, rows in found.items()
        )
        return {
            group: rows[0] if len(rows) == 1 else sorted(chain(*rows), key=itemgetter(1))
            for group, rows in groups.items()
        }

    def _commits_of(self, group: str | None, place: PartitionLog) -> list[Commit]:
        """Return the valid commits of a group: of those in transactions, where these were
        committed."""
        ended = self._clients.outcomes.ended
        return [
            commit
            for commit in _rows(self._commits, place, number_of(group))
            if commit.producer_id < 0 or ended(commit.producer_id, commit.time_ns)
        ]

    # --- one record

    def journey(self, topic: str, partition: int, offset: int) -> Journey:
        """Return the way of one record."""
        place = PartitionLog(topic, partition)
        sent = next((s for s in self._produced(place) if s.first <= offset < s.end), None)
        facts = self._facts.get((topic, partition, offset), RecordFacts())
        return Journey(
            *(topic, partition, offset, facts.key, facts.created_ms),
            None if sent is None else self._sent_by(sent),
            *(facts.visible_ns, facts.stable_ns),
            tuple(
                sorted(
                    self._replicated.get((topic, partition, offset), ()), key=attrgetter("time_ns")
                )
            ),
            tuple(self._fetched(place, offset)),
            tuple(self._fetched(place, offset, aborted=True)),
            self._transaction(place, offset, sent),
            facts.traceparent,
        )

    def _sent_by(self, sent: Sent) -> Produced:
        acknowledged = None if sent.acknowledged_ns < 0 else sent.acknowledged_ns
        return Produced(*self._who(sent.client), sent.time_ns, acknowledged)

    def _who(self, client: int) -> tuple[str, str]:
        """Return client id and application."""
        who = self._clients.of(client)
        name = self._clients.application_of(who)
        return (name if who is None else who.client_id or ""), name

    def _fetched(self, place: PartitionLog, offset: int, *, aborted: bool = False) -> list[Fetched]:
        out = []
        for group, rows in self._visible(place, aborted).items():
            # A client that started again is the same, also on another host.
            times = by_key(
                (self._who(got.client), got.time_ns)
                for start, got in rows
                if start <= offset <= got.last
            )
            first = min((each[0] for each in times.values()), default=0)
            committed = next(
                (
                    commit.time_ns
                    for commit in self._commits_of(group, place)
                    if commit.time_ns >= first and commit.first <= offset < commit.end
                ),
                None,
            )
            out += [
                Fetched(
                    *(client_id, group, application, each[0], committed),
                    *(len(each) - 1, tuple(each[1:])),
                )
                for (client_id, application), each in times.items()
            ]
        return sorted(out, key=lambda each: each.time_ns)

    def _transaction(self, place: PartitionLog, offset: int, sent: Sent | None) -> Outcome | None:
        if sent is not None:
            producer = sent.producer_id
        else:
            found = (g.producer_id for g in _rows(self._got, place) if g.base <= offset <= g.last)
            producer = max(found, default=-1)
        if producer < 0:
            return None
        ended = self._clients.outcomes.of(*place[:2], producer, offset)
        if ended is None and sent is not None:
            ended = self._clients.outcomes.ended(producer, sent.time_ns)
        return None if ended is None else "committed" if ended else "aborted"

    # --- all records

    def lines(self) -> list[Line]:
        """Return one line for each producing application, topic and group."""
        found: dict[tuple[str, str, str | None], Legs] = {}
        for place in chain.from_iterable(self._logs(*key) for key in sorted(self._sent)):
            for group in self._visible(place):
                self._measure(place, group, found)
        return [
            {"producer": producer, "topic": topic, "group": group, **legs.line()}
            for (producer, topic, group), legs in sorted(
                found.items(), key=lambda item: (*item[0][:2], item[0][2] or "")
            )
            if legs.records
        ]

    def _measure(
        self, place: PartitionLog, group: str | None, found: dict[tuple[str, str, str | None], Legs]
    ) -> None:
        """Add what a group got of a partition."""
        produced, rows = self._produced(place), self._visible(place)[group]
        commits = self._commits_of(group, place)
        readers = {self._who(client)[1] for client in {got.client for _, got in rows}}

        @cache
        def legs_of(client: int) -> Legs:
            legs = found.setdefault((self._who(client)[1], place.topic, group), Legs())
            legs.readers |= readers
            return legs

        pieces = list(_joined(produced, _first(rows)))
        for piece in pieces:
            legs_of(piece.sent.client).take(piece)
        for piece, committed_ns in _committed(pieces, commits):
            legs_of(piece.sent.client).commit[committed_ns - piece.time_ns] += piece.records
        position = max((commit.end for commit in commits), default=None)
        if position is None:
            position = max(got.last + 1 for _, got in rows)
        last_ns = self._counted.last_ns or 0
        for sent in reversed(produced):
            if sent.end <= position:
                break
            legs = legs_of(sent.client)
            legs.lag += min(sent.records, sent.end - position)
            legs.lag_ns = max(legs.lag_ns, last_ns - sent.time_ns)


def _rows(table: dict[Key, list[IntegerRows[R]]], place: PartitionLog, *first: int) -> list[R]:
    """Return the rows of a partition, of its time. `first`: what stands before it in keys."""
    parts = table.get((*first, *place[:2]), ())
    rows = [row for part in parts for row in part.rows()]
    if place.begin_ns or place.end_ns < sys.maxsize:
        rows = [row for row in rows if place.begin_ns <= row[0] < place.end_ns]
    return rows if len(parts) < 2 else sorted(rows)


def _part(records: int, span: int, count: int) -> int:
    """Return the records in a part of some offsets. Where compaction left out offsets, they are
    spread evenly."""
    return count if records == span else round(records * count / span)


def _first(rows: Sequence[tuple[int, Got]]) -> Iterator[tuple[int, int, int, Got]]:
    """Yield (offset, offset behind the last, records, batch) of what a group got, each offset in
    the batch that came first, by offset."""
    # From left to right, with a heap of the batches that begin before: whatever the order in which
    # a group reads, n batches take n log n steps.
    at, begun = 0, list[tuple[int, int, Got]]()
    ordered = sorted(rows, key=itemgetter(0))
    starts = [start for start, _ in ordered[1:]]
    for (offset, batch), following in zip(ordered, [*starts, sys.maxsize], strict=True):
        at = max(at, offset)
        if not begun and at == offset and batch.last < following:
            yield at, batch.last + 1, batch.records, batch  # as nearly always
            continue
        heappush(begun, (batch.time_ns, offset, batch))
        while begun and at < following:
            _, start, got = begun[0]
            if got.last < at:
                heappop(begun)
                continue
            end = min(got.last + 1, following)
            yield at, end, _part(got.records, got.last + 1 - start, end - at), got
            at = end


def _joined(
    produced: Sequence[Sent], pieces: Iterable[tuple[int, int, int, Got]]
) -> Iterator[RecordRange]:
    """Yield the parts of fetched batches that are of one produced batch; both come by offset."""
    firsts = [sent.first for sent in produced]
    whole = {(sent.first, sent.end): sent for sent in produced}
    for start, end, records, got in pieces:
        if (start, end) in whole:  # as nearly always
            yield RecordRange(start, end, got.time_ns, records, whole[start, end])
            continue
        at = max(0, bisect_right(firsts, start) - 1)
        while at < len(firsts) and firsts[at] < end:
            sent = produced[at]
            at += 1
            low, high = max(start, sent.first), min(end, sent.first + sent.records)
            if low < high:
                count = _part(records, end - start, high - low)
                yield RecordRange(low, high, got.time_ns, count, sent)


def _committed(
    pieces: list[RecordRange], commits: Sequence[Commit]
) -> Iterator[tuple[RecordRange, int]]:
    """Yield what was got and then committed, with the time of the first commit beyond it."""
    # What waits for a commit is a heap by offset: a commit takes what is before its end. Only in
    # share groups it has a beginning; few records wait there, 2,000 by default
    # (group.share.partition.max.record.locks).
    pieces.sort(key=attrgetter("time_ns"), reverse=True)
    waiting: list[RecordRange] = []
    for commit in commits:
        while pieces and pieces[-1].time_ns <= commit.time_ns:
            heappush(waiting, pieces.pop())
        rest = []
        while waiting and waiting[0].start < commit.end:
            piece = heappop(waiting)
            if commit.first <= piece.start and piece.end <= commit.end:
                yield piece, commit.time_ns
                continue
            start, end = max(piece.start, commit.first), min(piece.end, commit.end)
            if start < end:
                yield piece.cut(start, end), commit.time_ns
            before = piece.start, min(commit.first, piece.end)
            for low, high in (before, (commit.end, piece.end)):
                if low < high:
                    rest.append(piece.cut(low, high))
        for piece in rest:
            heappush(waiting, piece)
