"""Measures of ZooKeeper: nodes, their changes, sessions. Values only."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkascope.analyzer.merging.bounded import Names
from kafkascope.analyzer.merging.limits import LIMITS
from kafkascope.analyzer.merging.measures import Measures, least, most, total, whole


def label(session: int | None) -> str | None:
    """Return the id of a session as ZooKeeper prints it."""
    return f"{session & (1 << 64) - 1:#x}" if session else None


class Znode(Measures):
    """A node, by server and path."""

    reads: int = total()
    """Answers with its state: getData, exists, getChildren, getACL."""
    writes: int = total()
    failed: int = total()
    """Writes that were refused, whatever the reason."""
    existed: int = total()
    """Creates that were refused because it was there."""
    missing: int = total()
    """Answers that it is not there."""
    events: int = total()
    """Watch events, once for each client that got it."""
    exists_ns: int | None = most()
    """When an answer last showed it."""
    missing_ns: int | None = most()
    """When an answer last had NONODE."""
    deleted_ns: int | None = most()
    """When a watch event last reported its deletion."""
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


class ZnodeChange(Measures):
    """A change of a node, by server, path, zxid and kind."""

    time_ns: int | None = least()
    """When its answer came; None where it was seen only later."""
    told_ns: int | None = least()
    """When an answer first showed it."""
    clock_ms: int | None = most()
    """By the server's clock, as a `Stat` has it."""
    by: tuple[int, str] | None = most()
    """Session and host of its author."""
    owner: int | None = most()
    """Session that the node goes with; 0 for none."""
    mode: int | None = most()
    version: int | None = most()
    size: int | None = most()
    text: str | None = most()
    """The data, shortened, without secrets; None where it is not text, or not known."""
    first: tuple[int, int] | None = least()
    """(time, number) of the first exchange that has it."""

    def origin(self) -> dict[str, Any]:
        """Return who made the change, and the exchange, as part of a line."""
        session, client = self.by or (None, None)
        return {
            "zk_session": label(session),
            "client_address": client,
            "number": self.first[1] if self.first else None,
        }


class KeptSession(Measures):
    """A session, by its id."""

    created: tuple[int, int] | None = least()
    """(time, number) of the handshake that began it."""
    attached: int = total()
    """Handshakes that took it up again."""
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
    failed: int = total()
    events: int = total()
    expired: int = total()
    """Answers SESSIONEXPIRED."""
    moved: int = total()
    """Answers SESSIONMOVED."""
    first_ns: int | None = least()
    last_ns: int | None = most()
    """When the last answer to it came, refusals left out."""
    latency_ns: int | None = most()
    clients: Names = whole(partial(Names, LIMITS.many_names))
    """(address, time) of its connections: where they come from."""
    hosts: Names = whole(Names)
    servers: Names = whole(Names)
    users: Names = whole(Names)


class ZooKeeperSpan(Measures):
    """Span of all traffic with ZooKeeper."""

    requests: int = total()
    events: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()


class SlowRequest(Measures):
    """A request, by its latency, time and id."""

    number: int | None = least()
    api: str | None = most()
    path: str | None = most()
    server: str | None = most()
    session: int | None = most()
    host: str | None = most()
    response_bytes: int | None = most()


def is_below(path: str, top: str) -> bool:
    """Return whether a node is another one, or is below it."""
    top = top.rstrip("/")
    return path == top or path.startswith(f"{top}/")
