"""Results of the map of applications and the journeys of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.merging.tables import by_key

By: TypeAlias = Literal["application", "client_id", "user", "host", "group"]
"""What a node of the map stands for."""


class MapEdge(NamedTuple):
    """An application writes to a topic, or reads it."""

    way: str
    """`writes` or `reads`."""
    topic: str
    group: str | None
    """Group of a reader; None for a consumer without one, or for several that cannot be told
    apart."""
    records: int | None
    """In acknowledged Produce requests, and in those with acks=0. Visible to the client, at or
    beyond the offset that it asked for; those fetched again count again. None: only lines of
    request logs show them."""
    bytes: int | None
    """Bytes of the record batches, as on the wire."""
    first_ns: int
    last_ns: int
    schemas: tuple[int, ...] = ()
    """Schema ids of values that are written."""
    groups: tuple[str, ...] = ()
    """Those that cannot be told apart: one client reads for one after the other, or for both."""


class Application(NamedTuple):
    """Clients that are one application."""

    name: str
    client_ids: tuple[str, ...]
    rule: str
    """Why these clients are one, in words."""
    users: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    edges: tuple[MapEdge, ...] = ()
    """Those to topics before those from topics."""


Sides: TypeAlias = dict[str, list[tuple[Application, MapEdge]]]
"""Edges by topic."""


class AppMap(NamedTuple):
    """Applications with their topics."""

    applications: Sequence[Application]
    unnamed_requests: int = 0
    """Produce requests without topics: those of request logs up to 0.11, and with acks=0 up to 2.7.
    Their writers are missing."""

    def edges(self) -> Iterator[tuple[Application, MapEdge]]:
        """Yield the edges of each application."""
        return ((each, edge) for each in self.applications for edge in each.edges)

    @property
    def span_ns(self) -> int:
        """From the first to the last request on any edge: what rates are of."""
        first = min((edge.first_ns for _, edge in self.edges()), default=0)
        return max((edge.last_ns for _, edge in self.edges()), default=0) - first

    def sides(self) -> tuple[Sides, Sides]:
        """Return the applications that write to each topic, and those that read it."""
        pairs = by_key((edge.way, (edge.topic, (each, edge))) for each, edge in self.edges())
        return by_key(pairs.get("writes", ())), by_key(pairs.get("reads", ()))


class Produced(NamedTuple):
    """How a record came to the broker."""

    client_id: str
    application: str
    sent_ns: int
    """First byte of the Produce request."""
    acknowledged_ns: int | None
    """Last byte of its response."""


class Replicated(NamedTuple):
    """When a follower first asked for what is after a record."""

    replica: int
    time_ns: int


class Fetched(NamedTuple):
    """How a client got a record."""

    client_id: str
    group: str | None
    application: str
    time_ns: int
    """Last byte of the first response that held it."""
    committed_ns: int | None
    """First byte of the first commit of the group beyond it, at or after that."""
    again: int
    again_times_ns: tuple[int, ...]
    """Later responses that held it."""


class Journey(NamedTuple):
    """The way of one record."""

    topic: str
    partition: int
    offset: int
    key: str | None
    created_ms: int | None
    """CreateTime, by the producer's clock; None where it is not known."""
    produced: Produced | None
    """None where the capture does not have its Produce request."""
    visible_ns: int | None
    """Last byte of the first response with a high watermark beyond it."""
    stable_ns: int | None
    """The same of the last stable offset, for read_committed."""
    replicated: tuple[Replicated, ...]
    fetched: tuple[Fetched, ...]
    hidden: tuple[Fetched, ...]
    """Clients whose response held it as a part of an aborted transaction, under read_committed."""
    transaction: Literal["committed", "aborted"] | None
    traceparent: str | None
    """Header of W3C Trace Context, by which its spans belong to a trace."""
    possible_producers: tuple[str, ...] = ()
    """Client ids of Produce requests without an offset, of which one may have had the record."""
