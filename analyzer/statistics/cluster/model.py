"""What is measured of a cluster: nodes as told, addresses as reached, leaders, coordinators."""

from __future__ import annotations

from typing import Any

from kafkascope.analyzer.statistics.mergeable import (
    Measures,
    Names,
    least,
    measured,
    most,
    total,
    whole,
)


@measured
class Node(Measures):
    """A node at one address, as it was told."""

    told: int = total()
    sources: Names = whole(Names)
    """APIs."""
    clients: Names = whole(Names)
    """(client id, host) of those who were told."""
    rack: str | None = most()
    first_ns: int | None = least()
    last_ns: int | None = most()
    first: tuple[int, int] | None = least()
    """(time, number) of the first exchange."""
    listed_ns: int | None = most()
    """When it was last among all brokers that an answer lists."""


@measured
class Leader(Measures):
    """The leader of a partition."""

    told: int = total()
    latest: tuple[Any, ...] | None = most()
    """(time, leader, epoch, replicas, in sync, offline)"""
    leaders: Names = whole(Names)
    """(epoch, leader)"""
    first_ns: int | None = least()
    """When it was told first."""
    errors: int = total()
    last_error_ns: int | None = most()


@measured
class Coordinator(Measures):
    """The coordinator of a group, transaction or share partition."""

    told: int = total()
    latest: tuple[Any, ...] | None = most()
    """(time, node, host, port)"""
    nodes: Names = whole(Names)
    errors: int = total()
    first_ns: int | None = least()


@measured
class ClusterFacts(Measures):
    """Of the cluster as such."""

    ids: Names = whole(Names)
    controllers: Names = whole(Names)
    controller: tuple[int, int] | None = most()
    """(time, node)"""
    listed_ns: int | None = most()
    """When all brokers were last listed."""
