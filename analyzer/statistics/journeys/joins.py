"""The ways of records: what was produced, fetched and committed is joined at the end, partition by
partition, so that neither the order of exchanges nor their division matters.

Offsets are cut at the ends of all batches and commits. What lies between two cuts is a cell, whose
records were sent, got and committed together. Batches and cells are columns: as objects, a million
batches of one partition took 1.4 GB.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.merging.tables import Key, by_key
from kafkascope.analyzer.statistics.journeys import facts
from kafkascope.analyzer.statistics.journeys.clients import MapClients
from kafkascope.analyzer.statistics.journeys.facts import MapFacts, number_of
from kafkascope.analyzer.statistics.journeys.model import By, Fetched, Journey, Produced, Replicated
from kafkascope.analyzer.statistics.model import Line, TopicNames, topic_label

if TYPE_CHECKING:
    import numpy as np

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

LEGS: Final = ("produce", "deliver", "commit")
PERCENTS: Final = (50, 95, 99)
Group: TypeAlias = str | None


class Cells(NamedTuple):
    """Columns of records that were sent, got and committed together; times are -1 where there is
    none."""

    client: Integers
    """That sent them."""
    records: Integers
    sent_ns: Integers
    acknowledged_ns: Integers
    got_ns: Integers
    committed_ns: Integers


class PartitionLog(NamedTuple):
    """A partition, in the time in which it was one log; rows of `facts` as columns."""

    topic: str
    partition: int
    begin_ns: int
    end_ns: int
    sent: Any
    """The latest first; of what was sent again, the first."""
    unplaced: Any
    """Sent records whose offset is unknown."""
    got: Any
    shown: dict[Group, Any]
    """What each group got, where `first` is the first offset that a member was given."""
    hidden: dict[Group, Any]
    """What read_committed members were not shown, as its transaction was aborted."""


@dataclass(slots=True)
class Legs:
    """The times of records of an application, in a topic, to a group."""

    records: int = 0
    negative: int = 0
    """Records that a group got before they were sent: clocks disagree."""
    lag: int = 0
    lag_ns: int = 0
    readers: set[str] = field(default_factory=set)
    times: dict[str, Histogram] = field(default_factory=lambda: {leg: Histogram() for leg in LEGS})

    def take(self, cells: Cells) -> None:
        """Add records that the group got."""
        early = cells.got_ns < cells.sent_ns
        self.records += int(cells.records.sum())
        self.negative += int(cells.records[early].sum())
        legs = (
            (cells.sent_ns, cells.acknowledged_ns, cells.acknowledged_ns >= 0),
            (cells.sent_ns, cells.got_ns, ~early),
            (cells.got_ns, cells.committed_ns, cells.committed_ns >= 0),
        )
        for histogram, (begin_ns, end_ns, rows) in zip(self.times.values(), legs, strict=True):
            counts, took = Counter[int](), (end_ns - begin_ns)[rows].tolist()
            for time_ns, count in zip(took, cells.records[rows].tolist(), strict=True):
                counts[time_ns] += count
            histogram.add_counts(counts)

    def line(self) -> Line:
        """Return percentiles, and the rest."""
        found = {
            f"{leg}_p{percent}": histogram.percentile(percent / 100)
            for leg, histogram in self.times.items()
            for percent in PERCENTS
        }
        out: Line = {"readers": sorted(self.readers), "records": self.records, **found}
        return out | {"lag": self.lag, "lag_time": self.lag_ns, "negative": self.negative}


class Joins:
    """What journeys have kept, joined."""

    def __init__(
        self, counted: MapFacts, names: TopicNames | None = None, by: By = "application"
    ) -> None:
        self._counted = counted
        self._clients = MapClients(counted, names, by)
        self._sent, self._got = self._by_place(counted.sent), self._by_place(counted.got)
        self._commits = self._by_place(counted.commits, "group")
        self._moments = by_key(
            ((str(topic_label(topic, names)), partition, offset), (each.time_ns or 0, what))
            for (topic, partition, offset, *what), each in counted.moments.items()
        )
        self._logs_of_records = cache(self._logs)
        self.unplaced = 0
        """Records of `lines` that were produced at an unknown offset, where somebody reads."""

    def _by_place(self, rows: IntegerRows[Any], *first: str) -> dict[Key, Any]:
        """Return rows as columns by what their topics mean, and partition: some messages have the
        name of one, others its id."""
        import numpy as np

        columns, labels = rows.columns(), self._clients.labels
        topics, which = np.unique(columns.topic, return_inverse=True)
        meant = [number_of(labels[each]) if each in labels else -1 for each in topics.tolist()]
        columns = columns._replace(topic=np.array(meant, np.int64)[which])
        found = defaultdict[Key, Any](lambda: _selected(columns, slice(0)))
        for (*group, topic, partition), part in _split(columns, *first, "topic", "partition"):
            if topic >= 0:
                found[*group, labels[topic], partition] = _selected(columns, part)
        return found

    @property
    def topics(self) -> Collection[str]:
        """The topics that somebody writes or reads."""
        return self._clients.labels.values()

    # --- one partition

    def _logs(self, topic: str, partition: int) -> list[PartitionLog]:
        """Return the partition once for each time its topic was created."""
        sent, got = self._sent[topic, partition], self._got[topic, partition]
        windows = pairwise([0, *_begins(sent), sys.maxsize])
        return [
            self._log((topic, partition, *window), _within(sent, *window), _within(got, *window))
            for window in windows
        ]

    def _log(self, place: tuple[str, int, int, int], sent: Any, got: Any) -> PartitionLog:
        """Return one log of a partition, and what was shown of it to whom."""
        import numpy as np

        topic, partition, *_ = place
        start, before = np.maximum(got.first, got.asked), np.full_like(got.first, -1)
        groups, of_group = dict[Group, int](), np.zeros(len(start), int)
        for (client,), rows in _split(got, "client"):
            before[rows[1:]] = got.end[rows[:-1]]
            spans = self._clients.groups_over_time(self._clients.of(client)[0], topic)
            numbers = [groups.setdefault(name, len(groups)) for _, name in spans]
            begins = [begin_ns for begin_ns, _ in spans[1:]]
            which = np.searchsorted(begins, got.time_ns[rows], side="right")
            of_group[rows] = np.array(numbers)[which]
        # Within a session, only requests with a new offset name the partition.
        inside = (got.asked < 0) & (got.first < before) & (before < got.end)
        start[inside] = before[inside]
        hidden, judged = np.zeros(len(start), bool), (got.judged > 0) & (got.producer_id >= 0)
        hidden[judged] = [
            not self._clients.outcomes.shown(topic, partition, *about)
            for about in _tuples(_selected(got, judged), "producer_id", "end", "time_ns")
        ]
        given = got._replace(first=start)
        shown, not_shown = (
            {
                group: _selected(given, rows)
                for group, number in groups.items()
                if (rows := (start < got.end) & (hidden == way) & (of_group == number)).any()
            }
            for way in (False, True)
        )
        return PartitionLog(*place, *_produced(sent, got), got, shown, not_shown)

    def _commits_of(self, group: Group, log: PartitionLog) -> Any:
        """Return the valid commits of a group, as columns by time: of those in transactions, where
        these were committed."""
        rows = self._commits[number_of(group), log.topic, log.partition]
        commits = _within(rows, log.begin_ns, log.end_ns)
        valid = [
            producer < 0 or bool(self._clients.outcomes.ended(producer, time_ns))
            for producer, time_ns in _tuples(commits, "producer_id", "time_ns")
        ]
        return commits if all(valid) else _selected(commits, valid)

    def _who(self, client: int) -> tuple[str, str]:
        """Return client id and application."""
        who, name = self._clients.of(client)
        return (name if who is None else who.client_id or ""), name

    # --- one record

    def journeys(self, topic: str, partition: int, offset: int) -> list[Journey]:
        """Return the ways of the records with an offset: one of each time the topic was created."""
        found = [self._journey(log, offset) for log in self._logs_of_records(topic, partition)]
        return [one for one in found if one.produced or one.fetched or one.hidden] or found[:1]

    def _journey(self, log: PartitionLog, offset: int) -> Journey:
        place = log.topic, log.partition, offset
        sent, got = _selected(_around(log.sent, offset), slice(1)), _around(log.got, offset)
        first: dict[tuple[Any, ...], int] = {}
        for time_ns, what in sorted(self._moments.get(place, ()), key=itemgetter(0)):
            if log.begin_ns <= time_ns < log.end_ns:
                first.setdefault(tuple(what), time_ns)
        produced, possible = None, tuple[str, ...]()
        for one in map(facts.Sent._make, _tuples(sent, *facts.Sent._fields)):
            acknowledged_ns = None if one.acknowledged_ns < 0 else one.acknowledged_ns
            produced = Produced(*self._who(one.client), one.time_ns, acknowledged_ns)
        if produced is None:
            # Who sent records without an offset before somebody got the record.
            before = log.unplaced.time_ns < got.time_ns.min(initial=sys.maxsize)
            clients = log.unplaced.client[before].tolist()
            possible = tuple(sorted({self._who(each)[0] for each in clients}))
        # What was seen before it was sent may be of a record that was lost.
        since_ns = 0 if produced is None else produced.sent_ns
        known = [what[1:] for what in first if what[0] == facts.CONTENTS]
        known.sort(key=lambda what: first[facts.CONTENTS, *what] < since_ns)
        key, created_ms, traceparent = (
            next((what[at] for what in known if what[at] is not None), None) for at in range(3)
        )
        compacted = [what[1] for what in first if what[0] == facts.COMPACTED]
        producer = int((sent if produced else got).producer_id.max(initial=-1))
        ended = self._ended(log, producer, offset, since_ns if produced else None)
        return Journey(
            *place,
            key,
            created_ms,
            produced,
            first.get((facts.VISIBLE,)),
            first.get((facts.STABLE,)),
            tuple(
                Replicated(what[1], at) for what, at in first.items() if what[0] == facts.REPLICATED
            ),
            self._fetched(log, log.shown, offset, compacted),
            self._fetched(log, log.hidden, offset, compacted),
            None if ended is None else "committed" if ended else "aborted",
            traceparent,
            possible,
        )

    def _fetched(
        self, log: PartitionLog, reads: dict[Group, Any], offset: int, compacted: list[int]
    ) -> tuple[Fetched, ...]:
        import numpy as np

        out = []
        for group, whole in reads.items():
            mine = _around(whole, offset)
            mine = _selected(mine, ~np.isin(mine.time_ns, compacted))
            # A client that started again is the same, also on another host.
            clients = (
                (self._who(client), time_ns)
                for client, time_ns in _tuples(mine, "client", "time_ns")
            )
            commits = _around(self._commits_of(group, log), offset)
            for (client_id, application), (time_ns, *again) in by_key(clients).items():
                since = commits.time_ns >= mine.time_ns[0]
                committed_ns = next(iter(commits.time_ns[since].tolist()), None)
                about = client_id, group, application, time_ns, committed_ns
                out.append(Fetched(*about, len(again), tuple(again)))
        return tuple(sorted(out, key=attrgetter("time_ns")))

    def _ended(
        self, log: PartitionLog, producer: int, offset: int, sent_ns: int | None
    ) -> bool | None:
        """Return whether the transaction of a record was committed; None without one, or where its
        end is not known."""
        if producer < 0:
            return None
        outcomes = self._clients.outcomes
        ended = outcomes.of(log.topic, log.partition, producer, offset)
        return outcomes.ended(producer, sent_ns) if ended is None and sent_ns is not None else ended

    # --- all records

    def lines(self) -> list[Line]:
        """Return one line for each producing application, topic and group."""
        found: dict[tuple[str, str, Group], Legs] = defaultdict(Legs)
        for place in sorted(self._sent):
            # Of a large capture one partition is in memory at a time.
            for log in self._logs(*place):
                if log.shown:
                    self.unplaced += int((log.unplaced.end - log.unplaced.first).sum())
                for group, reads in log.shown.items():
                    self._measure(log, group, reads, found)
        return [
            {"producer": producer, "topic": topic, "group": group, **legs.line()}
            for (producer, topic, group), legs in sorted(
                found.items(), key=lambda item: (*item[0][:2], item[0][2] or "")
            )
            if legs.records
        ]

    def _measure(self, log: PartitionLog, group: Group, reads: Any, found: dict[Key, Legs]) -> None:
        """Add what a group got of a partition."""
        import numpy as np

        commits = self._commits_of(group, log)
        cells = cells_of(log.sent, reads, commits)
        readers = {self._who(client)[1] for client in set(reads.client.tolist())}
        position = int((commits.end if len(commits.end) else reads.end).max())
        unread = _selected(log.sent, log.sent.end > position)
        if len(reads.judged) and reads.judged.all():
            # No lag is of records that readers with read_committed do not get.
            abouts = _tuples(unread, "producer_id", "first", "time_ns")
            given = [self._ended(log, *about) is not False for about in abouts]
            unread = _selected(unread, np.array(given, bool))

        def legs_of(client: int) -> Legs:
            legs = found[self._who(client)[1], log.topic, group]
            legs.readers |= readers
            return legs

        for (client,), rows in _split(cells, "client"):
            legs_of(client).take(_selected(cells, rows))
        for (client,), rows in _split(unread, "client"):
            legs, mine = legs_of(client), _selected(unread, rows)
            legs.lag += sum((mine.end - np.maximum(mine.first, position)).tolist())
            since_ns = (self._counted.last_ns or 0) - int(mine.time_ns.min())
            legs.lag_ns = max(legs.lag_ns, since_ns)


def _begins(sent: Any) -> Iterator[int]:
    """Yield when a topic was created again: a batch that gets offset 0 where another one had been
    acknowledged before shows it, unless it was sent again."""
    import numpy as np

    never = sys.maxsize
    known = (sent.first >= 0) & (sent.acknowledged_ns >= 0)
    acknowledged = np.where(known, sent.acknowledged_ns, never)
    first, earliest_ns, at = set[int](), never, 0
    for row in np.flatnonzero(sent.first <= 0).tolist():
        earliest_ns = min(earliest_ns, int(acknowledged[at:row].min(initial=never)))
        begin_ns, checksum, at = int(sent.time_ns[row]), int(sent.checksum[row]), row
        if sent.first[row] == 0 and earliest_ns < begin_ns and checksum not in first:
            yield begin_ns
            first, earliest_ns = set(), never
        first.add(checksum)


def _produced(sent: Any, got: Any) -> tuple[Any, Any]:
    """Return what was produced, the latest first; of what was sent again, the first. After it is
    what has no offset.

    Without a response (acks=0, or it was lost) there is no offset. A broker changes the base offset
    of a batch and its leader epoch, which its checksum leaves out: the batch that somebody fetched
    shows the offset.
    """
    import numpy as np

    lost = np.flatnonzero(sent.first < 0).tolist()
    if lost:
        alike = _selected(got, (got.checksum != 0) & (got.records == got.end - got.first))
        batches = _tuples(alike, "checksum", "records", "first")
        bases = by_key(((checksum, records), first) for checksum, records, first in batches)
        sent = sent._replace(first=sent.first.copy(), end=sent.end.copy())
        offsets = set(sent.first.tolist())
        for row in lost:
            about = int(sent.checksum[row]), int(sent.end[row] - sent.first[row])
            for base in sorted(set(bases.get(about, ())) - offsets)[:1]:
                sent.first[row], sent.end[row] = base, base + about[1]
                offsets.add(base)
    # The same batch at an offset was sent again. Another batch there follows one that was lost with
    # its leader, which had acknowledged it alone (acks=1): the log has the latest.
    # `unique` of two columns takes four times as long as a stable sort.
    order = np.lexsort((sent.checksum, sent.first))
    batches_at = np.stack((sent.first, sent.checksum))[:, order]
    again = np.flatnonzero((batches_at[:, 1:] == batches_at[:, :-1]).all(axis=0))
    rows = np.delete(order, again + 1)
    latest = np.sort(rows[sent.first[rows] >= 0])[::-1]
    _, rows = np.unique(sent.first[latest], return_index=True)
    return _selected(sent, latest[np.sort(rows)]), _selected(sent, sent.first < 0)


def cells_of(sent: Any, reads: Any, commits: Any) -> Cells:
    """Return the cells that a group got first in one batch, of one produced batch; a commit is the
    first one beyond them, at or after that."""
    import numpy as np

    ranges = sent, reads, commits
    cuts = np.unique(np.concatenate([end for each in ranges for end in (each.first, each.end)]))
    senders, readers = (_first_covering(cuts, each) for each in (sent, reads))
    rows = np.flatnonzero((senders < len(sent.first)) & (readers < len(reads.first)))
    low, high = cuts[rows], cuts[rows + 1]
    sender, reader = _selected(sent, senders[rows]), _selected(reads, readers[rows])
    span = reader.end - reader.first
    # Where compaction left out offsets, the records are spread evenly.
    upto = [np.rint(reader.records * ((cut - reader.first) / span)) for cut in (low, high)]
    records = np.where(reader.records == span, high - low, (upto[1] - upto[0]).astype(np.int64))
    committed = _first_commits(low, reader.time_ns, commits)
    times = sender.time_ns, sender.acknowledged_ns, reader.time_ns, committed
    return Cells(sender.client, records, *times)


def _first_covering(cuts: Integers, ranges: Any) -> Integers:
    """Return the first range that covers each cell; the number of ranges where none does."""
    import numpy as np

    cells = max(0, len(cuts) - 1)
    found, free = [len(ranges.first)] * cells, list(range(cells + 1))
    # `free` leads from each cell to the next that no range covers yet, in ever longer steps
    # (union-find): batches may overlap in any way, and each cell is covered once.
    lows, highs = (np.searchsorted(cuts, ends).tolist() for ends in (ranges.first, ranges.end))
    for row, (at, high) in enumerate(zip(lows, highs, strict=True)):
        while at < high:
            if free[at] == at:
                found[at], free[at] = row, at + 1
            free[at] = at = free[free[at]]
    return np.array(found)


def _first_commits(offsets: Integers, got_ns: Integers, commits: Any) -> Integers:
    """Return the time of the first commit beyond each cell at or after it was got; -1 where there
    is none."""
    import numpy as np

    # What waits for a commit is a heap by offset: a commit takes what is before its end. Only in
    # share groups it has a beginning; few records wait there, 2,000 by default
    # (group.share.partition.max.record.locks).
    found, waiting = np.full(len(offsets), -1), list[int]()
    arriving, times = np.argsort(-got_ns, kind="stable").tolist(), got_ns.tolist()
    places = (np.searchsorted(offsets, ends).tolist() for ends in (commits.first, commits.end))
    for time_ns, begin, end in zip(commits.time_ns.tolist(), *places, strict=True):
        while arriving and times[arriving[-1]] <= time_ns:
            heappush(waiting, arriving.pop())
        before = []
        while waiting and waiting[0] < end:
            cell = heappop(waiting)
            if cell < begin:
                before.append(cell)
            else:
                found[cell] = time_ns
        for cell in before:
            heappush(waiting, cell)
    return found


# --- columns


def _selected(columns: Any, rows: Any) -> Any:
    return type(columns)(*(column[rows] for column in columns))


def _within(columns: Any, begin_ns: int, end_ns: int) -> Any:
    rows = (columns.time_ns >= begin_ns) & (columns.time_ns < end_ns)
    return columns if rows.all() else _selected(columns, rows)


def _around(columns: Any, offset: int) -> Any:
    return _selected(columns, (columns.first <= offset) & (offset < columns.end))


def _tuples(columns: Any, *names: str) -> Iterator[tuple[int, ...]]:
    return zip(*(getattr(columns, name).tolist() for name in names), strict=True)


def _split(columns: Any, *names: str) -> Iterator[tuple[Key, Integers]]:
    """Yield the values of some columns, and their rows."""
    import numpy as np

    keys = [getattr(columns, name) for name in names]
    order = np.lexsort(keys[::-1])
    changes = [np.diff(key[order]) != 0 for key in keys]
    for rows in np.split(order, np.flatnonzero(np.any(changes, axis=0)) + 1):
        if len(rows):
            yield tuple(int(key[rows[0]]) for key in keys), rows
