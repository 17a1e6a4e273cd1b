"""Consumers that are stuck or behind, commits that skip or go back (questions 10 and 14): from the
delivery audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
    View,
    about_group,
    all_of,
    among,
    audit_of,
    duration,
    listed,
    places_of,
    plural,
)
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition, Happening
from kafkascope.analyzer.text import spelled


class Consumers(Detector):
    """By group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "commit-ahead",
            "error",
            "commits beyond the fetched records",
            "Commit only what was processed (last offset + 1), never the position of another "
            "partition or the end of the log. The group skips the records in between.",
        ),
        Rule(
            "commit-back",
            "warning",
            "commits of smaller offsets",
            "Check for two consumers that commit the same partition, for threads that commit out "
            "of order, and for a manual offset reset. Records after the smaller offset are read "
            "again.",
            brief="group {group} committed smaller offsets",
        ),
        Rule(
            "redelivered",
            "note",
            "records fetched again",
            "Commit before partitions are revoked, and make processing idempotent. After a "
            "rebalance or restart, consumers resume at the last committed offset.",
            brief="records of group {group} fetched again",
        ),
        Rule(
            "consumer-silent",
            "warning",
            "group member that stopped fetching",
            "Find what blocks the application's code, or what paused the consumer. After "
            "max.poll.interval.ms without a poll the member is removed from the group.",
            brief="a member of group {group} stopped fetching",
            limits=("consumer.silence",),
        ),
        Rule(
            "commits-lost",
            "warning",
            "group that commits no offsets",
            "Set enable.auto.commit=true, or commit after processing. Check whether commits fail. "
            "Until then every restart reads all records again.",
            brief="group {group} committed nothing",
            limits=("commits.none", "commits.restart"),
        ),
        Rule(
            "owned-twice",
            "error",
            "partitions assigned to two members at once",
            "Use the same assignor and compatible client versions in all members, and check a "
            "custom assignor. Both members process the same records.",
        ),
        Rule(
            "owned-by-none",
            "warning",
            "subscribed partitions without an owner",
            "Check the topics that the group leader knows, and any custom assignor: the leader "
            "knows fewer partitions than exist, or the assignor omits some. Their records stay "
            "unread.",
            brief="partitions of group {group} without an owner",
            limits=("unowned.pause",),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings from one audit of all groups."""
        for group, partitions in places_of(view):
            yield from self._uncommitted(group, partitions, view)
        found: dict[tuple[str, str], list[Happening]] = {}
        for each in audit_of(view).happenings():
            found.setdefault((each.group, each.kind), []).append(each)
        for (group, kind), here in sorted(found.items()):
            yield from self._happened(group, kind, here, view)

    def _happened(
        self, group: str, kind: str, here: list[Happening], view: View
    ) -> Iterator[Finding]:
        name, where = {
            "beyond": ("commit-ahead", "api in {OffsetCommit, TxnOffsetCommit}"),
            "back": ("commit-back", "api in {OffsetCommit, TxnOffsetCommit}"),
            "again": ("redelivered", "api == Fetch"),
            "twice": ("owned-twice", ""),
            "none": ("owned-by-none", ""),
            "pause": ("consumer-silent", ""),
        }[kind]
        if kind == "pause":
            here = [
                each
                for each in here
                if "more than" in each.text or each.count >= limit("consumer.silence")
            ]
            if not here:
                return
        records = sum(each.count for each in here)
        words = {
            "beyond": f"skipped {plural(records, 'record')}",
            "back": f"committed offsets that are {plural(records, 'record')} smaller",
            "again": f"fetched {plural(records, 'record')} again",
            "twice": f"assigned {plural(records, 'partition')} to two members",
            "none": f"left {plural(here[-1].count, 'partition')} without an owner",
            "pause": f"had {plural(len(here), 'pause')} in fetching",
        }[kind]
        numbers = sorted({each.number for each in here if each.number is not None})[:100]
        if kind == "pause":
            evidence = f"group == {quoted(group)}"
        else:
            evidence = all_of(where, among("number", numbers))
        yield view.finding(
            self.rule(name),
            f"Group {spelled(group)} {words}: {spelled(here[0].text)}"
            + (f" (and {len(here) - 1} more)" if len(here) > 1 else ""),
            evidence,
            count=len(here),
            first_ns=here[0].time_ns,
            last_ns=here[-1].time_ns,
            severity="note" if all(each.by_hand for each in here) else None,
            number=numbers[0] if numbers else None,
            about=about_group(group, [each.topic for each in here if each.topic]),
        )

    def _uncommitted(
        self, group: str, partitions: list[AuditedPartition], view: View
    ) -> Iterator[Finding]:
        """Yield groups that read for long without a commit, or read again what they had read before
        a restart. Where a commit from before the capture is known, the group does commit: its
        members may have failed before the next one."""
        if any(each.placed for each in partitions):
            return
        again = [
            (each, here)
            for each in partitions
            for here in each.happenings
            if here.before_ns is not None and each.committed is None and self._restarted(here, view)
        ]
        idle = [
            each
            for each in partitions
            if each.records and (each.last_ns or 0) - (each.first_ns or 0) >= limit("commits.none")
        ]
        if not again and not idle:
            return
        failed = sum(each.failed for each in partitions)
        why = f"all its {plural(failed, 'commit')} failed" if failed else "it committed nothing"
        found = list({id(each): each for each, _ in again}.values()) if again else idle
        places = listed(f"{each.topic}-{each.number}" for each in found)
        if again:
            records = sum(here.count for _, here in again)
            text = f"read {plural(records, 'record')} of {places} twice, because {why}"
        else:
            records = sum(each.records for each in idle)
            first = min(each.first_ns or 0 for each in idle)
            span = max(each.last_ns or 0 for each in idle) - first
            what = f"all its {plural(failed, 'commit')} failed" if failed else "committed nothing"
            text = (
                f"fetched {plural(records, 'record')} of {plural(len(idle), 'partition')} within "
                f"{duration(span)} and {what}"
            )
        yield view.finding(
            self.rule("commits-lost"),
            f"Group {spelled(group)} {text}",
            f"group == {quoted(group)}",
            count=records,
            first_ns=min(each.first_ns or 0 for each in found),
            last_ns=max(each.last_ns or 0 for each in found),
            about=about_group(group, [each.topic for each in found]),
        )

    def _restarted(self, again: Happening, view: View) -> bool:
        """Return whether all members that had fetched before were gone when records were fetched
        again: in a rebalance some stay, and a group that forms has several."""
        before_ns = again.before_ns or 0
        story = view.base.groups.story(again.group)
        return again.time_ns - before_ns >= limit("commits.restart") and not any(
            (member.first_ns or 0) <= before_ns and (member.gone_ns or 0) >= again.time_ns
            for member in (story.members if story is not None else ())
        )
