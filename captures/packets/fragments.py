"""From fragments of IP packets to TCP segments. State without I/O.

A fragment is a segment of its own: the first one has the TCP header, and where the others' bytes
belong follows from it. So nothing is kept but a few headers, and each byte stays where it is in
the file. Fragments that come before their first one wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import pack_into
from typing import NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Packet
from kafkascope.captures.packets.ip import FRAGMENT, Fragment, payload_of
from kafkascope.captures.packets.link import LINK_TYPES
from kafkascope.captures.packets.tcp import ACK, FIN, MASK, PSH, SYN, Segment, segment_of


class First(NamedTuple):
    """What a first fragment says of the others."""

    segment: Segment | str
    """The segment, or why it is none."""
    base: int
    """Offset of TCP's payload in the payload of the packet that was cut."""
    size: int | None
    """Bytes of TCP's payload in all, where a packet inside of the packet states it."""


@dataclass(slots=True)
class Known:
    """A packet that came in fragments."""

    time_ns: int
    first: First | None = None
    waiting: list[tuple[Packet, Fragment]] = field(default_factory=list)


class Fragments:
    """Turns fragments into segments."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        self._held = 0
        """Bytes that wait."""

    def segments_of(self, packet: Packet) -> list[Segment | str]:
        """Return the segments that a record brings; a reason for each fragment that has none."""
        found = segment_of(packet)
        return self.parts(packet) if found == FRAGMENT else [found]

    def parts(self, packet: Packet) -> list[Segment | str]:
        """Return the same for a record that holds a fragment."""
        start = LINK_TYPES[packet.link_type][1](packet.data)
        part = payload_of(packet.data, start, packet.length)
        if not isinstance(part, Fragment) or part.size <= 0:
            return [FRAGMENT]
        out: list[Segment | str] = list(self._forget(packet.time_ns))
        known = self._known.get(part.key)
        if known is None or (not part.offset and known.first is not None):
            self._known.pop(part.key, None)  # a new one goes after all others
            known = self._known[part.key] = Known(packet.time_ns)
        if not part.offset:
            first = _first(packet, part)
            out.append(_trimmed(first, part))
            if not isinstance(first.segment, str):
                first = first._replace(segment=first.segment._replace(payload=b""))
            known.first = first
            out += [_later(first, *each) for each in self._taken(known)]
        elif known.first is not None:
            out.append(_later(known.first, packet, part))
        elif len(known.waiting) < LIMITS.fragments:
            # The record is a view of a block, which does not live as long.
            known.waiting.append((packet._replace(data=bytes(packet.data)), part))
            self._held += len(packet.data)
        else:
            out.append(FRAGMENT)
        return out

    def finish(self) -> Iterator[str]:
        """Yield a reason for each fragment that still waits."""
        for known in self._known.values():
            yield from [FRAGMENT] * len(self._taken(known))
        self._known.clear()

    def _taken(self, known: Known) -> list[tuple[Packet, Fragment]]:
        """Take out the fragments that wait for a packet."""
        taken, known.waiting = known.waiting, []
        self._held -= sum(len(packet.data) for packet, _ in taken)
        return taken

    def _forget(self, time_ns: int) -> Iterator[str]:
        while self._known:
            key = next(iter(self._known))
            known = self._known[key]
            fits = (
                len(self._known) <= LIMITS.fragmented_packets
                and self._held <= LIMITS.fragment_bytes
            )
            if fits and time_ns - known.time_ns < LIMITS.fragment_life_ns:
                return
            yield from [FRAGMENT] * len(self._taken(known))
            del self._known[key]


def _first(packet: Packet, part: Fragment) -> First:
    """Read the first fragment as if it were the whole packet."""
    data = bytearray(packet.data)
    pack_into(">H", data, part.field, 0)
    found = segment_of(packet._replace(data=bytes(data)))
    if isinstance(found, str):
        return First(found, 0, None)
    base = found.at - packet.at - part.at
    return First(found, base, found.length if found.length != part.size - base else None)


def _trimmed(first: First, part: Fragment) -> Segment | str:
    segment = first.segment
    if isinstance(segment, str):
        return segment
    length = min(segment.length, part.size - first.base)
    if length < 0:
        return FRAGMENT  # not even the TCP header is in it: nobody sends such
    flags = segment.flags
    if length < segment.length or part.more:
        flags &= ~(FIN | PSH)  # they belong to the end of the packet
    return segment._replace(flags=flags, payload=segment.payload[:length], length=length)


def _later(first: First, packet: Packet, part: Fragment) -> Segment | str:
    segment = first.segment
    if isinstance(segment, str):
        return segment
    begin = part.offset - first.base
    length = part.size if first.size is None else min(part.size, first.size - begin)
    if begin < 0 or length <= 0:
        return FRAGMENT
    last = segment.flags & (FIN | PSH) if not part.more else 0
    start = segment.seq + begin + (1 if segment.flags & SYN else 0)
    return segment._replace(
        packet=packet.number,
        time_ns=packet.time_ns,
        file=packet.file,
        at=packet.at + part.at,
        seq=start & MASK,
        flags=ACK | last,
        payload=bytes(packet.data[part.at : part.at + length]),
        length=length,
        copy=segment.copy ^ begin << 32,
    )
