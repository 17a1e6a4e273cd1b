"""From a `Source` to the `StreamEvent`s that the analyzer reads: packets, segments, reassembly; and
the packets of connections again, as they were captured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import Block, Format
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import Packet, Resolved, Statistics, StreamEvent
from kafkascope.captures.packets.fragments import Fragments
from kafkascope.captures.packets.ip import FRAGMENT, NOT_TCP
from kafkascope.captures.packets.resolved import in_packet
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.streams.delivery import PACKETS_AT_ONCE
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.streams.relayed import RelayedLegs

if TYPE_CHECKING:
    from kafkascope.captures.streams.shares import Share

Named = Callable[[Resolved], None]

# Blocks with fewer packets are faster one by one: numpy's fixed cost is about 0.3 ms a block.
MIN_PACKETS: Final = 48
# Loading numpy takes 0.1 to 0.2 s, as long as this many packets one by one.
NUMPY_PACKETS: Final = 10_000


class Assembly(NamedTuple):
    """What makes the streams of an input of its packets."""

    reassembler: Reassembler
    legs: RelayedLegs | None
    """What marks the legs of proxies; None: nothing does."""

    @classmethod
    def of(cls, source: Source, limits: CaptureLimits = LIMITS) -> Assembly:
        once = source.reads_once
        reassembler = Reassembler(source.comment_of, translations=once, limits=limits)
        return cls(reassembler, RelayedLegs(limits) if once else None)

    @property
    def first_waiting(self) -> int:
        """Number of the first packet of which bytes may still be delivered."""
        waiting = min(self.reassembler.packets + 1, self.reassembler.first_waiting)
        return waiting if self.legs is None else min(waiting, self.legs.first_waiting)


def streams(
    source: Source,
    *,
    bulk: bool | None = None,
    named: Named | None = None,
    limits: CaptureLimits = LIMITS,
) -> Iterator[StreamEvent]:
    """Yield all events of a source, in the order of its packets, as soon as these are read."""
    for block in batches(source, Assembly.of(source, limits), bulk=bulk, named=named):
        for events in block:
            yield from events


def batches(
    source: Source,
    assembly: Assembly,
    *,
    bulk: bool | None = None,
    named: Named | None = None,
    share: Share | None = None,
) -> Iterator[Iterable[list[StreamEvent]]]:
    """Yield the events of one block after the other, a few packets' at a time; all have to be read
    before the next one. A source without patience for silence gives none then (`Source.patience`).

    Damage costs only what is damaged: everything whole is delivered, connections are closed, then
    the first CutShort is raised (`source.statistics.damage` has all). `bulk` forces the bulk path
    on or off. `named` gets host names that DNS answers over UDP, or the files, resolve. Of a
    `share` only the connections are read; raises `NeedsSingleProcess`.
    """
    reassembler, legs = assembly
    if share is not None:
        reassembler.number_of = share.number_of
        legs = None
    damage: CutShort | None = None
    formats: dict[int, Format] = {}
    """By file."""
    try:
        for block in source.blocks():
            if named is not None:
                formats[block.file] = block.format
                pass_names_to([block.format], named)
            events = None
            if _in_bulk(block, source) if bulk is None else bulk:
                from kafkascope.captures.streams.scan import scan

                events = scan(
                    block, reassembler, source.statistics, named, share, forced=bulk is True
                )
            if events is None:
                events = one_by_one(block, reassembler, source, named, share)
            yield events if legs is None else _without(legs, events, reassembler)
            sum_up(reassembler, source, legs)
            if share is not None:
                share.check(reassembler)
    except CutShort as error:
        damage = error
    for reason in reassembler.fragments.finish():
        source.statistics.skip(reason, 0)
    last = reassembler.finish(source.statistics.last_ns)
    yield [last if legs is None else legs.finish(last, reassembler.connections)]
    if named is not None:
        # Names stand behind the packets as well, where a program adds them when it ends.
        pass_names_to(formats.values(), named)
    sum_up(reassembler, source, legs)
    if damage is not None:
        raise damage


def pass_names_to(formats: Iterable[Format], named: Named) -> None:
    for format_ in formats:
        for each in format_.names:
            named(each)
        format_.names.clear()


def one_by_one(
    block: Block, reassembler: Reassembler, source: Source, named: Named | None, share: Share | None
) -> Iterator[list[StreamEvent]]:
    """Yield the events of a block, read packet by packet."""
    segments = segments_in(block, reassembler.fragments, source.statistics, named)
    while some := list(islice(segments, PACKETS_AT_ONCE)):
        events: list[StreamEvent] = []
        for segment in some:
            if share is None or share.takes(segment):
                events += reassembler.feed(segment)
        reassembler.packets = max(reassembler.packets, some[-1].packet)
        reassembler.time_ns = some[-1].time_ns
        yield events


def _without(
    legs: RelayedLegs, events: Iterator[list[StreamEvent]], reassembler: Reassembler
) -> Iterator[list[StreamEvent]]:
    for few in events:
        yield legs.passed(few, reassembler.connections)


def segments_in(
    block: Block, fragments: Fragments, statistics: Statistics, named: Named | None
) -> Iterator[Segment]:
    """Yield the TCP segments of a block, those of fragments included, and count all packets."""
    for packet in block.packets():
        segment = segment_of(packet)
        statistics.saw(packet)
        if segment == FRAGMENT:
            for part in fragments.parts(packet):
                if isinstance(part, str):
                    statistics.skip(part, packet.link_type)
                else:
                    yield _counted(part, packet, statistics)
        elif isinstance(segment, str):
            statistics.skip(segment, packet.link_type)
            if named is not None and segment == NOT_TCP:
                for each in in_packet(packet):
                    named(each)
        else:
            yield _counted(segment, packet, statistics)


def _counted(segment: Segment, packet: Packet, statistics: Statistics) -> Segment:
    statistics.segments += 1
    if len(segment.payload) < segment.length:
        statistics.cut_packets += 1
        statistics.mirrored += len(packet.data) == packet.length
    return segment


def sum_up(reassembler: Reassembler, source: Source, legs: RelayedLegs | None = None) -> None:
    source.statistics.connections = reassembler.connections
    source.statistics.duplicates = reassembler.duplicates
    source.statistics.translated = reassembler.translated
    if legs is not None:
        source.statistics.relayed, source.statistics.parted = legs.count, legs.parted


def _in_bulk(block: Block, source: Source) -> bool:
    """Whether numpy pays off for a block: loading it takes as long as some thousand packets."""
    if len(block.positions) < MIN_PACKETS:
        return False
    if "numpy" in sys.modules:
        return True
    count = len(block.positions)
    if source.statistics.packets + count > NUMPY_PACKETS:
        return True
    # As many as the input holds if all are like these: 64 KB a packet, or 60 bytes.
    return source.size * (count - 1) > NUMPY_PACKETS * abs(block.positions[-1] - block.positions[0])


def packets_of(source: Source, first: Collection[int]) -> Iterator[Packet]:
    """Yield the packets of the connections whose `first_packet` is among the given ones, in their
    order, but for fragments that came before the first one of their packet.

    A packet is valid until the next one is requested. Damage is skipped: the first pass over the
    source reported it.
    """
    reassembler = Reassembler(translations=source.reads_once)
    fragments: dict[int, Packet] = {}
    try:
        for block in source.blocks():
            for packet in block.packets():
                segment = segment_of(packet)
                if segment == FRAGMENT:
                    fragments[packet.number] = packet._replace(data=bytes(packet.data))
                    if len(fragments) > LIMITS.exported_fragments:
                        del fragments[next(iter(fragments))]
                    for part in reassembler.fragments.parts(packet):
                        if not isinstance(part, str):
                            reassembler.feed(part)
                            one = fragments.pop(part.packet, None)
                            if one is not None and _first(reassembler, part) in first:
                                yield one
                elif not isinstance(segment, str):
                    reassembler.feed(segment)
                    if _first(reassembler, segment) in first:
                        yield packet
    except CutShort:
        pass


def _first(reassembler: Reassembler, segment: Segment) -> int:
    """Return the number of the first packet of the connection that has just got a segment."""
    return reassembler.flows[segment.flow].connection.first_packet
