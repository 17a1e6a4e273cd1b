"""What capture formats have in common: records, interfaces, secrets."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

MAX_RECORD: Final = 16 << 20
"""No captured packet is larger (BIG TCP: 512 KB); a length above it is damage or malice."""
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


class Format(Protocol):
    """Reading one file: told where bytes are, tells where records are. Holds what the file
    declares."""

    header: int
    """Bytes in front of the first record."""
    interfaces: list[Interface]
    secrets: list[Secrets]
    drops: dict[int, int]
    """Interface -> packets that the capturing program says it lost."""
    damage: str
    """Why the walk cannot go on; empty while it can."""
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

    def record(self, buffer: bytearray, at: int) -> Record:
        """The record at a position from `walk`."""
