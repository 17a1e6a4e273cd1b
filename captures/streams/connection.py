"""State of reassembly for one connection, and its start: who opened it, and where each direction
begins. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from kafkascope.captures.model import Connection
from kafkascope.captures.packets.tcp import (
    ACK,
    FIN,
    MASK,
    PSH,
    RST,
    SYN,
    Segment,
    distance,
    endpoints,
    reverse,
)
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.streams.direction import ITEM_OVERHEAD, DirectionState
from kafkascope.captures.streams.translated import TranslatedCopies

SETTLE_BYTES: Final = 1 << 20
"""Kept of a connection without SYN before its directions are given a start, whatever the time."""
NEAR_BYTES: Final = 1 << 26
"""A sequence or acknowledgement number is believed when it is this close (64 MiB, above the windows
in use) to what the connection knows."""


class ConnectionState(Resumable):
    """A connection, its two directions, and how it begins and ends."""

    STATE = ("opened", "over", "packet", "settling", "syn_ns", "settling_bytes")
    __slots__ = (*STATE, "connection", "copies", "directions", "flows")

    def __init__(self, connection: Connection, flow: bytes, back: bytes) -> None:
        self.connection = connection
        first = DirectionState(self, connection, 0, flow)
        second = DirectionState(self, connection, 1, back)
        first.other, second.other = second, first
        if flow == back:  # the same address and port on both sides (a "land" packet)
            first.other = first
        self.directions = [first, second]
        self.flows: list[bytes] = []
        """Directions of the same connection with other addresses."""
        self.copies: TranslatedCopies | None = None
        """Packets of which a copy may come with other addresses; None: there are none."""
        self.opened = False
        """`Opened` was emitted. A connection without SYN waits until it has settled, for `a` may
        change."""
        self.over = False
        """There was an RST, or a FIN from both sides."""
        self.settling: list[tuple[Segment, bool]] | None = None
        """Its first segments and whether they are copies, until it is clear where directions
        start."""
        self.settling_bytes = 0
        """Memory of `settling`."""
        self.packet = 0
        """Number of its last packet that did not go straight through."""
        self.syn_ns: int | None = None
        """Time of the SYN, until the handshake is complete."""

    def dump(self) -> Dump:
        """Return the state, both directions included."""
        # A direction is its own other only in the connection of a "land" packet.
        directions = [{"alone": each.other is each, **each.dump()} for each in self.directions]
        return {"connection": self.connection, "directions": directions, **super().dump()}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        super().load(state)
        for direction, each in zip(self.directions, state["directions"], strict=True):
            direction.load(each)
            direction.other = direction if each["alone"] else self.directions[1 - direction.number]
        return self


Comment = Callable[[int, int], str]
"""(file, interface) -> the interface's comment."""


def new_connection(segment: Segment, number: int, comment_of: Comment | None) -> ConnectionState:
    """Make the state of a connection from its first packet."""
    flow, back = segment.flow, reverse(segment.flow)
    if segment.flags & (SYN | ACK) == SYN | ACK:
        flow, back = back, flow
    a, b = endpoints(flow)
    connection = Connection(number, a, b, segment.time_ns, first_packet=segment.packet)
    connection.handshake = bool(segment.flags & SYN)
    if comment_of is not None:
        connection.interface_comment = comment_of(segment.file, segment.interface & MASK)
    return ConnectionState(connection, flow, back)


def translate(state: ConnectionState, direction: DirectionState, flow: bytes) -> None:
    """Take note that a direction of a connection also comes with other addresses."""
    state.flows += flow, reverse(flow)
    if state.copies is None:
        state.copies = TranslatedCopies()
    ends = endpoints(flow)
    if state.connection.translated is None:
        state.connection.translated = ends[::-1] if direction.number else ends
    for each in state.directions:
        each.in_order = False


def is_beginning(state: ConnectionState) -> bool:
    """Return whether only the first packet of a connection, or of what the capture has of it, has
    come so far."""
    if state.settling is not None or state.copies is not None:
        return True
    return sum(state.connection.packets) - sum(state.connection.duplicates) == 1


def is_delivered(direction: DirectionState, segment: Segment) -> bool:
    """Return whether all bytes of a segment were delivered: one that was cut up or joined before
    its addresses were translated has no exact copy."""
    if direction.next is None or not segment.length:
        return False
    return distance(direction.next, segment.seq + segment.length & MASK) <= 0


def settle_with(
    state: ConnectionState, direction: DirectionState, segment: Segment, copy: bool
) -> int:
    """Put a segment aside until the connection has settled; return the memory that it takes."""
    if segment.flags & SYN:
        _orient(state, direction, segment)
        start_at_syn(direction, segment)
    kept = segment._replace(payload=bytes(segment.payload))
    assert state.settling is not None
    state.settling.append((kept, copy))
    size = len(kept.payload) + ITEM_OVERHEAD
    state.settling_bytes += size
    return size


def is_settled(state: ConnectionState) -> bool:
    """Whether both directions have a start, or too much was put aside."""
    return state.settling_bytes > SETTLE_BYTES or all(
        direction.next is not None for direction in state.directions
    )


def find_starts(state: ConnectionState) -> list[tuple[DirectionState, Segment]]:
    """Find directions that start without a SYN, each with its first segment among those put aside.

    Where only the SYN-ACK is missing, the first ACK of the other side is as good: no gap.
    """
    starts = []
    for direction in state.directions:
        mine = [s for s, _ in state.settling or () if s.flow == direction.flow and s.length]
        if direction.next is not None or not mine:
            continue
        anchor = mine[0].seq
        first = min(mine, key=lambda s: (distance(anchor, s.seq), -s.length))
        acks = [
            s.ack for s, _ in state.settling or () if s.flow != direction.flow and s.flags & ACK
        ]
        if state.connection.handshake and acks:
            numbers = (distance(first.seq, ack) for ack in acks)
            direction.next = first.seq + min(0, *numbers) & MASK
        else:
            starts.append((direction, first))
    return starts


def start_midstream(direction: DirectionState, segment: Segment) -> None:
    """Start a direction without SYN at its first bytes."""
    direction.next = segment.seq
    ack = direction.other.ack
    if ack is not None and -1 <= distance(ack, segment.seq) < NEAR_BYTES:
        direction.next = ack  # what came before is known to have arrived
    elif segment.length == 1 and not segment.flags & (PSH | FIN | SYN):
        direction.next = segment.seq + 1 & MASK  # a keep-alive's garbage byte (RFC 9293, 3.8.4)


def start_at_syn(direction: DirectionState, segment: Segment) -> None:
    """Start a direction behind its SYN; a SYN-ACK also tells where the other one starts."""
    if not direction.state.opened:
        # What was told of a connection stays: others may have heard of it before this SYN came.
        direction.connection.handshake = True
    if direction.next is None:
        direction.next = segment.seq + 1 & MASK
    if segment.flags & ACK:
        if direction.other.next is None:
            direction.other.next = segment.ack
    elif direction.state.syn_ns is None and direction.connection.handshake:
        direction.state.syn_ns = segment.time_ns


def _orient(state: ConnectionState, direction: DirectionState, segment: Segment) -> None:
    """Swap the ends if a SYN that came behind the first segments tells that `b` connected."""
    connection = state.connection
    if state.opened or connection.handshake or (direction.number == 0) != bool(segment.flags & ACK):
        return
    connection.a, connection.b = connection.b, connection.a
    if connection.translated is not None:
        connection.translated = connection.translated[::-1]
    connection.duplicates = connection.duplicates[::-1]
    connection.packets.reverse()
    connection.bytes.reverse()
    state.directions.reverse()
    for number, each in enumerate(state.directions):
        each.number = number


def is_own_syn(direction: DirectionState, segment: Segment) -> bool:
    """Whether a SYN belongs to this connection, not to a new one with the same ports."""
    state = direction.state
    start = segment.seq + 1 & MASK
    if direction.next is not None:
        fin = direction.closed and direction.fin is not None
        return (start + direction.offset + fin) & MASK == direction.next
    if state.settling is None:
        return not state.over
    return all(
        -1 <= distance(start, held.seq) < NEAR_BYTES
        for held, _ in state.settling
        if held.flow == direction.flow and not held.flags & RST
    )


def is_port_reuse(direction: DirectionState, segment: Segment) -> bool:
    """Whether data lie far from where a closed connection ended: its ports are in use again, and
    the SYN was lost."""
    if (
        not direction.state.over
        or not segment.length
        or direction.next is None
        or segment.flags & RST
    ):
        return False
    return abs(distance(direction.next, segment.seq)) > NEAR_BYTES
