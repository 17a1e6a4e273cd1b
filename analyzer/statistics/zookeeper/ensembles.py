"""ZooKeeper servers by ensemble, with the captured facts of each.

No message names an ensemble. Servers belong together when a session was at both, or when both
reported the same creation of a node: its zxid and the time of the server's clock. Without a time,
path and zxid have to do, unless the two servers reported some node of the same path and never the
same creation of one: new ensembles count alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, permutations, product
from typing import Any, TypeAlias

from kafkascope.analyzer.merging.bounded import Event, Events
from kafkascope.analyzer.merging.tables import Keyed, by_key
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.zookeeper.model import KeptSession, Znode, ZnodeChange

Server: TypeAlias = str
"""Address of a server."""


@dataclass(slots=True)
class Ensemble:
    """The nodes and sessions of one ensemble."""

    servers: tuple[Server, ...]
    nodes: Keyed[Znode] = field(default_factory=partial(Keyed, Znode))
    """By path."""
    changes: Keyed[ZnodeChange] = field(default_factory=partial(Keyed, ZnodeChange))
    """By path, zxid and kind."""
    sessions: Keyed[KeptSession] = field(default_factory=partial(Keyed, KeptSession))
    """By id."""
    events: list[Event] = field(default_factory=list)
    doubtful: bool = False
    """Whether it may be one with another of the capture: they share no path of a node."""


def ensembles(
    nodes: Keyed[Znode], changes: Keyed[ZnodeChange], sessions: Keyed[KeptSession], events: Events
) -> list[Ensemble]:
    """Return the ensembles, in the order of their addresses. `nodes` and `changes` have the server
    in front of their keys, `events` have it in `about`; nothing is changed."""
    servers = {key[0] for key in (*nodes, *changes)}
    servers |= {server for session in sessions.values() for server in session.servers}
    groups, apart = _joined(servers, changes, sessions)
    found = [Ensemble(group) for group in groups or [()]]
    place = {server: ensemble for ensemble in found for server in ensemble.servers}
    for (server, *rest), node in nodes.items():
        place[server].nodes.setdefault(tuple(rest), Znode()).merge(node)
    for (server, *rest), change in changes.items():
        place[server].changes.setdefault(tuple(rest), ZnodeChange()).merge(change)
    for key, session in sessions.items():
        place.get(next(iter(session.servers), ""), found[0]).sessions[key] = session
    for event in events:
        if (ensemble := place.get(event.about["server"])) is not None:
            ensemble.events.append(event)
    found[0].nodes.others = nodes.others
    for ensemble in found:
        ensemble.doubtful = len(found) > LIMITS.server_groups or any(
            (ensemble.servers[0], other.servers[0]) not in apart
            for other in found
            if other is not ensemble
        )
    return found


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
    """Servers that reported a creation, by path, zxid and time."""
    seen: dict[tuple[str, int], set[Server]] = {}
    """Servers that reported a change, by path and zxid."""
    lasting: dict[str, set[Server]] = {}
    """Servers that reported the creation of a node without an owner, by path."""
    for (server, path, zxid, kind), change in changes.items():
        seen.setdefault((path, zxid), set()).add(server)
        if kind == "created" and change.clock_ms is not None:
            births.setdefault((path, zxid, change.clock_ms), set()).add(server)
            if not change.owner:
                lasting.setdefault(path, set()).add(server)
    for same in births.values():
        groups.join(same)
    if len(groups) > LIMITS.server_groups:
        return groups.all(), set()
    # Groups that reported a node, but not the same creation of it: then they were one group.
    heads = _headed(groups, lasting.values())
    apart = {pair for some in heads for pair in permutations(some, 2)}
    ours = _Groups(group[0] for group in groups.all())
    refused: Pairs = set()
    for some in _headed(groups, seen.values()):
        for one, two in combinations(some, 2):
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


def _headed(groups: _Groups, ensembles: Iterable[set[Server]]) -> list[tuple[Server, ...]]:
    """Return the groups that servers are of, in an order that does not depend on theirs."""
    return sorted({tuple(sorted(set(map(groups.of, servers)))) for servers in ensembles})


class _Groups:
    """Servers that belong together: each points at another one of its group, or at itself."""

    def __init__(self, servers: Iterable[Server]) -> None:
        self._above = {server: server for server in sorted(servers)}

    def __len__(self) -> int:
        return sum(server == above for server, above in self._above.items())

    def of(self, server: Server) -> Server:
        above = self._above
        while (head := above[server]) != server:
            above[server] = above[head]  # the way gets shorter each time
            server = head
        return server

    def with_(self, server: Server) -> list[Server]:
        head = self.of(server)
        return [each for each in self._above if self.of(each) == head]

    def join(self, servers: Iterable[Server]) -> None:
        heads = sorted(map(self.of, servers))
        for head in heads[1:]:
            self._above[head] = heads[0]

    def all(self) -> list[tuple[Server, ...]]:
        """Return the groups, each in order, in the order of their first addresses."""
        found = by_key((self.of(server), server) for server in self._above)
        return sorted(map(tuple, found.values()))
