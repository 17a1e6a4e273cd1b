"""The nouns of the delivery audit, and the columns of its tables. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from kafkascope.analyzer.statistics.model import Column

HappeningKind: TypeAlias = Literal[
    "beyond", "back", "again", "skipped", "pause", "twice", "none", "plan"
]

NO_OFFSETS: Final = (
    "{} is a share group: members fetch from the same partitions and brokers track each record, so "
    "commits, lag, and owners do not exist. List what was delivered and acknowledged with "
    "-Y 'group == \"{}\"', and redeliveries by adding 'and body.delivery_count > 1'"
)
"""What the audit cannot tell of a share group."""


def unaudited(group: str) -> str:
    """Return a sentence for a share group."""
    return NO_OFFSETS.format(group, group.replace("\\", "\\\\").replace('"', '\\"'))


PARTITION_COLUMNS: Final = (
    Column("group"),
    Column("topic"),
    Column("partition", "count"),
    Column("start_offset", "count"),
    Column("fetched_offset", "count"),
    Column("committed_offset", "count"),
    Column("end_offset", "count"),
    Column("lag", "count"),
    Column("first_lag", "count"),
    Column("max_lag", "count"),
    Column("beyond", "count"),
    Column("again", "count"),
    Column("back", "count"),
    Column("commits", "count"),
    Column("failed", "count", wide=True),
    Column("readers", "list"),
    Column("first", "time", wide=True),
    Column("last", "time", wide=True),
    Column("remarks", "list"),
)
EVENT_COLUMNS: Final = (
    Column("group"),
    Column("time", "time"),
    Column("kind"),
    Column("topic"),
    Column("partition", "count"),
    Column("count", "count"),
    Column("duration", "duration"),
    Column("number", "count"),
    Column("text"),
)
PLAN_COLUMNS: Final = (
    Column("group"),
    Column("time", "time"),
    Column("generation", "count"),
    Column("assignor"),
    Column("members", "count"),
    Column("partitions", "count"),
    Column("same_as", "list"),
    Column("spread", "count"),
    Column("moved", "count"),
    Column("needless", "count"),
    Column("unassigned", "list"),
    Column("twice", "list"),
    Column("number", "count"),
)
LAG_COLUMNS: Final = (
    Column("group"),
    Column("time", "time"),
    Column("topic"),
    Column("partition", "count"),
    Column("fetched_offset", "count"),
    Column("committed_offset", "count"),
    Column("end_offset", "count"),
    Column("lag", "count"),
)


@dataclass(slots=True, unsafe_hash=True)  # Not frozen, as `Exchange`, but never changed.
class Happening:
    """Something worth telling."""

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
    before_ns: int | None = None
    """When the group had fetched last, where it read again because it had committed nothing."""


@dataclass(slots=True)
class Stall:
    """An offset that a group read on from several times, without a commit behind it."""

    offset: int
    fetches: list[tuple[int, int]] = field(default_factory=list)
    """(time, number) of those that brought records"""
    clients: set[str] = field(default_factory=set)
    over: bool = False
    """Something behind it was committed at last."""


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
    commits: int = 0
    failed: int = 0
    at_stable: int = 0
    stuck: tuple[int, int] | None = None
    """(the last stable offset that a reader came to with more behind it, minus the time)"""
    waits_until_ns: int | None = None
    """When that reader fetched last."""
    records: int = 0
    none: bool = False
    """The group had no committed offset when it asked."""
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
    """(time, offset) of the log's beginning and end, whoever was told"""

    @property
    def lag(self) -> int | None:
        """Records behind the end: of what is committed, or else of what was fetched."""
        return lag_of(self.log_end, self.committed, self.fetched)

    @property
    def log_end(self) -> int | None:
        """The last that anybody was told of the end; `end` is what its readers were told."""
        last = self.ends[-1] if self.ends else None
        return last[1] if last is not None and last[0] > (self.end_ns or 0) else self.end

    @property
    def waits_since_ns(self) -> int | None:
        """Since when it waits at the last stable offset; None when that has moved on."""
        if self.stuck is None or self.end is None or self.stable is None:
            return None
        there = self.fetched is None or self.fetched <= self.stable
        return -self.stuck[1] if there and self.stuck[0] == self.stable < self.end else None

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
