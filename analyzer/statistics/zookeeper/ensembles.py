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
from typing import Any, TypeAlias, TypeVar

from kafkascope.analyzer.statistics.mergeable import Event, Events, Keyed, Measures
from kafkascope.analyzer.statistics.zookeeper.model import KeptSession, Znode, ZnodeChange

Server: TypeAlias = str
"""Address of a server."""
M = TypeVar("M", bound=Measures)


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
    found: list[Ensemble] = []
    for group in groups or [()]:
        ours = frozenset(group)
        first = not found
        found.append(
            Ensemble(
                group,
                _of(ours, nodes, with_others=first),
                _of(ours, changes),
                _some(sessions, ours, with_others=first),
                tuple(event for event in events if event.about["server"] in ours),
                any(
                    not apart & {(one, two) for one in group for two in other}
                    for other in groups
                    if other != group
                ),
            )
        )
    return found


def _of(servers: frozenset[Server], table: Keyed[M], *, with_others: bool = False) -> Keyed[M]:
    """Return what some servers told, by the keys without them."""
    found: Keyed[M] = Keyed(table.kind, max(1, len(table)))
    for key, each in table.items():
        if key[0] in servers:
            found[key[1:]].merge(each)
    found.others = table.others if with_others else None
    return found


def _some(
    sessions: Keyed[KeptSession], servers: frozenset[Server], *, with_others: bool
) -> Keyed[KeptSession]:
    """Return the sessions that were at some servers."""
    found = Keyed(KeptSession, max(1, len(sessions)))
    found.update((key, each) for key, each in sessions.items() if servers & set(each.servers))
    found.others = sessions.others if with_others else None
    return found


Pairs: TypeAlias = set[tuple[Server, Server]]
"""Of servers that are not of one ensemble, both ways round."""


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
    apart = _apart(groups, lasting.values())
    for pairs in sorted(tuple(combinations(sorted(each), 2)) for each in seen.values()):
        for one, two in pairs:
            if not apart & set(product(groups.with_(one), groups.with_(two))):
                groups.join((one, two))
    return groups.all(), apart


def _apart(groups: _Groups, told: Iterable[set[Server]]) -> Pairs:
    """Return pairs of servers of which each told of a node, and not of the same creation of it:
    then they were one group."""
    return {
        pair
        for servers in told
        for one, two in combinations(sorted(servers), 2)
        if groups.of(one) != groups.of(two)
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
        while self._above[server] != server:
            server = self._above[server]
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
