"""Packets that a capture holds twice: exact copies, and with translated addresses. State without
I/O.

A capture on all interfaces of a container host holds exact copies of everything. A node that
forwards (kube-proxy, Docker, a router) shows each packet before and after DNAT, SNAT or both:
sequence numbers and payload stay the same, and such packets are given to the connection that was
seen first, as copies. Both are only recognised here; reassembly treats their bytes like those of a
retransmission.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from kafkascope.captures.packets.tcp import ACK, SYN, Segment
from kafkascope.captures.resumable import Dump, Resumable

# Packets that are looked back. Copies follow within one batch of a network driver (64 packets).
WINDOW: Final = 256
# On one interface a copy comes within 1 ms; what comes later is a retransmission.
SPAN_NS: Final = 1_000_000

Mark = tuple[int, int, int]
"""Fingerprint, time, interface."""


class Copies(Resumable):
    """Remembers the fingerprints of the last packets. Packets are identified by number, so that a
    connection alone gives the same results as the whole capture."""

    def __init__(self) -> None:
        self._latest: dict[int, tuple[Mark, int]] = {}
        """Fingerprint -> the last packet that has it, and its number: all within `WINDOW`, and some
        before it."""
        self._number = 0

    def seen(self, mark: Mark, number: int | None = None) -> bool:
        """Enter a packet; return whether it is a copy of one within the window. `number` is its
        number in the capture, by default the one after the last."""
        self._number = number = self._number + 1 if number is None else number
        before = self._latest.get(mark[0])
        self._latest[mark[0]] = (mark, number)
        if len(self._latest) >= 8 * WINDOW:
            self._trim()
        if before is None or number - before[1] > WINDOW:
            return False
        _, time_ns, interface = before[0]
        return interface != mark[2] or abs(mark[1] - time_ns) <= SPAN_NS

    def seen_all(
        self,
        prints: list[int],
        times: Sequence[int],
        interfaces: Sequence[int],
        numbers: Sequence[int] | None = None,
    ) -> list[bool] | None:
        """Enter many packets; return which of them are copies, None when none is."""
        if numbers is None:
            numbers = range(self._number + 1, self._number + 1 + len(prints))
        # Nearly always nothing is a copy: two comparisons of sets decide about a whole block.
        fresh = set(prints)
        if len(fresh) < len(prints) or not fresh.isdisjoint(self._latest):
            marks = zip(prints, times, interfaces, strict=True)
            return [self.seen(mark, number) for mark, number in zip(marks, numbers, strict=True)]
        last = slice(-WINDOW, None)
        marks = zip(prints[last], times[last], interfaces[last], strict=True)
        found = dict(zip(prints[last], zip(marks, numbers[last], strict=True), strict=True))
        # As many packets leave none of those before in the window.
        self._latest = found if len(found) == WINDOW else self._latest | found
        self._number = numbers[-1] if numbers else self._number
        if len(self._latest) >= 8 * WINDOW:
            self._trim()
        return None

    def dump(self) -> Dump:
        self._trim()
        marks = [[*mark, number] for mark, number in self._latest.values()]
        return {"marks": marks, "number": self._number}

    def load(self, state: Dump) -> Self:
        self._number = state["number"]
        self._latest = {
            copy: ((copy, at, card), number) for copy, at, card, number in state["marks"]
        }
        return self

    def _trim(self) -> None:
        """Forget the packets before the window: none to come can be a copy of them."""
        oldest = self._number - WINDOW
        self._latest = {key: last for key, last in self._latest.items() if last[1] > oldest}


# First packets of connections that are remembered: those of the same moment.
FIRST_PACKETS: Final = 4096
# The same packet comes again within 100 ms; in a kernel it takes microseconds.
FORWARD_NS: Final = 100_000_000
# Within 1 ms where the IP id does not tell that it is the same packet: IPv6 has none, and some
# systems leave it 0.
NEAR_NS: Final = 1_000_000
# Packets of a batch of a driver: the copies of one may stand after all of it.
NEAR_PACKETS: Final = 64
# Packets of a translated connection whose copies are waited for.
PACKETS: Final = 256
# Bytes of payload that are compared.
LOOKED: Final = 16


def sign_of(segment: Segment) -> int:
    """Return the IP id of a segment, or its checksum where that is 0, out of its fingerprint."""
    return segment.copy & 0xFFFF


Key = tuple[int, int, int, int, bytes]


def _key(segment: Segment) -> Key:
    """Return what translation leaves alone."""
    start = bytes(segment.payload[:LOOKED])
    return segment.seq, segment.ack, segment.length, segment.flags, start


_End = tuple[bytes, bytes]
"""Host, port."""


def _ends(flow: bytes) -> tuple[_End, _End]:
    half = len(flow) - 4 >> 1
    return (flow[:half], flow[-4:-2]), (flow[half : 2 * half], flow[-2:])


def may_be_translated(one: bytes, other: bytes) -> bool:
    """Return whether translation can turn one flow into another one: it changes addresses, and
    never the port alone.

    Programs that write captures, and scanners, give many connections of one host the same sequence
    numbers and IP ids; only their ports differ.
    """
    pairs = zip(_ends(one), _ends(other), strict=True)
    return one != other and all(old == new or old[0] != new[0] for old, new in pairs)


class FirstPackets:
    """First packets of connections, by which another pair of addresses is recognised."""

    def __init__(self) -> None:
        self._found: dict[Key, Segment] = {}

    def add(self, segment: Segment) -> None:
        key = _key(segment)
        self._found.pop(key, None)
        self._found[key] = segment._replace(payload=b"")
        if len(self._found) > FIRST_PACKETS:
            del self._found[next(iter(self._found))]

    def twin(self, segment: Segment) -> Segment | None:
        """Return the same packet as it came before, with other addresses.

        What is made is often made alike: programs that scan use one sequence number for many hosts,
        and generated traffic one for all clients. So it has to be the same IP id, or one end and
        the same moment; and another interface, or the same sender: translation of the receiver's
        address alone. In one capture of Ethernet, two clients may be two.
        """
        first = self._found.get(_key(segment))
        if first is None or not segment.seq:
            return None
        if not may_be_translated(first.flow, segment.flow):
            return None
        if segment.packet - first.packet > NEAR_PACKETS:
            return None
        one, two = _ends(first.flow), _ends(segment.flow)
        shares = one[0] == two[0] or one[1] == two[1]
        same = sign_of(first) == sign_of(segment)
        apart = abs(segment.time_ns - first.time_ns)
        if apart > (FORWARD_NS if same else NEAR_NS) or not (same or shares):
            return None
        if first.interface == segment.interface:
            keeps = one[0] == two[0] if segment.flags & (SYN | ACK) == SYN else shares
            return first if keeps else None
        return first


class TranslatedCopies:
    """Packets of a translated connection that came with one pair of addresses only so far."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int, int, int, int], bytes] = {}

    def seen(self, direction: int, segment: Segment) -> bool:
        """Enter a packet; return whether it came before with other addresses."""
        key = direction, segment.seq, segment.ack, segment.length, segment.flags
        flow = self._waiting.get(key)
        if flow is not None and flow != segment.flow:
            del self._waiting[key]
            return True
        self._waiting[key] = segment.flow
        if len(self._waiting) > PACKETS:
            del self._waiting[next(iter(self._waiting))]
        return False
