"""The start of connections: who opened, and where each direction begins. State without I/O."""

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
from kafkascope.captures.streams.half import ITEM_OVERHEAD, Half

SETTLE_BYTES: Final = 1 << 20
"""A connection that starts midstream waits no longer than for 1 MiB, whatever the time."""
NEAR_BYTES: Final = 1 << 26
"""A sequence or acknowledgement number is believed when it is this close (64 MiB, above the windows
in use) to what the connection knows."""


class Track(Resumable):
    """A connection and what reassembly knows beside it."""

    STATE = ("opened", "over", "packet", "settling", "syn_ns", "weight")
    __slots__ = (*STATE, "connection", "halves")

    def __init__(self, connection: Connection, flow: bytes, back: bytes) -> None:
        self.connection = connection
        first, second = Half(self, connection, 0, flow), Half(self, connection, 1, back)
        first.other, second.other = second, first
        if flow == back:  # the same address and port on both sides (a "land" packet)
            first.other = first
        self.halves = [first, second]
        self.opened = False
        """`Opened` was told. A connection without SYN waits until it has settled, for `a` may
        change."""
        self.over = False
        """An RST, or a FIN from both sides."""
        self.settling: list[tuple[Segment, bool]] | None = None
        """Its first segments and whether they are copies, until it is clear where directions
        start."""
        self.weight = 0
        """Bytes in `settling`."""
        self.packet = 0
        """Number of its last packet that was not plainly the next one."""
        self.syn_ns: int | None = None
        """Time of the SYN, until the handshake is complete."""

    def dump(self) -> Dump:
        """The state, both directions included."""
        # Which one answers itself tells only in a "land" packet's connection.
        halves = [{"alone": half.other is half, **half.dump()} for half in self.halves]
        return {"connection": self.connection, "halves": halves, **super().dump()}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        super().load(state)
        for half, each in zip(self.halves, state["halves"], strict=True):
            half.load(each)
            half.other = half if each["alone"] else self.halves[1 - half.direction]
        return self


Comment = Callable[[int, int], str]
"""(file, interface) -> the interface's comment."""


def track_of(segment: Segment, number: int, comment_of: Comment | None) -> Track:
    """A new connection, seen from its first packet."""
    flow, back = segment.flow, reverse(segment.flow)
    if segment.flags & (SYN | ACK) == SYN | ACK:
        flow, back = back, flow
    a, b = endpoints(flow)
    connection = Connection(number, a, b, segment.time_ns, first_packet=segment.packet)
    connection.handshake = bool(segment.flags & SYN)
    if comment_of is not None:
        connection.interface_comment = comment_of(segment.file, segment.interface & MASK)
    return Track(connection, flow, back)


def settle_with(track: Track, half: Half, segment: Segment, copy: bool) -> int:
    """Put a segment aside until the connection has settled; bytes of memory it takes."""
    if segment.flags & SYN:
        _orient(track, half, segment)
        start_at_syn(half, segment)
    kept = segment._replace(payload=bytes(segment.payload))
    assert track.settling is not None
    track.settling.append((kept, copy))
    weight = len(kept.payload) + ITEM_OVERHEAD
    track.weight += weight
    return weight


def is_settled(track: Track) -> bool:
    """Nothing more to wait for."""
    return track.weight > SETTLE_BYTES or all(half.next is not None for half in track.halves)


def find_starts(track: Track) -> list[tuple[Half, Segment]]:
    """Directions that start without their SYN among the segments put aside, and their first bytes.

    Where only the SYN-ACK is missing, the first ACK of the other side is as good: no gap.
    """
    starts = []
    for half in track.halves:
        mine = [s for s, _ in track.settling or () if s.flow == half.flow and s.length]
        if half.next is not None or not mine:
            continue
        anchor = mine[0].seq
        first = min(mine, key=lambda s: (distance(anchor, s.seq), -s.length))
        acks = [s.ack for s, _ in track.settling or () if s.flow != half.flow and s.flags & ACK]
        if track.connection.handshake and acks:
            numbers = (distance(first.seq, ack) for ack in acks)
            half.next = first.seq + min(0, *numbers) & MASK
        else:
            starts.append((half, first))
    return starts


def start_midstream(half: Half, segment: Segment) -> None:
    """A direction without SYN starts at its first bytes."""
    half.next = segment.seq
    ack = half.other.ack
    if ack is not None and -1 <= distance(ack, segment.seq) < NEAR_BYTES:
        half.next = ack  # what came before is known to have arrived
    elif segment.length == 1 and not segment.flags & (PSH | FIN | SYN):
        half.next = segment.seq + 1 & MASK  # a keep-alive's garbage byte (RFC 9293, 3.8.4)


def start_at_syn(half: Half, segment: Segment) -> None:
    """A direction with SYN starts behind it; a SYN-ACK also tells where the other one starts."""
    if not half.track.opened:
        # What was told of a connection stays: others may have heard of it before this SYN came.
        half.connection.handshake = True
    if half.next is None:
        half.next = segment.seq + 1 & MASK
    if segment.flags & ACK:
        if half.other.next is None:
            half.other.next = segment.ack
    elif half.track.syn_ns is None and half.connection.handshake:
        half.track.syn_ns = segment.time_ns


def _orient(track: Track, half: Half, segment: Segment) -> None:
    """A SYN came behind the first segments and tells who opened."""
    connection = track.connection
    if track.opened or connection.handshake or (half.direction == 0) != bool(segment.flags & ACK):
        return
    connection.a, connection.b = connection.b, connection.a
    for counts in (connection.packets, connection.bytes, connection.duplicates):
        counts.reverse()
    track.halves.reverse()
    for direction, each in enumerate(track.halves):
        each.direction = direction


def fits_syn(half: Half, segment: Segment) -> bool:
    """The SYN belongs to this connection and not to a new one with the same ports."""
    track = half.track
    start = segment.seq + 1 & MASK
    if half.next is not None:
        return (start + half.offset + (half.closed and half.fin is not None)) & MASK == half.next
    if track.settling is None:
        return not track.over
    return all(
        -1 <= distance(start, held.seq) < NEAR_BYTES
        for held, _ in track.settling
        if held.flow == half.flow and not held.flags & RST
    )


def is_new_life(half: Half, segment: Segment) -> bool:
    """Data far from where a closed connection ended: its ports are in use again, the SYN was
    lost."""
    if not half.track.over or not segment.length or half.next is None or segment.flags & RST:
        return False
    return abs(distance(half.next, segment.seq)) > NEAR_BYTES
