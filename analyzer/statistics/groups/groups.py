"""Groups: their members, generations and rebalances, classic ones and those of KIP-848 and later.

Members who are only alive are counted; what happens is kept as events, the latest ones of each
group. `group_story` finds the rebalances and their causes in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Self

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.groups.events import (
    KEYS,
    OFFSET_COMMIT,
    TXN_OFFSET_COMMIT,
    Alive,
    observed,
)
from kafkascope.analyzer.statistics.groups.model import Rebalance
from kafkascope.analyzer.statistics.groups.story import Presence, Story, story_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events
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
from kafkascope.analyzer.statistics.merging.tables import OTHERS, Keyed
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
    middle,
    topic_label,
)

MAX_GROUPS: Final = 1_000
MAX_PRESENCES: Final = 20_000
"""Members times generations."""
WORST: Final = ("expired", "fenced", "replaced", "rejoined", "metadata", "left")
"""Causes of rebalances that can be avoided, the worst first."""


@measured
class Group(Measures):
    """What is known of a group."""

    beats: int = total()
    commits: int = total()
    errors: int = total()
    protocols: Names = whole(Names)
    events: Events = whole(Events)
    first_ns: int | None = least()
    last_ns: int | None = most()


class Groups(Accumulator):
    """All groups of the traffic."""

    NAME = "groups"
    KEYS = KEYS
    VERSION = 2
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("group"),
        Column("protocol"),
        Column("type", wide=True),
        Column("assignor"),
        Column("members", "count"),
        Column("active", "count"),
        Column("generations"),
        Column("rebalances", "count"),
        Column("median", "duration"),
        Column("longest", "duration"),
        Column("causes", "list"),
        Column("commits", "count"),
        Column("failed", "count"),
        Column("first", "time", wide=True),
        Column("last", "time", wide=True),
        Column("worst_rebalance", wide=True),
    )
    REBALANCE_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("group", wide=True),
        Column("time", "time"),
        Column("generation", "count"),
        Column("cause"),
        Column("duration", "duration"),
        Column("members", "count"),
        Column("last_member"),
        Column("number", "count"),
        Column("text"),
    )
    MEMBER_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("group", wide=True),
        Column("member", wide=True),
        Column("client_id"),
        Column("client_address"),
        Column("group_instance_id", wide=True),
        Column("state"),
        Column("generations"),
        Column("assigned", "list"),
        Column("heartbeats", "count"),
        Column("commits", "count"),
        Column("session_timeout", "duration", wide=True),
        Column("first", "time"),
        Column("last", "time"),
        Column("text"),
    )

    _groups: Keyed[Group] = table(Group, MAX_GROUPS, weight=2)
    """Up to 64 groups keep all events that one group may."""
    _presences: Keyed[Presence] = table(Presence, MAX_PRESENCES)
    """By group, member and generation."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._members: dict[str, dict[tuple[str, int], Presence]] | None = None
        """The same by group: made once for all that ask, there may be thousands of groups."""
        self._stories: dict[str, Story] = {}
        """What was told since something happened last: detectors ask one after the other."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        found = observed(row, exchange)
        if found is None:
            return
        self._stories.clear()
        group = self._groups[(found.group,)]
        group.beats += 1
        group.commits += row.api_key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT)
        group.errors += bool(row.errors)
        if found.protocol:
            group.protocols.add(found.protocol)
        stretch(group, row.time_ns)
        for event in found.events:
            group.events.add(event)
        if found.alive is not None:
            self._saw(found.group, found.alive, row)

    def _saw(self, group: str, alive: Alive, row: Row) -> None:
        commit = row.api_key == OFFSET_COMMIT
        # A broker hears of a member when the request is there, and answers a join late.
        seen = row.time_ns + (row.latency_ns or 0)
        here = Presence(
            first_ns=row.time_ns,
            last_ns=seen,
            beats=not commit,
            commits=commit,
            client_id=row.client_id,
            host=host_of(row.client_address),
            instance=alive.instance,
            session_ms=alive.session_ms,
            rebalance_ms=alive.rebalance_ms,
        )
        self._presences[(group, alive.member, alive.generation)].merge(here)
        self._members = None

    def merge(self, other: Self) -> None:
        """Take in what the other one has."""
        super().merge(other)
        self._stories.clear()
        self._members = None

    def names(self) -> list[str]:
        """Return the groups that are known."""
        return [str(key[0]) for key, _ in self._groups.items()]

    def events(self, name: str) -> list[Event]:
        """Return what happened to a group, as it was told, in order."""
        group = self._groups.get((name,))
        return [] if group is None else list(group.events)

    def dropped(self, name: str) -> int:
        """Return how many older events of a group are left out."""
        group = self._groups.get((name,))
        return 0 if group is None else group.events.dropped

    def protocols(self, name: str) -> tuple[str, ...]:
        """Return the protocols that its members spoke: classic, consumer, share, streams."""
        group = self._groups.get((name,))
        return () if group is None else tuple(map(str, group.protocols))

    def last_heard(self, name: str) -> dict[str, int]:
        """Return, by member, when it was last alive."""
        found: dict[str, int] = {}
        for (member, _), presence in self._by_group().get(name, {}).items():
            found[member] = max(found.get(member, 0), presence.last_ns or 0)
        return found

    def story(self, name: str) -> Story | None:
        """Return what happened to a group; None when it is not known."""
        if name not in self._stories:
            group = self._groups.get((name,))
            if group is None:
                return None
            presences = self._by_group().get(name, {})
            self._stories[name] = story_of(
                name,
                tuple(group.protocols),
                list(group.events),
                presences,
                group.events.dropped,
            )
        return self._stories[name]

    def _by_group(self) -> dict[str, dict[tuple[str, int], Presence]]:
        if self._members is not None:
            return self._members
        found: dict[str, dict[tuple[str, int], Presence]] = {}
        for (name, member, generation), presence in self._presences.items():
            found.setdefault(str(name), {})[member, generation] = presence
        self._members = found
        return found

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per group, the one with the most rebalances first."""
        lines = [
            _line(str(key[0]), group, self.story(str(key[0])))
            for key, group in self._groups.items()
        ]
        lines.sort(key=lambda line: -line["rebalances"])
        if self._groups.others is not None:
            lines.append({**_line(OTHERS, self._groups.others, None), "rebalances": None})
        return lines

    def rebalances(self, name: str) -> list[Line]:
        """Return one line per rebalance of a group, in order."""
        story = self.story(name)
        return [
            {
                "group": name,
                "time": each.begin_ns,
                "generation": each.generation,
                "cause": each.cause,
                "duration": each.duration_ns,
                "members": each.members,
                "last_member": each.slowest,
                "number": each.number,
                "text": each.text,
            }
            for each in (story.rebalances if story else ())
        ]

    def members(self, name: str, names: TopicNames | None = None) -> list[Line]:
        """Return one line per member of a group, by the time it came."""
        story = self.story(name)
        return [
            {
                "group": name,
                "member": each.id,
                "client_id": each.client_id,
                "client_address": each.host,
                "group_instance_id": each.instance,
                "state": each.state,
                "generations": each.generations,
                "assigned": [
                    f"{topic_label(topic, names)}-{number}"
                    for topic, numbers in each.assigned or ()
                    for number in numbers
                ],
                "heartbeats": each.beats,
                "commits": each.commits,
                "session_timeout": None if each.session_ms is None else each.session_ms * 1_000_000,
                "first": each.first_ns,
                "last": each.last_ns,
                "text": each.text,
            }
            for each in (story.members if story else ())
        ]


def _line(name: str, group: Group, story: Story | None) -> Line:
    rebalances = [] if story is None else story.rebalances
    spent = [each.duration_ns for each in rebalances if each.duration_ns is not None]
    causes: dict[str, int] = {}
    for each in rebalances:
        causes[each.cause] = causes.get(each.cause, 0) + 1
    return {
        "group": name,
        "protocol": "/".join(group.protocols),
        "type": None if story is None else story.type,
        "assignor": None if story is None else story.assignor,
        "members": 0 if story is None else len(story.members),
        "active": 0 if story is None else sum(m.state == "active" for m in story.members),
        "generations": "" if story is None else story.generations,
        "rebalances": len(rebalances),
        "median": middle(spent) if spent else None,
        "longest": max(spent, default=None),
        "causes": [f"{count} {cause}" for cause, count in causes.items()],
        "commits": group.commits,
        "failed": group.errors,
        "first": group.first_ns,
        "last": group.last_ns,
        "worst_rebalance": _worst(rebalances),
    }


def _worst(rebalances: Sequence[Rebalance]) -> str:
    """Return the worst rebalance and its reason; empty where nobody was lost or left."""
    worst = [rebalance for rebalance in rebalances if rebalance.cause in WORST]
    if not worst:
        return ""
    first = min(worst, key=lambda rebalance: WORST.index(rebalance.cause))
    return f"generation {first.generation}: {first.text}"
