"""Joins what was produced, fetched and committed, partition by partition, into legs of records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.merging.tables import OTHERS, Key, by_key, sums
from kafkascope.analyzer.statistics.journeys.applications import Outcomes, Who, number_of, who_of
from kafkascope.analyzer.statistics.journeys.facts import JourneyFacts, RecordFacts, Replication
from kafkascope.analyzer.statistics.journeys.model import Fetched, Journey, Outcome, Produced
from kafkascope.analyzer.statistics.model import Line, TopicNames, topic_label

LEGS: Final = ("produce", "deliver", "commit")
PERCENTS: Final = (50, 95, 99)
Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class Sent(NamedTuple):
    """Produced records: as in `Produces`."""

    time_ns: int
    acknowledged_ns: int
    first: int
    records: int
    client: int
    producer_id: int
    checksum: int


class Got(NamedTuple):
    """Fetched records: as in `Fetches`."""

    time_ns: int
    base: int
    last: int
    asked: int
    records: int
    client: int
    producer_id: int
    checksum: int
    judged: int


class Commit(NamedTuple):
    """A commit: as in `Commits`."""

    time_ns: int
    first: int
    end: int
    producer_id: int


class OffsetRange(NamedTuple):
    """Records that a group got first in one response: offsets, when, and how many there are."""

    start: int
    end: int
    time_ns: int
    records: int

    def cut(self, start: int, end: int) -> OffsetRange:
        """Return a part. Where compaction left out offsets, the records are spread evenly."""
        span = self.end - self.start
        count = end - start if self.records == span else round(self.records * (end - start) / span)
        return OffsetRange(start, end, self.time_ns, count)


class Spans:
    """Offsets that were covered, as stretches that do not touch."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def enter(self, start: int, end: int) -> list[tuple[int, int]]:
        """Cover offsets; return which of them were not."""
        starts, ends = self._starts, self._ends
        if not ends or start > ends[-1]:
            starts.append(start)
            ends.append(end)
            return [(start, end)]
        if start == ends[-1]:
            ends[-1] = end
            return [(start, end)]
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        fresh, at = [], start
        for first, last in zip(starts[low:high], ends[low:high], strict=True):
            if at < first:
                fresh.append((at, first))
            at = max(at, last)
        if at < end:
            fresh.append((at, end))
        if low < high:
            start, end = min(start, starts[low]), max(end, ends[high - 1])
        starts[low:high], ends[low:high] = [start], [end]
        return fresh


@dataclass(slots=True)
class Legs:
    """The times of records of an application, in a topic, to a group."""

    records: int = 0
    negative: int = 0
    """Records that a group got before they were sent: clocks disagree."""
    lag: int = 0
    lag_ns: int = 0
    readers: set[str] = field(default_factory=set)
    times: dict[str, Counter[int]] = field(
        default_factory=lambda: {name: Counter() for name in LEGS}
    )

    def line(self) -> Line:
        """Return percentiles, and the rest."""
        out: Line = {}
        for name in LEGS:
            histogram = Histogram()
            histogram.add_counts(self.times[name])
            for percent in PERCENTS:
                out[f"{name}_p{percent}"] = histogram.percentile(percent / 100)
        return out | {
            "readers": sorted(self.readers),
            "records": self.records,
            "lag": self.lag,
            "lag_time": self.lag_ns,
            "negative": self.negative,
        }


class Joins:
    """What a `JourneyFacts` has, joined."""

    def __init__(self, counted: JourneyFacts, names: TopicNames | None) -> None:
        self._counted, self._names = counted, names
        self._members = counted.map.memberships(names)
        self._groups: dict[tuple[int, str], str | None] = {}
        self._placed: dict[Place, list[Sent]] = {}
        self._outcomes = Outcomes(counted.map, names)
        identities = self._members.identities
        self._clients = {number_of(who): target for who, target in identities.items()}
        self._applications: dict[Who, str] = {
            who_of(use.identity): name
            for name, named in counted.map.named_by(self._members).items()
            for use in named.uses
        }
        commits = self._by_place(counted.commits, Commit)
        self._commits = {key: list(filter(self._holds, each)) for key, each in commits.items()}
        self._sent: dict[Place, list[Sent]] = {
            (key[0], key[1]): each for key, each in self._by_place(counted.produces, Sent).items()
        }
        self._got: dict[Place, list[Got]] = {
            (key[0], key[1]): each for key, each in self._by_place(counted.fetches, Got).items()
        }

    def _by_place(self, tables: Any, kind: Any) -> dict[tuple[Any, ...], list[Any]]:
        """Return the rows of a table in the order of time, by what its keys mean: some messages
        have the name of a topic, others its id."""
        out: dict[tuple[Any, ...], list[Any]] = {}
        for (*group, topic, number), each in tables.items():
            label = str(topic_label(topic, self._names))
            out.setdefault((*group, label, number), []).extend(each.rows.rows())
        return {key: list(map(kind._make, sorted(rows))) for key, rows in out.items()}

    def _holds(self, commit: Commit) -> bool:
        """Return whether a commit is valid: in a transaction, if that was committed."""
        return (
            commit.producer_id < 0
            or self._outcomes.ended(commit.producer_id, commit.time_ns) is True
        )

    # --- one partition

    def _produced(self, place: Place) -> list[Sent]:
        """Return what was produced to a partition, by offset; of what was sent again, the first.

        Without a response (acks=0, or it was lost) there is no offset. A broker changes the base
        offset of a batch and its leader epoch, which its checksum leaves out: the batch that
        somebody fetched tells the offset.
        """
        if place in self._placed:
            return self._placed[place]
        out: dict[int, Sent] = {}
        lost = []
        for sent in self._sent.get(place, []):
            if sent.first < 0:
                lost.append(sent)
            else:
                out.setdefault(sent.first, sent)
        if lost:
            bases: dict[tuple[int, int], list[int]] = {}
            for got in self._got.get(place, []):
                if got.checksum and got.records == got.last - got.base + 1:
                    bases.setdefault((got.checksum, got.records), []).append(got.base)
            for sent in lost:
                for base in sorted(set(bases.get((sent.checksum, sent.records), ()))):
                    if base not in out:
                        out[base] = sent._replace(first=base)
                        break
        self._placed[place] = [out[first] for first in sorted(out)]
        return self._placed[place]

    def _visible(
        self, place: Place, *, aborted: bool = False
    ) -> dict[str | None, list[tuple[Got, int]]]:
        """Return, by group, what its members got, in the order of time, and from which offset on.
        `aborted`: instead what read_committed ones were not shown, as its transaction was."""
        positions: dict[int, int] = {}
        out: dict[str | None, list[tuple[Got, int]]] = {}
        for got in self._got.get(place, []):
            start = max(got.base, got.asked)
            if got.asked < 0 and got.base < positions.get(got.client, -1) <= got.last:
                # Within a session, only requests with a new offset name the partition.
                start = positions[got.client]
            positions[got.client] = got.last + 1
            hidden = (
                bool(got.judged)
                and got.producer_id >= 0
                and not self._outcomes.shown(*place, got.producer_id, got.last, got.time_ns)
            )
            if hidden == aborted and start <= got.last:
                out.setdefault(self._group_of(got.client, place[0]), []).append((got, start))
        return out

    def _group_of(self, client: int, topic: str) -> str | None:
        key = client, topic
        if key not in self._groups:
            who = self._clients.get(client)
            self._groups[key] = None if who is None else self._members.group_of(who, topic)
        return self._groups[key]

    def _application(self, client: int) -> str:
        who = self._clients.get(client)
        return OTHERS if who is None else self._applications.get(who, OTHERS)

    def _client_id(self, client: int) -> str:
        who = self._clients.get(client)
        return OTHERS if who is None else Identity(*who).client_id or ""

    # --- one record

    @cached_property
    def _records(self) -> dict[tuple[Any, ...], RecordFacts]:
        pairs = self._counted.records.items()
        return sums(RecordFacts, ((self._labelled(key), each) for key, each in pairs))

    @cached_property
    def _replicated(self) -> dict[tuple[Any, ...], list[tuple[int, int]]]:
        """Followers, with the time when each had a record, by the record."""
        pairs = ((self._labelled(key), each) for key, each in self._counted.replications.items())
        return by_key(
            (key[:3], (key[3], each.time_ns))
            for key, each in sums(Replication, pairs).items()
            if each.time_ns is not None
        )

    def _labelled(self, key: Key) -> tuple[Any, ...]:
        return str(topic_label(key[0], self._names)), *key[1:]

    def journey(self, topic: str, partition: int, offset: int) -> Journey:
        """Return the way of one record."""
        place = topic, partition
        sent = next(
            (s for s in self._produced(place) if s.first <= offset < s.first + s.records), None
        )
        facts = self._records.get((*place, offset), RecordFacts())
        return Journey(
            *(topic, partition, offset),
            None
            if sent is None
            else Produced(
                self._client_id(sent.client),
                self._application(sent.client),
                sent.time_ns,
                None if sent.acknowledged_ns < 0 else sent.acknowledged_ns,
                facts.created_ms,
            ),
            tuple(self._fetched(place, offset)),
            tuple(self._fetched(place, offset, aborted=True)),
            self._transaction(place, offset, sent),
            facts.visible_ns,
            facts.stable_ns,
            tuple(sorted(self._replicated.get((*place, offset), ()), key=lambda each: each[::-1])),
            facts.created_ms,
            facts.key,
            facts.traceparent,
        )

    def _fetched(self, place: Place, offset: int, *, aborted: bool = False) -> list[Fetched]:
        out = []
        for group, rows in self._visible(place, aborted=aborted).items():
            # A client that started again is the same, also on another host.
            times: dict[tuple[str, str], list[int]] = {}
            for got, start in rows:
                if start <= offset <= got.last:
                    who = self._client_id(got.client), self._application(got.client)
                    times.setdefault(who, []).append(got.time_ns)
            first = min((each[0] for each in times.values()), default=0)
            commits = self._commits.get((group, *place), ()) if group is not None else ()
            committed = next(
                (c.time_ns for c in commits if c.time_ns >= first and c.first <= offset < c.end),
                None,
            )
            out += [
                Fetched(client_id, group, application, each[0], committed, tuple(each[1:]))
                for (client_id, application), each in times.items()
            ]
        return sorted(out, key=lambda each: each.time_ns)

    def _transaction(self, place: Place, offset: int, sent: Sent | None) -> Outcome | None:
        producer = sent.producer_id if sent is not None else -1
        if sent is None:
            producer = max(
                (g.producer_id for g in self._got.get(place, []) if g.base <= offset <= g.last),
                default=-1,
            )
        if producer < 0:
            return None
        ended = self._outcomes.of(*place, producer, offset)
        if ended is None and sent is not None:
            ended = self._outcomes.ended(producer, sent.time_ns)
        return None if ended is None else "committed" if ended else "aborted"

    # --- all records

    def lines(self) -> list[Line]:
        """Return one line for each producing application, topic and group."""
        found: dict[tuple[str, str, str | None], Legs] = {}
        for place in sorted(self._sent):
            produced = self._produced(place)
            for group, rows in self._visible(place).items():
                self._measure(place, produced, group, rows, found)
        return [
            {"producer": producer, "topic": topic, "group": group, **legs.line()}
            for (producer, topic, group), legs in sorted(
                found.items(), key=lambda item: (*item[0][:2], item[0][2] or "")
            )
            if legs.records
        ]

    def _measure(
        self,
        place: Place,
        produced: list[Sent],
        group: str | None,
        rows: list[tuple[Got, int]],
        found: dict[tuple[str, str, str | None], Legs],
    ) -> None:
        """Add what a group got of a partition."""
        commits = self._commits.get((group, *place), []) if group is not None else []
        firsts = [sent.first for sent in produced]
        reader = {got.client for got, _ in rows}
        names = {client: self._application(client) for client in reader}
        mine: dict[int, Legs] = {}

        def legs_of(sent: Sent) -> Legs:
            legs = mine.get(sent.client)
            if legs is None:
                key = self._application(sent.client), place[0], group
                legs = mine[sent.client] = found.setdefault(key, Legs())
                legs.readers |= set(names.values())
            return legs

        for piece, committed in _committed(_first(rows), commits):
            for at in range(max(0, bisect_right(firsts, piece.start) - 1), len(firsts)):
                sent = produced[at]
                if sent.first >= piece.end:
                    break
                start, end = max(piece.start, sent.first), min(piece.end, sent.first + sent.records)
                if start >= end:
                    continue
                count = piece.cut(start, end).records
                legs = legs_of(sent)
                times = legs.times
                legs.records += count
                if sent.acknowledged_ns >= 0:
                    times["produce"][sent.acknowledged_ns - sent.time_ns] += count
                deliver = piece.time_ns - sent.time_ns
                if deliver < 0:
                    legs.negative += count
                else:
                    times["deliver"][deliver] += count
                if committed is not None:
                    times["commit"][committed - piece.time_ns] += count
        position = max((commit.end for commit in commits), default=None)
        if position is None:
            position = max((got.last + 1 for got, _ in rows), default=0)
        last_ns = self._counted.last_ns or 0
        for sent in produced[max(0, bisect_right(firsts, position) - 1) :]:
            behind = min(sent.records, sent.first + sent.records - position)
            if behind > 0:
                legs = legs_of(sent)
                legs.lag += behind
                legs.lag_ns = max(legs.lag_ns, last_ns - sent.time_ns)


def _first(rows: Iterable[tuple[Got, int]]) -> Iterator[OffsetRange]:
    """Yield what was got for the first time, in the order of time."""
    spans = Spans()
    for got, start in rows:
        whole = OffsetRange(start, got.last + 1, got.time_ns, got.records)
        for piece in spans.enter(start, got.last + 1):
            yield whole.cut(*piece)


def _committed(
    pieces: Iterable[OffsetRange], commits: list[Commit]
) -> Iterator[tuple[OffsetRange, int | None]]:
    """Yield what was got with the time of the first commit beyond it, from then on; None where
    there is none. Pieces wait, by offset, for a commit: it takes those that it covers."""
    waiting: list[OffsetRange] = []
    at = 0

    def settle(until_ns: float) -> Iterator[tuple[OffsetRange, int | None]]:
        nonlocal at
        while at < len(commits) and commits[at].time_ns < until_ns:
            commit = commits[at]
            at += 1
            low = bisect_right(waiting, commit.first, key=lambda piece: piece.start)
            if low and waiting[low - 1].end > commit.first:
                low -= 1
            high = low
            rest = []
            while high < len(waiting) and waiting[high].start < commit.end:
                piece = waiting[high]
                high += 1
                start, end = max(piece.start, commit.first), min(piece.end, commit.end)
                yield piece.cut(start, end), commit.time_ns
                if piece.start < start:
                    rest.append(piece.cut(piece.start, start))
                if end < piece.end:
                    rest.append(piece.cut(end, piece.end))
            waiting[low:high] = rest

    for piece in pieces:
        yield from settle(piece.time_ns)
        if not waiting or piece.start >= waiting[-1].start:
            waiting.append(piece)
        else:
            waiting.insert(bisect_right(waiting, piece.start, key=lambda one: one.start), piece)
    yield from settle(float("inf"))
    for piece in waiting:
        yield piece, None
