"""Nodes that their own cluster counts as gone: left out of a later list, or of all in-sync sets. No
state that merges.

Whoever captures after a broker died sees only refused connects, as with an address that is wrong. A
broker with a wrong address is well otherwise: it stays listed and in sync.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkascope.analyzer.statistics.cluster.model import ClusterFacts, Leader, Node
from kafkascope.analyzer.statistics.mergeable import Key


def gone(
    whole: ClusterFacts, nodes: Iterable[tuple[Key, Node]], leaders: Iterable[tuple[Key, Leader]]
) -> set[int]:
    """Return the numbers of brokers that are gone. Of several clusters, a number stands for
    nothing."""
    if len(whole.ids) > 1:
        return set()
    listed: dict[int, int] = {}
    for (role, number, *_), node in nodes:
        if role == "broker" and node.listed_ns is not None:
            listed[number] = max(node.listed_ns, listed.get(number, 0))
    replicas: set[int] = set()
    in_sync: set[int] = set()
    for _, leader in leaders:
        if leader.latest is not None:
            replicas.update(leader.latest[3])
            in_sync.update(leader.latest[4])
    last_ns = whole.listed_ns or 0
    unlisted = {number for number, time_ns in listed.items() if time_ns < last_ns}
    return unlisted | (replicas - in_sync)
