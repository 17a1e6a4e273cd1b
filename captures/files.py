"""Open captures: paths in, blocks of records or `Packet`s out. With spool.py the only file I/O here.

What a file is, its content tells, never its name. Compressed files and pipes are read as they come.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import FileIO
from typing import Final, NamedTuple, cast

from captures.errors import CutShort, NotACapture
from captures.inflate import Stream, inflate
from captures.model import Packet
from captures.pcap import Pcap, size_of_header
from captures.pcapng import Pcapng
from captures.records import Format, Interface, Secrets
from captures.spool import NotKept, Spool

BLOCK_BYTES: Final = 1 << 20
"""Read at once: large enough that numpy's fixed cost is small, small enough for the processor's cache."""
_SLACK: Final = 64
"""Bytes behind the end of a buffer, so that headers may be read before their lengths are checked."""
_HEAD_BYTES: Final = 28
"""Enough to tell what a file is."""
STDIN: Final = "-"
_PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"

_OTHERS: Final = (
    (b"snoop\0\0\0", "a snoop capture"),
    (b"GMBU", "a Network Monitor capture"),
    (b"RTSS", "a Network Monitor capture"),
    (b"TRSNIFF data", "a Sniffer capture"),
    (b"XCP\0", "a NetXRay capture"),
)
"""Captures that Wireshark reads and we do not."""


class Block(NamedTuple):
    """Whole records in a buffer. Valid until the next one is asked for."""

    file: int
    format: Format
    buffer: bytearray
    base: int
    """Offset of the buffer's first byte in the (uncompressed) file."""
    positions: list[int]
    number: int
    """Packet number of the first record."""

    def packets(self) -> Iterator[Packet]:
        """The records one by one; their data are views of the buffer."""
        view = memoryview(self.buffer)
        record = self.format.record
        number = self.number
        for at in self.positions:
            time_ns, interface, start, captured, wire = record(self.buffer, at)
            # A view in place of bytes: what lives longer than the block is copied where it is kept.
            data = cast(bytes, view[start : start + captured])
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


@dataclass(slots=True)
class Statistics:
    """What was read so far, readable at any time."""

    packets: int = 0
    captured_bytes: int = 0
    """Bytes of all packets, as captured."""
    segments: int = 0
    """TCP segments."""
    connections: int = 0
    duplicates: int = 0
    """Exact copies of a segment."""
    cut_packets: int = 0
    """TCP segments whose payload the snaplen cut."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Reason -> packets without a TCP segment for us: "not ip", "not tcp", "fragment", "cut", "malformed",
    "unknown link type"."""
    unknown_links: dict[int, int] = field(default_factory=dict)
    """LINKTYPE_ number that we do not know -> packets."""
    dropped: int = 0
    """Packets that the capturing program says it lost."""
    first_ns: int | None = None
    last_ns: int | None = None
    damage: list[CutShort] = field(default_factory=list)
    """Files that end early."""

    def saw(self, packet: Packet) -> None:
        """Count a packet."""
        self.captured_bytes += len(packet.data)
        if self.first_ns is None:
            self.first_ns = self.last_ns = packet.time_ns
        else:
            self.last_ns = max(self.last_ns or 0, packet.time_ns)

    def skip(self, reason: str, link_type: int) -> None:
        """Count a packet that is no TCP segment."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        if reason == "unknown link type":
            self.unknown_links[link_type] = self.unknown_links.get(link_type, 0) + 1


class Source:
    """Several inputs as one. Iterate once, by `blocks` or by `packets`; context manager."""

    def __init__(self, paths: list[str], spool: Spool | None = None) -> None:
        self.names = paths
        """One for each file index; "-" is standard input."""
        self.statistics = Statistics()
        self.formats: dict[int, Format] = {}
        """File index -> what it declares, for the files opened so far."""
        self.spool = spool
        self.size = 0
        """Bytes of all regular files, as stored."""
        self._spooled: dict[int, int] = {}
        self._readers: dict[int, int] = {}
        self._number = 1

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what `read` opened, and the spool."""
        for descriptor in self._readers.values():
            os.close(descriptor)
        self._readers.clear()
        if self.spool is not None:
            self.spool.close()
            self.spool = None

    def interfaces(self) -> list[Interface]:
        """The interfaces declared so far, over all files."""
        return [each for format_ in self.formats.values() for each in format_.interfaces]

    def secrets(self) -> list[Secrets]:
        """The secrets blocks seen so far."""
        return [each for format_ in self.formats.values() for each in format_.secrets]

    def comment_of(self, file: int, interface: int) -> str:
        """Comment of an interface, else its description, else nothing."""
        interfaces = self.formats[file].interfaces
        return interfaces[interface].comment if interface < len(interfaces) else ""

    def blocks(self) -> Iterator[Block]:
        """All records in order. Damage ends its file, not the others; it is raised behind the last."""
        for index, name in enumerate(self.names):
            try:
                yield from self._file_blocks(index, name)
            except CutShort as error:
                self.statistics.damage.append(error)
            format_ = self.formats.get(index)
            self.statistics.dropped += sum(format_.drops.values()) if format_ else 0
        if self.statistics.damage:
            raise self.statistics.damage[0]

    def packets(self) -> Iterator[Packet]:
        """All records in order, as `blocks`, with data of their own."""
        for block in self.blocks():
            for packet in block.packets():
                yield packet._replace(data=bytes(packet.data))

    def read(self, file: int, at: int, size: int) -> bytes:
        """Bytes of a file again, by the offset that packets and pieces tell; NotKept when they are gone."""
        start = self._spooled.get(file)
        if start is not None and self.spool is not None:
            return self.spool.read(start + at, size)
        descriptor = self._readers.get(file)
        if descriptor is None:
            name = self.names[file]
            if not _is_regular(name):
                raise NotKept(f"the bytes of {spoken(name)} were not kept")
            stream, _, inflated = _open(name)
            stream.close()
            if inflated:
                raise NotKept(f"the bytes of {name} were not kept")
            descriptor = self._readers[file] = os.open(name, os.O_RDONLY)
        data = os.pread(descriptor, size, at)
        if len(data) != size:
            raise NotKept(f"{self.names[file]} is shorter than it was")
        return data

    def _file_blocks(self, index: int, name: str) -> Iterator[Block]:
        stream, head, inflated = _open(name)
        try:
            spool = self.spool if inflated or not _is_regular(name) else None
            if spool is not None:
                self._spooled[index] = spool.written
                spool.write(head)
            format_ = _format_of(head, index, name)
            self.formats[index] = format_
            yield from self._records(index, format_, stream, head, spool)
        finally:
            stream.close()

    def _records(
        self, index: int, format_: Format, stream: Stream, head: bytes, spool: Spool | None
    ) -> Iterator[Block]:
        name = spoken(self.names[index])
        buffer = bytearray(BLOCK_BYTES + _SLACK)
        buffer[: len(head)] = head
        filled, base = len(head), 0
        at = format_.header
        while True:
            while at < filled:
                positions, at = format_.walk(buffer, at, filled)
                if positions:
                    yield Block(index, format_, buffer, base, positions, self._number)
                    self._number += len(positions)
                    self.statistics.packets += len(positions)
                if format_.damage:
                    raise CutShort(f"{name} is damaged at byte {base + at}: {format_.damage}")
                if not positions:
                    break
            # A block that nobody wants may end far behind; else the rest of a record moves to the front.
            skip, rest = max(at - filled, 0), max(filled - at, 0)
            if rest and format_.wanted(buffer, at, filled) > len(buffer) - _SLACK:
                larger = bytearray(2 * len(buffer))
                larger[:rest] = buffer[at:filled]
                buffer = larger
            elif rest and at:
                buffer[:rest] = buffer[at:filled]
            base += filled - rest
            filled, at = rest, 0
            view = memoryview(buffer)[: len(buffer) - _SLACK]
            while True:
                room = view[:skip] if skip else view[filled:]
                size = stream.readinto(room) or 0
                if spool is not None:
                    spool.write(room[:size])
                if not skip or not size:
                    break
                skip -= size
                base += size
            if not size:
                if rest or skip:
                    raise CutShort(f"{name} is cut short: the record at byte {base} is not whole")
                return
            filled += size


def open_inputs(paths: Iterable[str | os.PathLike[str]], *, spool: Spool | None = None) -> Source:
    """The captures at `paths`: files, folders of captures, pipes, "-".

    Files come in the order of their first packets; with a pipe among them, in the order given. Raises
    NotACapture at once for what is no capture (for "-" and pipes when they are read). With `spool`, what
    cannot be read a second time is kept there for `Source.read`.
    """
    names: list[str] = []
    for each in paths:
        path = os.fspath(each)
        names += _folder(path) if path != STDIN and os.path.isdir(path) else [path]  # noqa: PTH112
    if not names:
        raise NotACapture("no input")
    if names.count(STDIN) > 1:
        raise NotACapture("standard input can be read only once")
    regular = [name for name in names if _is_regular(name)]
    for name in regular:
        stream, head, _ = _open(name)
        stream.close()
        _format_of(head, 0, name)
    if len(names) > 1 and len(regular) == len(names):
        first = {name: _first_time(name) for name in set(names)}
        names.sort(key=lambda name: first[name])
    source = Source(names, spool)
    source.size = sum(os.path.getsize(name) for name in regular)  # noqa: PTH202
    return source


def spoken(name: str) -> str:
    """An input's name for people."""
    return "standard input" if name == STDIN else name


def _folder(path: str) -> list[str]:
    """The captures in a folder, without those in folders below it."""
    found = []
    try:
        names = sorted(entry.path for entry in os.scandir(path) if entry.is_file())
    except OSError as error:
        raise _unreadable(path, error) from None
    for name in names:
        stream, head, _ = _open(name)
        stream.close()
        if head[:4] == _PCAPNG_MAGIC or size_of_header(head):
            found.append(name)
    if not found:
        raise NotACapture(f"{path} is a folder without captures")
    return found


def _first_time(name: str) -> int:
    """Time of a file's first packet; 0 when it has none."""
    try:
        with Source([name]) as source:
            for block in source.blocks():
                return next(block.packets()).time_ns
    except CutShort:
        pass
    return 0


def _is_regular(name: str) -> bool:
    if name == STDIN:
        return False
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116
    except OSError as error:
        raise _unreadable(name, error) from None
    return stat.S_ISREG(mode)


def _unreadable(name: str, error: OSError) -> NotACapture:
    if error.errno == errno.ENOENT:
        return NotACapture(f"{name}: no such file or folder")
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotACapture(f"{name} may not be read: permission denied")
    return NotACapture(f"{name} cannot be read: {error.strerror or error}")


class _File:
    """An open file whose read errors are ours."""

    def __init__(self, name: str) -> None:
        self._name = name
        try:
            self._raw = (
                FileIO(0, closefd=False) if name == STDIN else FileIO(name)  # noqa: SIM115
            )
        except OSError as error:
            raise _unreadable(spoken(name), error) from None

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`, as soon as anything is there."""
        try:
            return self._raw.readinto(buffer)
        except OSError as error:
            raise _unreadable(spoken(self._name), error) from None

    def close(self) -> None:
        self._raw.close()


def _open(name: str) -> tuple[Stream, bytes, bool]:
    """A stream of uncompressed bytes behind the first ones, these, and whether it was compressed."""
    stream: Stream = _File(name)
    head = _head(stream)
    for _ in range(2):  # .gz in .zst exists; deeper is malice
        inner = inflate(head, stream, spoken(name))
        if inner is None:
            return stream, head, False if isinstance(stream, _File) else True
        stream = inner
        try:
            head = _head(stream)
        except CutShort:
            head = b""
    return stream, head, True


def _head(stream: Stream) -> bytes:
    """The first bytes, as many as it takes to tell what the file is."""
    head = b""
    buffer = memoryview(bytearray(_HEAD_BYTES))
    while (want := size_of_header(head) or _HEAD_BYTES) > len(head):
        size = stream.readinto(buffer[: want - len(head)])
        if not size:
            break
        head += buffer[:size]
    return head


def _format_of(head: bytes, file: int, name: str) -> Format:
    name = spoken(name)
    if not head:
        raise NotACapture(f"{name} is empty")
    size = size_of_header(head)
    if size and len(head) >= size:
        return Pcap(head, file)
    if size or head[:4] == _PCAPNG_MAGIC[: len(head)]:
        if not size and len(head) >= _HEAD_BYTES:
            return Pcapng(file)
        raise NotACapture(f"{name} is cut short inside its file header")
    for magic, what in _OTHERS:
        if head.startswith(magic):
            raise NotACapture(
                f"{name} is {what}; convert it with: editcap -F pcapng {name} {name}.pcapng"
            )
    start = head[:12]
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start):
        shown = repr(start.decode("ascii"))
    else:
        shown = start[:8].hex(" ")
    raise NotACapture(f"{name} is not a capture: it starts with {shown}")
