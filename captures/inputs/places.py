"""Where the packets of a source are: on disk, to find one again without a look at others."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.inputs.spool import UNBOUNDED, Spool
from kafkascope.captures.model import Packet

if TYPE_CHECKING:
    from kafkascope.captures.inputs.block import Block

_PLACE: Final = struct.Struct("<qIIiIqI")
"""Time, link type, size, interface, file, offset, size on the wire."""
MOST_LENGTH: Final = (1 << 32) - 1


class Place(NamedTuple):
    """A packet without its data."""

    packet: Packet
    size: int
    """Bytes of it that were captured."""


class PacketPlaces:
    """The places of all packets of a source, by number; of blocks one behind the other."""

    def __init__(self) -> None:
        self._spool = Spool(UNBOUNDED)
        self._first: int | None = None

    def add(self, block: Block) -> None:
        """Note the packets of the block that follows."""
        if self._first is None:
            self._first = block.number
        self._spool.write(
            b"".join(
                _PLACE.pack(
                    each.time_ns,
                    each.link_type,
                    len(each.data),
                    each.interface,
                    each.file,
                    each.at,
                    min(each.length, MOST_LENGTH),
                )
                for each in block.packets()
            )
        )

    def get(self, number: int) -> Place | None:
        """Return where a packet is; None for one that was not read."""
        at = (number - (self._first or 0)) * _PLACE.size
        if self._first is None or at < 0 or at >= self._spool.written:
            return None
        found = _PLACE.unpack(self._spool.read(at, _PLACE.size))
        time_ns, link_type, size, interface, file, offset, wire = found
        return Place(Packet(number, time_ns, link_type, b"", wire, file, offset, interface), size)

    def close(self) -> None:
        """Free the disk."""
        self._spool.close()
