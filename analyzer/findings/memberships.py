"""Groups whose members do not belong together, or have nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.rebalances import MEMBERSHIP
from kafkascope.analyzer.findings.view import View, all_of, listed, plural
from kafkascope.analyzer.statistics.groups.model import Member, Story
from kafkascope.analyzer.text import Spelled, spelled

MOST_KINDS: Final = 20
"""Subscriptions that are compared: two applications show among a few of them."""


class Memberships(Detector):
    """From the stories of the groups."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "two-applications",
            "warning",
            "group members with different subscriptions",
            "Give each application its own group.id: two applications probably share this one. "
            "Each start of one makes the other rebalance, and their commits mix.",
            subject=("group",),
        ),
        Rule(
            "idle-members",
            "note",
            "group members without a partition",
            "Add partitions, or stop members that are not meant as standby. A partition is "
            "assigned to one member of a group.",
            brief="{n} member without a partition|{n} members without a partition",
            subject=("group",),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings of each group of consumers."""
        for story in view.stories():
            if story.members:
                yield from self._applications(story, view)
                yield from self._idle(story, view)

    def _applications(self, story: Story, view: View) -> Iterator[Finding]:
        apart = [
            (one, other)
            for one, other in _neighbours(story.members)
            if not set(one.topics) & set(other.topics)
        ]
        if not apart:
            return
        sides: dict[tuple[str, ...], set[str]] = {}
        for pair in apart:
            for each in pair:
                sides.setdefault(each.topics, set()).add(_name(each, view))
        told = listed(
            (
                Spelled(f"{listed(sorted(clients), 2)} to {listed(topics, 2)}")
                for topics, clients in sorted(sides.items())
            ),
            3,
        )
        clients = sorted({name for names in sides.values() for name in names})
        yield view.finding(
            self.rule("two-applications"),
            f"Group {spelled(story.group)} has members that subscribe to different topics: {told}",
            all_of(f"group == {quoted(story.group)}", MEMBERSHIP),
            count=len(clients),
            first_ns=max(apart[0][0].first_ns or 0, apart[0][1].first_ns or 0),
            last_ns=story.last_ns,
            about=[
                ("group", spelled(story.group)),
                *(("client", each) for each in clients),
                *(("topic", spelled(each)) for each in sorted({t for key in sides for t in key})),
            ],
        )

    def _idle(self, story: Story, view: View) -> Iterator[Finding]:
        last = max((max(each.epochs) for each in story.members if each.epochs), default=None)
        there = [each for each in story.members if last in each.epochs]
        known = [each for each in there if each.assigned is not None]
        idle = [each for each in known if not any(numbers for _, numbers in each.assigned or ())]
        given = sum(len(numbers) for each in known for _, numbers in each.assigned or ())
        if story.type not in ("", "consumer") or len(known) < len(there):
            return
        if not idle or not given or given >= len(there):
            return
        clients = sorted({_name(each, view) for each in idle})
        topics = sorted({topic for each in there for topic in each.topics})
        of = f" of {listed(topics, 2)}" if topics else ""
        are = "is" if len(idle) == 1 else "are"
        yield view.finding(
            self.rule("idle-members"),
            f"{len(idle)} of {plural(len(there), 'member')} of group {spelled(story.group)} {are} "
            f"idle (no partition): the group has {plural(given, 'partition')}{of}",
            all_of(f"group == {quoted(story.group)}", MEMBERSHIP),
            count=len(idle),
            first_ns=min(each.first_ns or story.first_ns for each in idle),
            last_ns=story.last_ns,
            about=[("group", spelled(story.group)), *(("client", each) for each in clients)],
        )


def _neighbours(members: list[Member]) -> Iterator[tuple[Member, Member]]:
    """Yield pairs of members with subscriptions that were there at the same time: each member with
    one of every other subscription."""
    by_topics: dict[tuple[str, ...], list[Member]] = {}
    for each in members:
        if each.topics and each.first_ns is not None and each.last_ns is not None:
            by_topics.setdefault(each.topics, []).append(each)
    kinds = sorted(by_topics)[:MOST_KINDS]
    for at, topics in enumerate(kinds):
        for others in kinds[at + 1 :]:
            for one in by_topics[topics]:
                for other in by_topics[others]:
                    if _overlap(one, other):
                        yield one, other
                        break


def _overlap(one: Member, other: Member) -> bool:
    return (one.first_ns or 0) < (other.last_ns or 0) and (other.first_ns or 0) < (one.last_ns or 0)


def _name(member: Member, view: View) -> str:
    return view.client(member.client_id, member.host) if member.client_id else spelled(member.label)
