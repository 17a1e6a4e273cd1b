"""Connections that have no response yet: the leg of a proxy begins meanwhile. Two of them compared
byte by byte. State without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import Connection, Endpoint
from kafkascope.captures.proxy_protocol import begins, read_header

# A proxy connects when a client has connected, or has said which server it wants (SNI).
CONNECT_NS: Final = 1_000_000_000
# Nobody sees a connection that may be a leg for as long: above the time that the first response of
# a busy broker takes. Two pairs of request and response usually decide within milliseconds.
HOLD_NS: Final = 3_000_000_000

Key = TypeVar("Key", int, bytes)


@dataclass(slots=True, eq=False)
class Start:
    """A connection from its SYN to its first response."""

    client: Endpoint
    server: Endpoint
    time_ns: int
    connection: Connection | None = None
    sent: bytearray = field(default_factory=bytearray)
    """What the client has sent."""
    linked: bool = False
    """It comes from where an earlier one goes to."""
    followed: bool = False
    """Another one begins with the same bytes."""
    direct: bool = False
    """Its server has answered others by itself."""

    def leads(self, other: Start) -> bool:
        """Return whether the other one may be its leg, by ends and times."""
        late_ns = other.time_ns - self.time_ns
        if self.direct or self.server == other.server or not 0 <= late_ns <= CONNECT_NS:
            return False
        translated = None if self.connection is None else self.connection.translated
        return self is not other and other.client.host in {
            end.host for end in translated or (self.server,)
        }


class Starts(dict[Key, Start], Generic[Key]):
    """Connections that have no response yet, by their keys, in the order of their SYNs."""

    def __init__(self, limits: CaptureLimits = LIMITS) -> None:
        self._limits = limits
        self._size = 0
        self._direct: set[Endpoint] = set()
        """What answered without another connection: brokers, whose clients on one host often begin
        with equal requests."""

    def open(self, key: Key, start: Start) -> bool:
        """Take in a connection that begins; return whether it is `linked`."""
        self.expire(start.time_ns)
        start.direct = start.server in self._direct
        start.linked = any(each.leads(start) for each in self.values())
        self.end(key)
        self[key] = start
        if len(self) > self._limits.relay_starts:
            self.end(next(iter(self)))
        return start.linked

    def send(self, key: Key, data: bytes) -> None:
        if (start := self.get(key)) is not None:
            start.sent += data
            self._size += len(data)
            while self._size > self._limits.relay_bytes:
                self.end(next(iter(self)))

    def answer(self, key: Key) -> None:
        """Forget a connection, as it has a response."""
        start = self.get(key)
        if start is None:
            return
        few = len(self._direct) < self._limits.relay_servers
        if start.sent and not start.followed and few:
            self._direct.add(start.server)
        self.end(key)

    def end(self, key: Key) -> None:
        """Forget a connection, as it is closed, or bytes are missing."""
        if (start := self.pop(key, None)) is not None:
            self._size -= len(start.sent)

    def expire(self, now_ns: int) -> None:
        """Drop the starts that were not answered within `HOLD_NS`."""
        while self and next(iter(self.values())).time_ns <= now_ns - HOLD_NS:
            self.end(next(iter(self)))

    def leaders(self, leg: Start, head: bytes) -> tuple[list[Key], int] | None:
        """Return which connections one may be the leg of by what its client sends first, and the
        size of the PROXY protocol header before that; None as long as the header is not whole."""
        # Clients of one library begin with the same request, so that more than one may fit.
        linked = {key: start for key, start in self.items() if start.leads(leg)}
        found = [key for key, start in linked.items() if start.sent.startswith(head)]
        size = 0
        # A proxy that has "send-proxy" (HAProxy) puts a header with the client's address before the
        # same bytes.
        if not found and begins(head):
            try:
                header = read_header(head)
            except ValueError:
                return [], 0
            if header is None or header.size == len(head):
                return None
            size = header.size
            found = [
                key
                for key, start in linked.items()
                if header.client in (None, start.client) and start.sent.startswith(head[size:])
            ]
        return found[-self._limits.relay_leaders :], size


CLIENT: Final = 0
LEG: Final = 1
Side = Literal[0, 1]
"""Whose bytes: those of the client's connection, or those of the leg."""


@dataclass(slots=True, eq=False)
class Lane:
    """One direction of two connections with the same bytes."""

    waiting: bytearray = field(default_factory=bytearray)
    """Bytes that only one of them has had yet."""
    ahead: Side = CLIENT
    equal: int = 0
    """Bytes that both had."""
    trusted: bool = False
    """Bytes are missing, or too many wait: nothing more is compared."""

    def take(self, side: Side, data: bytes) -> bool:
        """Take bytes; return whether they are the same as the other connection's."""
        if self.waiting and self.ahead != side:
            size = min(len(self.waiting), len(data))
            if not self.waiting.startswith(data[:size]):
                return False
            del self.waiting[:size]
            self.equal += size
            data = data[size:]
        if data:
            self.ahead = side
            self.waiting += data
        return True

    def trust(self) -> None:
        """Compare nothing more."""
        self.waiting.clear()
        self.trusted = True


@dataclass(slots=True, eq=False)
class Match:
    """A leg beside a connection that may be its client's."""

    connection: Connection
    """The client's."""
    header: int
    """Bytes of a PROXY protocol header on the leg."""
    lanes: tuple[Lane, Lane]
    pairs: int = 0
    """Requests that were forwarded, and then responses."""
    requested: bool = False

    def take(self, side: Side, direction: int, data: bytes, *, strict: bool) -> bool:
        """Take bytes; return whether this still is a match. `strict`: requests come to the proxy
        before they leave it, and so do responses."""
        lane = self.lanes[direction]
        if lane.trusted:
            return True
        if not lane.take(side, data):
            return False
        if strict and lane.waiting and lane.ahead == (CLIENT if direction else LEG):
            return False
        if direction and side == CLIENT:
            self.pairs += self.requested
            self.requested = False
        elif side == LEG and not direction:
            self.requested = True
        return True

    @property
    def equal(self) -> int:
        """Bytes that both connections had."""
        return self.lanes[0].equal + self.lanes[1].equal
