"""Delivers the bytes of packets that are plainly the next ones of their stream.

It has no rule of its own: it recognises the one case in which `Reassembler.feed` delivers at once,
a direction in order, the expected sequence number, no flags but ACK and PSH, all bytes captured,
nothing acknowledged that was not seen. All other packets go to `closely`, in their order.
Bytes go straight to the connection's reader where there is one (`pairs.Reader`); else consecutive
segments of one flow become one chunk. Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

from kafkascope.kernel.pairs import Reader
from kafkascope.kernel.path import MASK, Path

# Acknowledgements that are further ahead are old ones, wrapped around.
HALF: Final[i64] = 1 << 30


def passed(direction: Any, packets: i64, size: i64, time_ns: i64, following: i64) -> None:
    """Count packets of a `DirectionState` that were delivered at once, with `size` bytes in all;
    `following` is the next sequence number."""
    connection, number = direction.connection, direction.number
    connection.packets[number] += packets
    last_ns: i64 = connection.last_ns
    if time_ns > last_ns:
        connection.last_ns = time_ns
    direction.next = following
    if size:
        connection.bytes[number] += size
        direction.offset += size
        direction.acked_gap = 0


def acknowledge(direction: Any, ack: i64) -> None:
    """Take an acknowledgement, if it is beyond those before."""
    before = direction.ack
    if before is not None:
        known: i64 = before
        if not 0 < (ack - known) & MASK < 1 << 31:
            return
    direction.ack = ack


class Packets:
    """Packets with TCP in their order, one entry in each list."""

    def __init__(
        self,
        data: bytes,
        file: i64,
        numbers: list[int],
        times: list[int],
        starts: list[int],
        places: list[int],
        lengths: list[int],
        flows: list[bytes],
        seqs: list[int],
        acks: list[int],
        windows: list[int],
        plain: list[bool],
    ) -> None:
        self.data = data
        self.file: i64 = file
        self.numbers = numbers
        self.times = times
        self.starts = starts
        """Of the payload in `data`."""
        self.places = places
        """Of the payload in the file."""
        self.lengths = lengths
        self.flows = flows
        self.seqs = seqs
        self.acks = acks
        self.windows = windows
        self.plain = plain
        """Whether a packet may be of the one case."""


class SegmentDelivery:
    """What goes from packets to events, of which few are made at a time."""

    def __init__(self, packets: Packets, directions: dict[bytes, Any], host: Any) -> None:
        """`directions`: by flow. `host` makes chunks, and looks at packets closely."""
        self.packets = packets
        self.directions = directions
        self.host = host
        self.out: list[Any] = []
        self.run: list[int] = []
        """Consecutive segments of one flow that become one chunk."""
        self.run_direction: Any = None
        self.run_path = Path()
        self.run_number: i64 = 0
        self.run_flow: bytes = b""
        self.run_next: i64 = -1
        self.run_ack: i64 = -1

    def events(self, first_: int, last_: int, wake_ns_: int) -> list[Any]:
        """Return the events of the packets from index `first_` on and before `last_`. `wake_ns_`:
        from this time on packets are looked at closely."""
        first: i64 = first_
        last: i64 = last_
        wake_ns: i64 = wake_ns_
        packets = self.packets
        plain, times, lengths, seqs = packets.plain, packets.times, packets.lengths, packets.seqs
        acks, flows, starts = packets.acks, packets.flows, packets.starts
        windows = packets.windows
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
                # A transfer in bulk repeats flow and acknowledgement, so four comparisons decide
                # about most of its packets: no look-up of the direction.
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
                        following = direction.next
                    if seq == following and self.acknowledges(other, ack):
                        path = direction.path
                        number: i64 = direction.number
                        path.packet(number, time_ns, seq, length, ack, windows[index])
                        reader: Reader | None = direction.connection.reader
                        if length == 0:
                            passed(direction, 1, 0, time_ns, seq)
                        elif reader is not None:
                            at: i64 = starts[index]
                            if not reader.take(
                                number == reader.direction,
                                packets.data[at : at + length],
                                time_ns,
                                packets.numbers[index],
                                packets.file,
                                packets.places[index],
                                direction.offset,
                            ):
                                # What it could not read stays in it, for the conversation.
                                direction.connection.reader = None
                                reader.sink.odd.append(reader)
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

    def acknowledges(self, other: Any, ack: i64) -> bool:
        """Return whether a packet acknowledges nothing that was not seen."""
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
