"""The whole way: a `Source` in, `StreamEvent`s out. This is what the analyzer reads."""

from __future__ import annotations

from collections.abc import Iterator

from captures.files import Block, Source
from captures.model import StreamEvent
from captures.errors import CutShort
from captures.reassembly import Reassembler
from captures.tcp import segment_of


def streams(source: Source, *, bulk: bool | None = None) -> Iterator[StreamEvent]:
    """All events of a source, in the order of its packets, each as soon as its packets are read.

    Damage costs only what is damaged: everything whole is delivered, connections are closed, then the
    first CutShort is raised (`source.statistics.damage` has all). `bulk` forces the bulk path on or off.
    """
    reassembler = Reassembler(source.comment_of)
    damage: CutShort | None = None
    try:
        for block in source.blocks():
            yield from one_by_one(block, reassembler, source)
    except CutShort as error:
        damage = error
    yield from reassembler.finish()
    if damage is not None:
        raise damage


def one_by_one(block: Block, reassembler: Reassembler, source: Source) -> Iterator[StreamEvent]:
    """The events of a block, packet by packet."""
    statistics = source.statistics
    for packet in block.packets():
        segment = segment_of(packet)
        statistics.saw(packet)
        if isinstance(segment, str):
            statistics.skip(segment, packet.link_type)
            continue
        statistics.segments += 1
        if len(segment.payload) < segment.length:
            statistics.cut_packets += 1
        yield from reassembler.feed(segment)
        statistics.connections = reassembler.connections
        statistics.duplicates = reassembler.duplicates
