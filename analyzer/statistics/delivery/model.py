"""Measures of deliveries, the terms of their audit, and the columns of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.bounded import Event, Events
from kafkascope.analyzer.merging.measures import Measures, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.statistics.delivery.ends import Bounds, Periods, Positions
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Accumulator, columns

HappeningKind: TypeAlias = Literal[
    "beyond", "back", "again", "gone", "lost", "pause", "twice", "none"
]

NO_OFFSETS: Final = (
    "{} is a share group: members fetch from the same partitions and brokers track each record, so "
    "commits, lag, and owners do not exist. List what was delivered and acknowledged with "
    "-Y 'group == \"{}\"', and redeliveries by adding 'and body.delivery_count > 1'"
)
"""What the audit does not know of a share group."""


def unaudited(group: str) -> str:
    return NO_OFFSETS.format(group, group.replace("\\", "\\\\").replace('"', '\\"'))


PARTITION_COLUMNS: Final = columns(
    "group topic partition start_offset fetched_offset committed_offset end_offset lag first_lag "
    "max_lag beyond again back commits (failed) readers (first) (last) remarks"
)
EVENT_COLUMNS: Final = columns("group time kind topic partition count duration number text")
PLAN_COLUMNS: Final = columns(
    "group time generation assignor members partitions same_as spread moved needless unassigned "
    "twice number"
)
LAG_COLUMNS: Final = columns(
    "group time topic partition fetched_offset committed_offset end_offset lag"
)


class Reads(Measures):
    """Reads of a partition, by a client."""

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
    """Offsets of fetches without records."""
    position: tuple[int, int] | None = least()
    """(time, offset) of the first of them."""
    away_ns: int | None = most()
    """When it was last sent to another broker, or got an error."""
    asked: int | None = most()
    """The largest offset that it requested, with an answer or without."""

    def stand(self, seen: Sequence[tuple[int, int, int]]) -> None:
        """Take note of requests for offsets that brought nothing: time, time of the response,
        offset."""
        if seen:
            stretch(self, min(seen)[0], max(end for _, end, _ in seen))
            self.take(position=min((begin, offset) for begin, _, offset in seen))
        for begin, _, offset in seen:
            self.positions.add(offset, begin)

    def stands(self) -> Iterator[Event]:
        """Yield the positions, and when the reader was last sent away."""
        times = set(self.positions)
        if self.position is not None:
            times.add(self.position)
        for time_ns, offset in sorted(times):
            yield Event(time_ns, "", 0, 0, "stand", {"offset": offset, "end_ns": time_ns})
        if self.away_ns is not None:
            yield Event(self.away_ns, "", 0, 0, "away", {"end_ns": self.away_ns})


class Commits(Measures):
    """Commits of a group for a partition."""

    count: int = total()
    failed: int = total()
    events: Events = whole(Events)


class Belongs(Measures):
    """A client in a group."""

    session_ms: int | None = most()
    rebalance_ms: int | None = most()
    first_ns: int | None = least()
    last_ns: int | None = most()


class Planned(Measures):
    """What the leader of a generation assigned, and what the members had subscribed to."""

    assignor: str | None = most()
    subscribed: tuple[Any, ...] | None = most()
    """((member, instance or "", (topics)), ...)"""
    assigned: tuple[Any, ...] | None = most()
    """((member, ((topic, (partitions)), ...)), ...)"""
    sync: tuple[int, int] | None = least()
    """(time, number) of the leader's SyncGroup."""


class DeliveryFacts(Accumulator):
    """What is counted of deliveries."""

    reads: Keyed[Reads] = table(Reads, LIMITS.reads)
    """By topic, partition, client id and host."""
    commits: Keyed[Commits] = table(Commits, LIMITS.commits)
    """By group, topic and partition."""
    belongs: Keyed[Belongs] = table(Belongs, LIMITS.members)
    """By group, client id and host."""
    polls: Keyed[Periods] = table(Periods, LIMITS.members)
    """By client id and host."""
    plans: Keyed[Planned] = table(Planned, LIMITS.plans)
    """By group and generation."""
    bounds: Keyed[Bounds] = table(Bounds, LIMITS.log_bounds)
    """By topic and partition."""

    def groups(self) -> list[str]:
        return sorted({key[0] for key in (*self.commits, *self.belongs)})


@dataclass(slots=True, unsafe_hash=True)  # Not frozen, as `Exchange`, but never changed.
class Happening:
    """A noteworthy event."""

    time_ns: int
    kind: HappeningKind
    group: str
    topic: str
    partition: int | None
    count: int
    """Records, or partitions; nanoseconds of a pause."""
    number: int | None
    text: str
    by_hand: bool = False
    """By a tool, not by a member."""
    client: ClientKey | None = None
    """That paused."""
    before_ns: int | None = None
    """When the group had fetched last, where it read again because it had committed nothing."""


@dataclass(slots=True)
class Stall:
    """An offset that a group read on from several times, without a commit after it."""

    offset: int
    fetches: list[tuple[int, int]] = field(default_factory=list)
    """(time, number) of those that brought records"""
    clients: set[str] = field(default_factory=set)
    over: bool = False
    """Something after it was committed at last."""


class Wait(NamedTuple):
    """A reader that waits at the last stable offset, with more records behind it."""

    offset: int
    begin_ns: int
    end_ns: int
    behind: int


@dataclass(slots=True)
class AuditedPartition:
    """A partition as a group saw it."""

    group: str
    topic: str
    number: int
    start: int | None = None
    """Committed before its first fetch; None: unknown before start."""
    fetched: int | None = None
    committed: int | None = None
    end: int | None = None
    stable: int | None = None
    beyond: int = 0
    again: int = 0
    back: int = 0
    gone: int = 0
    lost: int = 0
    commits: int = 0
    failed: int = 0
    at_stable: int = 0
    stuck: tuple[int, int] | None = None
    """(the last stable offset that a reader came to with more behind it, minus the time)"""
    waits_until_ns: int | None = None
    """When that reader fetched last."""
    records: int = 0
    none: bool = False
    """The group had no committed offset when it fetched one."""
    readers: set[str] = field(default_factory=set)
    points: list[tuple[int, int | None, int | None, int]] = field(default_factory=list)
    """(time, fetched to, committed, end) over time"""
    happenings: list[Happening] = field(default_factory=list)
    first_ns: int | None = None
    last_ns: int | None = None
    end_ns: int | None = None
    dropped: int = 0
    stalls: list[Stall] = field(default_factory=list)
    placed: list[tuple[int, int]] = field(default_factory=list)
    """(time, offset) of commits that succeeded"""
    begins: list[tuple[int, int]] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    """(time, offset) of the log's beginning and end, in any response"""

    @property
    def lag(self) -> int | None:
        """Records behind the end: of what is committed, or else of what was fetched."""
        return lag_of(self.log_end, self.committed, self.fetched)

    @property
    def log_end(self) -> int | None:
        """The last log end offset in any response; `end` is the last that readers got."""
        last = self.ends[-1] if self.ends else None
        return last[1] if last is not None and last[0] > (self.end_ns or 0) else self.end

    @property
    def waits(self) -> bool:
        """It waits at the last stable offset."""
        if self.stuck is None or self.end is None or self.stable is None:
            return False
        there = self.fetched is None or self.fetched <= self.stable
        return there and self.stuck[0] == self.stable < self.end

    @property
    def wait(self) -> Wait | None:
        """The last time that it waited at the last stable offset, and got records behind it or
        waits still."""
        if self.stuck is None:
            return None
        offset, begin = self.stuck[0], -self.stuck[1]
        if self.waits:
            end = max(self.last_ns or 0, self.waits_until_ns or 0)
        else:
            on = (time for time, fetched, *_ in self.points if (fetched or 0) > offset)
            end = next((time for time in on if time > begin), begin)
        log_end = max((at for time, at in self.ends if time <= end), default=self.end or offset)
        return Wait(offset, begin, end, log_end - offset)

    def lags(self) -> list[tuple[int, int]]:
        """Return the lag over time as (time, lag)."""
        found = []
        for time_ns, fetched, committed, end in self.points:
            lag = lag_of(end, committed, fetched)
            if lag is not None:
                found.append((time_ns, lag))
        return found


def lag_of(end: int | None, committed: int | None, fetched: int | None) -> int | None:
    """Return the records behind the end of what is committed, or else of what was fetched."""
    place = fetched if committed is None else committed
    return None if end is None or place is None else max(0, end - place)
