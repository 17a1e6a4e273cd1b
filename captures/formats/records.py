"""Types that the capture formats share: records, interfaces, secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafkascope.captures.formats.remarks import Remark

from kafkascope.captures.model import Resolved

MAX_RECORD: Final = 16 << 20
"""Largest captured packet (BIG TCP: 512 KB); a length above it is damage or malice."""
WINDOW: Final = 1 << 20
"""Bytes that are searched at once for where records go on: several of the largest usual ones."""
USUAL: Final = 1 << 18
"""Largest usual packet on the wire; the headers of larger ones are checked."""
MAX_TIME_NS: Final = (1 << 63) - 1
"""Latest time (the year 2262): a hostile clock must not exceed the 64 bits that store it."""


class Interface(NamedTuple):
    """An interface that packets were captured on. A pcap file has one without a name."""

    file: int
    number: int
    """Number within the file, counted over its sections."""
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
        """Return the time of a packet in ns since 1970."""
        ns = ticks * self.multiplier // self.divisor + self.offset_s * 1_000_000_000
        return min(max(ns, 0), MAX_TIME_NS)


class DecryptionSecrets(NamedTuple):
    """A decryption secrets block: TLS keys and the like, not interpreted."""

    file: int
    kind: int
    """0x544c534b: a TLS key log."""
    data: bytes


class Record(NamedTuple):
    """Header of a captured record."""

    time_ns: int
    interface: Interface
    start: int
    """Position of the data in the buffer."""
    captured: int
    wire: int


class Found(NamedTuple):
    """Result of a search for a record in a window."""

    at: int | None
    """Offset in the window where records go on; None: not found."""
    rest: int
    """When nothing was found: offset in the window from which to search on."""


class Format(Protocol):
    """Reader of one file's format: finds records in bytes, and holds what the file declares."""

    header: int
    """Bytes in front of the first record."""
    interfaces: list[Interface]
    secrets: list[DecryptionSecrets]
    """Those of the last walk, until somebody takes them."""
    names: list[Resolved]
    """Host names that the file holds; whoever reads the packets takes them out."""
    drops: dict[int, int]
    """Packets that the capturing program says it lost, by interface."""
    remarks: list[Remark]
    """Comments of packets of our own recordings, until somebody takes them; offsets are those in
    the buffer of the walk."""
    damage: str = ""
    """Reason why the walk cannot go on; empty while it can."""
    hopeless: bool = False
    """Whether nothing behind the damage can be read by this reader."""
    backs: bool
    """Whether the length of the record before damage may be wrong, because it stands only once."""
    strict: bool | None = True
    """Whether an odd header counts as damage."""
    final: bool = False
    """Set by the caller when no more bytes will come."""
    beyond: int = 0
    """Bytes that the damage is confined to; 0: not known, so records have to be searched for."""
    unwanted: int = 0
    """Bytes of a large block to skip at the place where the walk stopped; else 0."""
    uniform: bool = True
    """Whether all records of the last walk have the same kind of header, so numpy may read them."""
    last_ns: int = 0
    """Time of the last record read; simple packet blocks have none of their own."""

    def __init__(self, interfaces: list[Interface]) -> None:
        self.interfaces, self.secrets = interfaces, []
        self.names, self.drops, self.remarks = [], {}, []

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        """Return the positions of whole records, and where the walk stopped."""

    def wanted(self, buffer: bytearray, at: int, end: int) -> int:
        """Return how many bytes the record at `at` needs in all, as far as known."""

    def search(self, data: bytearray, final: bool, damaged: int = 0) -> Found:
        """Search `data` for where records go on. `data`: WINDOW bytes, or the `final` ones;
        `damaged`: offset of the damage, if it is in or behind them."""

    def record(self, buffer: bytearray, at: int) -> Record:
        """Return the record at a position from `walk`."""
