"""Consumers that are stuck or behind, commits that skip or go back (questions 10 and 14): from the
delivery audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from analyzer.filter_syntax import quoted
from analyzer.findings.detector import Detector
from analyzer.findings.limits import limit
from analyzer.findings.model import Finding, Rule
from analyzer.findings.view import View, all_of, among, audit_of, duration, listed, plural
from analyzer.statistics.delivery_model import Happening, Partition
from analyzer.text import safe


class Consumers(Detector):
    """By group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "commit-ahead",
            "error",
            "a group committed offsets that it had not fetched",
            "Records between are skipped: commit what was processed (last offset + 1), never a "
            "position of another partition or the end of the log.",
        ),
        Rule(
            "commit-back",
            "warning",
            "commits went back",
            "Two consumers commit for one partition, threads commit out of order, or someone "
            "reset the offsets: records after the smaller offset are read again.",
        ),
        Rule(
            "redelivered",
            "note",
            "records were fetched again",
            "After a rebalance or restart reading goes on at the last commit: commit before "
            "partitions are revoked, and make processing idempotent.",
            brief="records of group {group} read again",
        ),
        Rule(
            "lag",
            "warning",
            "a group falls behind the end of its partitions",
            "It reads more slowly than others write: add members (up to one per partition), make "
            "processing faster, or look for one slow partition.",
        ),
        Rule(
            "consumer-silent",
            "warning",
            "a member stopped fetching while it was in its group",
            "It is blocked in its own code (or paused): compare with max.poll.interval.ms, after "
            "which it is removed from the group.",
            brief="a member of group {group} stood still",
        ),
        Rule(
            "commits-lost",
            "warning",
            "a group fetches and does not commit",
            "Enable auto commit or commit after processing; until then each restart reads "
            "everything again.",
        ),
        Rule(
            "owned-twice",
            "error",
            "partitions are assigned to two members at once",
            "Records are processed twice: a fault of the assignor, or members of different "
            "versions with protocols that do not match.",
        ),
        Rule(
            "owned-by-none",
            "warning",
            "partitions of subscribed topics are assigned to nobody",
            "Their records pile up unread: the leader knows fewer partitions than there are, or a "
            "custom assignor leaves some out.",
            brief="partitions of group {group} without a member",
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """From one audit of all groups."""
        audit = audit_of(view)
        by_group: dict[str, list[Partition]] = {}
        for partition in audit.found:
            by_group.setdefault(partition.group, []).append(partition)
        for group, partitions in sorted(by_group.items()):
            yield from self._behind(group, partitions, view)
            yield from self._uncommitted(group, partitions, view)
        found: dict[tuple[str, str], list[Happening]] = {}
        for each in audit.happenings():
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
            "back": f"committed {plural(records, 'offset')} back",
            "again": f"fetched {plural(records, 'record')} again",
            "twice": f"gave {plural(records, 'partition')} to two members",
            "none": f"left {plural(here[-1].count, 'partition')} without a member",
            "pause": "paused once" if len(here) == 1 else f"paused {len(here)} times",
        }[kind]
        numbers = sorted({each.number for each in here if each.number is not None})[:100]
        if kind == "pause":
            evidence = f"group == {quoted(group)}"
        else:
            evidence = all_of(where, among("number", numbers))
        yield view.finding(
            self.rule(name),
            f"group {safe(group)} {words}: {safe(here[0].text)}"
            + (f" (and {len(here) - 1} more)" if len(here) > 1 else ""),
            evidence,
            count=len(here),
            first_ns=here[0].time_ns,
            last_ns=here[-1].time_ns,
            severity="note" if all(each.by_hand for each in here) else None,
            number=numbers[0] if numbers else None,
            about=[("group", safe(group))],
        )

    def _behind(self, group: str, partitions: list[Partition], view: View) -> Iterator[Finding]:
        growing, lasting = [], False
        for each in partitions:
            lags = each.lags()
            if len(lags) < 2 or each.lag is None:
                continue
            first, last = lags[0][1], lags[-1][1]
            # Not only since a burst at the end, or the last commit: then it was near 0 before.
            middle = (lags[0][0] + lags[-1][0]) // 2
            lowest = min(lag for time_ns, lag in lags if time_ns >= middle)
            if last >= limit("consumer.lag") and last > 2 * first:
                growing.append((each, first, last))
                lasting |= 4 * lowest >= last
        if not lasting:
            return
        now = sum(last for _, _, last in growing)
        before = sum(first for _, first, _ in growing)
        begin = min(each.points[0][0] for each, _, _ in growing)
        end = max(each.points[-1][0] for each, _, _ in growing)
        places = listed(f"{each.topic}-{each.number}" for each, _, _ in growing)
        named = [quoted(topic) for topic in sorted({each.topic for each, _, _ in growing})]
        topics = f"topic in {{{', '.join(named)}}}" if len(named) > 1 else f"topic == {named[0]}"
        yield view.finding(
            self.rule("lag"),
            f"group {safe(group)} fell behind from {before:,} to {plural(now, 'record')} within "
            f"{duration(end - begin)} on {places}",
            f"group == {quoted(group)} or (api == Fetch and {topics})",
            count=len(growing),
            first_ns=begin,
            last_ns=end,
            about=[("group", safe(group))],
        )

    def _uncommitted(
        self, group: str, partitions: list[Partition], view: View
    ) -> Iterator[Finding]:
        idle = [
            each
            for each in partitions
            if not each.commits
            and each.records
            and (each.last_ns or 0) - (each.first_ns or 0) >= limit("consumer.uncommitted")
        ]
        if not idle or any(each.commits for each in partitions):
            return
        records = sum(each.records for each in idle)
        span = max(each.last_ns or 0 for each in idle) - min(each.first_ns or 0 for each in idle)
        yield view.finding(
            self.rule("commits-lost"),
            f"group {safe(group)} fetched {plural(records, 'record')} of "
            f"{plural(len(idle), 'partition')} within {duration(span)} and committed nothing",
            f"group == {quoted(group)}",
            count=records,
            first_ns=min(each.first_ns or 0 for each in idle),
            last_ns=max(each.last_ns or 0 for each in idle),
            about=[("group", safe(group))],
        )
