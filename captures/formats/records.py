"""What capture formats have in common: records, interfaces, secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafkascope.captures.formats.remarks import Remark

from kafkascope.captures.model import Resolved

MAX_RECORD: Final = 16 << 20
"""No captured packet is larger (BIG TCP: 512 KB); a length above it is damage or malice."""
WINDOW: Final = 1 << 20
"""Bytes to look at for where records go on: several of the largest usual ones."""
USUAL: Final = 1 << 18
"""Bytes of a packet on the wire; larger ones exist, but are looked at twice."""
MAX_TIME_NS: Final = (1 << 63) - 1
"""Times are kept within 64 bits (the year 2262), for a hostile clock must not break what stores
them."""


class Interface(NamedTuple):
    """Where packets were captured. pcap files have one without name."""

    file: int
    number: int
    """Within the file, counted over its sections."""
    link_type: int
    name: str
    comment: str
    """The comment option, else the description."""
    snaplen: int
    """0: no limit."""
    multiplier: int
    divisor: int
    """A tick of its clock is `multiplier / divisor` ns."""
    offset_s: int
    """Seconds to add to its times."""

    def time_ns(self, ticks: int) -> int:
        """The time of a packet in ns since 1970."""
        ns = ticks * self.multiplier // self.divisor + self.offset_s * 1_000_000_000
        return min(max(ns, 0), MAX_TIME_NS)


class Secrets(NamedTuple):
    """A decryption secrets block: TLS keys and the like, not interpreted."""

    file: int
    kind: int
    """0x544c534b: a TLS key log."""
    data: bytes


class Record(NamedTuple):
    """The header of a captured record."""

    time_ns: int
    interface: Interface
    start: int
    """Where the data starts in the buffer."""
    captured: int
    wire: int


class Found(NamedTuple):
    """What a search for a record in a window says."""

    at: int | None
    """Offset in the window where records go on; None: not found."""
    rest: int
    """When nothing was found: offset in the window from which to search on."""


class Format(Protocol):
    """Reading one file: told where bytes are, tells where records are. Holds what the file
    declares."""

    header: int
    """Bytes in front of the first record."""
    interfaces: list[Interface]
    secrets: list[Secrets]
    names: list[Resolved]
    """What the file tells of host names; whoever reads the packets takes them out."""
    drops: dict[int, int]
    """Interface -> packets that the capturing program says it lost."""
    remarks: list[Remark]
    """Comments of packets of our own recordings, since they were last taken; offsets in the buffer
    of the walk."""
    damage: str
    """Why the walk cannot go on; empty while it can."""
    hopeless: bool
    """What comes behind the damage is not for this reader."""
    backs: bool
    """The length of a record before damage may be wrong, for it is there only once."""
    strict: bool | None
    """False: what is only odd is no damage."""
    final: bool
    """To be set when no more bytes will come."""
    beyond: int
    """Size of what the damage is confined to; 0: to be searched for."""
    unwanted: int
    """Size of a large block at the place where the walk stopped, to be skipped; else 0."""
    uniform: bool
    """All records of the last walk have the same kind of header, so numpy may read them."""
    last_ns: int
    """Time of the last record read; simple packet blocks have none of their own."""

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        """Positions of whole records, and where the walk stopped."""

    def wanted(self, buffer: bytearray, at: int, end: int) -> int:
        """Bytes that the record at `at` needs in all, as far as known."""

    def search(self, data: bytearray, final: bool, damaged: int = 0) -> Found:
        """Where records go on; `data`: WINDOW bytes, or the `final` ones; `damaged`: offset of
        the damage, if in or behind them."""

    def record(self, buffer: bytearray, at: int) -> Record:
        """The record at a position from `walk`."""
