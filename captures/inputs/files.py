"""Opens captures: paths in, blocks of records or `Packet`s out.

The content of a file decides its format, never its name. Compressed files and pipes are read as
they come.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import (
    CUT,
    Block,
    DecryptionSecrets,
    FileGap,
    Format,
    Interface,
    cut_short,
)
from kafkascope.captures.formats.remarks import Remarks
from kafkascope.captures.formats.text import is_log
from kafkascope.captures.inputs.growing import being_written
from kafkascope.captures.inputs.inflate import ByteStream
from kafkascope.captures.inputs.opening import (
    Impatient,
    Live,
    format_of,
    head_of,
    is_live,
    is_regular,
    kept_stream,
    open_stream,
    spoken,
)
from kafkascope.captures.inputs.order import REST, Order
from kafkascope.captures.inputs.restored import Restored
from kafkascope.captures.inputs.spool import NotKept, PacketPlaces, Spool
from kafkascope.captures.inputs.time_order import TimeOrder
from kafkascope.captures.inputs.window import Window, passed
from kafkascope.captures.model import Packet, Statistics

# Bytes to read at once: the fixed cost of a block is small then, and they fit the processor's
# cache.
BLOCK_BYTES: Final = 1 << 20


class Runs:
    """A file that is read in runs, by the indexes of its records."""

    def __init__(self, blocks: Iterator[Block], first: int = 0) -> None:
        """`first`: index of the first record in `blocks`."""
        self._blocks = blocks
        self._block: Block | None = None
        self._first = first
        """Index of the block's first record."""

    def take(self, first: int, count: int) -> Iterator[Block]:
        """Yield the records from an index on, which is not before the last ones."""
        end = first + count
        while True:
            block, begin = self._block, self._first
            if block is not None:
                stop = begin + len(block.positions)
                low, high = max(first, begin), min(end, stop)
                if low < high:
                    yield block._replace(positions=block.positions[low - begin : high - begin])
                if end <= stop:
                    return
                self._first, self._block = stop, None
            self._block = next(self._blocks, None)
            if self._block is None:
                return


class Source:
    """Several inputs, read as one. Iterate once, by `blocks` or by `packets`; a context manager."""

    def __init__(
        self,
        names: list[str],
        spool: Spool | None = None,
        opened: dict[int, ByteStream] | None = None,
        order: Order | None = None,
    ) -> None:
        """Use `open_inputs` instead. `opened`: streams to read in place of the names."""
        self.order = order
        """Which packets of the inputs are read; None: all, one input after the other."""
        self.names = names
        """Paths by file index; "-" is standard input."""
        self.statistics = Statistics()
        self.formats: dict[int, Format] = {}
        """Formats by file index, for the files opened so far."""
        self.spool = spool
        self.size = 0
        """Bytes of all regular files, as stored."""
        self.block_bytes = BLOCK_BYTES
        self.opener: Callable[[int, str], ByteStream] | None = None
        """Opens regular files for `blocks`, by index and name; None: the usual way."""
        self.upto: int | None = None
        """Number of inputs to read; None: all."""
        self.gaps: dict[int, list[FileGap]] = {}
        """Damage by file index, as far as files were read."""
        self.secrets: list[DecryptionSecrets] = []
        """Secrets blocks, in the order in which they were read."""
        self.patience: float | None = None
        """Seconds without a byte after which `blocks` yields a block without records, where bytes
        come as they are made, and are not compressed; None: it waits for more."""
        self.watcher: Callable[[Block], None] | None = None
        """Called with each block before `blocks` yields it."""
        self.remarks = Remarks()
        """Comments of packets of our own recordings, as far as they were read."""
        self.told: tuple[FileGap, ...] | None = None
        """Damage that is known before reading; None: it has to be found."""
        self.sorts = order is None
        """Packets are put in the order of their times, where a file is not: see `time_order`. Not
        those of streams, whose reader would wait for more of them."""
        self.reads_once = True
        """Connections that come with two pairs of addresses are read once: `streams.copies`,
        `streams.relayed`."""
        self.unsorted: set[int] = set()
        """Files that were read as streams."""
        self.empty: list[str] = []
        """Inputs that hold nothing, and are left out."""
        self.restored: list[str] = []
        """Sentences about what a terminal had changed, and was undone."""
        self.places: PacketPlaces | None = None
        """Where the packets are that `blocks` has yielded, for `find`; None: `find` reads all that
        comes before them."""
        self.texts: dict[int, bool] = {}
        """Whether inputs are texts (`formats.text`), by file index; pipes as soon as somebody asks
        `is_text`."""
        self._opened = {} if opened is None else opened
        self._begun: dict[int, tuple[ByteStream, bytes, bool]] = {}
        """Inputs of which somebody asked what they are, but that are not read yet."""
        self._spooled: dict[int, int] = {}
        self._spool_ends: dict[int, int] = {}
        self._readers: dict[int, int] = {}
        self._number = 1

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for stream in (*self._opened.values(), *(begun[0] for begun in self._begun.values())):
            stream.close()
        for descriptor in self._readers.values():
            os.close(descriptor)
        self._readers.clear()
        if self.places is not None:
            self.places.close()
            self.places = None
        if self.spool is not None:
            self.spool.close()
            self.spool = None

    def interfaces(self) -> list[Interface]:
        """Return the interfaces declared so far, over all files."""
        return [each for format_ in self.formats.values() for each in format_.interfaces]

    def comment_of(self, file: int, interface: int) -> str:
        """Return the comment of an interface, else its description, else nothing."""
        interfaces = self.formats[file].interfaces
        return interfaces[interface].comment if interface < len(interfaces) else ""

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order. Damage ends its file, not the others; it is raised at the
        end."""
        found = self._blocks() if self.order is None else self._in_order(self.order)
        for block in found:
            if self.watcher is not None:
                self.watcher(block)
            if self.places is not None:
                self.places.add(block)
            yield block
            self.statistics.packets += len(block.positions)
        if self.statistics.damage:
            raise self.statistics.damage[0]

    def _is_sorted(self, index: int, name: str) -> bool:
        """Return whether a file's packets are put in order. A file that is being written is a
        stream, too; a second reading does the same."""
        if not self.sorts or index in self.unsorted:
            return False
        if is_live(name) or (self.opener is not None and being_written(name)):
            self.unsorted.add(index)
            return False
        return True

    def _blocks(self) -> Iterator[Block]:
        for index, name in enumerate(self.names):
            if self.upto is not None and index >= self.upto:
                break
            if self.texts.get(index):
                continue
            blocks = self._file_blocks(index, name)
            if self._is_sorted(index, name):
                blocks = TimeOrder(blocks, self.statistics).run()
            yield from self._noted(blocks)
            format_ = self.formats.get(index)
            self.statistics.dropped += sum(format_.drops.values()) if format_ else 0
            if self.spool is not None:
                self._spool_ends[index] = self.spool.written

    def is_text(self, index: int) -> bool:
        """Return whether an input is a text in place of packets; one that comes through a pipe is
        opened, and waited for."""
        if index not in self.texts:
            name = self.names[index]
            found = self._open(index, name)
            if index in self._opened or not is_regular(name):
                self._begun[index] = found
            else:
                found[0].close()
            self.texts[index] = is_log(found[1], sure=False)
        return self.texts[index]

    def text_inputs(self) -> list[int]:
        """Return the indexes of the inputs that are texts."""
        return [index for index in range(len(self.names)) if self.is_text(index)]

    def text(self, index: int) -> Iterator[bytes]:
        """Yield the bytes of a text as they come; none, where nothing comes for a while."""
        for block in self._noted(self._file_blocks(index, self.names[index])):
            if self.watcher is not None:
                self.watcher(block)
            data = b"".join(packet.data for packet in block.packets())
            self.statistics.captured_bytes += len(data)
            yield data

    def _in_order(self, order: Order) -> Iterator[Block]:
        """Yield the records that `order` names, then read all files to their ends: they may tell
        more, and what is damaged counts."""
        files = [
            Runs(self._file_blocks(file, name))
            for file, name in enumerate(self.names)
            if not self.texts.get(file)
        ]
        number = 1
        for run in order.runs():
            for block in self._noted(files[run.file].take(run.first, run.size)):
                self._number = number + len(block.positions)
                shift_ns = order.shifts[run.file]
                yield block._replace(number=number, shift_ns=shift_ns)
                number = self._number
        for file in files:
            for _ in self._noted(file.take(REST, REST)):
                pass
        for index in range(len(self.names)):
            format_ = self.formats.get(index)
            self.statistics.dropped += sum(format_.drops.values()) if format_ else 0

    def _noted(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield blocks up to damage, which is noted."""
        try:
            yield from blocks
        except CutShort as error:
            self.statistics.damage.append(error)

    def packets(self) -> Iterator[Packet]:
        """Yield all records in order, as `blocks`, with data of their own."""
        for block in self.blocks():
            for packet in block.packets():
                yield packet._replace(data=bytes(packet.data))

    def read(self, file: int, at: int, size: int) -> bytes:
        """Read bytes of a file again, at the offset of a packet or piece; NotKept when they are
        gone."""
        start = self._spooled.get(file)
        if start is not None and self.spool is not None:
            return self.spool.read(start + at, size)
        descriptor = self._readers.get(file)
        if descriptor is None:
            name = self.names[file]
            if not is_regular(name) or head_of(name)[1]:
                raise NotKept(f"the bytes of {spoken(name)} are no longer available")
            descriptor = self._readers[file] = os.open(name, os.O_RDONLY)
        data = os.pread(descriptor, size, at)
        if len(data) != size:
            raise NotKept(f"{self.names[file]} is shorter than it was")
        return data

    def kept(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return where in the spool each file begins and ends, for `follow`."""
        return dict(self._spooled), dict(self._spool_ends)

    def follow(self, kept: tuple[dict[int, int], dict[int, int]]) -> None:
        """Use the bytes that another process's source keeps in a spool that both have."""
        self._spooled, self._spool_ends = kept

    def again(self) -> Source:
        """Return a source of the same inputs, to read them once more; NotKept when that cannot
        be."""
        streams: dict[int, ByteStream] = {}
        for index, name in enumerate(self.names):
            if index in self._opened or not is_regular(name):
                start = self._spooled.get(index)
                if start is None or self.spool is None:
                    raise NotKept(f"the bytes of {spoken(name)} are no longer available")
                streams[index] = kept_stream(self.spool, start, self._spool_ends.get(index))
        again = Source(self.names, None, streams, self.order)
        again.sorts, again.unsorted = self.sorts, self.unsorted
        again.texts |= self.texts
        return again

    def find(self, numbers: Iterable[int]) -> list[Packet]:
        """Read the packets with these numbers again; NotKept when that cannot be."""
        wanted = sorted(set(numbers))
        if self.places is not None:
            known = filter(None, map(self.places.get, wanted))
            with suppress(NotKept):  # what was inflated can be inflated again
                return [
                    packet._replace(data=self.read(packet.file, packet.at, size))
                    for packet, size in known
                ]
        found: list[Packet] = []
        with self.again() as again, suppress(CutShort):
            for block in again.blocks():
                end = block.number + len(block.positions)
                if wanted and wanted[0] < end:
                    here = [packet for packet in block.packets() if packet.number in wanted]
                    found += [packet._replace(data=bytes(packet.data)) for packet in here]
                    wanted = [number for number in wanted if number >= end]
                if not wanted:
                    break
        return found

    def _open(self, index: int, name: str) -> tuple[ByteStream, bytes, bool]:
        stream = self._opened.get(index)
        if stream is None and self.opener is not None and is_regular(name):
            stream = self.opener(index, name)
        return open_stream(name, stream)

    def _file_blocks(self, index: int, name: str) -> Iterator[Block]:
        opened = self._opened.get(index)
        begun = self._begun.pop(index) if index in self._begun else self._open(index, name)
        stream, head, inflated = begun
        if isinstance(stream, Restored):
            self.restored += stream.remarks()
        if self.patience is not None and isinstance(stream, Live):
            stream = Impatient(stream, self.patience)
        try:
            spool = self.spool if inflated or opened or not is_regular(name) else None
            if spool is not None:
                self._spooled[index] = spool.written
                spool.write(head)
            format_ = format_of(head, index, name)
            self.formats[index] = format_
            yield from self._records(index, format_, stream, head, spool)
        finally:
            stream.close()

    def _before(self, format_: Format, at: int) -> None:
        """Called for each record's offset from which reading could go on later; for subclasses."""

    def _records(
        self,
        index: int,
        format_: Format,
        stream: ByteStream,
        head: bytes,
        spool: Spool | None,
        base: int = 0,
    ) -> Iterator[Block]:
        """Yield the records of a stream that begins at byte `base` of the file, where a record
        begins or the file itself. Reading goes on after damage, which is raised at the end."""
        gaps = self.gaps[index] = []
        window = Window(stream, head, self.block_bytes, spool, base)
        window.at = 0 if base else format_.header
        yield from self._read_on(index, format_, window, gaps)
        if gaps:
            raise cut_short(spoken(self.names[index]), gaps)

    def _read_on(
        self, index: int, format_: Format, window: Window, gaps: list[FileGap]
    ) -> Iterator[Block]:
        known_gaps = iter(self.told or ())
        gap = next(known_gaps, None)
        if self.told is not None:
            format_.strict = False
        while True:
            while window.at < window.end:
                self._before(format_, window.offset)
                end = window.end if gap is None else min(window.end, gap.at - window.base)
                positions, at = format_.walk(window.buffer, window.at, end)
                if at > window.at:
                    window.keep = positions[-1] if positions and format_.backs else at
                window.at = at
                if format_.remarks:
                    self.remarks.add(index, window.base, format_.remarks)
                    format_.remarks.clear()
                if format_.secrets:
                    self.secrets += format_.secrets
                    format_.secrets.clear()
                if positions:
                    yield Block(index, format_, window.buffer, window.base, positions, self._number)
                    self._number += len(positions) * format_.numbered
                if gap is not None and window.offset == gap.at:
                    gaps.append(gap)
                    if gap.resume is None or not window.skip(gap.resume - gap.at):
                        return
                    gap = next(known_gaps, None)
                elif format_.damage:
                    if not passed(format_, window, gaps):
                        return
                elif format_.unwanted:
                    begin, size, format_.unwanted = window.offset, format_.unwanted, 0
                    if not window.skip(size):
                        gaps.append(FileGap(begin, None, CUT))
                        return
                elif not positions:
                    break
            more = window.more(format_.record_size(window.buffer, window.at, window.end))
            if more is None:
                yield Block(index, format_, window.buffer, window.base, [], self._number)
            if more is not False:
                continue
            if window.at == window.end:
                return
            # What is left is no whole record, or one whose wrong length hides whole ones.
            if format_.final and not passed(format_, window, gaps):
                return
            format_.final = True
