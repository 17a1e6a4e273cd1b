"""Consumers before Kafka 0.9, whose groups are nodes of ZooKeeper: partitions that nobody owns, or
another one than their assignor gives them to; claims that fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, duration, listed, once, plural, trees_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.zookeeper.consumers import (
    KeptGroup,
    KeptGroups,
    OwnerAudit,
)
from kafkascope.analyzer.statistics.zookeeper.operations import NODEEXISTS
from kafkascope.analyzer.text import spelled

RETRIES: Final = "rebalance.max.retries (4) times rebalance.backoff.ms (2 s)"


class ZooKeeperGroups(Detector):
    """From the statistic of ZooKeeper."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "zookeeper-unowned",
            "warning",
            "nobody owns some partitions of a group of consumers before 0.9",
            "Nobody reads them until the next rebalance: one failed on a consumer, whose log says "
            f"`can't rebalance after 4 retries`. Let {RETRIES} last longer than "
            "zookeeper.session.timeout.ms, and start that consumer again.",
            brief="group {group} left partitions to nobody",
            limits=("zookeeper.settled",),
        ),
        Rule(
            "zookeeper-misassigned",
            "warning",
            "consumers before 0.9 own other partitions than their assignor gives them",
            "Each of them computes the assignment for itself, so all have to see the same members "
            "and use the same partition.assignment.strategy: look for mixed settings, and for "
            "members that missed a rebalance.",
            brief="group {group} is not assigned as its assignor has it",
            limits=("zookeeper.settled",),
        ),
        Rule(
            "zookeeper-claims",
            "warning",
            "consumers before 0.9 claim partitions in vain, which others still own",
            "The owner has not noticed the rebalance, or its session is not over yet: a consumer "
            f"gives up after {RETRIES}, and owns nothing. Let that last longer than "
            "zookeeper.session.timeout.ms.",
            brief="group {group} claims partitions in vain",
            limits=("zookeeper.claims",),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings of each group."""
        groups = KeptGroups(trees_of(view))
        for name in groups.names():
            kept = groups.groups[name]
            yield from self._owners(name, kept, groups.audits(name), view)
            yield from self._claims(name, kept, view)

    def _owners(
        self, name: str, kept: KeptGroup, audits: Iterable[OwnerAudit], view: View
    ) -> Iterator[Finding]:
        settled = [
            each
            for each in audits
            if each.misplaced and each.until_ns - each.came.time_ns >= limit("zookeeper.settled")
        ]
        unowned = [(each, [odd for odd in each.misplaced if odd.owner is None]) for each in settled]
        others = [(each, [odd for odd in each.misplaced if odd.owner]) for each in settled]
        for rule, found in (("zookeeper-unowned", unowned), ("zookeeper-misassigned", others)):
            found = [each for each in found if each[1]]
            if not found:
                continue
            (audit, odd), *more = found
            when = f"for {duration(audit.until_ns - audit.came.time_ns)} after {_came(audit)}"
            if rule == "zookeeper-unowned":
                parts = [f"{topic}-{partition}" for (topic, partition), *_ in odd]
                told = f"nobody owned {listed(parts)} of group {spelled(name)} {when}"
            else:
                told = f"in group {spelled(name)} {listed(each.text() for each in odd)}, {when}"
            again = f", and {plural(len(more), 'time')} more" if more else ""
            yield view.finding(
                self.rule(rule),
                f"{told}{again}",
                all_of(_where(name, kept), f"path contains {quoted(f'{kept.path}/')}"),
                count=sum(len(each) for _, each in found),
                first_ns=audit.came.time_ns,
                last_ns=found[-1][0].until_ns,
                number=audit.came.number,
                about=[("group", kept.name)],
            )

    def _claims(self, name: str, kept: KeptGroup, view: View) -> Iterator[Finding]:
        below = f"{kept.path}/owners/"
        refused = _refused(view).get((kept.story.name, below), [])
        if not refused:
            return
        count = sum(line["existed"] for line in refused)
        parts = [line["path"].removeprefix(below).replace("/", "-") for line in refused]
        yield view.finding(
            self.rule("zookeeper-claims"),
            f"consumers of group {spelled(name)} claimed {listed(parts)} {count:,} times in vain: "
            "another one owned it",
            all_of(
                _where(name, kept),
                f"path contains {quoted(below)}",
                f"error == {NODEEXISTS}",
            ),
            count=count,
            first_ns=min(line["first"] for line in refused),
            last_ns=max(line["last"] for line in refused),
            number=min(line["number"] for line in refused),
            about=[("group", kept.name)],
        )


@once
def _refused(view: View) -> dict[tuple[str, str], list[Line]]:
    """Map each ensemble and node of owners to the partitions below that were claimed in vain."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for story in trees_of(view):
        for line in story.node_lines():
            if line["existed"] >= limit("zookeeper.claims"):
                # .../owners/topic/partition, or .../owners/topic.
                parts = line["path"].rsplit("/", 3)
                for at in (1, 2):
                    if parts[at : at + 1] == ["owners"]:
                        found[story.name, "/".join(parts[: at + 1]) + "/"].append(line)
    return found


def _where(name: str, kept: KeptGroup) -> str:
    """Return the filter for the ensemble of a group, where other ones may have such a group."""
    if name == kept.name:
        return "protocol == zookeeper"
    return f"broker in {{{', '.join(map(quoted, kept.story.servers))}}}"


def _came(audit: OwnerAudit) -> str:
    did = {"join": "joined", "leave": "left"}.get(audit.came.kind, "expired")
    return f"{spelled(audit.came.member)} {did}"
