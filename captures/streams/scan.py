"""The bulk path of reassembly: whole blocks at once, where packets are in order.

It has no rule of its own: the kernel delivers what is plainly the next bytes of a stream
(`kafkascope.kernel.segments`), and all other packets go through `Reassembler.feed_marked`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkascope.captures.model import Chunk, Piece, StreamEvent
from kafkascope.captures.packets.columns import HeaderColumns, columns_of
from kafkascope.captures.packets.ip import FRAGMENT
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.streams.delivery import PACKETS_AT_ONCE
from kafkascope.kernel.segments import SegmentDelivery

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import Block
    from kafkascope.captures.model import Packet, Statistics
    from kafkascope.captures.streams.reassembly import Reassembler
    from kafkascope.captures.streams.shares import Share
    from kafkascope.kernel.segments import DirectionState

# Share of packets that need a closer look from which on one by one is as fast.
ODD_SHARE: Final = 0.3

# Makes a `Piece` of a tuple; `Piece._make` without its Python frame.
_piece = partial(tuple.__new__, Piece)


class _Delivering:
    """What the kernel asks for: chunks, and a closer look at packets."""

    def __init__(
        self,
        reassembler: Reassembler,
        numbers: list[int],
        copied: set[int],
        segment: Callable[[int], Segment],
    ) -> None:
        self._reassembler = reassembler
        self._numbers = numbers
        self._copied = copied
        self._segment = segment

    def closely(self, index: int, out: list[StreamEvent]) -> int:
        """Look at a packet; return from which time on the next one has to be looked at, too."""
        reassembler = self._reassembler
        segment = self._segment(index)
        reassembler.packets = self._numbers[index] - 1
        events = reassembler.feed_marked(segment, index in self._copied)
        for event in events:
            # What follows it may not be read before it.
            event.connection.reader = None
        out += events
        return reassembler.deadlines.wake_ns

    @staticmethod
    def chunk(direction: DirectionState, size: int, data: bytes, pieces: list[Any]) -> Chunk:
        """Return the last bytes of a direction."""
        return Chunk(
            direction.connection,
            direction.number,
            direction.offset - size,
            data,
            list(map(_piece, pieces)),
        )


def scan(
    block: Block,
    reassembler: Reassembler,
    statistics: Statistics,
    skip: Callable[[str, Packet], None],
    share: Share | None = None,
    *,
    forced: bool = False,
) -> Iterator[list[StreamEvent]] | None:
    """Return the events of a block, a few packets' at a time, or None (with nothing done) when it
    should go packet by packet.

    `skip` gets packets without a segment. With a `share` only events of its connections. `forced`:
    even where packet by packet is as fast.
    """
    columns = columns_of(block)
    if columns is None:
        return None
    count = len(block.positions)
    if not forced and count - sum(columns.plain) > ODD_SHARE * count:
        return None
    others = [block.packet(index) for index in columns.others]
    reasons = list(map(segment_of, others))
    if any(isinstance(reason, Segment) or reason == FRAGMENT for reason in reasons):
        return None  # TCP after headers that `columns` does not follow, or in parts: rare
    for packet, reason in zip(others, reasons, strict=True):
        skip(str(reason), packet)
    _count(columns, statistics)
    block.format.last_ns = columns.last_ns - block.shift_ns
    if share is not None:
        share.keep_own(columns, block)

    def segment(index: int) -> Segment:
        found = segment_of(block.packet(columns.numbers[index] - block.number))
        assert isinstance(found, Segment)
        return found

    return events_of(columns, reassembler, segment, block.number + count - 1)


def events_of(
    packets: HeaderColumns,
    reassembler: Reassembler,
    segment: Callable[[int], Segment],
    last: int,
) -> Iterator[list[StreamEvent]]:
    """Yield the events of packets, of few at a time. `segment` makes the one at an index; `last`:
    number of the last packet, which may have no TCP."""
    numbers, prints = packets.numbers, packets.prints
    copies = reassembler.copies.seen_all(prints, packets.times, packets.interfaces, numbers)
    copied = {at for at, copy in enumerate(copies or ()) if copy}
    for at in copied:
        packets.plain[at] = False
    looks = _Delivering(reassembler, numbers, copied, segment)
    delivery = SegmentDelivery(packets, reassembler.flows, looks)
    for first in range(0, len(numbers), PACKETS_AT_ONCE):
        behind = min(first + PACKETS_AT_ONCE, len(numbers))
        events = delivery.events(first, behind, reassembler.deadlines.wake_ns)
        reassembler.packets, reassembler.time_ns = numbers[behind - 1], packets.times[behind - 1]
        yield events
    reassembler.packets = last


def _count(columns: HeaderColumns, statistics: Statistics) -> None:
    if statistics.first_ns is None:
        statistics.first_ns = statistics.last_ns = columns.first_ns
    statistics.last_ns = max(statistics.last_ns or 0, columns.latest_ns)
    statistics.captured_bytes += columns.captured_bytes
    statistics.segments += len(columns.numbers)
    statistics.cut_packets += columns.cut
    statistics.mirrored += columns.mirrored
