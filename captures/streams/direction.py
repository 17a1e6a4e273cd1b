"""State of reassembly for one direction of a connection: how far it has come, and bytes that wait.

Stream offsets are plain integers that grow; sequence numbers wrap around. Decisions are made in
`reassembly`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.model import Connection
from kafkascope.captures.packets.tcp import MASK, Segment
from kafkascope.captures.resumable import Resumable

if TYPE_CHECKING:
    from kafkascope.captures.streams.connection import ConnectionState

ITEM_OVERHEAD: Final = 700
"""Memory of a waiting item beside its bytes, so that many tiny ones do not escape the limits."""


class Waiting(NamedTuple):
    """Bytes that cannot be delivered yet."""

    start: int
    """Stream offset."""
    end: int
    data: bytes
    """Empty for bytes that the snaplen cut off."""
    at: int
    """Offset in the file of the first byte."""
    segment: Segment


_START = itemgetter(0)


class DirectionState(Resumable):
    """What reassembly knows of one direction."""

    STATE = (
        "ack",
        "acked_gap",
        "closed",
        "deadline_ns",
        "fin",
        "flow",
        "gap_offset",
        "gap_since_ns",
        "gap_since_packet",
        "held",
        "in_order",
        "next",
        "number",
        "offset",
        "queued_ns",
        "reset_ns",
        "stray",
        "top",
        "waiting",
    )
    __slots__ = (*STATE, "connection", "other", "state")

    other: DirectionState
    """The other direction."""

    def __init__(
        self, state: ConnectionState, connection: Connection, number: int, flow: bytes
    ) -> None:
        self.state = state
        """Of the connection, with both directions."""
        self.connection = connection
        self.number = number
        """0: from `Connection.a` to `Connection.b`; 1: back."""
        self.flow = flow
        """Addresses and ports as in `Segment.flow`."""
        self.next: int | None = None
        """Sequence number of the next byte to deliver; None until the direction has started."""
        self.offset = 0
        """Stream offset of that byte."""
        self.in_order = False
        """Nothing is missing or waiting in either direction: bytes at `next` are delivered at
        once."""
        self.ack: int | None = None
        """Highest acknowledgement number that this side sent."""
        self.waiting: list[Waiting] = []
        """Bytes that came too early, by `start`, without overlaps."""
        self.held = 0
        """Bytes of memory in `waiting`."""
        self.top = 0
        """Highest stream offset among bytes that had to wait."""
        self.stray: int | None = None
        """Sequence number behind the last segment that lay implausibly far ahead."""
        self.acked_gap = 0
        """Size of the gap right before `offset` that only an ACK told of; 0 once bytes followed."""
        self.fin: tuple[int, int] | None = None
        """Stream offset of the FIN and its time."""
        self.reset_ns: int | None = None
        """Time of the RST that this side sent."""
        self.closed = False
        """`Closed` was emitted for the FIN or RST."""
        self.gap_since_ns: int | None = None
        """Capture time since which bytes are missing; None: none are."""
        self.gap_since_packet = 0
        """The same as a packet number."""
        self.gap_offset = 0
        """Stream offset of the gap; the clock starts anew when the direction gets on."""
        self.deadline_ns = 0
        """When to look at the gap again."""
        self.queued_ns: int | None = None
        """Time of its valid entry in the queue of deadlines; older entries are ignored."""

    def acknowledge(self, ack: int) -> None:
        """Note an acknowledgement that this side sent."""
        if self.ack is None or 0 < (ack - self.ack) & MASK < 1 << 31:
            self.ack = ack

    def passed(self, packets: int, size: int, time_ns: int, following: int) -> None:
        """Count packets that were delivered at once, with `size` bytes in all; `following` is the
        next sequence number."""
        connection, number = self.connection, self.number
        connection.packets[number] += packets
        connection.bytes[number] += size
        if time_ns > connection.last_ns:
            connection.last_ns = time_ns
        self.next = following
        if size:
            self.offset += size
            self.acked_gap = 0

    def acked_unseen(self) -> int:
        """Number of bytes that the other side acknowledged and we have not seen. Its ACK of a FIN
        is not a byte."""
        ack = self.other.ack
        if ack is None or self.next is None or self.closed:
            return 0
        missing = (ack - self.next) & MASK
        return missing if 1 < missing < 1 << 30 else 0

    def gap_end(self) -> int | None:
        """Stream offset where the first gap ends, as far as later bytes or the FIN tell."""
        if self.waiting:
            start = self.waiting[0].start
            return start if start > self.offset else None
        if self.fin is not None and self.fin[0] > self.offset:
            return self.fin[0]
        return None

    def gap_size(self) -> int:
        """Return the size of the first gap, as far as it is known to reach; 0 when there is
        none."""
        end = self.gap_end()
        if end is not None:
            size = end - self.offset
            return min(size, self.acked_unseen() or size)
        # Bytes that wait at the offset itself wait for the other direction: nothing is missing.
        return 0 if self.waiting else self.acked_unseen()

    def awaits(self, ack: int) -> bool:
        """Whether `ack` of the other side covers bytes of this direction that were not delivered
        yet."""
        return self.next is not None and 1 < (ack - self.next) & MASK <= self.acked_unseen()

    def keep(self, start: int, end: int, skip: int, segment: Segment) -> int:
        """Keep the payload of `segment` from byte `skip` on as [start, end); return the overlap.

        Bytes that are there already stay: the first segment wins.
        """
        waiting = self.waiting
        origin = start - skip
        payload = segment.payload
        captured = origin + len(payload)
        segment = segment._replace(payload=b"")  # its buffer is used again by the reader
        at = bisect_left(waiting, start + 1, key=_START)
        if at and waiting[at - 1].end > start:
            at -= 1
        free: list[tuple[int, int]] = []
        begin = start
        while begin < end:
            if at == len(waiting) or waiting[at].start >= end:
                free.append((begin, end))
                break
            if begin < waiting[at].start:
                free.append((begin, waiting[at].start))
            begin = waiting[at].end
            at += 1
        for first, last in free:
            middle = min(max(captured, first), last)
            if middle > first:
                part = bytes(payload[first - origin : middle - origin])
                self._insert(Waiting(first, middle, part, segment.at + first - origin, segment))
            if last > middle:
                self._insert(Waiting(middle, last, b"", 0, segment))
        return end - start - sum(last - first for first, last in free)

    def _insert(self, item: Waiting) -> None:
        waiting = self.waiting
        if not waiting or item.start > waiting[-1].start:
            waiting.append(item)
        else:
            insort(waiting, item, key=_START)
        self.held += len(item.data) + ITEM_OVERHEAD
