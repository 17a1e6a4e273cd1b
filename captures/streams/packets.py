"""Finds the packets of connections again: what a capture holds of them, as it was captured."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Packet
from kafkascope.captures.packets.ip import FRAGMENT
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.streams.reassembly import Reassembler

MOST_FRAGMENTS: Final = 1024
"""Fragments of IP packets that wait until it is known which connection they belong to."""


def packets_of(source: Source, first: Collection[int]) -> Iterator[Packet]:
    """Yield the packets of the connections whose `first_packet` is among the given ones, in their
    order, but for fragments that came before the first one of their packet.

    A packet is valid until the next one is asked for. Damage is passed over: who read the source
    before was told.
    """
    reassembler = Reassembler(translations=source.reads_once)
    fragments: dict[int, Packet] = {}
    try:
        for block in source.blocks():
            for packet in block.packets():
                segment = segment_of(packet)
                if segment == FRAGMENT:
                    fragments[packet.number] = packet._replace(data=bytes(packet.data))
                    if len(fragments) > MOST_FRAGMENTS:
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
