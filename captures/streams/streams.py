"""From a `Source` to the `StreamEvent`s that the analyzer reads: packets, segments, reassembly; and
the packets of connections again, as they were captured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import Block, Format
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import Connection, Packet, Resolved, StreamEvent
from kafkascope.captures.packets.ip import FRAGMENT, NOT_TCP
from kafkascope.captures.packets.resolved import in_packet
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.streams.delivery import PACKETS_AT_ONCE
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.streams.relayed import RelayedLegs
from kafkascope.captures.streams.scan import scan

if TYPE_CHECKING:
    from kafkascope.captures.streams.shares import Share

Named = Callable[[Resolved], None]

# Blocks with fewer packets, of live captures, are as fast one by one.
MIN_PACKETS: Final = 8


class Assembly:
    """Makes the streams of a source of its packets."""

    def __init__(self, source: Source, limits: CaptureLimits = LIMITS) -> None:
        self.source = source
        self.statistics = source.statistics
        once = source.reads_once
        self.reassembler = Reassembler(source.comment_of, translations=once, limits=limits)
        self.legs = RelayedLegs(limits) if once else None
        """What marks the legs of proxies; None: nothing does."""
        self.named: Named | None = None
        """Gets host names that DNS answers over UDP, or the files, resolve."""
        self.share: Share | None = None
        """The connections that are read; None: all."""

    @property
    def first_waiting(self) -> int:
        """Number of the first packet of which bytes may still be delivered."""
        waiting = min(self.reassembler.packets + 1, self.reassembler.first_waiting)
        return waiting if self.legs is None else min(waiting, self.legs.first_waiting)

    def batches(
        self, named: Named | None = None, share: Share | None = None, *, bulk: bool | None = None
    ) -> Iterator[Iterable[list[StreamEvent]]]:
        """Yield the events of one block after the other, a few packets' at a time; all have to be
        read before the next one. A source without patience for silence gives none then
        (`Source.patience`).

        Damage costs only what is damaged: everything whole is delivered, connections are closed,
        then the first CutShort is raised (`source.statistics.damage` has all). `bulk` forces the
        bulk path on or off. Raises `NeedsSingleProcess` with a `share`.
        """
        self.named, self.share = named, share
        if share is not None:
            self.reassembler.number_of = share.number_of
            self.legs = None
        damage: CutShort | None = None
        formats: dict[int, Format] = {}
        """By file."""
        try:
            for block in self.source.blocks():
                formats[block.file] = block.format
                self._pass_names([block.format])
                events = None
                if len(block.positions) >= MIN_PACKETS if bulk is None else bulk:
                    events = scan(
                        block,
                        self.reassembler,
                        self.statistics,
                        self.skip,
                        share,
                        forced=bulk is True,
                    )
                yield self._without_legs(self._one_by_one(block) if events is None else events)
                self._sum_up()
                if share is not None:
                    share.check(self.reassembler)
        except CutShort as error:
            damage = error
        for reason in self.reassembler.fragments.finish():
            self.statistics.skip(reason, 0)
        last = self.reassembler.finish(self.statistics.last_ns)
        count = self.reassembler.connections
        yield [last if self.legs is None else self.legs.finish(last, count)]
        # Names stand after the packets as well, where a program adds them when it ends.
        self._pass_names(formats.values())
        self._sum_up()
        if damage is not None:
            raise damage

    def _pass_names(self, formats: Iterable[Format]) -> None:
        for format_ in formats if self.named is not None else ():
            self.pass_names(format_.names)
            format_.names.clear()

    def pass_names(self, found: Iterable[Resolved]) -> None:
        """Pass on host names, where somebody wants them."""
        if self.named is not None:
            for each in found:
                self.named(each)

    def _one_by_one(self, block: Block) -> Iterator[list[StreamEvent]]:
        """Yield the events of a block, read packet by packet."""
        reassembler, share = self.reassembler, self.share
        segments = self._segments_in(block)
        while some := list(islice(segments, PACKETS_AT_ONCE)):
            events: list[StreamEvent] = []
            for segment in some:
                if share is None or share.takes(segment):
                    events += reassembler.feed(segment)
            reassembler.packets = max(reassembler.packets, some[-1].packet)
            reassembler.time_ns = some[-1].time_ns
            yield events

    def _segments_in(self, block: Block) -> Iterator[Segment]:
        """Yield the TCP segments of a block, those of fragments included, and count all packets."""
        for packet in block.packets():
            segment = segment_of(packet)
            self.statistics.saw(packet)
            parts = self.reassembler.fragments.parts(packet) if segment == FRAGMENT else [segment]
            for part in parts:
                if isinstance(part, str):
                    self.skip(part, packet)
                    continue
                self.statistics.segments += 1
                if len(part.payload) < part.length:
                    self.statistics.cut_packets += 1
                    self.statistics.mirrored += len(packet.data) == packet.length
                yield part

    def skip(self, reason: str, packet: Packet) -> None:
        """Count a packet without a segment; it may resolve host names."""
        self.statistics.skip(reason, packet.link_type)
        if self.named is not None and reason == NOT_TCP:
            self.pass_names(in_packet(packet))

    def _without_legs(self, events: Iterator[list[StreamEvent]]) -> Iterator[list[StreamEvent]]:
        if self.legs is None:
            return events
        return (self.legs.passed(few, self.reassembler.connections) for few in events)

    def _sum_up(self) -> None:
        statistics, reassembler = self.statistics, self.reassembler
        statistics.connections = reassembler.connections
        statistics.duplicates = reassembler.duplicates
        statistics.translated = reassembler.translated
        if self.legs is not None:
            statistics.relayed, statistics.parted = self.legs.count, self.legs.parted


def streams(
    source: Source,
    *,
    bulk: bool | None = None,
    named: Named | None = None,
    limits: CaptureLimits = LIMITS,
) -> Iterator[StreamEvent]:
    """Yield all events of a source, in the order of its packets, as soon as these are read."""
    for block in Assembly(source, limits).batches(named, bulk=bulk):
        for events in block:
            yield from events


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
    connection: Connection = reassembler.flows[segment.flow].connection
    return connection.first_packet
