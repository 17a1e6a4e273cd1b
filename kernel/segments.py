"""Delivers the bytes of packets that are certainly the next ones of their stream.

This adds no rule to reassembly. It recognises the one case in which `Reassembler.feed` delivers at
once: a direction in order, the expected sequence number, no flags but ACK and PSH, all bytes
captured, and no acknowledgement of bytes that were not seen. All other packets go to
`host.closely`, in order. Bytes go straight to the connection's `pairs.Reader`, if it has
one; otherwise consecutive segments of one flow become one chunk. Compiled by mypyc, also runs as
Python."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

from kafkascope.kernel.headers import HeaderColumns
from kafkascope.kernel.pairs import Reader
from kafkascope.kernel.path import MASK, Path

# Acknowledgements further ahead than this are old ones: sequence numbers wrap around.
HALF: Final[i64] = 1 << 30


STATE: Final = (
    *("number", "flow", "next", "offset", "in_order", "ack", "waiting", "held", "top", "stray"),
    *("acked_gap", "fin", "reset_ns", "closed", "gap_since_ns", "gap_since_packet", "gap_offset"),
    *("deadline_ns", "queued_ns"),
)
"""Attributes that another process needs to resume a direction: see `captures.resumable`."""


class DirectionState:
    """State of reassembly in one direction. It is in the kernel, because some of it is read and set
    for each packet, which takes an eighth of the time in compiled code."""

    # So that reassembly can end the circle of both directions.
    __deletable__ = ("other",)

    def __init__(self, state: Any, connection: Any, number: i64, flow: bytes) -> None:
        self.state = state
        """State of the connection, with both directions."""
        self.connection = connection
        self.path: Path = connection.path
        self.packets: list[int] = connection.packets
        self.bytes: list[int] = connection.bytes
        """Counts of packets and bytes, by direction."""
        self.number: i64 = number
        """0: from `Connection.a` to `Connection.b`; 1: back."""
        self.flow = flow
        """Addresses and ports as in `Segment.flow`."""
        self.other: DirectionState = self
        self.next: int | None = None
        """Sequence number of the next byte to deliver; None until the direction has started."""
        self.offset: i64 = 0
        """Stream offset of that byte."""
        self.in_order: bool = False
        """Nothing is missing or waiting in either direction: bytes at `next` are delivered at
        once."""
        self.ack: int | None = None
        """Highest acknowledgement number that this side sent."""
        self.waiting: list[Any] = []
        """Bytes that came too early, by `start`, without overlaps."""
        self.held: i64 = 0
        """Bytes of memory in `waiting`."""
        self.top: i64 = 0
        """Highest stream offset among bytes that had to wait."""
        self.stray: int | None = None
        """Sequence number after the last segment that was implausibly far ahead."""
        self.acked_gap: i64 = 0
        """Size of a gap right before `offset` that only an ACK revealed; 0 once bytes followed."""
        self.fin: Any = None
        """Stream offset of the FIN and its time."""
        self.reset_ns: int | None = None
        """Time of the RST that this side sent."""
        self.closed: bool = False
        """`Closed` was emitted for the FIN or RST."""
        self.gap_since_ns: int | None = None
        """Capture time since which bytes are missing; None: none are."""
        self.gap_since_packet: i64 = 0
        """Packet number since which bytes are missing."""
        self.gap_offset: i64 = 0
        """Stream offset of the gap; `gap_since_ns` starts anew when the direction moves on."""
        self.deadline_ns: i64 = 0
        """When to look at the gap again."""
        self.queued_ns: int | None = None
        """Time of its valid entry in the queue of deadlines; older entries are ignored."""

    def dump(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in STATE}

    def load(self, state: dict[str, Any]) -> DirectionState:
        for name in STATE:
            setattr(self, name, state[name])
        return self

    def acked_unseen(self) -> int:
        """Number of bytes that the other side acknowledged and we have not seen; the ACK of a FIN
        is not a byte."""
        ack, following = self.other.ack, self.next
        if ack is None or following is None or self.closed:
            return 0
        # 1 may be a FIN that was not captured; a difference in the upper half lies behind.
        missing = (ack - following) & 0xFFFFFFFF
        return missing if 1 < missing < 1 << 30 else 0

    def gap_end(self) -> int | None:
        """Stream offset where the first gap ends, as far as later bytes or the FIN tell."""
        if self.waiting:
            start: int = self.waiting[0].start
            return start if start > self.offset else None
        if self.fin is not None:
            end: int = self.fin[0]
            if end > self.offset:
                return end
        return None

    def gap_size(self) -> int:
        """Return the size of the first gap, as far as it is known; 0 without a gap."""
        end = self.gap_end()
        if end is not None:
            size: int = end - self.offset
            unseen = self.acked_unseen()
            return unseen if 0 < unseen < size else size
        # Bytes that wait at the offset itself wait for the other direction: nothing is missing.
        return 0 if self.waiting else self.acked_unseen()

    def awaits(self, ack: int) -> bool:
        """Whether an ACK of the other side covers bytes of this direction that are not
        delivered."""
        following = self.next
        if following is None:
            return False
        return 1 < (ack - following) & 0xFFFFFFFF <= self.acked_unseen()


def passed(
    direction: DirectionState, packets: i64, size: i64, time_ns: i64, following: i64
) -> None:
    """Count packets of a direction that were delivered at once, with `size` bytes in all;
    `following` is the next sequence number."""
    number = direction.number
    direction.packets[number] += packets
    connection = direction.connection
    last_ns: i64 = connection.last_ns
    if time_ns > last_ns:
        connection.last_ns = time_ns
    direction.next = following
    if size:
        direction.bytes[number] += size
        direction.offset += size
        direction.acked_gap = 0


def acknowledge(direction: DirectionState, ack: i64) -> None:
    """Keep an acknowledgement number if it is the highest so far."""
    before = direction.ack
    if before is not None:
        known: i64 = before
        if not 0 < (ack - known) & MASK < 1 << 31:
            return
    direction.ack = ack


class SegmentDelivery:
    """Turns packets into events, few at a time."""

    def __init__(
        self, packets: HeaderColumns, directions: dict[bytes, DirectionState], host: Any
    ) -> None:
        """`directions`: by flow. `host`: makes chunks, and examines other packets (`closely`)."""
        self.packets = packets
        self.directions = directions
        self.host = host
        self.out: list[Any] = []
        self.run: list[int] = []
        """Consecutive segments of one flow that become one chunk."""
        self.run_direction: DirectionState | None = None
        self.run_path = Path()
        self.run_number: i64 = 0
        self.run_flow: bytes = b""
        self.run_next: i64 = -1
        self.run_ack: i64 = -1

    def events(self, first_: int, last_: int, wake_ns_: int) -> list[Any]:
        """Return the events of the packets from index `first_` up to `last_`. `wake_ns_`: packets
        from this time on go to `closely`."""
        first: i64 = first_
        last: i64 = last_
        wake_ns: i64 = wake_ns_
        packets = self.packets
        plain, times, lengths, seqs = packets.plain, packets.times, packets.lengths, packets.seqs
        acks, flows, windows = packets.acks, packets.flows, packets.windows
        directions = self.directions
        path: Path
        index: i64 = first
        while index < last:
            time_ns: i64 = times[index]
            if plain[index] and time_ns < wake_ns:
                length: i64 = lengths[index]
                seq: i64 = seqs[index]
                ack: i64 = acks[index]
                flow = flows[index]
                # A bulk transfer repeats flow and acknowledgement: four comparisons decide for most
                # of its packets, without a look-up of the direction.
                if (
                    length != 0
                    and seq == self.run_next
                    and ack == self.run_ack
                    and flow == self.run_flow
                ):
                    self.run.append(index)
                    self.run_next = (seq + length) & MASK
                    path = self.run_path
                    path.packet(self.run_number, time_ns, seq, length, ack, windows[index])
                    index += 1
                    continue
                direction = directions.get(flow)
                if direction is not None and direction.in_order:
                    other = direction.other
                    running = self.run_direction
                    following: i64
                    if direction is running:
                        following = self.run_next
                    else:
                        begun = direction.next
                        following = -1 if begun is None else i64(begun)
                    if seq == following and self.acknowledges(other, ack):
                        path = direction.path
                        number: i64 = direction.number
                        path.packet(number, time_ns, seq, length, ack, windows[index])
                        reader: Reader | None = direction.connection.reader
                        if length == 0:
                            passed(direction, 1, 0, time_ns, seq)
                        elif reader is not None and self.taken(reader, direction, index):
                            passed(direction, 1, length, time_ns, (seq + length) & MASK)
                        else:
                            if direction is not running:
                                self.end_run()
                                self.run_direction = direction
                                self.run_path, self.run_number = path, number
                                self.run_flow = flow
                            self.run.append(index)
                            self.run_next = (seq + length) & MASK
                            self.run_ack = ack
                        if ack != direction.ack:
                            acknowledge(direction, ack)
                        index += 1
                        continue
            self.end_run()
            wake_ns = self.host.closely(index, self.out)
            index += 1
        self.end_run()
        out = self.out
        self.out = []
        return out

    def taken(self, reader: Reader, direction: DirectionState, index: i64) -> bool:
        """Give a packet's bytes to the reader of its connection; return whether the reader has
        them, read or unread. If not, they become an event. A reader that cannot go on is
        detached."""
        packets, number = self.packets, direction.number
        at: i64 = packets.starts[index]
        data = packets.data[at : at + packets.lengths[index]]
        place: i64 = packets.places[index]
        offset = direction.offset
        if reader.opener is not None:
            opened = reader.opener.open_packet(number, data)
            if opened is None:
                direction.connection.reader = None
                return False
            data, offset = opened[0], i64(opened[1])
            place += i64(opened[2])
        if not reader.take(
            number == reader.direction,
            data,
            packets.times[index],
            packets.numbers[index],
            packets.file,
            place,
            offset,
        ):
            direction.connection.reader = None
            reader.sink.odd.append(reader)
        return True

    def acknowledges(self, other: DirectionState, ack: i64) -> bool:
        """Return whether a packet acknowledges only bytes that were seen."""
        expected: i64
        if other is self.run_direction:
            expected = self.run_next
        else:
            following = other.next
            if following is None:
                return True
            expected = following
        if ack == expected:
            return True
        ahead: i64 = (ack - expected) & MASK
        return not 0 < ahead < HALF

    def end_run(self) -> None:
        direction = self.run_direction
        if direction is None:
            return
        self.run_direction = None
        self.run_flow = b""
        run, packets = self.run, self.packets
        self.run = []
        data, times, starts, lengths = packets.data, packets.times, packets.starts, packets.lengths
        numbers, places, file = packets.numbers, packets.places, packets.file
        blocks: list[bytes] = []
        pieces: list[Any] = []
        size: i64 = 0
        latest: i64 = times[run[0]]
        for index in run:
            at: i64 = starts[index]
            length: i64 = lengths[index]
            blocks.append(data[at : at + length])
            pieces.append((size, times[index], numbers[index], file, places[index]))
            size += length
        if i64(times[run[-1]]) > latest:
            latest = times[run[-1]]
        whole = blocks[0] if len(blocks) == 1 else b"".join(blocks)
        passed(direction, len(run), size, latest, self.run_next)
        self.out.append(self.host.chunk(direction, size, whole, pieces))
        self.run_next = -1
