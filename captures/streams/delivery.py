"""Events of reassembly: each function emits one and moves its direction on. No decisions."""

from __future__ import annotations

from typing import Literal

from kafkascope.captures.model import Chunk, Closed, Gap, Opened, Piece, StreamEvent, more
from kafkascope.captures.packets.tcp import ACK, MASK, Segment
from kafkascope.captures.streams.connection import ConnectionState, start_midstream
from kafkascope.captures.streams.direction import DirectionState, Waiting

Reason = Literal["lost", "cut", "midstream", "limit"]
Out = list[StreamEvent]


def emit_opened(state: ConnectionState, out: Out) -> None:
    """Emit `Opened`, once for each connection."""
    if not state.opened:
        state.opened = True
        out.append(Opened(state.connection))


def begin_midstream(direction: DirectionState, segment: Segment, out: Out) -> None:
    """Start a direction without its SYN, with a gap for what came before."""
    start_midstream(direction, segment)
    out.append(Gap(direction.connection, direction.number, 0, None, segment.time_ns, "midstream"))


def complete_handshake(direction: DirectionState, segment: Segment) -> None:
    """Take the first ACK of the side that connected: the handshake is over."""
    state = direction.state
    if state.syn_ns is None or direction.number:
        return
    if not direction.offset and not direction.other.offset:
        # Else bytes came with the SYN (RFC 7413), and whoever heard of them knows no time.
        direction.connection.handshake_ns = segment.time_ns - state.syn_ns
    state.syn_ns = None
    if direction.other.next is None:
        direction.other.next = segment.ack  # the SYN-ACK was lost, but this is its number


def deliver_segment(direction: DirectionState, segment: Segment, out: Out) -> None:
    """Emit the next bytes, straight from their segment; `DirectionState.passed` counts them."""
    piece = Piece(0, segment.time_ns, segment.packet, segment.file, segment.at)
    data = bytes(segment.payload)
    out.append(Chunk(direction.connection, direction.number, direction.offset, data, [piece]))


def must_wait(direction: DirectionState, item: Waiting) -> bool:
    """Whether its sender had acknowledged bytes of the other direction that are still to come."""
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
    """Emit a gap for bytes that will not come; the direction goes on behind them."""
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
    """Emit `Closed` for a FIN behind all bytes or an RST when nothing waits; whether it was."""
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
    out.append(
        Closed(direction.connection, direction.number, how, time_ns, direction.connection.used)
    )
    return True
