"""What groups did with their partitions: fetched, committed, how far the ends were.

State only: ranges that were fetched, commits, offsets that groups started from, how members poll,
and what leaders assigned. `delivery_audit` reads it together with groups and cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, ClassVar, Final

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.delivery.ends import Bounds, listed, written, written_all
from kafkascope.analyzer.statistics.delivery.parts import (
    Periods,
    Positions,
    commits_of,
    encoding,
    offset_in,
    plan_of,
    starts_of,
)
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events, Kept
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    stretch,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Key, Keyed
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
)
from kafkascope.analyzer.statistics.moved import Moved, Parts, moved, parts_of, replica_id
from kafkascope.dissectors.zookeeper.paths import KEPT_OFFSET, place_of
from kafkascope.dissectors.zookeeper.types import BASE

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14
TXN_COMMIT: Final = 28
HEARTBEAT: Final = 12
CONSUMER_HEARTBEAT: Final = 68
STREAMS_HEARTBEAT: Final = 88
# Those of share groups are not here: their members commit nothing.
SIGNS_OF_LIFE: Final = frozenset({HEARTBEAT, CONSUMER_HEARTBEAT, STREAMS_HEARTBEAT})
KEYS: Final = SIGNS_OF_LIFE | {
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    JOIN_GROUP,
    SYNC_GROUP,
    TXN_COMMIT,
}
KEPT_CREATE, KEPT_GET, KEPT_SET = (BASE + number for number in (1, 4, 5))
KEPT: Final = frozenset({KEPT_CREATE, KEPT_GET, KEPT_SET})
"""Requests to ZooKeeper, where consumers before 0.9 keep their offsets."""
READ_COMMITTED: Final = 1
"""Isolation level of a Fetch."""
MAX_READS: Final = 5_000
MAX_COMMITS: Final = 5_000
MAX_MEMBERS: Final = 5_000
MAX_PLANS: Final = 1_000
MAX_BOUNDS: Final = 2_000


@measured
class Reads(Measures):
    """Of a partition, by a client."""

    answers: int = total()
    records: int = total()
    at_stable: int = total()
    """Empty answers at the last stable offset, with more behind it."""
    stuck: tuple[int, int] | None = most()
    """(the highest of these offsets, minus the time when it was met first)"""
    end: tuple[int, int, int, int] | None = most()
    """(time, high watermark, last stable offset, log start), the latest."""
    events: Events = whole(Events)
    first_ns: int | None = least()
    """None when all answers were errors."""
    last_ns: int | None = most()
    positions: Positions = whole(Positions)
    """Where it asked for records and got none."""
    position: tuple[int, int] | None = least()
    """(time, offset) of the first of them."""
    away_ns: int | None = most()
    """When it was last told to fetch elsewhere, or got an error."""
    asked: int | None = most()
    """The largest offset that it asked for, with an answer or without."""

    def ask(self, offset: int) -> None:
        """Take note of a request for an offset, with an answer or without."""
        if self.asked is None or offset > self.asked:
            self.asked = offset

    def see(self, begin_ns: int, end_ns: int) -> None:
        """Take note of a request, with the time of its answer."""
        if self.first_ns is None or begin_ns < self.first_ns:
            self.first_ns = begin_ns
        if self.last_ns is None or end_ns > self.last_ns:
            self.last_ns = end_ns

    def stand(self, offset: int, begin_ns: int, end_ns: int) -> None:
        """Take note of a request for an offset that brought nothing."""
        self.see(begin_ns, end_ns)
        self.positions.add(offset, begin_ns)
        self.take(position=(begin_ns, offset))

    def leave(self, end_ns: int) -> None:
        """Take note of an answer that is an error, or names another broker to ask."""
        self.take(away_ns=end_ns)

    def stands(self) -> Iterator[Event]:
        """Yield the positions, and when the reader was last sent away."""
        times = set(self.positions)
        if self.position is not None:
            times.add(self.position)
        for time_ns, offset in sorted(times):
            yield Event(time_ns, "", 0, 0, "stand", {"offset": offset, "end_ns": time_ns})
        if self.away_ns is not None:
            yield Event(self.away_ns, "", 0, 0, "away", {"end_ns": self.away_ns})


@measured
class Commits(Measures):
    """Of a group for a partition."""

    count: int = total()
    failed: int = total()
    events: Events = whole(Events)


@measured
class Belongs(Measures):
    """A client in a group."""

    members: Names = whole(Names)
    session_ms: int | None = most()
    rebalance_ms: int | None = most()
    first_ns: int | None = least()
    last_ns: int | None = most()
    commits: int = total()


@measured
class Polls(Measures):
    """When a client fetched."""

    periods: Periods = whole(Periods)


@measured
class Planned(Measures):
    """What the leader of a generation assigned, and what the members had subscribed to."""

    assignor: str | None = most()
    subscribed: tuple[Any, ...] | None = most()
    """((member, instance or "", (topics)), ...)"""
    assigned: tuple[Any, ...] | None = most()
    """((member, ((topic, (partitions)), ...)), ...)"""
    sync: tuple[int, int] | None = least()
    """(time, number) of the leader's SyncGroup."""


def _fetch_event(kept: Kept) -> Event:
    time_ns, id_, part, number, _, first, last, high, end_ns, how = kept
    about = {"from": first, "to": last, "high": high, "end_ns": end_ns, **how}
    return Event(time_ns, id_, part, number, "fetch", about)


def _is_stuck(reads: Reads, parts: Parts) -> None:
    """Take note of answers to a reader of read_committed that stands at the last stable offset."""
    columns = parts.ends, parts.highs, parts.stables, parts.asked, parts.by_exchange(parts.found)
    for end, high, stable, asked, found in zip(*columns, strict=True):
        position = found[-1].last_offset + 1 if found else asked
        if 0 <= stable < high and position == stable:
            # Within a session nothing more is told of the partition until something changes.
            reads.at_stable += not found
            reads.take(stuck=(stable, -end))


class Delivery(Accumulator):
    """Fetches, commits, members and plans."""

    NAME = "delivery"
    KEYS = KEYS | KEPT
    VERSION = 5
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("group"),
        Column("topic"),
        Column("partition", "count"),
        Column("commits", "count"),
        Column("failed", "count"),
        Column("committed_offset", "count"),
        Column("fetched_offset", "count"),
        Column("end_offset", "count"),
        Column("lag", "count"),
    )

    reads: Keyed[Reads] = table(Reads, MAX_READS)
    """By topic, partition, client id and host."""
    commits: Keyed[Commits] = table(Commits, MAX_COMMITS)
    """By group, topic and partition."""
    belongs: Keyed[Belongs] = table(Belongs, MAX_MEMBERS)
    """By group, client id and host."""
    polls: Keyed[Polls] = table(Polls, MAX_MEMBERS)
    """By client id and host."""
    plans: Keyed[Planned] = table(Planned, MAX_PLANS)
    """By group and generation."""
    bounds: Keyed[Bounds] = table(Bounds, MAX_BOUNDS)
    """By topic and partition."""

    # --- taking in

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        key = row.api_key
        asked, response = exchange.request_body, exchange.response_body
        if key in KEPT and row.zookeeper is not None:
            self._kept(row, asked, response)
            return
        if key not in KEYS or asked is None:
            return
        who = row.client_id or "", host_of(row.client_address)
        if key == FETCH:
            if replica_id(asked) < 0:
                self._fetch(who, asked, row, exchange)
            return
        if key in (PRODUCE, LIST_OFFSETS):
            time_ns = row.time_ns + (row.latency_ns or 0)
            if key == LIST_OFFSETS:
                for named, number, begin, end in listed(asked, response):
                    self.bounds[(named, number)].see(time_ns, begin, end)
            else:
                for carried in moved(exchange):
                    self._written(carried, time_ns)
            return
        group = asked.get("group_id") or ""
        if key == OFFSET_FETCH:
            for part, (named, topic, number, offset) in enumerate(starts_of(asked, response)):
                about = {"offset": offset, "end_ns": row.time_ns + (row.latency_ns or 0)}
                self._event((named, topic, number), "start", about, row, part)
            return
        if not group:
            return
        self._belongs(group, who, asked, row)
        if key in (OFFSET_COMMIT, TXN_COMMIT):
            for part, each in enumerate(commits_of(asked, response)):
                topic, number, about = each
                about["end_ns"] = row.time_ns + (row.latency_ns or 0)
                self._event((group, topic, number), "commit", about, row, part)
        elif key in (JOIN_GROUP, SYNC_GROUP) and response is not None:
            self._plan(group, plan_of(key, asked, response), row)

    def _kept(
        self, row: Row, asked: dict[str, Any] | None, response: dict[str, Any] | None
    ) -> None:
        """Take in an offset that a consumer before 0.9 keeps in ZooKeeper, or reads there."""
        path = row.zookeeper.path if row.zookeeper is not None else None
        place = place_of(path) if path else None
        if place is None or place.what != KEPT_OFFSET or asked is None:
            return
        group, topic = place.first("groupId") or "", place.first("topicName") or ""
        number = offset_in((place.first("partition") or "").encode())
        start = row.api_key == KEPT_GET
        told = (response or {}).get("data") if start else asked.get("data")
        offset = offset_in(told)
        # Without a node there is nothing committed, and a client creates it then.
        if number is None or offset is None or row.errors:
            return
        about: dict[str, Any] = {"offset": offset, "end_ns": row.time_ns + (row.latency_ns or 0)}
        if not start:
            error = 0 if response is not None else None
            about |= {"member": "", "generation": -1, "error": error}
        self._event((group, topic, number), "start" if start else "commit", about, row, 0)

    def add_all(self, alike: Alike) -> None:
        """Take in usual exchanges."""
        if alike.way == "produce":
            for place, parts in alike.parts.items():
                ends = written_all(parts)
                if max(ends) >= 0:
                    self.bounds[place].ends.add_all(parts.ends, ends)
        elif alike.way == "fetch":
            self.polls[alike.who].periods.add_all(alike.begins, alike.ends)
            committed = alike.kept["isolation_level"] == READ_COMMITTED
            for place, parts in alike.parts.items():
                self._fetched((*place, *alike.who), parts, committed=committed)
            for place, asked in alike.unmoved.items():
                reads = self.reads[(*place, *alike.who)]
                for begin, end, offset in asked:
                    reads.ask(offset)
                    reads.stand(offset, begin, end)

    def _written(self, each: Moved, time_ns: int) -> None:
        end = written(each)
        if end is not None:
            self.bounds[(each.topic, each.partition)].see(time_ns, -1, end)

    def _event(
        self,
        key: tuple[str, str | None, int],
        kind: str,
        about: dict[str, Any],
        row: Row,
        part: int,
    ) -> None:
        commits = self.commits[key]
        if kind == "commit":
            commits.count += 1
            commits.failed += bool(about["error"])
        commits.events.note(row, kind, about, part)

    def _belongs(self, group: str, who: tuple[str, str], asked: dict[str, Any], row: Row) -> None:
        here = self.belongs[(group, *who)]
        member = asked.get("member_id")
        if member:
            here.members.add(member)
        limits = asked.get("session_timeout_ms"), asked.get("rebalance_timeout_ms")
        for name, value in zip(("session_ms", "rebalance_ms"), limits, strict=True):
            if value is not None and value > 0:
                setattr(here, name, max(getattr(here, name) or 0, value))
        here.commits += row.api_key == OFFSET_COMMIT
        stretch(here, row.time_ns)

    def _plan(self, group: str, found: dict[str, Any] | None, row: Row) -> None:
        if found is None:
            return
        plan = self.plans[(group, found.pop("generation"))]
        if "assigned" in found:
            found["sync"] = (row.time_ns, row.number)
        plan.merge(Planned(**found))

    def _fetch(
        self, who: tuple[str, str], asked: dict[str, Any], row: Row, exchange: Exchange
    ) -> None:
        times = row.time_ns, row.time_ns + (row.latency_ns or 0)
        self.polls[who].periods.add(*times)
        committed = asked.get("isolation_level") == READ_COMMITTED
        parts, unmoved = parts_of(row, exchange)
        for each in parts:
            key = each.moved.topic, each.moved.partition, *who
            if each.moved.error:
                reads = self.reads[key]
                if each.asked is not None:
                    reads.ask(each.asked)
                reads.leave(times[1])
            else:
                self._fetched(key, Parts.of(each), committed=committed)
        response = exchange.response_body
        for place, offset in unmoved.items():
            reads = self.reads[(*place, *who)]
            reads.ask(offset)
            if response is not None and not response.get("error_code"):
                # Within a session, partitions without news are left out of the answer.
                reads.stand(offset, *times)

    def _fetched(self, key: Key, parts: Parts, *, committed: bool) -> None:
        """Take note of what Fetch responses say of a partition, none of them an error. `committed`:
        the reader asked for read_committed."""
        reads, ends, highs = self.reads[key], parts.ends, parts.highs
        asked_for = [asked for asked in parts.asked if asked is not None]
        if asked_for:
            reads.ask(max(asked_for))
        for end in compress(ends, parts.elsewhere):
            reads.leave(end)
        reads.answers += len(ends)
        reads.see(min(parts.begins), max(ends))
        here = max(zip(ends, highs, parts.stables, parts.starts, strict=True))
        if reads.end is None or here > reads.end:
            reads.end = here
        bounds = self.bounds[key[:2]]
        bounds.begins.add_all(ends, parts.starts)
        bounds.ends.add_all(ends, highs)
        if committed:
            _is_stuck(reads, parts)
        events: list[Kept] = []
        columns = parts.begins, ends, parts.numbers, parts.ids, parts.at, parts.asked, highs
        told = parts.elsewhere, parts.blobs, parts.by_exchange(parts.found)
        for begin, end, number, id_, at, asked, high, elsewhere, blob, found in zip(
            *columns, *told, strict=True
        ):
            if found:
                first = found[0].base_offset if asked is None else asked
                last = max(first, found[-1].last_offset + 1)
                reads.records += last - first
                how = encoding(blob, found)
                events.append((begin, id_, at, number, _fetch_event, first, last, high, end, how))
            elif asked is not None and not elsewhere:
                reads.stand(asked, begin, end)
        reads.events.add_all(events)

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per group and partition, the largest lag first."""
        from kafkascope.analyzer.statistics.delivery.audit import Audit

        return Audit(self, None, None, names).partitions()

    def groups(self) -> list[str]:
        """Return the names of the groups."""
        found = {str(key[0]) for key, _ in self.commits.items()}
        return sorted(found | {str(key[0]) for key, _ in self.belongs.items()})
