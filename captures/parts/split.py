"""Splits a capture file into parts that many readers read at once.

`index` walks the records of a file from its start and notes where it could go on: so each part
starts at a record, no packet is lost or read twice, and each has its number. What was declared
before a part (byte order, interfaces) is part of it. Compressed files are one part.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.formats.pcapng import Pcapng
from kafkascope.captures.formats.records import TLS_KEY_LOG, Block, FileGap, Format, Interface
from kafkascope.captures.formats.remarks import Remark
from kafkascope.captures.formats.text import TEXT, Text
from kafkascope.captures.inputs.files import BLOCK_BYTES, Runs, Source
from kafkascope.captures.inputs.inflate import ByteStream
from kafkascope.captures.inputs.opening import format_of, open_stream
from kafkascope.captures.inputs.time_order import AHEAD_BYTES, NO_TIMES, TOLERANCE_NS
from kafkascope.captures.packets.columns import first_late, times_of

# Size of a part: some seconds of work, and few enough parts for a terabyte.
SPLIT_BYTES: Final = 64 << 20

Opener: TypeAlias = Callable[[str, int], ByteStream]
"""Opens a file by name at an offset, for its bytes as stored."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file, with all that is needed to read it."""

    file: int
    number: int
    start: int
    """Offset of a record."""
    end: int | None
    """Offset of the next part; None: the end of the file, wherever that is."""
    packets: int
    first: int
    """Number of its first packet; 1 is the first of the file, or of the input."""
    head: bytes
    """pcap: the file header. Empty for pcapng."""
    order: str = "<"
    section: int = 0
    """Number of the section's first interface."""
    interfaces: tuple[Interface, ...] = ()
    """Interfaces declared before the part."""
    last_ns: int = 0
    """Time of the packet before: simple packet blocks have none of their own."""
    gaps: tuple[FileGap, ...] = ()
    """Damage of the file, which a reader of one part may not be able to tell."""
    pieces: tuple[tuple[int, int, int], ...] | None = None
    """(index of the first packet within the file, how many, number of the first): the packets that
    are read; None: all."""
    shift_ns: int = 0
    """To add to times."""


@dataclass(slots=True)
class Index:
    """Facts of a file that can be known before its packets are read."""

    name: str
    format: str = "pcap"
    packets: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    """Latest time."""
    dropped: int = 0
    """Packets that the capturing program says it lost."""
    damage: str = ""
    damage_at: int | None = None
    gaps: list[FileGap] = field(default_factory=list)
    """Exact places of damage; empty when the compression is damaged."""
    compressed: bool = False
    interfaces: list[Interface] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    """Comments of packets, in a recording of our own."""
    pieces: list[tuple[int, int, int]] | None = None
    """Its packets in the order of their times, as in `Order.pieces`; None: that of the file."""
    secrets: list[tuple[int, bytes]] = field(default_factory=list, repr=False)
    """Key logs of TLS inside, each with the number of the packet from which on whoever reads the
    whole file knows it."""


class _Walk(Source):
    """Walks a file; remembers for each block where it began and what was declared by then."""

    def __init__(self, name: str, stream: ByteStream, block_bytes: int) -> None:
        super().__init__([name], None, {0: stream})
        self.sorts = False
        self.block_bytes = block_bytes
        self.before = 0
        self.state: tuple[str, int, int, int] = ("<", 0, 0, 0)

    def taken(self, packet: int) -> list[tuple[int, bytes]]:
        """Return the key logs that came since, with a packet's number."""
        found = [(packet, each.data) for each in self.secrets if each.kind == TLS_KEY_LOG]
        self.secrets.clear()
        return found

    def _before(self, format_: Format, at: int) -> None:
        self.before = at
        section = format_.first if isinstance(format_, Pcapng) else 0
        order = format_.order if isinstance(format_, Pcap | Pcapng) else "<"
        self.state = order, section, len(format_.interfaces), format_.last_ns


def _index_of_text(out: Index, open_: Opener) -> Index:
    """Index a text, of which one task reads all: its lines are counted."""
    out.format = TEXT
    source = Source([out.name], None, {0: open_(out.name, 0)})
    with source:
        out.packets = sum(data.count(b"\n") for data in source.text(0))
    out.damage = str(source.statistics.damage[0]) if source.statistics.damage else ""
    out.splits = []
    return out


def index(
    name: str, open_: Opener, *, split_bytes: int = SPLIT_BYTES, block_bytes: int = BLOCK_BYTES
) -> Index:
    """Index a file. Raises `NotACapture` when it is none; damage is part of the index."""
    stream, head, inflated = open_stream(name, open_(name, 0))
    try:
        format_ = format_of(head, 0, name)
    finally:
        stream.close()
    out = Index(name, compressed=inflated)
    if isinstance(format_, Text):
        return _index_of_text(out, open_)
    pcap_head = head[: format_.header] if isinstance(format_, Pcap) else b""
    out.format = "pcap" if pcap_head else "pcapng"
    # The first part begins with the file itself, so that what has no packets is read, too.
    first_order = format_.order if isinstance(format_, Pcap) else "<"
    splits = [Split(0, 0, 0, None, 0, 1, pcap_head, first_order)]
    walk = _Walk(name, open_(name, 0), min(block_bytes, split_bytes))
    late, ahead = False, True
    latest: tuple[int, int] = NO_TIMES
    first_at: int | None = None
    try:
        for block in walk.blocks():
            format_ = block.format
            times = times_of(block)
            first, last = times[0], max(times)
            out.first_ns = first if out.first_ns is None else out.first_ns
            out.last_ns = last if out.last_ns is None else max(last, out.last_ns)
            format_.last_ns = times[-1]
            hidden = walk.gaps[0][-1].at if walk.gaps[0] else 0
            # Where a record was hidden by a longer one, the latter would not be whole.
            here = walk.before >= hidden and not inflated
            if here and walk.before - splits[-1].start >= split_bytes:
                order, section, known, last_ns = walk.state
                place = 0, len(splits), walk.before, None, 0, out.packets + 1
                interfaces = tuple(format_.interfaces[:known])
                splits.append(Split(*place, pcap_head, order, section, interfaces, last_ns))
            # What stands in the bytes that `TimeOrder` reads ahead is known from the start.
            out.secrets += walk.taken(1 if ahead else out.packets + 1)
            begin = block.base + block.positions[0]
            first_at = begin if first_at is None else first_at
            ahead = ahead and begin < first_at + AHEAD_BYTES
            if block.format.uniform and not late:
                early, latest = first_late(times, latest, TOLERANCE_NS)
                late = early < len(block.positions)
            out.packets += len(block.positions)
    except CutShort as error:
        out.damage = str(error)
        out.damage_at = error.at
    finally:
        walk.close()
    out.secrets += walk.taken(1 if ahead else out.packets + 1)
    if late:
        out.pieces = _in_time_order(name, open_)
    out.gaps = walk.gaps.get(0, [])
    out.remarks = walk.remarks.of_file(0)
    formats = walk.formats.get(0, format_)
    out.dropped = sum(formats.drops.values())
    out.interfaces = list(formats.interfaces)
    ends = [*(each.start for each in splits[1:]), None]
    firsts = [*(each.first for each in splits[1:]), out.packets + 1]
    for split, end, following in zip(splits, ends, firsts, strict=True):
        count, start = following - split.first, split.start
        gaps = tuple(gap for gap in out.gaps if start <= gap.at and (end is None or gap.at < end))
        out.splits.append(replace(split, end=end, packets=count, gaps=gaps))
    return out


def _in_time_order(name: str, open_: Opener) -> list[tuple[int, int, int]] | None:
    """Return the packets of a file in the order of their times, as pieces; None: in the order of
    the file."""
    import numpy as np

    found = array("q")
    with Source([name], None, {0: open_(name, 0)}) as source, suppress(CutShort):
        for block in source.blocks():
            found.extend(block.base + at for at in block.positions)
    offsets = np.frombuffer(found, np.int64) if found else np.zeros(0, np.int64)
    indexes = np.empty(len(offsets), np.int64)
    indexes[np.argsort(offsets)] = np.arange(len(offsets))
    begins = np.flatnonzero(np.diff(indexes, prepend=-2) != 1)
    counts = np.diff(begins, append=len(indexes))
    pieces = zip(indexes[begins].tolist(), counts.tolist(), (begins + 1).tolist(), strict=True)
    return sorted(pieces) if len(begins) > 1 else None


class _Window:
    """Stream of the bytes of another one up to an offset."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream, self._left = stream, size
        self.close = stream.close

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; 0 at the end of the window."""
        if not self._left:
            return 0
        size = self._stream.readinto(buffer[: self._left]) or 0
        self._left -= size
        return size


class _Part(Source):
    """Reads one part."""

    def __init__(self, name: str, split: Split, stream: ByteStream, block_bytes: int) -> None:
        super().__init__([name], None, {0: stream})
        self.sorts = False
        self.block_bytes = block_bytes
        self._split = split
        self._number = split.first
        self.told = split.gaps

    def _blocks(self) -> Iterator[Block]:
        pieces = self._split.pieces
        if pieces is None:
            yield from self._all()
            return
        begin = self._split.first - 1
        runs = Runs(self._all(), begin)
        for first, count, number in pieces:
            start = max(first, begin)
            number += start - first
            for block in runs.take(start, first + count - start):
                yield block._replace(number=number, shift_ns=self._split.shift_ns)
                number += len(block.positions)

    def _all(self) -> Iterator[Block]:
        split = self._split
        if split.start:
            format_ = self.formats[0] = self._format()
            found = self._records(0, format_, self._opened[0], b"", None, split.start)
        else:
            found = super()._blocks()
        for block in self._noted(found):
            yield block._replace(file=split.file)

    def _format(self) -> Format:
        split = self._split
        if split.head:
            return Pcap(split.head, split.file)
        pcapng = Pcapng(split.file)
        pcapng.resume(split.order, split.section, list(split.interfaces), split.last_ns)
        return pcapng


def read_split(name: str, split: Split, open_: Opener, *, block_bytes: int = BLOCK_BYTES) -> Source:
    """Return a source of the blocks of a part, with packet numbers of the whole file."""
    stream: ByteStream = open_(name, split.start)
    if split.end is not None:
        stream = _Window(stream, split.end - split.start)
    return _Part(name, split, stream, block_bytes)
