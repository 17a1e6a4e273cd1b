"""From a `Source` to the `StreamEvent`s that the analyzer reads: packets, segments, reassembly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import Format
from kafkascope.captures.inputs.block import Block
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Packet, Resolved, StreamEvent
from kafkascope.captures.packets.fragments import Fragments
from kafkascope.captures.packets.ip import FRAGMENT, NOT_TCP
from kafkascope.captures.packets.resolved import in_packet
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.statistics import Statistics
from kafkascope.captures.streams.reassembly import Reassembler

Named = Callable[[Resolved], None]

MIN_PACKETS: Final = 48
"""Blocks with fewer packets are faster one by one: numpy's fixed cost is about 0.3 ms a block."""
NUMPY_PACKETS: Final = 10_000
"""Loading numpy takes 0.1 to 0.2 s, as long as this many packets one by one."""


def streams(
    source: Source, *, bulk: bool | None = None, named: Named | None = None
) -> Iterator[StreamEvent]:
    """Yield all events of a source, in the order of its packets, as soon as these are read."""
    for batch in batches(source, bulk=bulk, named=named):
        yield from batch


def batches(
    source: Source, *, bulk: bool | None = None, named: Named | None = None
) -> Iterator[Iterable[StreamEvent]]:
    """Yield the events of one block after the other; each has to be read before the next one. A
    source without patience for silence gives none then (`Source.patience`).

    Damage costs only what is damaged: everything whole is delivered, connections are closed, then
    the first CutShort is raised (`source.statistics.damage` has all). `bulk` forces the bulk path
    on or off. `named` is told of host names that DNS answers over UDP, or the files, resolve.
    """
    reassembler = Reassembler(source.comment_of, translations=source.reads_once)
    damage: CutShort | None = None
    formats: dict[int, Format] = {}
    """By file."""
    try:
        for block in source.blocks():
            if named is not None:
                formats[block.file] = block.format
                tell([block.format], named)
            events = None
            if _in_bulk(block, source) if bulk is None else bulk:
                from kafkascope.captures.streams.scan import scan

                events = scan(block, reassembler, source.statistics, named)
            yield one_by_one(block, reassembler, source, named) if events is None else events
            sum_up(reassembler, source)
    except CutShort as error:
        damage = error
    for reason in reassembler.fragments.finish():
        source.statistics.skip(reason, 0)
    yield reassembler.finish(source.statistics.last_ns)
    if named is not None:
        # Names stand behind the packets as well, where a program adds them when it ends.
        tell(formats.values(), named)
    sum_up(reassembler, source)
    if damage is not None:
        raise damage


def tell(formats: Iterable[Format], named: Named) -> None:
    """Tell the host names that files hold, each once."""
    for format_ in formats:
        for each in format_.names:
            named(each)
        format_.names.clear()


def one_by_one(
    block: Block, reassembler: Reassembler, source: Source, named: Named | None = None
) -> Iterator[StreamEvent]:
    """Yield the events of a block, packet by packet."""
    for segment in segments_in(block, reassembler.fragments, source.statistics, named):
        yield from reassembler.feed(segment)


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


def sum_up(reassembler: Reassembler, source: Source) -> None:
    """Count what reassembly has counted."""
    source.statistics.connections = reassembler.connections
    source.statistics.duplicates = reassembler.duplicates
    source.statistics.translated = reassembler.translated


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
