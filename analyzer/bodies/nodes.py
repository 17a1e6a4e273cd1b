"""Addresses of nodes by id: one map for a whole session, as brokers advertised them to any client.

Metadata, DescribeCluster, FindCoordinator, the NodeEndpoints of Produce and Fetch, DescribeQuorum
and LeaderAndIsr pair ids with hosts and ports. Listeners differ: the latest address is kept.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.dissectors.codec.walk import struct_of, structs, visits
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire

IDS: Final = ("node_id", "broker_id", "id")
HOSTS: Final = ("host", "host_name", "v0_host")
PORTS: Final = ("port", "v0_port")


class NodeAddresses:
    """Node ids to `host:port`, as far as messages gave them."""

    def __init__(self, limits: BodyLimits = LIMITS) -> None:
        self._limits = limits
        self._addresses: dict[int, str] = {}
        self._ports: set[int] = set()
        self._at: dict[str | int, list[int]] | None = None
        """Address, or port alone -> its nodes; made when somebody asks."""

    def learn(self, node: int, host: str | None, port: int, *, replace: bool = True) -> None:
        """Record an address; negative ids and empty hosts mean that there is none, hosts
        that are too long for a name are none."""
        if node < 0 or not host or len(host) > self._limits.host_chars or port <= 0:
            return
        if port < 1 << 16:
            self._ports.add(port)
        if node in self._addresses and not replace:
            return
        if node in self._addresses or len(self._addresses) < self._limits.nodes:
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if self._addresses.get(node) != address:
                self._addresses[node] = address
                self._at = None

    def get(self, node: int) -> str | None:
        """Return the address; None while it is unknown."""
        return self._addresses.get(node)

    def has_port(self, port: int) -> bool:
        """Return whether some node listens on that port, according to messages."""
        return port in self._ports

    def node_at(self, address: str, port: int) -> int | None:
        """Return the node at an address, or the only node with its port, because captures show IP
        addresses where brokers give host names. None when that is unknown."""
        if self._at is None:
            self._at = {}
            for node, text in self._addresses.items():
                for place in (text, int(text.rpartition(":")[2])):
                    self._at.setdefault(place, []).append(node)
        found = self._at.get(address) or self._at.get(port, [])
        return found[0] if len(found) == 1 else None

    @property
    def full(self) -> bool:
        """Whether no other node is taken in."""
        return len(self._addresses) >= self._limits.nodes

    def __len__(self) -> int:
        return len(self._addresses)


class _Place(NamedTuple):
    """Names of the fields that make an address."""

    node: str
    listeners: str
    """The array that holds host and port; empty when they are beside the id."""
    host: str
    port: str


def _first(names: tuple[str, ...], wire: StructWire) -> str:
    there = {slot.name for slot in (*wire.slots, *wire.tags)}
    return next((name for name in names if name in there), "")


def _place(wire: StructWire) -> _Place | None:
    node, host, port = (_first(names, wire) for names in (IDS, HOSTS, PORTS))
    if not node or (host and port):
        return _Place(node, "", host, port) if node else None
    for slot in (*wire.slots, *wire.tags):
        inner = struct_of(slot.wire)
        if inner is not None and isinstance(slot.wire, ArrayWire) and not _first(IDS, inner):
            host, port = _first(HOSTS, inner), _first(PORTS, inner)
            if host and port:
                return _Place(node, slot.name, host, port)
    return None


def teaches(layout: Layout) -> bool:
    """Return whether a body may hold addresses of nodes."""
    return visits(layout, _place) is not None


def learn(layout: Layout, body: dict[str, Any], nodes: NodeAddresses) -> None:
    """Record all addresses in a body."""
    for place, value in structs(layout, body, _place):
        # It is unknown which of several listeners clients see.
        sure = not place.listeners
        for each in [value] if sure else (value[place.listeners] or [])[:1]:
            nodes.learn(value[place.node], each[place.host], each[place.port], replace=sure)
