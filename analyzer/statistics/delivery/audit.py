"""The delivery audit: per group and partition what was fetched, committed, skipped and fetched
again; pauses of members; owners; plans. Reads `Delivery` in the order of time.

A fetch belongs to a group when its client (id and host) speaks for that group elsewhere; of a
client that is in several groups nobody can tell. What came before the capture is unknown, and never
counted against anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery.follow import Follow
from kafkascope.analyzer.statistics.delivery.model import (
    AuditedPartition,
    Happening,
    HappeningKind,
    lag_of,
)
from kafkascope.analyzer.statistics.delivery.pauses import pauses
from kafkascope.analyzer.statistics.delivery.plans import (
    JudgedPlan,
    PartitionKey,
    assignment,
    carried,
    judge,
    subscribers,
)
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.model import Story
from kafkascope.analyzer.statistics.limits import limit
from kafkascope.analyzer.statistics.merging.events import Event
from kafkascope.analyzer.statistics.model import Line, TopicNames, topic_label

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.delivery.delivery import Belongs, Delivery, Planned

FETCHER: Final = "ConsumerFetcherThread-"
"""In client ids of consumers before 0.9."""

LogBounds: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, int]]]


class Audit:
    """All groups, or one, of a Delivery; groups and cluster tell of owners and partition counts."""

    def __init__(
        self,
        delivery: Delivery,
        groups: Groups | None,
        cluster: Cluster | None,
        names: TopicNames | None = None,
    ) -> None:
        self.delivery = delivery
        self.groups = groups
        self.names = names
        self._since: dict[str, list[int]] = {}
        """When each partition of a topic was told first."""
        for line in cluster.leaders(names) if cluster is not None else ():
            self._since.setdefault(line["topic"], []).append(line["since"] or 0)
        self._clients: dict[tuple[str, str], set[str]] = {}
        # By group, once for all: there may be thousands of them.
        self._belongs: dict[str, list[tuple[Any, Any, Belongs]]] = {}
        for (group, client_id, host), belongs in delivery.belongs.items():
            self._clients.setdefault((str(client_id), str(host)), set()).add(str(group))
            self._belongs.setdefault(str(group), []).append((client_id, host, belongs))
        self._fetchers()
        self._plans: dict[str, list[tuple[int, Planned]]] = {}
        for (group, generation), plan in delivery.plans.items():
            self._plans.setdefault(group, []).append((generation, plan))
        self.bounds = self._bounds()
        """(topic, partition) -> (time, offset) of the log's beginning, and of its end"""
        self.found = self._partitions()

    def _fetchers(self) -> None:
        """Find the groups of clients before 0.9, which say them in their client ids alone:
        `app-ConsumerFetcherThread-GROUP_MEMBER-0-1`."""
        names: set[str] | None = None
        for (_, _, client_id, host), _ in self.delivery.reads.items():
            _, mark, rest = str(client_id).partition(FETCHER)
            if not mark:
                continue
            if names is None:
                names = {str(group) for (group, _, _), _ in self.delivery.commits.items()}
            parts = rest.split("_")
            behind = ("_".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
            group = next((each for each in behind if each in names), None)
            if group is not None:
                self._clients.setdefault((str(client_id), str(host)), set()).add(group)

    # --- partitions

    def _bounds(self) -> dict[tuple[str, int], LogBounds]:
        found: dict[tuple[str, int], LogBounds] = {}
        # Some messages have the name of a topic, others its id.
        for (topic, number), each in self.delivery.bounds.items():
            place = topic_label(topic, self.names) or "?", number
            begins, ends = found.setdefault(place, ([], []))
            begins += each.begins
            ends += each.ends
        for begins, ends in found.values():
            begins.sort()
            ends.sort()
        return found

    def _partitions(self) -> list[AuditedPartition]:
        fetches: dict[tuple[str, str, int], list[tuple[Event, str]]] = {}
        stands: dict[tuple[str, str, int], list[Event]] = {}
        found: dict[tuple[str, str, int], AuditedPartition] = {}

        def of(group: str, topic: str, number: int) -> AuditedPartition:
            return found.setdefault((group, topic, number), AuditedPartition(group, topic, number))

        for (topic_key, number, client_id, host), reads in self.delivery.reads.items():
            groups = self._clients.get((str(client_id), str(host)), set())
            if len(groups) != 1 or reads.first_ns is None:
                continue
            group, topic = next(iter(groups)), str(topic_label(topic_key, self.names) or "?")
            place = of(group, topic, number)
            who = f"{client_id}@{host}"
            place.readers.add(who)
            place.records += reads.records
            place.dropped += reads.events.dropped
            place.at_stable += reads.at_stable
            if reads.stuck is not None and (place.stuck is None or reads.stuck > place.stuck):
                place.stuck = reads.stuck
                # Partitions without news are left out of a session's answers: it waits as long as
                # its reader fetches.
                polls = self.delivery.polls.get((client_id, host))
                place.waits_until_ns = None if polls is None else polls.periods.last_ns
            if reads.end is not None and reads.end[0] >= (place.end_ns or 0):
                place.end_ns, place.end, place.stable = reads.end[:3]
            place.first_ns = min(place.first_ns or reads.first_ns, reads.first_ns)
            place.last_ns = max(place.last_ns or 0, reads.last_ns or 0)
            key = group, topic, place.number
            fetches.setdefault(key, []).extend((event, who) for event in reads.events)
            stands.setdefault(key, []).extend(reads.stands())
        commits: dict[tuple[str, str, int], list[Event]] = {}
        for (group_name, topic_key, number), each in self.delivery.commits.items():
            topic = str(topic_label(topic_key, self.names) or "?")
            place = of(group_name, topic, number)
            place.commits += each.count
            place.failed += each.failed
            place.dropped += each.events.dropped
            commits.setdefault((place.group, topic, place.number), []).extend(each.events)
        for key, place in found.items():
            place.begins, place.ends = self.bounds.get(key[1:], ([], []))
            Follow(place, fetches.get(key, []), commits.get(key, []), stands.get(key, [])).run()
        return [found[key] for key in sorted(found)]

    def of_group(self, group: str) -> list[AuditedPartition]:
        """Return the partitions of a group."""
        return [each for each in self.found if each.group == group]

    def partitions(self, group: str | None = None) -> list[Line]:
        """Return one line per group and partition, the largest lag first."""
        lines = []
        for each in self.found:
            if group is not None and each.group != group:
                continue
            lags = [lag for _, lag in each.lags()]
            lines.append(
                {
                    "group": each.group,
                    "topic": each.topic,
                    "partition": each.number,
                    "start_offset": each.start,
                    "fetched_offset": each.fetched,
                    "committed_offset": each.committed,
                    "end_offset": each.log_end,
                    "lag": each.lag,
                    "first_lag": lags[0] if lags else None,
                    "max_lag": max(lags, default=None),
                    "beyond": each.beyond,
                    "again": each.again,
                    "back": each.back,
                    "commits": each.commits,
                    "failed": each.failed,
                    "readers": sorted(each.readers),
                    "first": each.first_ns,
                    "last": each.last_ns,
                    "remarks": list(_remarks(each)),
                }
            )
        return sorted(lines, key=lambda line: -(line["lag"] or 0))

    def lags(self, group: str | None = None) -> list[Line]:
        """Return one line per point in time and partition."""
        return [
            {
                "group": each.group,
                "time": time_ns,
                "topic": each.topic,
                "partition": each.number,
                "fetched_offset": fetched,
                "committed_offset": committed,
                "end_offset": end,
                "lag": lag_of(end, committed, fetched),
            }
            for each in self.found
            if group is None or each.group == group
            for time_ns, fetched, committed, end in each.points
        ]

    # --- what happened

    def happenings(self, group: str | None = None) -> list[Happening]:
        """Return what happened, in order: to partitions, pauses of clients, owners."""
        wanted = dict.fromkeys([group] if group is not None else self.delivery.groups())
        found = [
            each
            for partition in self.found
            if partition.group in wanted
            for each in partition.happenings
        ]
        for name in wanted:
            found += self._pauses(name)
            found += self._owners(name)
        return sorted(found, key=lambda each: (each.time_ns, each.kind, each.text))

    def events(self, group: str | None = None) -> list[Line]:
        """Return what happened as lines."""
        return [
            {
                "group": each.group,
                "time": each.time_ns,
                "kind": each.kind,
                "topic": each.topic or None,
                "partition": each.partition,
                "count": None if each.kind == "pause" else each.count,
                "duration": each.count if each.kind == "pause" else None,
                "number": each.number,
                "text": each.text,
            }
            for each in self.happenings(group)
        ]

    def _pauses(self, group: str) -> Iterator[Happening]:
        here = self._belongs.get(group, ())
        lives = _lives(self.groups.story(group) if here and self.groups is not None else None)
        for client_id, host, belongs in here:
            polls = self.delivery.polls.get((client_id, host))
            if polls is not None:
                who = str(client_id or host)
                mine = lives.get((client_id, host), [])
                yield from pauses(group, who, belongs, polls.periods, mine)

    def plans(self, group: str | None = None) -> list[Line]:
        """Return one line per assignment that a leader sent."""
        return [
            {
                "group": name,
                "time": time_ns,
                "generation": generation,
                "assignor": assignor,
                "members": members,
                "partitions": partitions,
                "same_as": list(judged.like),
                "spread": judged.spread,
                "moved": judged.moved,
                "needless": judged.spare,
                "unassigned": [f"{topic}-{n}" for topic, n in judged.unassigned],
                "twice": [f"{topic}-{n}" for topic, n in judged.twice],
                "number": number,
            }
            for name, generation, assignor, members, partitions, time_ns, number, judged in (
                self._judged(group)
            )
        ]

    def _judged(
        self, group: str | None
    ) -> Iterator[tuple[str, int, str | None, int, int, int | None, int | None, JudgedPlan]]:
        for name in self._plans if group is None else (group,):
            last: Any = None
            for generation, plan in self._plans.get(name, ()):
                if plan.assigned is None:
                    continue
                given = assignment(plan.assigned)
                members = subscribers(plan.subscribed or ())
                judged = judge(given, members, self._counts(plan.sync), last)
                last = carried(given, last, judged)
                count = sum(map(len, given.values()))
                when = plan.sync or (None, None)
                yield name, generation, plan.assignor, len(given), count, *when, judged

    def _counts(self, sync: tuple[int, int] | None) -> dict[str, int]:
        """Return partitions by topic as they were known when a plan was made: topics grow."""
        time_ns = sync[0] if sync is not None else 0
        return {
            topic: sum(since <= time_ns for since in found) or len(found)
            for topic, found in self._since.items()
        }

    def _owners(self, group: str) -> Iterator[Happening]:
        """Yield partitions that two members own at once, or none."""
        plans = list(self._judged(group))
        after: tuple[PartitionKey, ...] | None = None
        until_ns = self._heard_ns(group)
        spared: dict[int, tuple[PartitionKey, ...]] = {}
        for _, generation, assignor, _, _, time_ns, _, judged in reversed(plans):
            # What one gives up in a cooperative rebalance has no owner until the next generation.
            cooperative = "cooperative" in (assignor or "")
            waits = () if cooperative else judged.unassigned
            # A leader that has just started may not know the topics yet, and joins again.
            soon = until_ns - (time_ns or 0) <= limit("unowned.pause")
            still = (() if soon else waits) if after is None else after
            spared[generation] = tuple(
                place
                for place in judged.unassigned
                # Before the first generation that was seen, anybody may have had it.
                if not (soon or place in judged.given_up or (cooperative and judged.moved is None))
                or place in still
            )
            after, until_ns = judged.unassigned, time_ns or 0
        for name, generation, _, _, _, time_ns, number, judged in plans:
            found: tuple[tuple[HappeningKind, Any], ...] = (
                ("twice", judged.twice),
                ("none", spared[generation]),
            )
            for kind, places in found:
                if not places:
                    continue
                shown = ", ".join(f"{topic}-{n}" for topic, n in places[:4])
                more = f" and {len(places) - 4} more" if len(places) > 4 else ""
                did = f"assigned {shown}{more} to two members"
                if kind == "none":
                    did = f"left {shown}{more} unassigned"
                yield Happening(
                    time_ns or 0,
                    kind,
                    name,
                    "",
                    None,
                    len(places),
                    number,
                    f"the group leader {did} in generation {generation}",
                )
        yield from self._held(group)

    def _heard_ns(self, group: str) -> int:
        """Return when a member of a group was heard of last."""
        heard = self.groups.last_heard(group) if self.groups is not None else {}
        return max(heard.values(), default=0)

    def _held(self, group: str) -> Iterator[Happening]:
        """Return who was told to own what, at which time: without JoinGroup the broker assigns.
        Members of share groups own together; one that is never heard of again is dead, and owns
        nothing."""
        if self.groups is None or "share" in self.groups.protocols(group):
            return
        heard = self.groups.last_heard(group)
        owners: dict[tuple[str, int], dict[str, int]] = {}
        for event in self.groups.events(group):
            about = event.about
            if event.kind != "epoch" or about["error"]:
                continue
            member = about["member"]
            if about["before"] < 0:
                for holders in owners.values():
                    holders.pop(member, None)
                continue
            if about["assigned"] is None:
                continue
            mine = {
                (str(topic_label(topic, self.names)), number)
                for topic, numbers in about["assigned"]
                for number in numbers
            }
            for place, holders in owners.items():
                if place not in mine:
                    holders.pop(member, None)
            for place in sorted(mine):
                holders = owners.setdefault(place, {})
                holders[member] = event.time_ns
                others = [m for m in holders if m != member and heard.get(m, 0) > event.time_ns]
                if others:
                    yield Happening(
                        event.time_ns,
                        "twice",
                        group,
                        place[0],
                        place[1],
                        1,
                        event.number,
                        f"{place[0]}-{place[1]} was assigned to {member[-8:]} while "
                        f"{others[0][-8:]} still owned it",
                    )


def _remarks(place: AuditedPartition) -> Iterator[str]:
    if place.start is None and place.commits and place.fetched is None:
        yield "nothing fetched" if place.readers else "no fetch seen"
    if place.none:
        yield "had no committed offset"
    elif place.start is None and place.fetched is not None:
        yield "unknown before start"
    if place.fetched is not None and not place.commits:
        yield "no commit"
    if place.waits_since_ns is not None:
        yield "waits at the last stable offset"
    if place.dropped:
        yield f"{place.dropped} older events omitted"


def _lives(story: Story | None) -> dict[tuple[Any, Any], list[tuple[int, int]]]:
    """Map each client of a group, by id and host, to when each member that it was, was heard first
    and last."""
    lives: dict[tuple[Any, Any], list[tuple[int, int]]] = {}
    for member in story.members if story is not None else ():
        life = member.first_ns or 0, member.last_ns or 0
        lives.setdefault((member.client_id, member.host), []).append(life)
    return lives
