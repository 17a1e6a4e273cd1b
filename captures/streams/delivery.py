"""What reassembly tells of a direction, and how telling it moves the direction on. No decisions."""

from __future__ import annotations

from typing import Literal

from kafkascope.captures.model import Chunk, Closed, Gap, Opened, Piece, StreamEvent
from kafkascope.captures.packets.tcp import ACK, MASK, Segment
from kafkascope.captures.streams.half import Half, Waiting
from kafkascope.captures.streams.tracks import Track, start_midstream

Reason = Literal["lost", "cut", "midstream", "limit"]
Out = list[StreamEvent]


def tell_opened(track: Track, out: Out) -> None:
    """The connection is certain: tell of it, once."""
    if not track.opened:
        track.opened = True
        out.append(Opened(track.connection))


def begin_midstream(half: Half, segment: Segment, out: Out) -> None:
    """A direction starts without its SYN: tell that what came before is missing."""
    start_midstream(half, segment)
    out.append(Gap(half.connection, half.direction, 0, None, segment.time_ns, "midstream"))


def complete_handshake(half: Half, segment: Segment) -> None:
    """The first ACK of the side that connected."""
    track = half.track
    if track.syn_ns is None or half.direction:
        return
    if not half.offset and not half.other.offset:
        # Else bytes came with the SYN (RFC 7413), and whoever heard of them knows no time.
        half.connection.handshake_ns = segment.time_ns - track.syn_ns
    track.syn_ns = None
    if half.other.next is None:
        half.other.next = segment.ack  # the SYN-ACK was lost, but this is its number


def deliver_segment(half: Half, segment: Segment, out: Out) -> None:
    """The next bytes, without detour; `Half.passed` counts them."""
    piece = Piece(0, segment.time_ns, segment.packet, segment.file, segment.at)
    data = bytes(segment.payload)
    out.append(Chunk(half.connection, half.direction, half.offset, data, [piece]))


def must_wait(half: Half, item: Waiting) -> bool:
    """Its sender had acknowledged bytes of the other direction that have not come out yet."""
    segment = item.segment
    return half.other is not half and segment.flags & ACK > 0 and half.other.expected(segment.ack)


def deliver_waiting(half: Half, item: Waiting, out: Out) -> None:
    """Bytes that waited, or their gap when the snaplen cut them off."""
    segment = item.segment
    if item.data:
        piece = Piece(0, segment.time_ns, segment.packet, segment.file, item.at)
        out.append(Chunk(half.connection, half.direction, item.start, item.data, [piece]))
        _skip(half, len(item.data))
    else:
        tell_gap(half, item.end - item.start, "cut", segment.time_ns, out)


def tell_gap(half: Half, size: int, reason: Reason, time_ns: int, out: Out) -> None:
    """Bytes that will not come; the direction goes on behind them."""
    out.append(Gap(half.connection, half.direction, half.offset, size, time_ns, reason))
    half.connection.gap_bytes[half.direction] += size
    _skip(half, size)


def _skip(half: Half, size: int) -> None:
    assert half.next is not None
    half.offset += size
    half.next = half.next + size & MASK
    half.leap = 0


def tell_closed(half: Half, out: Out) -> bool:
    """Tell of a FIN when all bytes before it came out, of an RST when nothing waits."""
    if half.closed or half.waiting:
        return False
    if half.fin is not None and half.next is not None and half.offset >= half.fin[0]:
        half.next = half.next + 1 & MASK
        how: Literal["fin", "rst"] = "fin"
        time_ns = half.fin[1]
        half.track.over |= half.other.closed
    elif half.reset_ns is not None:
        how, time_ns = "rst", half.reset_ns
        half.track.over = True
    else:
        return False
    half.closed = True
    out.append(Closed(half.connection, half.direction, how, time_ns, half.connection.used))
    return True
