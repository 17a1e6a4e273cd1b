"""The bulk path of reassembly: whole blocks at once, where packets are in order.

It has no rule of its own. It recognises, for many packets, the one case in which `Reassembler.feed`
delivers at once: a direction in order, the expected sequence number, no flags but ACK and PSH, all
bytes captured, nothing acknowledged that was not seen. All other packets go through `feed_marked`,
in their order. Consecutive segments of one flow become one chunk; bytes of another flow end it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, compress, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.captures.model import Chunk, Piece, Resolved, StreamEvent
from kafkascope.captures.packets.ip import FRAGMENT, NOT_TCP
from kafkascope.captures.packets.resolved import in_packet
from kafkascope.captures.packets.tcp import ACK, MASK, QUIET_MASK, Segment, segment_of
from kafkascope.captures.streams.direction import DirectionState
from kafkascope.captures.streams.reassembly import Reassembler

if TYPE_CHECKING:
    from kafkascope.captures.inputs.block import Block
    from kafkascope.captures.packets.columns import Columns
    from kafkascope.captures.statistics import Statistics
    from kafkascope.captures.streams.shares import Others, Share

MAX_ODD: Final = 0.3
"""Share of packets that need a closer look from which on one by one is as fast."""

AFRESH: Final = 2
"""Of a packet that may be of that case, but is not in a row with the one before."""

FEW: Final = 256
"""Packets whose events are made at once."""

_piece = partial(tuple.__new__, Piece)
"""Makes a `Piece` of a tuple; `Piece._make` without its Python frame."""


class Packets(NamedTuple):
    """Packets with TCP in their order, one entry each."""

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
    segment: Callable[[int], Segment]
    """Makes the segment at an index, for a closer look."""

    def some(self, some: slice) -> Packets:
        """Return some of them."""
        return Packets(
            self.data,
            self.file,
            self.numbers[some],
            self.times[some],
            self.starts[some],
            self.places[some],
            self.lengths[some],
            self.flows[some],
            self.seqs[some],
            self.acks[some],
            lambda at: self.segment(some.start + at),
        )


def scan(
    block: Block,
    reassembler: Reassembler,
    statistics: Statistics,
    named: Callable[[Resolved], None] | None = None,
    share: Share | None = None,
    marks: list[tuple[int, int]] | None = None,
) -> Iterable[StreamEvent] | None:
    """Return the events of a block, to be read once, or None (with nothing done) when it should go
    packet by packet.

    `named` is told of host names that DNS packets resolve. With a `share` only events of its
    connections, and `marks` gets (events before it, moment), see `shares`; then it is a list.
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
    packets = [block.packet(index) for index in other]
    reasons = list(map(segment_of, packets))
    if any(isinstance(reason, Segment) or reason == FRAGMENT for reason in reasons):
        return None  # TCP behind headers that `columns` does not follow, or in parts: rare
    for packet, reason in zip(packets, reasons, strict=True):
        statistics.skip(str(reason), packet.link_type)
        if named is not None and reason == NOT_TCP:
            for each in in_packet(packet):
                named(each)
    _count(columns, statistics)
    block.format.last_ns = int(columns.time_ns[-1]) - block.shift_ns
    others = None if share is None else share.others(columns, block)
    if others is not None:
        columns.tcp[others.foreign] = False
    kept = columns.tcp.nonzero()[0]
    mine = kept if len(kept) < count else slice(None)
    plain = plain[mine].astype("i1")
    if others is not None:
        others.stand_between(kept, plain, columns.time_ns)
    numbers = (kept + block.number).tolist()
    copies = reassembler.copies.seen_all(
        columns.copy[mine].tolist(),
        columns.time_ns[mine].tolist(),
        columns.interface[mine].tolist(),
        numbers,
    )
    copied = set() if copies is None else {at for at, copy in enumerate(copies) if copy}
    plain[list(copied)] = 0
    ready = _packets(block, columns, mine, kept, numbers)
    last = block.number + count - 1
    if marks is None:
        return chain.from_iterable(_few(ready, reassembler, plain.tolist(), copied, last))
    events = run(ready, reassembler, plain.tolist(), copied, marks, others)
    reassembler.packets = last
    return events


def _few(
    packets: Packets, reassembler: Reassembler, plain: list[int], copied: set[int], last: int
) -> Iterator[list[StreamEvent]]:
    """Yield the events of packets, of few at a time: events of all would have left the processor's
    cache before somebody looks at them."""
    for first in range(0, len(plain), FEW):
        few = slice(first, first + FEW)
        copies = {at for at in range(FEW) if first + at in copied} if copied else copied
        yield run(packets.some(few), reassembler, plain[few], copies)
    reassembler.packets = last


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
    # Whole frames whose headers inside announce more: a mirror cut these.
    statistics.mirrored += int((cut & (columns.wire <= columns.captured)).sum())


def _packets(block: Block, columns: Columns, mine: Any, kept: Any, numbers: list[int]) -> Packets:
    flows = columns.flows
    if len(kept) < len(flows):
        flows = list(compress(flows, columns.tcp.tolist()))

    def segment(index: int) -> Segment:
        found = segment_of(block.packet(int(kept[index])))
        assert isinstance(found, Segment)
        return found

    return Packets(
        memoryview(block.buffer),
        block.file,
        numbers,
        columns.time_ns[mine].tolist(),
        columns.payload[mine].tolist(),
        (columns.payload[mine] + block.base).tolist(),
        columns.length[mine].tolist(),
        flows,
        columns.seq[mine].tolist(),
        columns.ack[mine].tolist(),
        segment,
    )


def run(
    packets: Packets,
    reassembler: Reassembler,
    plain: Sequence[int],
    copied: set[int],
    marks: list[tuple[int, int]] | None = None,
    others: Others | None = None,
) -> list[StreamEvent]:
    """Return the events of packets.

    `plain` tells which may be of the one case (`AFRESH`: that, but no run goes on with it),
    `copied` which are copies of others. `marks` gets (events before it, packet number) of each
    packet that was looked at closely. `others`: packets that other readers take; then `marks` gets
    moments, see `shares`.
    """
    out: list[StreamEvent] = []
    add_event = out.append
    view, file, numbers, times, starts, places, lengths, flows, seqs, acks, closely = packets
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

    def pass_others(index: int) -> None:
        nonlocal wake_ns
        if others is None or others.latest[index] < wake_ns:
            return
        end_run()
        for number, time_ns in others.before(index):
            if time_ns >= wake_ns:
                if marks is not None:
                    marks.append((len(out), 2 * number))
                reassembler.pass_time(number, time_ns, out)
                wake_ns = deadlines.wake_ns

    for index, (easy, flow, following, seq, ack, length, time_ns) in enumerate(
        zip(
            plain,
            flows,
            [*flows, b""][1:],
            seqs,
            acks,
            lengths,
            times,
            strict=True,
        )
    ):
        if easy and time_ns < wake_ns:
            if (
                length
                and seq == run_next
                and flow == run_flow
                and ack == run_ack
                and easy != AFRESH
            ):
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
                        if easy == AFRESH:
                            end_run()
                        direction.passed(1, 0, time_ns, seq)
                    elif following != flow and (direction is not run_direction or easy == AFRESH):
                        # Alone, as most small messages are: no run for one segment.
                        if run_direction is not None:
                            end_run()
                        at = starts[index]
                        add_event(
                            Chunk(
                                direction.connection,
                                direction.number,
                                direction.offset,
                                bytes(view[at : at + length]),
                                [_piece((0, time_ns, numbers[index], file, places[index]))],
                            )
                        )
                        direction.passed(1, length, time_ns, seq + length & MASK)
                    else:
                        if direction is not run_direction or easy == AFRESH:
                            end_run()
                            run_direction, run_flow = direction, flow
                        add(index)
                        run_next = seq + length & MASK
                        run_ack = ack
                    if ack != direction.ack:
                        direction.acknowledge(ack)
                    continue
        pass_others(index)
        end_run()
        number = numbers[index]
        reassembler.packets = number - 1
        if marks is not None:
            if others is not None and time_ns >= wake_ns:
                # Readers that follow this connection, and those that do not, tell it alike.
                marks.append((len(out), 2 * number))
                reassembler.pass_time(number, time_ns, out)
                reassembler.packets = number - 1
            marks.append((len(out), number if others is None else 2 * number + 1))
        out += reassembler.feed_marked(closely(index), index in copied)
        wake_ns = deadlines.wake_ns
    end_run()
    pass_others(len(numbers))
    return out
