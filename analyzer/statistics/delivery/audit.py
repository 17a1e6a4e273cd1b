"""The delivery audit: per group and partition what was fetched, committed, skipped and fetched
again; pauses of members; owners; plans. Reads `Delivery` in the order of time.

A fetch belongs to a group when its client (id and host) sends requests of that group elsewhere; a
client in several groups is ambiguous. What came before the capture is unknown, and is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.merging.tables import Key, by_key
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery import model
from kafkascope.analyzer.statistics.delivery.follow import Follow
from kafkascope.analyzer.statistics.delivery.parts import pauses
from kafkascope.analyzer.statistics.delivery.plans import (
    Assignment,
    JudgedPlan,
    PartitionKey,
    assignment,
    carried,
    judge,
    subscribers,
)
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.model import Line, TopicNames, filled, topic_label
from kafkascope.analyzer.statistics.thresholds import limit

# In client ids of consumers before 0.9.
FETCHER: Final = "ConsumerFetcherThread-"

LogBounds: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, int]]]


class Audit:
    """All groups, or one, of a Delivery; groups and cluster supply owners and partition counts."""

    def __init__(
        self,
        delivery: model.DeliveryFacts,
        groups: Groups | None,
        cluster: Cluster | None,
        names: TopicNames | None = None,
    ) -> None:
        self.delivery = delivery
        self.groups = groups
        self.names = names
        lines = cluster.leaders(names) if cluster is not None else ()
        self._since = by_key((str(line["topic"]), line["since"] or 0) for line in lines)
        """When each partition of a topic was first listed."""
        self._clients: dict[tuple[str, str], set[str]] = {}
        for group, *who in (*delivery.belongs, *self._fetchers()):
            self._clients.setdefault((who[0], who[1]), set()).add(group)
        # By group, once for all: there may be thousands of them.
        self._belongs = by_key((key[0], (*key[1:], each)) for key, each in delivery.belongs.items())
        self._plans = by_key((key[0], (key[1], each)) for key, each in delivery.plans.items())
        self.bounds = self._bounds()
        """(topic, partition) -> (time, offset) of the log's beginning, and of its end"""
        self.found = self._partitions()

    def _fetchers(self) -> Iterator[Key]:
        """Yield (group, client id, host) of clients before 0.9, whose groups are named only in
        their client ids: `app-ConsumerFetcherThread-GROUP_MEMBER-0-1`."""
        names = {key[0] for key in self.delivery.commits}
        for client_id, host in {key[2:] for key in self.delivery.reads}:
            _, _, rest = client_id.partition(FETCHER)
            parts = rest.split("_")
            behind = ("_".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
            group = next((each for each in behind if each in names), None)
            if group is not None:
                yield group, client_id, host

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

    def _partitions(self) -> list[model.AuditedPartition]:
        found: dict[tuple[str, str, int], Follow] = {}

        def of(group: str, topic: str | None, number: int) -> Follow:
            key = group, topic_label(topic, self.names) or "?", number
            if key not in found:
                found[key] = Follow(model.AuditedPartition(*key))
            return found[key]

        for (topic, number, client_id, host), reads in self.delivery.reads.items():
            groups = self._clients.get((client_id, host), ())
            if len(groups) != 1 or reads.first_ns is None:
                continue
            follow = of(next(iter(groups)), topic, number)
            place, who = follow.place, f"{client_id}@{host}"
            follow.take(reads.events, who)
            follow.take(reads.stands())
            place.readers.add(who)
            place.records += reads.records
            place.dropped += reads.events.dropped
            place.at_stable += reads.at_stable
            if reads.stuck is not None and (place.stuck is None or reads.stuck > place.stuck):
                place.stuck = reads.stuck
                # Partitions without news are left out of a session's answers: it waits as long as
                # its reader fetches.
                polls = self.delivery.polls.get((client_id, host))
                place.waits_until_ns = None if polls is None else polls.last_ns
            if reads.end is not None and reads.end[0] >= (place.end_ns or 0):
                place.end_ns, place.end, place.stable = reads.end[:3]
            place.first_ns = min(place.first_ns or reads.first_ns, reads.first_ns)
            place.last_ns = max(place.last_ns or 0, reads.last_ns or 0)
        for (group, topic, number), commits in self.delivery.commits.items():
            follow = of(group, topic, number)
            follow.take(commits.events)
            follow.place.commits += commits.count
            follow.place.failed += commits.failed
            follow.place.dropped += commits.events.dropped
        for key, follow in found.items():
            follow.place.begins, follow.place.ends = self.bounds.get(key[1:], ([], []))
            follow.run()
        return [found[key].place for key in sorted(found)]

    def _of(self, group: str | None) -> list[model.AuditedPartition]:
        return [each for each in self.found if group is None or each.group == group]

    def partitions(self, group: str | None = None) -> list[Line]:
        lines = []
        for each in self._of(group):
            lags = [lag for _, lag in each.lags()]
            lines.append(
                filled(
                    model.PARTITION_COLUMNS,
                    each,
                    partition=each.number,
                    start_offset=each.start,
                    fetched_offset=each.fetched,
                    committed_offset=each.committed,
                    end_offset=each.log_end,
                    first_lag=lags[0] if lags else None,
                    max_lag=max(lags, default=None),
                    readers=sorted(each.readers),
                    remarks=list(_remarks(each)),
                )
            )
        return sorted(lines, key=lambda line: -(line["lag"] or 0))

    def lags(self, group: str | None = None) -> list[Line]:
        return [
            {
                "group": each.group,
                "time": time_ns,
                "topic": each.topic,
                "partition": each.number,
                "fetched_offset": fetched,
                "committed_offset": committed,
                "end_offset": end,
                "lag": model.lag_of(end, committed, fetched),
            }
            for each in self._of(group)
            for time_ns, fetched, committed, end in each.points
        ]

    # --- what happened

    def happenings(self, group: str | None = None) -> list[model.Happening]:
        """Return what happened, in order: to partitions, pauses of clients, owners."""
        wanted = [group] if group is not None else self.delivery.groups()
        found = [each for partition in self._of(group) for each in partition.happenings]
        for name in wanted:
            found += (*self._pauses(name), *self._owners(name))
        return sorted(found, key=lambda each: (each.time_ns, each.kind, each.text))

    def events(self, group: str | None = None) -> list[Line]:
        return [
            filled(
                model.EVENT_COLUMNS,
                each,
                time=each.time_ns,
                topic=each.topic or None,
                count=None if each.kind == "pause" else each.count,
                duration=each.count if each.kind == "pause" else None,
            )
            for each in self.happenings(group)
        ]

    def _pauses(self, group: str) -> Iterator[model.Happening]:
        here = self._belongs.get(group, ())
        story = self.groups.story(group) if here and self.groups is not None else None
        lives = by_key(
            ((member.client_id, member.host), (member.first_ns or 0, member.last_ns or 0))
            for member in (story.members if story is not None else ())
        )
        for client_id, host, belongs in here:
            polls = self.delivery.polls.get((client_id, host))
            if polls is not None:
                client = str(client_id or ""), str(host)
                mine = lives.get((client_id, host), [])
                yield from pauses(group, client, belongs, polls, mine)

    def plans(self, group: str | None = None) -> list[Line]:
        return [
            filled(
                model.PLAN_COLUMNS,
                judged,
                group=name,
                time=plan.sync[0] if plan.sync else None,
                generation=generation,
                assignor=plan.assignor,
                members=len(given),
                partitions=sum(map(len, given.values())),
                unassigned=[f"{topic}-{n}" for topic, n in judged.unassigned],
                twice=[f"{topic}-{n}" for topic, n in judged.twice],
                number=plan.sync[1] if plan.sync else None,
            )
            for name in (self._plans if group is None else (group,))
            for generation, plan, given, judged in self._judged(name)
        ]

    def _judged(self, group: str) -> Iterator[tuple[int, model.Planned, Assignment, JudgedPlan]]:
        last: Assignment | None = None
        for generation, plan in self._plans.get(group, ()):
            if plan.assigned is not None:
                given = assignment(plan.assigned)
                members = subscribers(plan.subscribed or ())
                judged = judge(given, members, self._counts(plan.sync), last)
                last = carried(given, last, judged)
                yield generation, plan, given, judged

    def _counts(self, sync: tuple[int, int] | None) -> dict[str, int]:
        """Return partitions by topic as they were known when a plan was made: topics grow."""
        time_ns = sync[0] if sync is not None else 0
        return {
            topic: sum(since <= time_ns for since in found) or len(found)
            for topic, found in self._since.items()
        }

    def _owners(self, group: str) -> Iterator[model.Happening]:
        """Yield partitions that two members own at once, or none."""
        plans = list(self._judged(group))
        after: tuple[PartitionKey, ...] | None = None
        heard = self.groups.last_seen_ns(group) if self.groups is not None else {}
        until_ns = max(heard.values(), default=0)
        spared: dict[int, tuple[PartitionKey, ...]] = {}
        for generation, plan, _, judged in reversed(plans):
            # What one gives up in a cooperative rebalance has no owner until the next generation.
            cooperative = "cooperative" in (plan.assignor or "")
            time_ns = plan.sync[0] if plan.sync else 0
            waits = () if cooperative else judged.unassigned
            # A leader that has just started may not know the topics yet, and joins again.
            soon = until_ns - time_ns <= limit("unowned.pause")
            still = (() if soon else waits) if after is None else after
            spared[generation] = tuple(
                place
                for place in judged.unassigned
                # Before the first generation that was seen, anybody may have had it.
                if not (soon or place in judged.given_up or (cooperative and judged.moved is None))
                or place in still
            )
            after, until_ns = judged.unassigned, time_ns
        for generation, plan, _, judged in plans:
            found: tuple[tuple[model.HappeningKind, Any, str], ...] = (
                ("twice", judged.twice, "assigned {} to two members"),
                ("none", spared[generation], "left {} unassigned"),
            )
            time_ns, number = plan.sync or (0, None)
            for kind, places, did in found:
                if places:
                    shown = ", ".join(f"{topic}-{n}" for topic, n in places[:4])
                    more = f" and {len(places) - 4} more" if len(places) > 4 else ""
                    text = f"the group leader {did.format(shown + more)} in generation {generation}"
                    yield model.Happening(time_ns, kind, group, "", None, len(places), number, text)
        yield from self._held(group)

    def _held(self, group: str) -> Iterator[model.Happening]:
        """Yield partitions that got a second owner without JoinGroup: the broker assigns. Members
        of share groups own together; one that is not seen again is dead, and owns nothing."""
        if self.groups is None or "share" in self.groups.protocols(group):
            return
        heard = self.groups.last_seen_ns(group)
        story = self.groups.story(group)
        evictions = by_key((name, span) for name, *span in (story.evictions if story else ()))
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
                others = [
                    m
                    for m in holders
                    if m != member
                    and heard.get(m, 0) > event.time_ns
                    # The broker had removed it, and it did not know.
                    and not any(since < event.time_ns < end for since, end in evictions.get(m, ()))
                ]
                if others:
                    text = f"{place[0]}-{place[1]} was assigned to {member[-8:]} while "
                    text += f"{others[0][-8:]} still owned it"
                    yield model.Happening(
                        event.time_ns, "twice", group, *place, 1, event.number, text
                    )


def _remarks(place: model.AuditedPartition) -> Iterator[str]:
    if place.start is None and place.commits and place.fetched is None:
        yield "nothing fetched" if place.readers else "no fetch seen"
    if place.none:
        yield "had no committed offset"
    elif place.start is None and place.fetched is not None:
        yield "unknown before start"
    if place.fetched is not None and not place.commits:
        yield "no commit"
    if place.waits:
        yield "waits at the last stable offset"
    if place.dropped:
        yield f"{place.dropped} older events omitted"
