"""Groups of consumers before Kafka 0.9: their members, owners and offsets are nodes of ZooKeeper.

Each consumer computes for itself which partitions are its own: those of a topic in order, cut into
contiguous blocks for all threads of the group in the order of their names (range). It does that
again whenever a member comes or goes (`ZookeeperConsumerConnector` of Kafka 0.8).
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.delivery import plans
from kafkascope.analyzer.statistics.limits import LIMITS, StatisticsLimits
from kafkascope.analyzer.statistics.model import Line, listed, middle
from kafkascope.analyzer.statistics.zookeeper.model import ZnodeChange
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory, ZnodeLife, fields_of
from kafkascope.dissectors.zookeeper.paths import place_of

TOO_MANY: Final = "too many members and changes to analyze all of them"

STATIC: Final = "static"
"""In place of a pattern: topics by their names."""
WHITELIST: Final = "white_list"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""A dot of a pattern may match others, too; what those own is not looked at."""


class Came(NamedTuple):
    """A member that came or went."""

    time_ns: int
    member: str
    kind: Literal["join", "leave", "expired"]
    number: int | None
    """Number of the exchange, where one did it."""


class Wish(NamedTuple):
    """What a member subscribes to while it is there."""

    member: str
    life: ZnodeLife
    topics: dict[str, int] | None
    """Streams by topic; None: it subscribes by a pattern."""


@dataclass(slots=True)
class KeptGroup:
    """A group from its nodes."""

    name: str
    chroot: str
    story: TreeStory
    partitions: dict[str, int] = field(default_factory=dict)
    """Partitions of the topics of its cluster."""
    members: dict[str, list[ZnodeLife]] = field(default_factory=dict)
    owners: dict[plans.PartitionKey, list[ZnodeLife]] = field(default_factory=dict)
    offsets: dict[plans.PartitionKey, list[ZnodeLife]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"{self.chroot}/consumers/{self.name}"

    def comings(self) -> list[Came]:
        found = []
        for member, lives in self.members.items():
            for life in lives:
                number = life.change.origin()["number"]
                found.append(Came(life.begin_ns, member, "join", number))
                if life.end_ns is not None:
                    kind: Any = "expired" if life.ending == "expired" else "leave"
                    number = (life.end or ZnodeChange()).origin()["number"]
                    found.append(Came(life.end_ns, member, kind, number))
        return sorted(found, key=lambda each: (each.time_ns, each.member))

    def wishes(self) -> list[Wish]:
        return [
            Wish(member, life, _subscribed(fields_of(life.text)))
            for member, lives in self.members.items()
            for life in lives
        ]

    def owned(self, time_ns: int) -> dict[plans.PartitionKey, str]:
        """Return the threads that own partitions at a time."""
        return {
            part: life.text or ""
            for part, lives in self.owners.items()
            for life in lives
            if _is_there(life, time_ns)
        }


def _subscribed(registration: dict[str, Any]) -> dict[str, int] | None:
    """Return the topics and streams that a registration names; None for those of a pattern.
    Kafka's console consumer, for one, has a pattern that is the name of its topic."""
    found = registration.get("subscription")
    wanted = {
        topic: min(streams, LIMITS.consumer_streams)
        for topic, streams in (found if isinstance(found, dict) else {}).items()
        if isinstance(streams, int)
    }
    if registration.get("pattern", STATIC) == STATIC:
        return wanted
    if registration["pattern"] != WHITELIST:
        return None
    named = {
        topic: streams
        for pattern, streams in wanted.items()
        for topic in pattern.replace(",", "|").split("|")
    }
    return named if all(map(_NAME.fullmatch, named)) else None


def _is_number(text: str, digits: int) -> bool:
    return len(text) <= digits and text.isascii() and text.isdecimal()


def _is_there(life: ZnodeLife, time_ns: int) -> bool:
    return life.begin_ns <= time_ns and (life.end_ns is None or life.end_ns > time_ns)


def _groups(story: TreeStory) -> list[KeptGroup]:
    """Return the groups of an ensemble that had members, or committed offsets."""
    groups: dict[tuple[str, str], KeptGroup] = {}
    partitions: dict[str, dict[str, int]] = {}
    """Partitions of topics, by chroot."""
    for path, lives in story.lives.items():
        place = place_of(path)
        group, topic = place.first("groupId"), place.first("topicName")
        number = place.first("partition") or ""
        part = (topic or "", int(number)) if _is_number(number, LIMITS.partition_digits) else None
        known = partitions.setdefault(place.chroot, {})
        if place.what == "partition" and topic and part is not None:
            known[topic] = max(known.get(topic, 0), part[1] + 1)
        if place.what == "topic" and topic:
            named = fields_of(lives[-1].text).get("partitions")
            if isinstance(named, dict):
                known[topic] = len(named)
        if not group:
            continue
        kept = groups.setdefault(
            (place.chroot, group), KeptGroup(group, place.chroot, story, known)
        )
        if place.what == "consumer":
            kept.members[place.first("memberId") or ""] = lives
        elif place.what == "owner of a partition" and part is not None:
            kept.owners[part] = lives
        elif place.what == "offset of a group" and part is not None:
            kept.offsets[part] = lives
    return [kept for kept in groups.values() if kept.members or kept.offsets]


class Misplaced(NamedTuple):
    """A partition that another thread owns than its assignor gives it to."""

    part: plans.PartitionKey
    owner: str | None
    thread: str
    """By the range assignor."""

    def text(self) -> str:
        topic, partition = self.part
        owner = self.owner or "no consumer"
        return f"{topic}-{partition} is owned by {owner} instead of {self.thread}"


class OwnerAudit(NamedTuple):
    """What was owned between two times that members came or went, held against what they should
    have computed."""

    came: Came
    until_ns: int
    members: int
    assignor: str
    """`range` or `roundrobin`, by which it is as it should be; empty where it is not, or where that
    is not known."""
    misplaced: tuple[Misplaced, ...]
    unknown: str

    def text(self) -> str:
        if not self.members:
            return "no members left"
        if self.unknown:
            return self.unknown
        if self.assignor:
            return f"owned as assigned by the {self.assignor} assignor"
        more = len(self.misplaced) - LIMITS.named_partitions
        shown = ", ".join(each.text() for each in self.misplaced[: LIMITS.named_partitions])
        return f"{shown}, and {more} more" if more > 0 else shown


def _audited(kept: KeptGroup, wishes: Iterable[Wish], came: Came, until_ns: int) -> OwnerAudit:
    """Hold what was owned before a time against what members should have computed."""
    there = {wish.member: wish.topics for wish in wishes if _is_there(wish.life, came.time_ns)}
    members = {member: wanted for member, wanted in there.items() if wanted is not None}
    topics = {topic for wanted in members.values() for topic in wanted}
    known = {topic: kept.partitions[topic] for topic in sorted(topics & kept.partitions.keys())}
    wanted = plans.zookeeper_ranges(members, known)
    owned = kept.owned(until_ns - 1)
    if len(members) < len(there):
        unknown = "members subscribe by pattern: ownership is not checked"
    else:
        unknown = "" if wanted else "partitions of its topics are unknown"
    misplaced = tuple(
        Misplaced(part, owned.get(part), thread)
        for part, thread in sorted(wanted.items())
        if owned.get(part) != thread
    )
    if any(owner and not owner.strip("*") for owner in owned.values()):
        # An anonymous capture: only who owns nothing is known.
        misplaced = tuple(each for each in misplaced if each.owner is None)
        unknown = unknown or ("" if misplaced else "owners are anonymized")
    assignor = "" if unknown or misplaced else "range"
    if misplaced and not unknown:
        dealt = plans.zookeeper_round_robin(members, known)
        if dealt and all(owned.get(part) == thread for part, thread in dealt.items()):
            assignor, misplaced = "roundrobin", ()
    return OwnerAudit(came, until_ns, len(there), assignor, misplaced, unknown)


def _step(kept: KeptGroup) -> int:
    """Return about how much is looked at for one change of a group."""
    wishes = kept.wishes()
    topics = {topic for wish in wishes for topic in wish.topics or ()}
    known = [kept.partitions[topic] for topic in topics & kept.partitions.keys()]
    threads = sum(sum((wish.topics or {}).values()) for wish in wishes)
    members = len(wishes) * (1 + len(known)) + min(threads, LIMITS.group_threads * len(known))
    return 1 + members + sum(map(len, kept.owners.values())) + sum(known)


_ENDED: Final = {
    "": "",
    "closed": "closed its session",
    "expired": "its session expired",
    "deleted": "its znode was deleted",
    "told": "its znode was missing",
}


class KeptGroups:
    """All groups of all ensembles. A name that several clusters have is followed by where the group
    is kept."""

    def __init__(self, stories: Iterable[TreeStory], limits: StatisticsLimits = LIMITS) -> None:
        self._looks = limits.ownership_looks
        found = [kept for story in stories for kept in _groups(story)]
        times = Counter(kept.name for kept in found)
        self.groups = {
            kept.name
            if times[kept.name] == 1
            else f"{kept.name} at {kept.story.name}{kept.chroot}": kept
            for kept in found
        }
        """By the name that is shown."""

    def names(self) -> list[str]:
        """Return the names of groups that had members, or committed offsets."""
        return sorted(self.groups)

    def all_names(self) -> list[str]:
        return [*self.names(), *(group.name for group in self.groups.values())]

    def called(self, name: str) -> list[str]:
        """Return the names that are shown of the groups of a name."""
        return [shown for shown in self.names() if name in (shown, self.groups[shown].name)]

    @cached_property
    def _most(self) -> dict[str, int]:
        """How many changes of a group are looked at, by its name: all of them where that is little
        work, and of the others those that an equal part of the rest is enough for."""
        steps = {name: _step(kept) for name, kept in self.groups.items()}
        changes = {name: len(kept.comings()) for name, kept in self.groups.items()}
        found, left = {}, self._looks
        names = sorted(self.groups, key=lambda name: (steps[name] * changes[name], name))
        for at, name in enumerate(names):
            looks = min(steps[name] * changes[name], left // (len(names) - at))
            found[name] = looks // steps[name]
            left -= looks
        return found

    def audits(self, name: str) -> Iterator[OwnerAudit]:
        """Yield, for each time that a member came or went, the owners when the next one did."""
        kept = self.groups[name]
        wishes = kept.wishes()
        begins = sorted(wish.life.begin_ns for wish in wishes)
        ends = sorted(wish.life.end_ns for wish in wishes if wish.life.end_ns is not None)
        comings = kept.comings()
        nexts = [each.time_ns for each in comings[1:]] + [kept.story.end_ns + 1]
        for number, (came, until_ns) in enumerate(zip(comings, nexts, strict=True)):
            if number < self._most[name]:
                yield _audited(kept, wishes, came, until_ns)
            else:
                members = bisect_right(begins, came.time_ns) - bisect_right(ends, came.time_ns)
                yield OwnerAudit(came, until_ns, members, "", (), TOO_MANY)

    @listed()
    def rebalances(self, name: str) -> Iterator[Line]:
        """Return one line each time that a member came or went, with what the group owned when the
        next one did."""
        kept = self.groups[name]
        claims = sorted(life.begin_ns for lives in kept.owners.values() for life in lives)
        for number, audit in enumerate(self.audits(name), 1):
            came = audit.came
            before = bisect_left(claims, audit.until_ns)
            last = claims[before - 1] if before and claims[before - 1] >= came.time_ns else None
            cause = {"join": "joined", "leave": "left"}.get(came.kind, came.kind)
            did = "left: its session expired" if came.kind == "expired" else cause
            yield {
                "group": name,
                "time": came.time_ns,
                "generation": number,
                "cause": cause,
                "duration": None if last is None else last - came.time_ns,
                "members": audit.members,
                "last_member": "",
                "number": came.number,
                "text": f"{came.member} {did}; {audit.text()}",
            }

    @listed(lambda line: (line["first"], line["member"]))
    def members(self, name: str) -> Iterator[Line]:
        kept = self.groups[name]
        claimed = by_key(
            ((owner.text or "").rpartition("-")[0], (owner.begin_ns, part))
            for part, owners in kept.owners.items()
            for owner in owners
        )
        """When, and of which partition, threads of a member became the owners."""
        for each in claimed.values():
            each.sort()
        for member, lives in kept.members.items():
            mine = claimed.get(member, [])
            for life in lives:
                begin = bisect_left(mine, life.begin_ns, key=itemgetter(0))
                end = len(mine)
                if life.end_ns is not None:
                    end = bisect_right(mine, life.end_ns, key=itemgetter(0))
                owned = sorted(part for _, part in mine[begin:end])
                state = {"": "active", "expired": "expired"}.get(life.ending, "left")
                yield {
                    **dict.fromkeys(("group_instance_id", "heartbeats", "commits")),
                    "group": name,
                    "member": member,
                    "client_id": member,
                    "client_address": life.change.origin()["client_address"] or "",
                    "state": state,
                    "generations": "",
                    "assigned": [f"{topic}-{number}" for topic, number in dict.fromkeys(owned)],
                    "session_timeout": None,
                    "first": life.begin_ns,
                    "last": life.end_ns or kept.story.end_ns,
                    "text": _ENDED[life.ending],
                }

    @listed()
    def lines(self) -> Iterator[Line]:
        """Return one line per group, in the form that groups of brokers have."""
        for name in self.names():
            kept = self.groups[name]
            rebalances = self.rebalances(name)
            spent = [line["duration"] for line in rebalances if line["duration"] is not None]
            causes = Counter(line["cause"] for line in rebalances)
            lives = [life for each in kept.members.values() for life in each]
            times = [time_ns for life in lives for time_ns in (life.begin_ns, life.end_ns)]
            known = [time_ns for time_ns in times if time_ns is not None]
            yield {
                "group": name,
                "path": kept.path,
                "protocol": "zookeeper",
                "type": "consumer",
                "assignor": "range",
                "members": len(kept.members),
                "active": sum(not life.ending for life in lives),
                "generations": str(len(rebalances)) if rebalances else "",
                "rebalances": len(rebalances),
                "median": middle(spent) if spent else None,
                "longest": max(spent, default=None),
                "causes": [f"{count} {cause}" for cause, count in causes.items()],
                "commits": sum(
                    1 + len(life.changes) for each in kept.offsets.values() for life in each
                ),
                "failed": 0,
                "first": min(known, default=None),
                "last": max(known, default=None),
            }

    @listed()
    def offsets(self, name: str) -> Iterator[Line]:
        kept = self.groups[name]
        owned = kept.owned(kept.story.end_ns)
        for (topic, partition), lives in sorted(kept.offsets.items()):
            offsets = [
                int(text)
                for life in lives
                for text in (life.change.text, *(change.text for _, change in life.changes))
                if text and _is_number(text, LIMITS.offset_digits)
            ]
            yield {
                "group": name,
                "topic": topic,
                "partition": partition,
                "owner": owned.get((topic, partition)),
                "committed": offsets[-1] if offsets else None,
                "back": sum(one > two for one, two in itertools.pairwise(offsets)),
                "commits": len(offsets),
            }
