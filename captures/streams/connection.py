"""State of reassembly for one connection: how far each direction has come, and bytes that wait.

Stream offsets are plain integers that grow; sequence numbers wrap around. Decisions are made in
`reassembly`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Final, NamedTuple, Self

from kafkascope.captures.model import Connection
from kafkascope.captures.packets.tcp import Segment
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.streams.copies import TranslatedCopies
from kafkascope.kernel.segments import DirectionState

# A sequence or acknowledgement number is believed when it is this close (64 MiB, above the windows
# in use) to what the connection knows.
NEAR_BYTES: Final = 1 << 26
# Memory of a waiting item beside its bytes, so that many tiny ones do not escape the limits.
ITEM_OVERHEAD: Final = 700


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


def keep(direction: DirectionState, start: int, end: int, skip: int, segment: Segment) -> int:
    """Keep the payload of `segment` from byte `skip` on as [start, end); return the overlap.

    Bytes that are there already stay: the first segment wins.
    """
    waiting = direction.waiting
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
            _insert(direction, Waiting(first, middle, part, segment.at + first - origin, segment))
        if last > middle:
            _insert(direction, Waiting(middle, last, b"", 0, segment))
    return end - start - sum(last - first for first, last in free)


def _insert(direction: DirectionState, item: Waiting) -> None:
    waiting = direction.waiting
    if not waiting or item.start > waiting[-1].start:
        waiting.append(item)
    else:
        insort(waiting, item, key=_START)
    direction.held += len(item.data) + ITEM_OVERHEAD


class ConnectionState(Resumable):
    """A connection, its two directions, and how it begins and ends."""

    STATE = ("opened", "over", "packet", "settling", "syn_ns", "settling_bytes")
    __slots__ = (*STATE, "connection", "copies", "directions", "flows")

    def __init__(self, connection: Connection, flow: bytes, back: bytes) -> None:
        self.connection = connection
        first = DirectionState(self, connection, 0, flow)
        second = DirectionState(self, connection, 1, back)
        first.other, second.other = second, first
        if flow == back:  # the same address and port on both sides (a "land" packet)
            first.other = first
        self.directions = [first, second]
        self.flows: list[bytes] = []
        """Directions of the same connection with other addresses."""
        self.copies: TranslatedCopies | None = None
        """Packets of which a copy may come with other addresses; None: there are none."""
        self.opened = False
        """`Opened` was emitted. A connection without SYN waits until it has settled, for `a` may
        change."""
        self.over = False
        """There was an RST, or a FIN from both sides."""
        self.settling: list[tuple[Segment, bool]] | None = None
        """Its first segments and whether they are copies, until it is clear where directions
        start."""
        self.settling_bytes = 0
        """Memory of `settling`."""
        self.packet = 0
        """Number of its last packet that did not go straight through."""
        self.syn_ns: int | None = None
        """Time of the SYN, until the handshake is complete."""

    def dump(self) -> Dump:
        # A direction is its own other only in the connection of a "land" packet.
        directions = [{"alone": each.other is each, **each.dump()} for each in self.directions]
        return {"connection": self.connection, "directions": directions, **super().dump()}

    def load(self, state: Dump) -> Self:
        super().load(state)
        for direction, each in zip(self.directions, state["directions"], strict=True):
            direction.load(each)
            direction.other = direction if each["alone"] else self.directions[1 - direction.number]
        return self


NEVER: Final = (1 << 63) - 1


class Deadlines:
    """When to look at which gap again, in capture time: one valid deadline per direction. Entries
    that were replaced are skipped."""

    def __init__(self) -> None:
        self.wake_ns = NEVER
        self._entries: list[tuple[int, int, DirectionState]] = []
        self._serial = 0

    def set(self, direction: DirectionState, deadline_ns: int) -> None:
        """Set the deadline of a direction, in place of an earlier or later one."""
        direction.deadline_ns = deadline_ns
        if direction.queued_ns is None or deadline_ns < direction.queued_ns:
            direction.queued_ns = deadline_ns
            self._serial += 1
            heappush(self._entries, (deadline_ns, self._serial, direction))
            self.wake_ns = self._entries[0][0]

    def due(self, time_ns: int) -> DirectionState | None:
        """Take out the direction with the earliest deadline, if that has come by `time_ns`."""
        entries = self._entries
        found = None
        while found is None and entries and entries[0][0] <= time_ns:
            direction = self._pop()
            if direction is not None and direction.deadline_ns > time_ns:
                self.set(direction, direction.deadline_ns)
            else:
                found = direction
        self.wake_ns = entries[0][0] if entries else NEVER
        return found

    def waiting(self) -> list[DirectionState]:
        """Return the directions with a deadline, the earliest first."""
        return [
            direction for ns, _, direction in sorted(self._entries) if direction.queued_ns == ns
        ]

    def wait(self, directions: list[DirectionState]) -> None:
        for direction in directions:
            assert direction.queued_ns is not None
            self._serial += 1
            self._entries.append((direction.queued_ns, self._serial, direction))
        self.wake_ns = self._entries[0][0] if self._entries else NEVER

    def _pop(self) -> DirectionState | None:
        deadline_ns, _, direction = heappop(self._entries)
        if direction.queued_ns != deadline_ns:
            return None
        direction.queued_ns = None
        return direction

    def purge(self, keep: int) -> None:
        """Drop replaced entries when there are more than `keep`: time may stand still."""
        if len(self._entries) > keep:
            self._entries = [entry for entry in self._entries if entry[2].queued_ns == entry[0]]
            heapify(self._entries)
