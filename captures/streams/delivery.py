"""How connections begin, and the events of reassembly: each `emit` and `deliver` function emits one
event and advances its direction. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from kafkascope.captures.formats.remarks import OURS
from kafkascope.captures.model import (
    Chunk,
    Closed,
    Connection,
    Gap,
    Opened,
    Piece,
    StreamEvent,
    more,
)
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
from kafkascope.captures.streams.connection import (
    ITEM_OVERHEAD,
    NEAR_BYTES,
    ConnectionState,
    Waiting,
)
from kafkascope.captures.streams.copies import TranslatedCopies
from kafkascope.kernel.segments import DirectionState

# Bytes that are put aside of a connection without SYN, at most, before its directions get a start.
SETTLE_BYTES: Final = 1 << 20
# Packets whose events are made together. Events of more packets would leave the processor's cache
# before they are used.
PACKETS_AT_ONCE: Final = 256

Reason = Literal["lost", "cut", "midstream", "limit"]
Out = list[StreamEvent]


Comment = Callable[[int, int], str]
"""(file, interface) -> the interface's comment."""


def new_connection(segment: Segment, number: int, comment_of: Comment | None) -> ConnectionState:
    flow, back = segment.flow, reverse(segment.flow)
    if segment.flags & (SYN | ACK) == SYN | ACK:
        flow, back = back, flow
    a, b = endpoints(flow)
    connection = Connection(number, a, b, segment.time_ns, first_packet=segment.packet)
    connection.handshake = bool(segment.flags & SYN)
    if comment_of is not None:
        connection.interface_comment = comment_of(segment.file, segment.interface & MASK)
        connection.path.off = connection.interface_comment.startswith(OURS)
    return ConnectionState(connection, flow, back)


def on_path(direction: DirectionState, segment: Segment, copy: bool = False) -> None:
    """Add a packet with the connection's own addresses to the path. `copy`: it was seen with
    translated addresses before."""
    path, flags = direction.path, segment.flags
    if flags & SYN:
        if flags & ACK:
            path.syn_ack(segment.time_ns, segment.scale)
        else:
            path.syn(segment.time_ns, segment.scale)
    elif flags & ACK and not flags & RST:
        following = direction.next
        ahead = -1 if following is None else distance(following, segment.seq)
        new = ahead >= 0 and direction.offset + ahead >= direction.top
        length = segment.length if new or copy else 0
        path.packet(
            direction.number, segment.time_ns, segment.seq, length, segment.ack, segment.window
        )


def translate(state: ConnectionState, direction: DirectionState, flow: bytes) -> None:
    state.flows += flow, reverse(flow)
    if state.copies is None:
        state.copies = TranslatedCopies()
    ends = endpoints(flow)
    if state.connection.translated is None:
        state.connection.translated = ends[::-1] if direction.number else ends
    for each in state.directions:
        each.in_order = False


def is_beginning(state: ConnectionState) -> bool:
    """Return whether only the first captured packet of a connection has come so far."""
    if state.settling is not None or state.copies is not None:
        return True
    return sum(state.connection.packets) - sum(state.connection.duplicates) == 1


def is_delivered(direction: DirectionState, segment: Segment) -> bool:
    """Return whether all bytes of a segment were delivered. It need not have an exact copy:
    segments may be split or joined before their addresses are translated."""
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


def find_starts(state: ConnectionState) -> list[tuple[DirectionState, Segment]]:
    """Find directions that start without a SYN, each with its first segment among those put aside.

    If only the SYN-ACK is missing, the first ACK of the other side gives the start, without a gap.
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


def start_at_syn(direction: DirectionState, segment: Segment) -> None:
    """Start a direction after its SYN; a SYN-ACK also shows where the other direction starts."""
    if not direction.state.opened:
        # An emitted connection does not change: it may be in use since before this SYN came.
        direction.connection.handshake = True
    if direction.next is None:
        direction.next = segment.seq + 1 & MASK
    if segment.flags & ACK:
        if direction.other.next is None:
            direction.other.next = segment.ack
    elif direction.state.syn_ns is None and direction.connection.handshake:
        direction.state.syn_ns = segment.time_ns


def _orient(state: ConnectionState, direction: DirectionState, segment: Segment) -> None:
    """Swap the ends if a SYN that came after the first segments shows that `b` connected."""
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
    # A retransmitted SYN has the sequence number with which the stream began.
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
    """Whether data lie far from the end of a closed connection: a new connection uses its ports,
    and the SYN was lost."""
    if (
        not direction.state.over
        or not segment.length
        or direction.next is None
        or segment.flags & RST
    ):
        return False
    return abs(distance(direction.next, segment.seq)) > NEAR_BYTES


def emit_opened(state: ConnectionState, out: Out) -> None:
    """Emit `Opened`, once for each connection."""
    if not state.opened:
        state.opened = True
        out.append(Opened(state.connection))


def begin_midstream(direction: DirectionState, segment: Segment, out: Out) -> None:
    """Start a direction without SYN at its first bytes, after a gap of unknown size."""
    direction.next = segment.seq
    ack = direction.other.ack
    if ack is not None and -1 <= distance(ack, segment.seq) < NEAR_BYTES:
        direction.next = ack  # the bytes before it arrived
    elif segment.length == 1 and not segment.flags & (PSH | FIN | SYN):
        direction.next = segment.seq + 1 & MASK  # a keep-alive's garbage byte (RFC 9293, 3.8.4)
    out.append(Gap(direction.connection, direction.number, 0, None, segment.time_ns, "midstream"))


def complete_handshake(direction: DirectionState, segment: Segment) -> None:
    """Complete the handshake with the first ACK of the side that connected."""
    state = direction.state
    if state.syn_ns is None or direction.number:
        return
    if not direction.offset and not direction.other.offset:
        # Otherwise bytes came with the SYN (RFC 7413), and were emitted without a handshake time.
        direction.connection.handshake_ns = segment.time_ns - state.syn_ns
    state.syn_ns = None
    if direction.other.next is None:
        direction.other.next = segment.ack  # the SYN-ACK was lost; this is its number


def deliver_segment(direction: DirectionState, segment: Segment, out: Out) -> None:
    """Emit the next bytes directly from their segment; `kernel.segments.passed` counts them."""
    piece = Piece(0, segment.time_ns, segment.packet, segment.file, segment.at)
    data = bytes(segment.payload)
    out.append(Chunk(direction.connection, direction.number, direction.offset, data, [piece]))


def must_wait(direction: DirectionState, item: Waiting) -> bool:
    """Whether its sender had acknowledged bytes of the other direction that are not delivered."""
    segment = item.segment
    return (
        direction.other is not direction
        and segment.flags & ACK > 0
        and direction.other.awaits(segment.ack)
    )


def deliver_waiting(direction: DirectionState, item: Waiting, out: Out) -> None:
    """Emit bytes that waited, or a gap when the snaplen cut them off."""
    segment = item.segment
    if item.data:
        piece = Piece(0, segment.time_ns, segment.packet, segment.file, item.at)
        out.append(Chunk(direction.connection, direction.number, item.start, item.data, [piece]))
        _skip(direction, len(item.data))
    else:
        emit_gap(direction, item.end - item.start, "cut", segment.time_ns, out)


def emit_gap(direction: DirectionState, size: int, reason: Reason, time_ns: int, out: Out) -> None:
    """Emit a gap for bytes that will not come; the direction continues after it."""
    out.append(Gap(direction.connection, direction.number, direction.offset, size, time_ns, reason))
    connection = direction.connection
    connection.gap_bytes = more(connection.gap_bytes, direction.number, size)
    _skip(direction, size)


def _skip(direction: DirectionState, size: int) -> None:
    assert direction.next is not None
    direction.offset += size
    direction.next = direction.next + size & MASK
    direction.acked_gap = 0


def emit_closed(direction: DirectionState, out: Out) -> bool:
    """Emit `Closed` for a FIN after all bytes, or for an RST if nothing waits. Return whether."""
    if direction.closed or direction.waiting:
        return False
    fin = direction.fin
    if fin is not None and direction.next is not None and direction.offset >= fin[0]:
        direction.next = direction.next + 1 & MASK
        how: Literal["fin", "rst"] = "fin"
        time_ns = fin[1]
        direction.state.over |= direction.other.closed
    elif direction.reset_ns is not None:
        how, time_ns = "rst", direction.reset_ns
        direction.state.over = True
    else:
        return False
    direction.closed = True
    direction.path.over = direction.state.over
    out.append(
        Closed(direction.connection, direction.number, how, time_ns, direction.connection.used)
    )
    return True
