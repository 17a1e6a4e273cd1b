"""What is measured of ZooKeeper: nodes, their changes, sessions. Values only."""

from __future__ import annotations

from functools import partial

from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import MANY, Names


@measured
class Znode(Measures):
    """A node, by server and path."""

    reads: int = total()
    """Answers that told of it: getData, exists, getChildren, getACL."""
    writes: int = total()
    failed: int = total()
    """Writes that were refused, whatever the reason."""
    existed: int = total()
    """Creates that were refused because it was there."""
    missing: int = total()
    """Answers that it is not there."""
    events: int = total()
    """Watch events, once for each client that was told."""
    exists_ns: int | None = most()
    """When it was last told to be there."""
    missing_ns: int | None = most()
    """When it was last told not to be there."""
    deleted_ns: int | None = most()
    """When a watch event last told that it was deleted."""
    latest: tuple[int, int, int, int] | None = most()
    """(mzxid, version, size of its data, number of its children), of the newest answer with a
    `Stat`."""
    children: tuple[int, tuple[str, ...]] | None = most()
    """(time, names) of its children, as listed last; no more than so many."""
    largest: tuple[int, int, int] | None = most()
    """(bytes of data, time, number of the exchange), read or written."""
    first_ns: int | None = least()
    last_ns: int | None = most()
    first: tuple[int, int] | None = least()
    """(time, number) of the first exchange about it."""


@measured
class ZnodeChange(Measures):
    """A change of a node, by server, path, zxid and kind: one, whoever tells of it."""

    time_ns: int | None = least()
    """When its answer came; None where it was told only later."""
    told_ns: int | None = least()
    """When an answer first told of it."""
    clock_ms: int | None = most()
    """By the server's clock, as a `Stat` has it."""
    by: tuple[int, str] | None = most()
    """Session and host of who did it."""
    owner: int | None = most()
    """Session that the node goes with; 0 for none."""
    mode: int | None = most()
    """Flags of the create."""
    version: int | None = most()
    size: int | None = most()
    """Bytes of data."""
    text: str | None = most()
    """The data, shortened, without secrets; None where it is not text, or not known."""
    first: tuple[int, int] | None = least()
    """(time, number) of the first exchange that told of it."""


@measured
class KeptSession(Measures):
    """A session, by its id."""

    created: tuple[int, int] | None = least()
    """(time, number) of the handshake that began it."""
    attached: int = total()
    """Handshakes that took it up again."""
    attached_ns: int | None = most()
    refused: int = total()
    """Handshakes for it that the server refused."""
    refused_at: tuple[int, int] | None = most()
    """(time, number) of the last one."""
    asked: tuple[int, int] | None = most()
    """(time, timeout in ms) of the last handshake."""
    given: tuple[int, int] | None = most()
    """(time, timeout in ms) of its answer."""
    closed: tuple[int, int] | None = most()
    """(time, zxid) of its end by closeSession."""
    requests: int = total()
    """But for pings."""
    pings: int = total()
    failed: int = total()
    events: int = total()
    expired: int = total()
    """Answers SESSIONEXPIRED."""
    moved: int = total()
    """Answers SESSIONMOVED."""
    first_ns: int | None = least()
    last_ns: int | None = most()
    """When the last answer to it came, refusals left out."""
    asked_ns: int | None = most()
    """When its last request was sent, answered or not."""
    latency_ns: int | None = most()
    """Of its slowest request."""
    clients: Names = whole(partial(Names, MANY))
    """(address, time) of its connections: where they come from."""
    hosts: Names = whole(Names)
    servers: Names = whole(Names)
    users: Names = whole(Names)


@measured
class ZooKeeperSpan(Measures):
    """Of all traffic with ZooKeeper."""

    requests: int = total()
    events: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()


@measured
class SlowRequest(Measures):
    """A request, by its latency, time and id."""

    number: int | None = least()
    api: str | None = most()
    path: str | None = most()
    server: str | None = most()
    session: int | None = most()
    host: str | None = most()
    response_bytes: int | None = most()
