"""Headers of all packets of a block at once, and their times: the kernel reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.formats.pcapng import Pcapng
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.link import ETHERNET, LINUX_SLL, LINUX_SLL2, VLAN_TAGS
from kafkascope.captures.packets.tunnels import VXLAN_PORTS
from kafkascope.kernel.headers import (
    COOKED,
    COOKED_2,
    RAW,
    UNKNOWN_LINK,
    HeaderColumns,
    RecordLayout,
    first_late,
    read,
    times,
)

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import Block

__all__ = ["HeaderColumns", "columns_of", "first_late", "times_of"]

# Added to any time of a capture, it does not wrap around.
MOST_SHIFT_NS: Final = 1 << 60
SECOND_NS: Final = 1_000_000_000
_LINKS: Final = {
    ETHERNET: (12, 14, 0),
    LINUX_SLL: (14, 16, COOKED),
    LINUX_SLL2: (0, 20, COOKED_2),
    **dict.fromkeys((12, 14, 101, 228, 229), (RAW, 0, 0)),
}
"""Position of the EtherType, size of the header, and mark, by link type."""


def _layout(block: Block) -> RecordLayout | None:
    """Return how the records of a block are laid out; None for old blocks and text. The format
    keeps it, for a file may have thousands of interfaces."""
    format_ = block.format
    if not format_.uniform or abs(block.shift_ns) >= MOST_SHIFT_NS:
        return None
    if not isinstance(format_, Pcap | Pcapng):
        return None
    layout = format_.layout
    if layout is None:
        own = (False, format_.skip, format_.unit_ns) if isinstance(format_, Pcap) else (True, 28, 0)
        layout = format_.layout = RecordLayout(*own, LIMITS.time_ns, LIMITS.tunnels)
        layout.tags, layout.vxlan = VLAN_TAGS, VXLAN_PORTS
    layout.big = format_.order == ">"
    layout.first = format_.first if isinstance(format_, Pcapng) else 0
    for each in format_.interfaces[len(layout.types) :]:
        type_at, head, mark = _LINKS.get(each.link_type, (UNKNOWN_LINK, 0, 0))
        layout.types.append(type_at)
        layout.heads.append(head)
        layout.marks.append(mark)
        offset = each.offset_s * SECOND_NS
        exact = each.divisor == 1 and abs(offset) <= LIMITS.time_ns
        layout.multipliers.append(each.multiplier if exact else 0)
        layout.offsets.append(offset if exact else 0)
        layout.most.append(LIMITS.time_ns // each.multiplier if exact else -1)
    return layout


def columns_of(block: Block) -> HeaderColumns | None:
    """Return the headers of a block; None if packets have to go one by one (old block types, odd
    clocks)."""
    layout = _layout(block)
    if layout is None:
        return None
    place = block.shift_ns, block.number, block.base
    return read(bytes(block.buffer), block.file, block.positions, layout, *place)


def times_of(block: Block) -> list[int]:
    layout = _layout(block)
    if layout is not None:
        found = times(bytes(block.buffer), block.positions, layout, block.shift_ns)
        if found is not None:
            return found
    return [packet.time_ns for packet in block.packets()]
