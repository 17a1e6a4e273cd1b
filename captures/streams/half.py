"""One direction of a connection, as far as reassembly has come: counters, and bytes that wait.

Stream offsets are plain integers that grow; sequence numbers wrap around. Nothing here decides.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.model import Connection
from kafkascope.captures.packets.tcp import MASK, Segment
from kafkascope.captures.resumable import Resumable

if TYPE_CHECKING:
    from kafkascope.captures.streams.tracks import Track

ITEM_OVERHEAD: Final = 256
"""What a waiting piece costs beside its bytes: many tiny pieces must not escape the memory
limits."""


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


class Half(Resumable):
    """State of one direction."""

    STATE = (
        "ack",
        "calm",
        "closed",
        "deadline_ns",
        "direction",
        "fin",
        "flow",
        "held",
        "leap",
        "next",
        "offset",
        "queued_ns",
        "reset_ns",
        "stray",
        "top",
        "trouble_at",
        "trouble_ns",
        "trouble_offset",
        "waiting",
    )
    __slots__ = (*STATE, "connection", "other", "track")

    other: Half
    """The other direction."""

    def __init__(self, track: Track, connection: Connection, direction: int, flow: bytes) -> None:
        self.track = track
        self.connection = connection
        self.direction = direction
        self.flow = flow
        self.next: int | None = None
        """Sequence number of the next byte to deliver; None until the direction has started."""
        self.offset = 0
        """Stream offset of that byte."""
        self.calm = False
        """Nothing is unusual in either direction: bytes at `next` go straight through."""
        self.ack: int | None = None
        """Highest acknowledgement that this side sent."""
        self.waiting: list[Waiting] = []
        """By `start`, without overlaps."""
        self.held = 0
        """Bytes of memory in `waiting`."""
        self.top = 0
        """Highest stream offset among bytes that had to wait."""
        self.stray: int | None = None
        """Where a segment ended that lay implausibly far ahead."""
        self.leap = 0
        """Size of the gap right before `offset` that only an ACK told of; 0 once bytes followed."""
        self.fin: tuple[int, int] | None = None
        """Stream offset of the FIN and its time."""
        self.reset_ns: int | None = None
        """Time of the RST that this side sent."""
        self.closed = False
        """The FIN or RST was told."""
        self.trouble_ns: int | None = None
        """Since when bytes are missing."""
        self.trouble_at = 0
        """The same in packets of the capture."""
        self.trouble_offset = 0
        """Where: the clock starts anew when the direction gets on."""
        self.deadline_ns = 0
        """When to look at the hole."""
        self.queued_ns: int | None = None
        """Which of its entries in the queue of deadlines counts."""

    def acknowledge(self, ack: int) -> None:
        """This side acknowledged."""
        if self.ack is None or 0 < (ack - self.ack) & MASK < 1 << 31:
            self.ack = ack

    def passed(self, packets: int, size: int, time_ns: int, following: int) -> None:
        """Packets went straight through, with `size` bytes in all; `following` is the next
        number."""
        connection, direction = self.connection, self.direction
        connection.packets[direction] += packets
        connection.bytes[direction] += size
        if time_ns > connection.last_ns:
            connection.last_ns = time_ns
        self.next = following
        if size:
            self.offset += size
            self.leap = 0

    def owed(self) -> int:
        """Bytes the other side acknowledged that we have not seen (its ACK of a FIN is not a
        byte)."""
        ack = self.other.ack
        if ack is None or self.next is None or self.closed:
            return 0
        missing = (ack - self.next) & MASK
        return missing if 1 < missing < 1 << 30 else 0

    def hole_end(self) -> int | None:
        """Stream offset where the first hole ends, as far as later bytes or the FIN tell."""
        if self.waiting:
            start = self.waiting[0].start
            return start if start > self.offset else None
        if self.fin is not None and self.fin[0] > self.offset:
            return self.fin[0]
        return None

    def missing(self) -> int:
        """Bytes of the first hole, up to where it is known to reach; 0 when there is none."""
        end = self.hole_end()
        if end is not None:
            owed = self.owed()
            return min(end - self.offset, owed) if owed else end - self.offset
        # Bytes that wait at the offset itself wait for the other direction: nothing is missing
        # here.
        return 0 if self.waiting else self.owed()

    def expected(self, ack: int) -> bool:
        """The other side acknowledged, up to `ack`, bytes of this direction that did not come out
        yet."""
        if self.next is None:
            return False
        return 1 < (ack - self.next) & MASK <= self.owed()

    def keep(self, start: int, end: int, skip: int, segment: Segment) -> int:
        """Keep the payload of `segment` from byte `skip` on as [start, end); the first bytes win.

        What is there already is left as it is; returns how many bytes that were.
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
