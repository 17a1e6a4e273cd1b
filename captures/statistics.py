"""Counts of what was read of a source so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkascope.captures.errors import CutShort
from kafkascope.captures.model import Packet


@dataclass(slots=True)
class Statistics:
    """Counters of a source. Readers of it count; anybody may look at any time."""

    packets: int = 0
    captured_bytes: int = 0
    """Bytes of all packets, as captured."""
    segments: int = 0
    """TCP segments."""
    connections: int = 0
    duplicates: int = 0
    """Exact copies of a segment."""
    cut_packets: int = 0
    """TCP segments whose payload is not all there."""
    mirrored: int = 0
    """Those of them in frames that are whole: what sent these to the capturing host had cut the
    packets inside, as switches and clouds do that mirror traffic."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Packets without a usable TCP segment, by reason: "not ip", "not tcp", "fragment", "cut",
    "malformed", "unknown link type"."""
    unknown_links: dict[int, int] = field(default_factory=dict)
    """Packets by LINKTYPE_ number that we do not know."""
    translated: int = 0
    """Connections that were captured before and after address translation."""
    moved: int = 0
    """Packets that came behind later ones in their file, and were put in order."""
    dropped: int = 0
    """Packets that the capturing program says it lost."""
    first_ns: int | None = None
    last_ns: int | None = None
    damage: list[CutShort] = field(default_factory=list)
    """Damage of files, in their order."""

    def saw(self, packet: Packet) -> None:
        """Count a packet."""
        self.captured_bytes += len(packet.data)
        if self.first_ns is None:
            self.first_ns = self.last_ns = packet.time_ns
        else:
            self.last_ns = max(self.last_ns or 0, packet.time_ns)

    def skip(self, reason: str, link_type: int) -> None:
        """Count a packet without a usable TCP segment."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        if reason == "unknown link type":
            self.unknown_links[link_type] = self.unknown_links.get(link_type, 0) + 1
