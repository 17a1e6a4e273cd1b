"""Types that the capture formats share: records, interfaces, secrets; damaged places and the
sentence about them; blocks of whole records, which files are read as and all readers take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol, cast

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.remarks import Remark
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Packet, Resolved
from kafkascope.kernel.headers import RecordLayout

# Bytes that are searched at once for where records go on: several of the largest usual ones.
WINDOW: Final = 1 << 20
# Largest usual packet on the wire; the headers of larger ones are checked.
USUAL: Final = 1 << 18


# Type of a decryption secrets block that holds a key log of TLS.
TLS_KEY_LOG: Final = 0x544C534B


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
        ns = ticks * self.multiplier // self.divisor + self.offset_s * 1_000_000_000
        return min(max(ns, 0), LIMITS.time_ns)


class DecryptionSecrets(NamedTuple):
    """A decryption secrets block: TLS keys and the like, not interpreted."""

    file: int
    kind: int
    """As `TLS_KEY_LOG`."""
    data: bytes


class CaptureRecord(NamedTuple):
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
    """Whether nothing after the damage can be read by this reader."""
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
    numbered: bool = True
    """Whether its records are packets, which have numbers."""
    uniform: bool = True
    """Whether all records of the last walk have the same kind of header, so the kernel may read
    them."""
    last_ns: int = 0
    """Time of the last record read; simple packet blocks have none of their own."""
    layout: RecordLayout | None = None
    """How the kernel reads the headers of its packets: see `packets.columns`."""

    def __init__(self, interfaces: list[Interface]) -> None:
        self.interfaces, self.secrets = interfaces, []
        self.names, self.drops, self.remarks = [], {}, []

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        """Return the positions of whole records, and where the walk stopped."""

    def record_size(self, buffer: bytearray, at: int, end: int) -> int:
        """Return how many bytes the record at `at` needs in all, as far as known."""

    def search(self, data: bytearray, final: bool, damaged: int = 0) -> Found:
        """Search `data` for where records go on. `data`: WINDOW bytes, or the `final` ones;
        `damaged`: offset of the damage, if it is in or after them."""

    def record(self, buffer: bytearray, at: int) -> CaptureRecord:
        """Return the record at a position from `walk`."""


CUT: Final = "the record is incomplete"
"""Reason why the last record of a file cannot be read."""
CUT_SHORT: Final = "is cut short"


class FileGap(NamedTuple):
    """Bytes that could not be read as records."""

    at: int
    """Offset in the (uncompressed) file."""
    resume: int | None
    """Where records go on; None: nowhere. It lies before `at` when the length of the record before
    was wrong and hid others."""
    reason: str


def add_gap(gaps: list[FileGap], gap: FileGap) -> None:
    """Add a gap, or extend the last one if the new one begins at its end."""
    if gaps and gaps[-1].resume == gap.at:
        last = gaps.pop()
        gap = FileGap(last.at, gap.resume, last.reason)
    gaps.append(gap)


def cut_short(name: str, gaps: Sequence[FileGap]) -> CutShort:
    first, last = gaps[0], gaps[-1]
    text = f"{name} is damaged at byte {first.at}: {first.reason}"
    if gaps[0][1:] == (None, CUT):
        text = f"{name} {CUT_SHORT}: the record at byte {first.at} is incomplete"
    elif len(gaps) > 1:
        text = f"{name} is damaged at {len(gaps)} places, first at byte {first.at}: {first.reason}"
    skipped = skipped_bytes(gaps)
    if skipped:
        text += f"; {skipped} bytes were skipped"
    if last.resume is None and len(gaps) > 1:
        text += f"; nothing could be read after byte {last.at}"
    error = CutShort(text)
    error.at = first.at
    return error


def skipped_bytes(gaps: Sequence[FileGap]) -> int:
    """Return the size of all gaps after which records go on."""
    return sum(max(gap.resume - gap.at, 0) for gap in gaps if gap.resume is not None)


class Block(NamedTuple):
    """Whole records in a buffer. Valid until the next one is read."""

    file: int
    format: Format
    buffer: bytearray
    base: int
    """Offset of the buffer's first byte in the (uncompressed) file."""
    positions: list[int]
    number: int
    """Packet number of the first record."""
    shift_ns: int = 0
    """To add to the times of all records."""

    def packet(self, index: int) -> Packet:
        positions = self.positions[index : index + 1]
        return next(self._replace(positions=positions, number=self.number + index).packets())

    def packets(self) -> Iterator[Packet]:
        """Yield the records one by one; their data are views of the buffer."""
        view = memoryview(self.buffer)
        record = self.format.record
        number, shift_ns = self.number, self.shift_ns
        for at in self.positions:
            time_ns, interface, start, captured, wire = record(self.buffer, at)
            if shift_ns:
                time_ns = max(time_ns + shift_ns, 0)
            # A view in place of bytes: what lives longer than the block is copied where it is kept.
            data = cast("bytes", view[start : start + captured])
            yield Packet(
                number,
                time_ns,
                interface.link_type,
                data,
                wire,
                self.file,
                self.base + start,
                interface.number,
            )
            number += 1
