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
            "partitions without an owner in a group before Kafka 0.9",
            "Restart the consumer whose log says `can't rebalance after 4 retries`, and let "
            f"{RETRIES} exceed zookeeper.session.timeout.ms. The partitions stay unread until the "
            "next rebalance.",
            brief="partitions of group {group} without an owner",
            limits=("zookeeper.settled",),
        ),
        Rule(
            "zookeeper-misassigned",
            "warning",
            "partition owners that differ from the assignor's result",
            "Use the same partition.assignment.strategy in all consumers, and look for members "
            "that missed a rebalance. Consumers before 0.9 compute the assignment each for "
            "itself, from the members that they see.",
            brief="partitions of group {group} with another owner than its assignor computes",
            limits=("zookeeper.settled",),
        ),
        Rule(
            "zookeeper-claims",
            "warning",
            "failed partition claims in a group before Kafka 0.9",
            f"Let {RETRIES} exceed zookeeper.session.timeout.ms: a consumer gives up after that "
            "and owns nothing. The owner has not noticed the rebalance, or its session has not "
            "expired yet.",
            brief="failed partition claims in group {group}",
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
                told = f"Group {spelled(name)} left {listed(parts)} without an owner {when}"
            else:
                told = f"Group {spelled(name)}: {listed(each.text() for each in odd)}, {when}"
            again = f" (and {plural(len(more), 'time')} more)" if more else ""
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
            f"Consumers of group {spelled(name)} failed {count:,} times to claim {listed(parts)}: "
            "another consumer owned it",
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
