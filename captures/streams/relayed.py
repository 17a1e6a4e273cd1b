"""Connections that a capture holds twice, because a proxy forwards their bytes unchanged.

A node on which a TCP proxy runs (HAProxy in TCP mode, an ingress, Envoy, socat) shows each
conversation on two connections with sequence numbers of their own: that of the client, and the
proxy's leg to the broker. Both are read, as each has times of its own; the leg is marked as
forwarded, so that nothing is counted twice, and named as the client's other pair of addresses.
State without I/O.

What makes a connection a leg:
- It comes from the host that an earlier connection goes to, which has no response yet.
- It carries the same bytes, after a header of the PROXY protocol where the proxy sends one.
- Requests come to the proxy before they leave it, and so do responses.
Correlation ids are no evidence: two clients of one library begin with equal requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import (
    BEHIND_ALL,
    Chunk,
    Closed,
    Connection,
    Endpoint,
    Gap,
    Opened,
    StreamEvent,
)
from kafkascope.captures.streams.starts import (
    CLIENT,
    HOLD_NS,
    LEG,
    Lane,
    Match,
    Side,
    Start,
    Starts,
)

# Equal pairs of request and response that are no chance, on hosts where clients and several brokers
# run: librdkafka sends the same ApiVersions request to each broker at once, and of two equal
# responses each is as likely to be the first.
PAIRS: Final = 2
# As many equal bytes are no chance either.
SURE_BYTES: Final = 4096
# What an event takes beside its bytes.
EVENT_BYTES: Final = 500


@dataclass(slots=True, eq=False)
class _Leg:
    """A connection that may be the leg of another one, or is."""

    connection: Connection
    held: list[StreamEvent] | None
    """Its events, until it is decided whether it is a leg; None from then on."""
    size: int = 0
    """Memory of `held`."""
    matches: dict[int, Match] | None = None
    """By the numbers of connections; None as long as its client has sent nothing."""
    leader: Match | None = None
    """The one that it belongs to, once that is known."""
    closed: int = 0
    """Directions that ended."""

    @property
    def head(self) -> bytes:
        """What its client sent first."""
        held = self.held or ()
        return b"".join(e.data for e in held if isinstance(e, Chunk) and not e.direction)


class RelayedLegs:
    """Marks the legs of proxies: events in, the same out, those of legs once these are known."""

    def __init__(self, limits: CaptureLimits = LIMITS) -> None:
        self._limits = limits
        self.count = 0
        """Legs that were found."""
        self.parted = 0
        """Legs that went on with other bytes than the client's connection."""
        self._starts: Starts[int] = Starts(limits)
        self._legs: dict[int, _Leg] = {}
        """By the numbers of connections."""
        self._undecided: dict[int, _Leg] = {}
        """Those that are held, in the order in which they were opened."""
        self._led: dict[int, list[_Leg]] = {}
        """What is compared with a connection."""
        self._routes: dict[tuple[Endpoint, Endpoint], None] = {}
        """What proxies listened on, and connected to."""
        self._held = 0
        """Memory of events and bytes that wait."""
        self._opened = 0

    @property
    def first_waiting(self) -> int:
        """Number of the first packet of which bytes are held; `BEHIND_ALL` where none are."""
        held = [leg.held for leg in self._legs.values() if leg.held] if self._held else []
        chunks = (event for events in held for event in events if isinstance(event, Chunk))
        packets = (piece.packet for chunk in chunks for piece in chunk.pieces)
        return min(packets, default=BEHIND_ALL)

    def passed(self, events: list[StreamEvent], opened: int) -> list[StreamEvent]:
        """Return events, and later those of what may be a leg. `opened`: connections that were
        opened by now."""
        if opened == self._opened and not self._starts and not self._legs:
            return events
        self._opened = opened
        out: list[StreamEvent] = []
        for event in events:
            if self._undecided:
                self._expire(_time_of(event), out)
            self._pass(event, out)
        if events:
            self._starts.expire(_time_of(events[-1]))
        return out

    def finish(self, events: list[StreamEvent], opened: int) -> list[StreamEvent]:
        """Return the last events, and those of connections that were no legs for certain."""
        out = self.passed(events, opened)
        for leg in list(self._undecided.values()):
            self._release(leg, out)
        for leg in self._legs.values():
            self._confirm(leg, out)
        return out

    def _pass(self, event: StreamEvent, out: list[StreamEvent]) -> None:
        number = event.connection.number
        if isinstance(event, Opened):
            one = event.connection
            start = Start(one.a, one.b, one.first_ns, one)
            if one.handshake and self._starts.open(number, start):
                self._legs[number] = self._undecided[number] = _Leg(one, [event])
                return
        elif isinstance(event, Chunk):
            for leg in self._led.get(number, ())[:]:
                self._compare(leg, number, CLIENT, event, out)
            if event.direction:
                self._starts.answer(number)
            else:
                self._starts.send(number, event.data)
        elif isinstance(event, Gap):
            self._starts.end(number)
            for leg in self._led.get(number, ())[:]:
                self._lose(leg, number, event.direction, out)
        else:
            self._starts.end(number)
        found = self._legs.get(number)
        if found is None or not self._follow(found, event, out):
            out.append(event)

    def _follow(self, leg: _Leg, event: StreamEvent, out: list[StreamEvent]) -> bool:
        """Take an event of what may be a leg; return whether it is held, or was until now."""
        number = leg.connection.number
        held = leg.held is not None
        if leg.held is not None:
            size = EVENT_BYTES + (len(event.data) if isinstance(event, Chunk) else 0)
            leg.held.append(event)
            leg.size += size
            self._held += size
        if isinstance(event, Chunk):
            if leg.matches is None:
                self._match(leg, event, out)
            else:
                for leader in list(leg.matches):
                    self._compare(leg, leader, LEG, event, out)
        elif isinstance(event, Gap):
            for leader in list(leg.matches or ()):
                self._lose(leg, leader, event.direction, out)
            if leg.matches is None and number in self._undecided:
                self._release(leg, out)
        elif isinstance(event, Closed):
            leg.closed += 2 if event.direction is None else 1
            if leg.leader is not None and leg.closed >= 2:
                self._end(leg, out)
        if self._held > self._limits.relay_bytes and number in self._undecided:
            self._release(leg, out)
        return held

    def _match(self, leg: _Leg, chunk: Chunk, out: list[StreamEvent]) -> None:
        """Look for the connections that one may be the leg of."""
        start = self._starts.get(leg.connection.number)
        head = leg.head
        if chunk.direction or start is None:
            self._release(leg, out)
            return
        found = self._starts.leaders(start, head)
        if found is None:
            return
        leaders, header = found
        leg.matches = {}
        for number in leaders:
            leader = self._starts[number]
            assert leader.connection is not None
            leader.followed = True
            # Its bytes have to come by here.
            leader.connection.compared = True
            lanes = Lane(bytearray(leader.sent)), Lane()
            match = leg.matches[number] = Match(leader.connection, header, lanes)
            match.take(LEG, 0, head[header:], strict=True)
            self._held += len(match.lanes[0].waiting)
            self._led.setdefault(number, []).append(leg)
        if not leaders:
            self._release(leg, out)

    def _compare(
        self, leg: _Leg, leader: int, side: Side, chunk: Chunk, out: list[StreamEvent]
    ) -> None:
        """Compare bytes of a leg, or of what may be its client's connection, with the other's."""
        if leg.matches is None or (match := leg.matches.get(leader)) is None:
            return
        lane = match.lanes[chunk.direction]
        before = len(lane.waiting)
        same = match.take(side, chunk.direction, chunk.data, strict=leg.held is not None)
        self._held += len(lane.waiting) - before
        if same:
            if self._held > self._limits.relay_bytes:
                self._lose(leg, leader, chunk.direction, out)
            elif side == CLIENT and chunk.direction:
                self._judge(leg, leader, out)
        else:
            self._part(leg, leader, out)

    def _lose(self, leg: _Leg, leader: int, direction: int, out: list[StreamEvent]) -> None:
        """Stop comparing a direction, where bytes are missing or too many wait."""
        if leg.matches is None or (match := leg.matches.get(leader)) is None:
            return
        if leg.leader is None:
            self._part(leg, leader, out)
            return
        lane = match.lanes[direction]
        self._held -= len(lane.waiting)
        lane.trust()
        self._confirm(leg, out)

    def _judge(self, leg: _Leg, leader: int, out: list[StreamEvent]) -> None:
        """Decide whether it is a leg, where a response came to the client."""
        assert leg.matches is not None
        match = leg.matches[leader]
        if leg.held is None or not match.pairs:
            return
        sure = match.pairs >= PAIRS or match.equal >= SURE_BYTES
        if leg.leader is None:
            client, own = match.connection, leg.connection
            alone = len(leg.matches) == 1 and len(self._led[leader]) == 1
            certain = match.header > 0 or (client.b, own.b) in self._routes
            if not sure and not (alone and (certain or client.a.host != own.a.host)):
                return
            self._accept(leg, leader, out)
        if sure:
            self._confirm(leg, out)

    def _confirm(self, leg: _Leg, out: list[StreamEvent]) -> None:
        """Mark a leg, as it is one for certain, and go on with its events."""
        if leg.held is not None:
            leg.connection.forwarded = True
            out += leg.held
            self._held -= leg.size
            leg.size, leg.held = 0, None

    def _accept(self, leg: _Leg, leader: int, out: list[StreamEvent]) -> None:
        """Take note that a connection is the leg of another one, and of no other; nor has that one
        another leg."""
        assert leg.matches is not None
        leg.leader = match = leg.matches[leader]
        self.count += 1
        del self._undecided[leg.connection.number]
        ends = leg.connection.a, leg.connection.b
        if match.connection.translated is None:
            match.connection.translated = ends
        match.connection.leg_ns += leg.connection.handshake_ns or 0
        self._routes[match.connection.b, ends[1]] = None
        if len(self._routes) > self._limits.relay_servers:
            del self._routes[next(iter(self._routes))]
        for other in list(leg.matches):
            if other != leader:
                self._unmatch(leg, other)
        for each in self._led[leader][:]:
            if each is not leg:
                self._part(each, leader, out)
        if leg.closed >= 2:
            self._end(leg, out)

    def _part(self, leg: _Leg, leader: int, out: list[StreamEvent]) -> None:
        """Take note that a connection is not the leg of another one, or not any more."""
        self._unmatch(leg, leader)
        if not leg.matches:
            self._release(leg, out)

    def _unmatch(self, leg: _Leg, leader: int) -> None:
        assert leg.matches is not None
        match = leg.matches.pop(leader)
        self._held -= sum(len(lane.waiting) for lane in match.lanes)
        led = self._led[leader]
        led.remove(leg)
        if not led:
            del self._led[leader]
            match.connection.compared = False

    def _release(self, leg: _Leg, out: list[StreamEvent]) -> None:
        """Go on with a connection as one of its own."""
        connection = leg.connection
        for leader in list(leg.matches or ()):
            self._unmatch(leg, leader)
        del self._legs[connection.number]
        self._undecided.pop(connection.number, None)
        if leg.leader is not None:
            self.count -= 1
            client = leg.leader.connection
            if client.translated == (connection.a, connection.b):
                client.translated = None
            client.leg_ns -= connection.handshake_ns or 0
        if leg.held is not None:
            out += leg.held
        else:
            self.parted += 1
            connection.forwarded = False
        self._held -= leg.size

    def _end(self, leg: _Leg, out: list[StreamEvent]) -> None:
        """Forget what belongs to a leg that is closed."""
        for leader in list(leg.matches or ()):
            self._unmatch(leg, leader)
        self._confirm(leg, out)
        del self._legs[leg.connection.number]

    def _expire(self, now_ns: int, out: list[StreamEvent]) -> None:
        """Go on with what was held for too long."""
        while self._undecided:
            leg = next(iter(self._undecided.values()))
            if leg.connection.first_ns > now_ns - HOLD_NS:
                break
            self._release(leg, out)


def _time_of(event: StreamEvent) -> int:
    if isinstance(event, Opened):
        return event.connection.first_ns
    return event.pieces[-1].time_ns if isinstance(event, Chunk) else event.time_ns
