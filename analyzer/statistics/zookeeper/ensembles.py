"""Which servers of ZooKeeper are one ensemble, and what a capture told of each.

Nobody on the wire names an ensemble. Servers belong together when a session was at both, or when
both told of the same creation of a node: its zxid and the time of the server's clock. Where a time
is not told, path and zxid have to do, unless the two servers told of some node of the same path
and never of the same creation of one: new ensembles count alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.statistics.merging.events import Event, Events
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.zookeeper.model import KeptSession, Znode, ZnodeChange

Server: TypeAlias = str
"""Address of a server."""
MOST_GROUPS: Final = 64
"""Of servers, that are held against each other; ensembles have fewer than ten."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What was told of the nodes and sessions of one ensemble."""

    servers: tuple[Server, ...]
    nodes: Keyed[Znode]
    """By path."""
    changes: Keyed[ZnodeChange]
    """By path, zxid and kind."""
    sessions: Keyed[KeptSession]
    """By id."""
    events: tuple[Event, ...]
    doubtful: bool = False
    """Whether it may be one with another of the capture: they told of no node of the same path."""


def ensembles(
    nodes: Keyed[Znode],
    changes: Keyed[ZnodeChange],
    sessions: Keyed[KeptSession],
    events: Events,
) -> list[Ensemble]:
    """Return what was told of each ensemble, in the order of their addresses. `nodes` and `changes`
    have the server in front of their keys, `events` have it in `about`; nothing is changed."""
    servers = {key[0] for key in (*nodes, *changes)}
    servers |= {server for session in sessions.values() for server in session.servers}
    groups, apart = _joined(servers, changes, sessions)
    groups = groups or [()]
    place = {server: number for number, group in enumerate(groups) for server in group}
    parts = [_Parts(Keyed(Znode), Keyed(ZnodeChange), Keyed(KeptSession), []) for _ in groups]
    for (server, *rest), node in nodes.items():
        parts[place[server]].nodes.setdefault(tuple(rest), Znode()).merge(node)
    for (server, *rest), change in changes.items():
        parts[place[server]].changes.setdefault(tuple(rest), ZnodeChange()).merge(change)
    for key, session in sessions.items():
        parts[place.get(next(iter(session.servers), ""), 0)].sessions[key] = session
    for event in events:
        if (number := place.get(event.about["server"])) is not None:
            parts[number].events.append(event)
    parts[0].nodes.others = nodes.others
    return [
        Ensemble(group, *each[:3], tuple(each.events), _is_doubtful(group, groups, apart))
        for group, each in zip(groups, parts, strict=True)
    ]


class _Parts(NamedTuple):
    nodes: Keyed[Znode]
    changes: Keyed[ZnodeChange]
    sessions: Keyed[KeptSession]
    events: list[Event]


def _is_doubtful(group: tuple[Server, ...], groups: list[tuple[Server, ...]], apart: Pairs) -> bool:
    """Return whether nothing tells servers apart from another group."""
    if len(groups) > MOST_GROUPS:
        return True
    return any((group[0], other[0]) not in apart for other in groups if other != group)


Pairs: TypeAlias = set[tuple[Server, Server]]
"""First servers of groups that are not one ensemble, both ways round."""


def _joined(
    servers: Iterable[Server], changes: Keyed[ZnodeChange], sessions: Keyed[KeptSession]
) -> tuple[list[tuple[Server, ...]], Pairs]:
    """Return which servers belong together, and which are known not to."""
    groups = _Groups(servers)
    for session in sessions.values():
        groups.join(session.servers)
    if len(groups) < 2:
        return groups.all(), set()
    births: dict[tuple[Any, ...], set[Server]] = {}
    """Servers that told of a creation, by path, zxid and time."""
    seen: dict[tuple[str, int], set[Server]] = {}
    """Servers that told of a change, by path and zxid."""
    lasting: dict[str, set[Server]] = {}
    """Servers that told of the creation of a node without an owner, by path."""
    for (server, path, zxid, kind), change in changes.items():
        seen.setdefault((path, zxid), set()).add(server)
        if kind == "created" and change.clock_ms is not None:
            births.setdefault((path, zxid, change.clock_ms), set()).add(server)
            if not change.owner:
                lasting.setdefault(path, set()).add(server)
    for told in births.values():
        groups.join(told)
    if len(groups) > MOST_GROUPS:
        return groups.all(), set()
    apart = _apart(_headed(groups, lasting.values()))
    ours = _Groups(group[0] for group in groups.all())
    refused: Pairs = set()
    for heads in _headed(groups, seen.values()):
        for one, two in combinations(heads, 2):
            # Heads change as groups are joined; one of another group stays one.
            pair = ours.of(one), ours.of(two)
            if pair[0] == pair[1] or pair in refused:
                continue
            if apart.isdisjoint(product(ours.with_(one), ours.with_(two))):
                ours.join(pair)
            else:
                refused |= {pair, pair[::-1]}
    for group in ours.all():
        groups.join(group)
    return groups.all(), {(groups.of(one), groups.of(two)) for one, two in apart}


def _headed(groups: _Groups, told: Iterable[set[Server]]) -> list[tuple[Server, ...]]:
    """Return the groups that servers are of, in an order that does not depend on theirs."""
    return sorted({tuple(sorted(set(map(groups.of, servers)))) for servers in told})


def _apart(told: Iterable[tuple[Server, ...]]) -> Pairs:
    """Return pairs of groups of which each told of a node, and not of the same creation of it:
    then they were one group."""
    return {
        pair
        for heads in told
        for one, two in combinations(heads, 2)
        for pair in ((one, two), (two, one))
    }


class _Groups:
    """Servers that belong together: each points at another one of its group, or at itself."""

    def __init__(self, servers: Iterable[Server]) -> None:
        self._above = {server: server for server in sorted(servers)}

    def __len__(self) -> int:
        return sum(server == above for server, above in self._above.items())

    def of(self, server: Server) -> Server:
        """Return the server that stands for the group of one."""
        above = self._above
        while (head := above[server]) != server:
            above[server] = above[head]  # the way gets shorter each time
            server = head
        return server

    def with_(self, server: Server) -> list[Server]:
        """Return the servers of the group of one."""
        head = self.of(server)
        return [each for each in self._above if self.of(each) == head]

    def join(self, servers: Iterable[Server]) -> None:
        """Make one group of those of all servers."""
        heads = sorted(map(self.of, servers))
        for head in heads[1:]:
            self._above[head] = heads[0]

    def all(self) -> list[tuple[Server, ...]]:
        """Return the groups, each in order, in the order of their first addresses."""
        found: dict[Server, list[Server]] = {}
        for server in self._above:
            found.setdefault(self.of(server), []).append(server)
        return sorted(map(tuple, found.values()))
