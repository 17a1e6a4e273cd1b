"""Values of a group's story: its members over time, and the rebalances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.merging.measures import Measures, least, most, total

RebalanceCause: TypeAlias = Literal[
    "formed",
    "joined",
    "left",
    "expired",
    "replaced",
    "fenced",
    "metadata",
    "handover",
    "rejoined",
    "unknown",
]
"""`handover`: the second half of a cooperative rebalance, in which partitions that were given up go
to their new owners."""
Reason: TypeAlias = tuple[RebalanceCause, str]
"""A cause, and a sentence about it."""

FENCED_INSTANCE: Final = 82
UNRELEASED_INSTANCE: Final = 111
INSTANCE: Final = frozenset({FENCED_INSTANCE, UNRELEASED_INSTANCE})
"""Error for one of two members with one group.instance.id."""
FENCING: Final = INSTANCE | {110}
"""FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID, FENCED_MEMBER_EPOCH."""
EVICTED: Final = frozenset({25, 69})
"""UNKNOWN_MEMBER_ID; GROUP_ID_NOT_FOUND, where the evicted member was the last one."""


class Presence(Measures):
    """A member in a generation (or epoch): when it was alive."""

    first_ns: int | None = least()
    last_ns: int | None = most()
    beats: int = total()
    commits: int = total()
    client_id: str | None = most()
    host: str | None = most()
    instance: str | None = most()
    session_ms: int | None = most()
    rebalance_ms: int | None = most()


class LaneMark(NamedTuple):
    """A stretch or point in a member's life, for its lane."""

    begin_ns: int
    end_ns: int
    sign: str
    """`=` stable, `J` joining, `S` syncing (or a new assignment), `.` waiting, `x` evicted,
    `l` left."""


@dataclass(slots=True)
class Member:
    """A member over its whole life."""

    id: str
    client_id: str | None = None
    host: str = ""
    instance: str | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    beats: int = 0
    commits: int = 0
    session_ms: int | None = None
    rebalance_ms: int | None = None
    epochs: set[int] = field(default_factory=set)
    assigned: list[Any] | None = None
    """The last assignment: [topic, partitions]; None when none was seen."""
    topics: tuple[str, ...] = ()
    """The last subscription by names; empty when none was seen, or by a pattern only."""
    state: Literal["active", "left", "expired", "fenced"] = "active"
    text: str = ""
    holder: str = ""
    """Member with its instance id, where it was fenced for that."""
    marks: list[LaneMark] = field(default_factory=list)

    @property
    def gone_ns(self) -> int | None:
        """When it left, or was last seen."""
        ends = [mark.end_ns for mark in self.marks]
        return max((each for each in (*ends, self.last_ns) if each is not None), default=None)

    @property
    def returned(self) -> bool:
        """Whether it was evicted, and went on as if it still belonged to the group: it was slow,
        and did not restart."""
        return self.state == "fenced" and not self.holder

    @property
    def label(self) -> str:
        return self.client_id or self.host or self.id

    @property
    def generations(self) -> str:
        return span_of(self.epochs)


@dataclass(slots=True)
class Rebalance:
    """A change of generation (or of the epoch of the group)."""

    generation: int
    begin_ns: int
    end_ns: int | None
    cause: RebalanceCause
    text: str
    """A sentence: subject and cause."""
    members: int
    slowest: str
    """The last member to be ready."""
    number: int
    """Number of the first exchange."""

    @property
    def duration_ns(self) -> int | None:
        """From the first request to the last answer; None when the end was not seen."""
        return None if self.end_ns is None else max(0, self.end_ns - self.begin_ns)


@dataclass(slots=True)
class Story:
    """An event of a group."""

    group: str
    protocol: str
    type: str
    assignor: str
    generations: str
    rebalances: list[Rebalance]
    members: list[Member]
    first_ns: int
    last_ns: int
    dropped: int = 0
    """Events that were too many to be kept."""
    evictions: list[tuple[str, int, int]] = field(default_factory=list)
    """As in `GroupIndex`."""


def span_of(numbers: set[int]) -> str:
    """Return the range of numbers: `41 -> 47`."""
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} -> {high}"
