"""Measures of a cluster: nodes, leaders, coordinators; addresses advertised to clients, and their
connections. Values only."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkascope.analyzer.merging.bounded import Distinct, Names
from kafkascope.analyzer.merging.measures import Measures, least, most, total, whole
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.thresholds import limit


class ClusterNode(Measures):
    """A node at one advertised address."""

    count: int = total()
    sources: Names = whole(Names)
    clients: Names = whole(Names)
    """(client id, host) of clients that got it."""
    rack: str | None = most()
    first_ns: int | None = least()
    last_ns: int | None = most()
    first: tuple[int, int] | None = least()
    """(time, number) of the first exchange."""
    listed_ns: int | None = most()
    """When it was last among all brokers that an answer lists."""


class Registration(Measures):
    """A listener of a broker, as registered in ZooKeeper."""

    first: tuple[int, int] | None = least()
    """(time, number) of the first exchange that wrote or read it."""
    last_ns: int | None = most()


class Leader(Measures):
    """The leader of a partition."""

    latest: tuple[Any, ...] | None = most()
    """(time, leader, epoch, replicas, in sync, offline)"""
    leaders: Names = whole(Names)
    """(epoch, leader)"""
    first_ns: int | None = least()
    errors: int = total()
    last_error_ns: int | None = most()


class Coordinator(Measures):
    """The coordinator of a group, transaction or share partition."""

    count: int = total()
    latest: tuple[Any, ...] | None = most()
    """(time, node, host, port)"""
    nodes: Names = whole(Names)
    errors: int = total()


class ClusterFacts(Measures):
    """Facts about the cluster as such."""

    ids: Names = whole(Names)
    controllers: Names = whole(Names)
    controller: tuple[int, int] | None = most()
    listed_ns: int | None = most()
    """When all brokers were last listed."""


class Advertised(Measures):
    """An address of a node, as advertised to one client."""

    count: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()
    needed: int = total()
    """Answers without an error in which the node leads a topic, or coordinates a group, that the
    client named."""
    first_needed_ns: int | None = least()
    last_needed_ns: int | None = most()


class Contact(Measures):
    """A client's exchanges with one broker address."""

    exchanges: int = total()
    answered: int = total()
    looks: int = total()
    """Answers without an error to a lookup of leaders of topics, or a coordinator of a group, by
    name."""
    starts: Distinct = whole(partial(Distinct, LIMITS.connection_starts))
    """Connections with such an answer, or with one about no topic: that is how clients start."""
    first_look_ns: int | None = least()
    last_look_ns: int | None = most()
    work: int = total()
    """Requests that a client sends only to advertised brokers, answered or not."""
    answered_work_ns: int | None = most()
    opened_ns: int | None = most()
    """When the last of these connections began whose beginning was seen."""
    midstream: int = total()
    """Exchanges on connections that began before the capture."""
    first_ns: int | None = least()
    last_ns: int | None = most()

    @property
    def lookups(self) -> int:
        """Lookups of addresses by a client, as far as they mean anything."""
        return max(self.looks, len(self.starts))


class Attempts(Measures):
    """Connections of a host to an address, whatever they carried."""

    count: int = total()
    refused: int = total()
    silent: int = total()
    """Without any answer."""
    silent_ns: int | None = least()
    """When the first of these began."""
    told_ns: int | None = most()
    """When the last connection ended, failed or not."""
    first_ns: int | None = least()
    last_ns: int | None = most()

    def failed(self, end_ns: int) -> bool:
        """Return whether connects came to nothing. `end_ns`: of the capture, before which one may
        have begun that was answered after it."""
        waited = end_ns - (self.silent_ns or end_ns) >= limit("connects.answer")
        return bool(self.refused or (self.silent and waited))


class Resolution(Measures):
    """The addresses of a host name."""

    hosts: Names = whole(Names)
    sources: Names = whole(Names)


class Served(Measures):
    """What only one node can have answered at an address: the smallest and the largest of the
    partitions and groups, which is enough to know the node by."""

    least_partition: tuple[str, int] | None = least()
    most_partition: tuple[str, int] | None = most()
    least_group: str | None = least()
    most_group: str | None = most()
