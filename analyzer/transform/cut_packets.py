"""Packets of many connections, composed in the order of time.

What a reader of captures knows of a connection beside its bytes is kept as well: how it was opened,
what was sent again, what the capture lacks. Sans-I/O, apart from the `Sink` that it is given.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kafkascope.analyzer.transform.limits import LIMITS
from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter, Sink
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import Connection, Endpoint, Resolved
from kafkascope.captures.packets.tcp import ACK, MASK, SYN
from kafkascope.captures.proxy_protocol import header_of

# Connections begin at different sequence numbers, so that one on reused ports is a new one.
ISN_STEP: Final = 0x2545F49

OPENS, CARRIES, REPEATS, ENDS = range(4)
"""Ranks of packets of the same time: a FIN may have come with the last bytes."""

# Bytes of a segment that is sent again: as many as a reader needs to see that it is.
REPEATED: Final = 16


class _Packet(NamedTuple):
    time_ns: int
    rank: int
    order: int
    """Order of packets of the same time and rank: those of a connection's begin and end by its
    index, then those of frames as they were pushed."""
    connection: int
    direction: int
    flags: int
    payload: bytes
    short: int
    """Bytes after the payload that the packet had and the capture has not."""
    missing: int
    """Bytes after it of which the capture has no packet."""
    comment: str
    again: bool
    """The SYN, or the last bytes, once more."""


# Start of the order of packets of frames; those of a connection begin at its index.
FRAMES: Final = 1 << 63
INDEX_BITS: Final = 32


class Packets:
    """A file of packets; `push` in any order, but none before the time of a `flush`. What is known
    of a connection is forgotten with its last packet."""

    def __init__(
        self,
        sink: Sink,
        connections: list[Connection],
        mss: int,
        endpoint: Callable[[Endpoint], Endpoint],
        comment: Callable[[str], str],
        more: Callable[[int], bool],
    ) -> None:
        """`endpoint`, `comment`: rewrite addresses, and comments of interfaces. `more`: whether
        packets of a connection are still to be pushed."""
        self._more = more
        self._waiting: dict[int, int] = {}
        """Packets in the heap, by connection."""
        self.mss = min(mss, CAPTURE_LIMITS.mss_bytes)
        self._writer = PcapngWriter(sink)
        self._connections = connections
        self._endpoint, self._comment = endpoint, comment
        self._interfaces: dict[str, int] = {}
        self._composers: dict[int, Composer] = {}
        self._heap: list[_Packet] = []
        self._order = 0
        self._headers: dict[int, bytes] = {}
        """PROXY protocol headers that are still to be written, by connection."""
        self._latest: dict[tuple[int, int], tuple[int, bytes]] = {}
        """Sequence number and bytes of the last segment, by connection and direction."""

    def push(
        self,
        time_ns: int,
        connection: int,
        direction: int,
        flags: int = ACK,
        payload: bytes = b"",
        *,
        short: int = 0,
        missing: int = 0,
        comment: str = "",
        rank: int = CARRIES,
        again: bool = False,
    ) -> None:
        """Have a packet wait for its time. `connection`: its index."""
        self._order += 1
        self._waiting[connection] = self._waiting.get(connection, 0) + 1
        place = (time_ns, rank, self._order, connection, direction)
        packet = _Packet(*place, flags, payload, short, missing, comment, again)
        heapq.heappush(self._heap, packet)

    def order(self, first: int) -> int:
        """Give the packets that are pushed from now on their order, from a number on; return the
        next one of those before."""
        before, self._order = self._order, first
        return before

    def flush(self, until_ns: int | None = None) -> None:
        """Write what comes before that time; everything without."""
        heap = self._heap
        while heap and (until_ns is None or heap[0].time_ns < until_ns):
            packet = heapq.heappop(heap)
            self._write(packet)
            self._waiting[packet.connection] -= 1
            self.forget(packet.connection)

    def names(self, found: Iterable[Resolved]) -> None:
        """Write host names with their addresses."""
        self._writer.names(found)

    def forget(self, connection: int) -> None:
        """Forget what is known of a connection that has no more packets."""
        if not self._waiting.get(connection) and not self._more(connection):
            self._waiting.pop(connection, None)
            self._composers.pop(connection, None)
            self._headers.pop(connection, None)
            for way in (0, 1):
                self._latest.pop((connection, way), None)

    def _write(self, packet: _Packet) -> None:
        composer = self._composer(packet.connection)
        interface = self._interface(self._connections[packet.connection])
        way, time_ns = packet.direction, packet.time_ns
        if packet.missing:
            for at in range(0, packet.missing, LIMITS.missing_bytes):
                # The other side's acknowledgement reveals them.
                composer.lose(way, min(LIMITS.missing_bytes, packet.missing - at))
                self._writer.packet(composer.packet(1 - way, ACK), time_ns, interface=interface)
            return
        if packet.again:
            data = self._repeated(packet, composer)
        else:
            if packet.payload:
                if not way and (header := self._headers.pop(packet.connection, b"")):
                    first = composer.packet(way, packet.flags, header)
                    self._writer.packet(first, time_ns, interface=interface)
                kept = packet.payload[-REPEATED:]
                start = composer.next[way] + len(packet.payload) - len(kept)
                self._latest[packet.connection, way] = (start, kept)
            data = composer.packet(way, packet.flags, packet.payload)
        self._writer.packet(data, time_ns, interface=interface, comment=packet.comment)
        for at in range(0, packet.short, CAPTURE_LIMITS.mss_bytes):
            # As a capture with a short snaplen shows bytes that it does not hold.
            size = min(CAPTURE_LIMITS.mss_bytes, packet.short - at)
            data = composer.packet(way, ACK, bytes(size))
            head = data[: len(data) - size]
            self._writer.packet(head, time_ns, interface=interface, length=len(data))

    def _repeated(self, packet: _Packet, composer: Composer) -> bytes:
        way, following = packet.direction, composer.next[packet.direction]
        start, payload = self._latest.get((packet.connection, way), (following, b""))
        if packet.flags & SYN:
            start, payload = following - 1, b""
        composer.next[way] = start & MASK
        data = composer.packet(way, packet.flags, payload)
        composer.next[way] = following
        return data

    def _composer(self, index: int) -> Composer:
        found = self._composers.get(index)
        if found is None:
            connection = self._connections[index]
            ends = self._endpoint(connection.a), self._endpoint(connection.b)
            if connection.origin is not None:
                origin = self._endpoint(connection.origin)
                self._headers[index] = header_of(2, origin, ends[1])
            isn = index * ISN_STEP & MASK
            composer = Composer(*ends, mss=self.mss, isn=(isn, isn))
            found = self._composers[index] = composer
        return found

    def _interface(self, connection: Connection) -> int:
        comment = self._comment(connection.interface_comment)
        found = self._interfaces.get(comment)
        if found is None:
            name = f"cut{len(self._interfaces)}"
            found = self._interfaces[comment] = self._writer.interface(name, comment=comment)
        return found
