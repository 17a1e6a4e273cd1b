"""The bulk path of reassembly: whole blocks at once, where packets are in order.

It has no rule of its own. It recognises, for many packets, the one case in which `Reassembler.feed`
delivers at once: a direction in order, the expected sequence number, no flags but ACK and PSH, all
bytes captured, nothing acknowledged that was not seen. All other packets go through `feed_marked`,
in their order. Consecutive segments of one flow become one chunk; bytes of another flow end it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.model import Chunk, Packet, Piece, Resolved, StreamEvent
from kafkascope.captures.packets.ip import FRAGMENT, NOT_TCP
from kafkascope.captures.packets.resolved import in_packet
from kafkascope.captures.packets.tcp import ACK, MASK, QUIET_MASK, Segment, segment_of
from kafkascope.captures.streams.direction import DirectionState
from kafkascope.captures.streams.reassembly import Reassembler

if TYPE_CHECKING:
    from kafkascope.captures.inputs.files import Block
    from kafkascope.captures.packets.columns import Columns
    from kafkascope.captures.statistics import Statistics
    from kafkascope.captures.streams.shares import Share

MAX_ODD: Final = 0.3
"""Share of packets that need a closer look from which on one by one is as fast."""

_piece = partial(tuple.__new__, Piece)
"""Makes a `Piece` of a tuple; `Piece._make` without its Python frame."""


class Packets(NamedTuple):
    """Packets in their order, one entry each; values of TCP only where `tcp` is true."""

    data: memoryview
    file: int
    numbers: Sequence[int]
    times: list[int]
    starts: list[int]
    """Of the payload in `data`."""
    places: list[int]
    """Of the payload in the file."""
    lengths: list[int]
    flows: list[bytes]
    seqs: list[int]
    acks: list[int]
    tcp: Sequence[bool]
    segment: Callable[[int], Segment]
    """Makes the segment at an index, for a closer look."""


def scan(
    block: Block,
    reassembler: Reassembler,
    statistics: Statistics,
    named: Callable[[Resolved], None] | None = None,
    share: Share | None = None,
    marks: list[tuple[int, int]] | None = None,
) -> list[StreamEvent] | None:
    """Return the events of a block, or None (with nothing done) when it should go packet by packet.

    `named` is told of host names that DNS packets resolve. With a `share` only events of its
    connections, and `marks` gets (events before it, moment), see `shares`.
    """
    from kafkascope.captures.packets.columns import columns_of

    columns = columns_of(block)
    if columns is None:
        return None
    plain = columns.tcp & (columns.flags & QUIET_MASK == ACK)
    plain &= columns.payload + columns.length <= columns.start + columns.captured
    count = len(plain)
    if count - int(plain.sum()) > MAX_ODD * count:
        return None
    other = (~columns.tcp).nonzero()[0].tolist()
    packets = list(block.packets()) if other else []
    reasons = [segment_of(packets[index]) for index in other]
    if any(isinstance(reason, Segment) or reason == FRAGMENT for reason in reasons):
        return None  # TCP behind headers that `columns` does not follow, or in parts: rare
    for index, reason in zip(other, reasons, strict=True):
        statistics.skip(str(reason), packets[index].link_type)
        if named is not None and reason == NOT_TCP:
            for each in in_packet(packets[index]):
                named(each)
    _count(columns, statistics)
    block.format.last_ns = int(columns.time_ns[-1]) - block.shift_ns
    foreign = None
    if share is not None:
        flows = [flow if tcp else b"" for flow, tcp in zip(columns.flows, columns.tcp, strict=True)]
        share.divide(flow for flow in flows if flow)
        foreign = [bool(flow) and share.foreign(flow) for flow in flows]
        plain[foreign] = False
        columns.tcp[foreign] = False
    tcp = columns.tcp.nonzero()[0]
    copies = reassembler.copies.seen_all(
        columns.copy[tcp].tolist(),
        columns.time_ns[tcp].tolist(),
        columns.interface[tcp].tolist(),
        (tcp + block.number).tolist(),
    )
    copied = set(tcp[copies].tolist()) if copies is not None else set()
    for index in copied:
        plain[index] = False
    events = run(_packets(block, columns), reassembler, plain.tolist(), copied, marks, foreign)
    reassembler.packets = block.number + count - 1
    return events


def _count(columns: Columns, statistics: Statistics) -> None:
    times = columns.time_ns
    if statistics.first_ns is None:
        statistics.first_ns = statistics.last_ns = int(times[0])
    statistics.last_ns = max(statistics.last_ns or 0, int(times.max()))
    statistics.captured_bytes += int(columns.captured.sum())
    statistics.segments += int(columns.tcp.sum())
    end = columns.start + columns.captured
    cut = columns.tcp & (columns.length > 0) & (columns.payload + columns.length > end)
    statistics.cut_packets += int(cut.sum())


def _packets(block: Block, columns: Columns) -> Packets:
    kept: list[Packet] = []

    def segment(index: int) -> Segment:
        if not kept:
            kept.extend(block.packets())
        found = segment_of(kept[index])
        assert isinstance(found, Segment)
        return found

    return Packets(
        memoryview(block.buffer),
        block.file,
        range(block.number, block.number + len(columns.flows)),
        columns.time_ns.tolist(),
        columns.payload.tolist(),
        (columns.payload + block.base).tolist(),
        columns.length.tolist(),
        columns.flows,
        columns.seq.tolist(),
        columns.ack.tolist(),
        columns.tcp.tolist(),
        segment,
    )


def run(
    packets: Packets,
    reassembler: Reassembler,
    plain: list[bool],
    copied: set[int],
    marks: list[tuple[int, int]] | None = None,
    foreign: list[bool] | None = None,
) -> list[StreamEvent]:
    """Return the events of packets.

    `plain` tells which may be of the one case, `copied` which are copies of others. `marks` gets
    (events before it, packet number) of each packet that was looked at closely. `foreign` tells
    which are of connections that others read; then `marks` gets moments, see `shares`.
    """
    out: list[StreamEvent] = []
    view, file, numbers, times, starts, places, lengths, flows, seqs, acks, tcp, closely = packets
    flow_of, deadlines = reassembler.flows.get, reassembler.deadlines
    wake_ns = deadlines.wake_ns

    # The run: consecutive segments of one flow that become one chunk.
    taken: list[int] = []
    add = taken.append
    run_flow = b""
    run_direction: DirectionState | None = None
    run_next = run_ack = 0

    def end_run() -> None:
        nonlocal run_flow, run_direction
        direction, run_direction, run_flow = run_direction, None, b""
        if direction is None:
            return
        count = len(taken)
        if count == 1:
            index = taken[0]
            at, size = starts[index], lengths[index]
            data = bytes(view[at : at + size])
            pieces = [Piece(0, times[index], numbers[index], file, places[index])]
        else:
            pick = itemgetter(*taken)
            ats, sizes = pick(starts), pick(lengths)
            data = b"".join([view[at : at + size] for at, size in zip(ats, sizes, strict=True)])
            size = len(data)
            offsets = accumulate(sizes, initial=0)
            packets_of = pick(times), pick(numbers), repeat(file), pick(places)
            pieces = list(map(_piece, zip(offsets, *packets_of, strict=False)))
        direction.passed(count, size, max(times[taken[0]], times[taken[-1]]), run_next)
        out.append(
            Chunk(direction.connection, direction.number, direction.offset - size, data, pieces)
        )
        taken.clear()

    for index, (easy, flow, following, seq, ack, length, time_ns) in enumerate(
        zip(
            plain,
            flows,
            [*flows[1:], b""],
            seqs,
            acks,
            lengths,
            times,
            strict=True,
        )
    ):
        if easy and time_ns < wake_ns:
            if length and seq == run_next and flow == run_flow and ack == run_ack:
                add(index)
                run_next = seq + length & MASK
                continue
            direction = flow_of(flow)
            if direction is not None and direction.in_order:
                other = direction.other
                expected = run_next if other is run_direction else other.next
                if seq == (run_next if direction is run_direction else direction.next) and (
                    ack == expected or expected is None or not 0 < (ack - expected) & MASK < 1 << 30
                ):
                    if not length:
                        direction.passed(1, 0, time_ns, seq)
                    elif direction is not run_direction and following != flow:
                        # Alone, as most small messages are: no run for one segment.
                        end_run()
                        at = starts[index]
                        data = bytes(view[at : at + length])
                        pieces = [_piece((0, time_ns, numbers[index], file, places[index]))]
                        chunk = Chunk(
                            direction.connection, direction.number, direction.offset, data, pieces
                        )
                        out.append(chunk)
                        direction.passed(1, length, time_ns, seq + length & MASK)
                    else:
                        if direction is not run_direction:
                            end_run()
                            run_direction, run_flow = direction, flow
                        add(index)
                        run_next = seq + length & MASK
                        run_ack = ack
                    if ack != direction.ack:
                        direction.acknowledge(ack)
                    continue
        if foreign is not None and (tcp[index] or foreign[index]):
            end_run()
            number = numbers[index]
            reassembler.packets = number
            if time_ns >= wake_ns and marks is not None:
                marks.append((len(out), 2 * number))
                reassembler.check(time_ns, out)
                wake_ns = deadlines.wake_ns
        if not tcp[index]:
            continue
        end_run()
        number = numbers[index]
        reassembler.packets = number - 1
        if marks is not None:
            marks.append((len(out), number if foreign is None else 2 * number + 1))
        out += reassembler.feed_marked(closely(index), index in copied)
        wake_ns = deadlines.wake_ns
    end_run()
    return out
