"""Groups: their members, generations and rebalances, classic ones and those of KIP-848 and later.

Members who are only alive are counted; what happens is kept as events, the latest ones of each
group. `story` finds the rebalances and their causes in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Self

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.bounded import Event, Events, Names
from kafkascope.analyzer.merging.measures import Measures, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import OTHERS, Keyed, table
from kafkascope.analyzer.statistics import model
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.events import (
    HEARTBEAT,
    KEYS,
    OFFSET_COMMIT,
    TXN_OFFSET_COMMIT,
    Alive,
    observed,
)
from kafkascope.analyzer.statistics.groups.model import Presence, Rebalance, Story
from kafkascope.analyzer.statistics.groups.story import story_of
from kafkascope.analyzer.statistics.limits import LIMITS

WORST: Final = ("expired", "fenced", "replaced", "rejoined", "metadata", "left")
"""Causes of rebalances that can be avoided, the worst first."""


class Group(Measures):
    """Facts about a group."""

    commits: int = total()
    failed: int = total()
    protocols: Names = whole(Names)
    events: Events = whole(Events)
    first_ns: int | None = least()
    last_ns: int | None = most()


class Groups(model.Accumulator):
    """All groups of the traffic."""

    NAME = "groups"
    KEYS = KEYS
    SINGLY = KEYS - {HEARTBEAT, OFFSET_COMMIT, TXN_OFFSET_COMMIT}
    VERSION = 3
    COLUMNS = model.columns(
        "group protocol (type) assignor members active generations rebalances median longest "
        "causes commits failed (first) (last) (worst_rebalance)"
    )
    REBALANCE_COLUMNS = model.columns(
        "(group) time generation cause duration members last_member number text"
    )
    MEMBER_COLUMNS = model.columns(
        "(group) (member) client_id client_address (group_instance_id) state generations assigned "
        "heartbeats commits (session_timeout) first last text"
    )

    _groups: Keyed[Group] = table(Group, LIMITS.groups, weight=2)
    """Up to 64 groups keep all events that one group may."""
    _presences: Keyed[Presence] = table(Presence, LIMITS.presences)
    """By group, member and generation."""

    def __init__(self) -> None:
        super().__init__()
        self._members: dict[str, dict[tuple[str, int], Presence]] | None = None
        """The same by group: made once for all callers, there may be thousands of groups."""
        self._stories: dict[str, Story] = {}
        """Stories since the last event: detectors use them one after the other."""

    def add(self, batch: ExchangeBatch) -> None:
        row, count = batch.row, len(batch)
        found = observed(row, batch.exchange)
        if found is None:
            return
        self._stories.clear()
        group = self._groups[(found.group,)]
        group.commits += count if row.api_key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT) else 0
        group.failed += bool(row.errors)
        if found.protocol:
            group.protocols.add(found.protocol)
        stretch(group, batch.first_ns, batch.last_ns)
        for event in found.events:
            group.events.add(event)
        if found.alive is not None:
            self._saw(found.group, found.alive, batch)

    def _saw(self, group: str, alive: Alive, batch: ExchangeBatch) -> None:
        row, commit, count = batch.row, batch.api_key == OFFSET_COMMIT, len(batch)
        here = Presence(
            first_ns=batch.first_ns,
            # A broker hears of a member when the request is there, and answers a join late.
            last_ns=max(batch.ends),
            beats=0 if commit else count,
            commits=count if commit else 0,
            client_id=row.client_id,
            host=host_of(row.client_address),
            instance=alive.instance,
            session_ms=alive.session_ms,
            rebalance_ms=alive.rebalance_ms,
        )
        self._presences[(group, alive.member, alive.generation)].merge(here)
        self._members = None

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._stories.clear()
        self._members = None

    def names(self) -> list[str]:
        return [name for (name,), _ in self._groups.items()]

    def events(self, name: str) -> list[Event]:
        return list(self._groups.get((name,), Group()).events)

    def dropped(self, name: str) -> int:
        """Return how many older events of a group are left out."""
        return self._groups.get((name,), Group()).events.dropped

    def protocols(self, name: str) -> tuple[str, ...]:
        """Return the protocols that its members spoke: classic, consumer, share, streams."""
        return tuple(self._groups.get((name,), Group()).protocols)

    def last_seen_ns(self, name: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for (member, _), presence in self._by_group().get(name, {}).items():
            found[member] = max(found.get(member, 0), presence.last_ns or 0)
        return found

    def story(self, name: str) -> Story | None:
        if name not in self._stories:
            group = self._groups.get((name,))
            if group is None:
                return None
            presences = self._by_group().get(name, {})
            self._stories[name] = story_of(
                name, tuple(group.protocols), list(group.events), presences, group.events.dropped
            )
        return self._stories[name]

    def _by_group(self) -> dict[str, dict[tuple[str, int], Presence]]:
        if self._members is not None:
            return self._members
        self._members = {}
        for (name, *place), presence in self._presences.items():
            self._members.setdefault(name, {})[place[0], place[1]] = presence
        return self._members

    def rows(self, names: model.TopicNames | None = None) -> list[model.Line]:
        lines = [_line(name, group, self.story(name)) for (name,), group in self._groups.items()]
        lines.sort(key=lambda line: -line["rebalances"])
        if self._groups.others is not None:
            lines.append({**_line(OTHERS, self._groups.others, None), "rebalances": None})
        return lines

    def rebalances(self, name: str) -> list[model.Line]:
        story = self.story(name)
        return [
            model.filled(
                self.REBALANCE_COLUMNS,
                each,
                group=name,
                time=each.begin_ns,
                duration=each.duration_ns,
                last_member=each.slowest,
            )
            for each in (story.rebalances if story else ())
        ]

    def members(self, name: str, names: model.TopicNames | None = None) -> list[model.Line]:
        story = self.story(name)
        return [
            model.filled(
                self.MEMBER_COLUMNS,
                each,
                group=name,
                member=each.id,
                client_address=each.host,
                group_instance_id=each.instance,
                assigned=[
                    f"{model.topic_label(topic, names)}-{number}"
                    for topic, numbers in each.assigned or ()
                    for number in numbers
                ],
                heartbeats=each.beats,
                session_timeout=None if each.session_ms is None else each.session_ms * 1_000_000,
            )
            for each in (story.members if story else ())
        ]


def _line(name: str, group: Group, story: Story | None) -> model.Line:
    rebalances = [] if story is None else story.rebalances
    spent = [each.duration_ns for each in rebalances if each.duration_ns is not None]
    causes = Counter(each.cause for each in rebalances)
    return model.filled(
        Groups.COLUMNS,
        group,
        group=name,
        protocol="/".join(group.protocols),
        type=None if story is None else story.type,
        assignor=None if story is None else story.assignor,
        members=0 if story is None else len(story.members),
        active=0 if story is None else sum(m.state == "active" for m in story.members),
        generations="" if story is None else story.generations,
        rebalances=len(rebalances),
        median=model.middle(spent) if spent else None,
        longest=max(spent, default=None),
        causes=[f"{count} {cause}" for cause, count in causes.items()],
        worst_rebalance=_worst(rebalances),
    )


def _worst(rebalances: Sequence[Rebalance]) -> str:
    """Return the worst avoidable rebalance and its reason; empty where there is none."""
    worst = [rebalance for rebalance in rebalances if rebalance.cause in WORST]
    if not worst:
        return ""
    first = min(worst, key=lambda rebalance: WORST.index(rebalance.cause))
    return f"generation {first.generation}: {first.text}"
