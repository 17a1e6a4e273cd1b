"""Puts the packets of a file into the order of their times, where the file has another one.

Programs that capture on several interfaces write the packets of each one in bursts, and several
writers of a file overtake each other. Such packets are sorted within a bounded window before they
are read; a packet's number is its position in that order. Files in order are only checked.

Which packets are sorted depends on their times, sizes and offsets alone, never on how the file is
cut into blocks: every reader of a file gives a packet the same number. State without I/O.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from copy import copy
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.captures.formats.pcapng import Pcapng
from kafkascope.captures.inputs.window import SLACK
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.columns import first_late, times_of
from kafkascope.captures.packets.tcp import distance, segment_of

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import Block, Format
    from kafkascope.captures.model import Statistics

# Packets that are late by less stay where they are: the processors of a host swap packets within
# one batch of a driver, and reassembly waits 100 ms for missing bytes anyway.
TOLERANCE_NS: Final = 1_000_000
# Read ahead at the beginning of a file: one that has bursts shows them there. dumpcap's last 250
# ms, which is this much at 250 Mbit/s.
AHEAD_BYTES: Final = 8 << 20
WINDOW_BYTES: Final = 8 << 20
# Packets that are held back, sorted, while others are read: 250 ms at 250 Mbit/s. Takes 80 MB, in
# files that are not in order.
WINDOW_PACKETS: Final = 1 << 16
# Above the windows in use: what is further apart are two connections with the same ports.
NEAR_BYTES: Final = 1 << 26
BLOCK_PACKETS: Final = 8_192


class Latest(NamedTuple):
    """The latest times of the packets before one. A packet is late when two of them were later: one
    alone that is stamped in the future proves nothing about the others."""

    second_ns: int
    first_ns: int

    def with_time(self, time_ns: int) -> Latest:
        second_ns = max(self.second_ns, min(self.first_ns, time_ns))
        return Latest(second_ns, max(self.first_ns, time_ns))


NO_TIMES: Final = Latest(0, 0)


class _Walked(NamedTuple):
    """A block, with what its format had declared by then."""

    block: Block
    state: tuple[Any, ...]


class _Entry(NamedTuple):
    """A packet that is held back."""

    time_ns: int
    offset: int
    """Offset of its record in the file."""
    size: int
    """Bytes that were captured."""


_SIZE = itemgetter(2)


class TimeOrder:
    """The packets of a file's blocks in the order of their times: the file's own so far, or windows
    that are sorted."""

    def __init__(self, blocks: Iterator[Block], statistics: Statistics) -> None:
        self._blocks = blocks
        self._statistics = statistics
        self._error: Exception | None = None
        self._number = 1
        self._latest = NO_TIMES
        self._format: Format | None = None
        """Reads copies of blocks: as the file's own format was when these were walked."""
        self._state: tuple[Any, ...] = ()
        self._last: Block | None = None
        self._entries: list[_Entry] = []
        """Held back, those of earlier windows first, else in the order of the file."""
        self._rounds: dict[int, int] = {}
        """Windows for which a packet was held back, by offset."""
        self._parts: list[tuple[int, bytearray]] = []
        """Bytes of the entries, each with its offset in the file."""
        self._bytes = self._late = self._end = 0
        self._sorting = False

    def run(self) -> Iterator[Block]:
        """Yield the packets as blocks. What the file's blocks raise is raised after all packets
        before it."""
        block = self._next()
        if block is not None:
            self._number = block.number
        held, block = self._look_ahead(block)
        if not self._sorting:
            for each in held:
                yield self._numbered(each.block._replace(format=self._format_in(*each)))
            held.clear()
        for each in held:
            yield from self._read(each)
        while block is not None:
            yield from self._read(_Walked(block, _state(block.format)))
            block = self._next()
        yield from self._flush()
        if self._error is not None:
            raise self._error

    def _next(self) -> Block | None:
        try:
            return next(self._blocks, None)
        except Exception as error:
            self._error = error
            return None

    def _look_ahead(self, block: Block | None) -> tuple[list[_Walked], Block | None]:
        """Return the first blocks, copied, and the one after them; decide whether to sort."""
        held: list[_Walked] = []
        end: int | None = None
        while block is not None and block.format.uniform and block.positions:
            begin = block.base + block.positions[0]
            end = begin + AHEAD_BYTES if end is None else end
            if begin >= end:
                break
            latest, first = self._latest, self._first_late(block)
            if first < len(block.positions):
                self._latest = latest
                if block.base + block.positions[first] < end:
                    self._sorting, self._latest = True, NO_TIMES
                break
            held.append(_Walked(_copied(block), _state(block.format)))
            block = self._next()
        return held, block

    def _first_late(self, block: Block) -> int:
        """Return the index of the first packet that is late, and note the latest time; the number
        of packets when none is."""
        if not block.format.uniform or not block.positions:
            return len(block.positions)
        late, latest = first_late(times_of(block), self._latest, TOLERANCE_NS)
        self._latest = Latest(*latest)
        return late

    def _read(self, walked: _Walked | None) -> Iterator[Block]:
        """Yield the packets of a block, and of those that are held back."""
        while walked is not None:
            block, state = walked
            if self._sorting and block.positions and block.format.uniform:
                walked = yield from self._take(block, state)
                continue
            yield from self._flush()
            first = self._first_late(block)
            if first == len(block.positions):
                yield self._numbered(block)
                return
            self._sorting = True
            if first:
                yield self._numbered(block._replace(positions=block.positions[:first]))
            walked = _Walked(block._replace(positions=block.positions[first:]), state)

    def _numbered(self, block: Block) -> Block:
        if self._format is not None and block.format is not self._format:
            block.format.last_ns = self._format.last_ns  # for simple packets, which have no time
            self._format = None
        block = block._replace(number=self._number)
        self._number += len(block.positions)
        return block

    def _format_in(self, block: Block, state: tuple[Any, ...]) -> Format:
        """Return the format that reads a copy: the file's own one may be further by now."""
        if self._format is None or state != self._state:
            last_ns = 0 if self._format is None else self._format.last_ns
            self._format, self._state = copy(block.format), state
            self._format.uniform, self._format.last_ns = True, last_ns
            if isinstance(self._format, Pcapng):
                order, first = state
                self._format.resume(order, first, block.format.interfaces, last_ns)
        return self._format

    # Windows

    def _take(self, block: Block, state: tuple[Any, ...]) -> Generator[Block, None, _Walked | None]:
        """Hold the packets of a block back, and yield those of windows that are full. Returns what
        is left of the block when the file has come back into order."""
        begin = block.base + block.positions[0]
        if self._entries and (
            state != self._state or not 0 <= begin - self._end <= LIMITS.order_hole_bytes
        ):
            yield from self._flush()
        format_ = self._format_in(block, state)
        # The file's own format may be in a later section by now, with other interfaces.
        block = self._last = _copied(block._replace(format=format_))
        self._parts.append((block.base, block.buffer))
        for index, at in enumerate(block.positions, 1):
            time_ns, _, start, captured, _ = format_.record(block.buffer, at)
            self._entries.append(_Entry(time_ns, block.base + at, captured))
            self._late += self._latest.second_ns - time_ns > TOLERANCE_NS
            self._latest = self._latest.with_time(time_ns)
            self._bytes += captured
            self._end = block.base + start + captured
            if self._bytes >= 2 * WINDOW_BYTES or len(self._entries) >= 2 * WINDOW_PACKETS:
                self._sorting = self._late > 0
                yield from self._flush(WINDOW_BYTES if self._sorting else 0)
                if not self._sorting:
                    left = block.positions[index:]
                    return _Walked(block._replace(positions=left), state) if left else None
                self._parts.append((block.base, block.buffer))
        return None

    def _flush(self, keep: int = 0) -> Iterator[Block]:
        """Yield the packets that are held back, but for the latest `keep` bytes."""
        entries, block = self._entries, self._last
        if not entries or block is None:
            return
        base = min(entry.offset for entry in entries)
        buffer = self._joined(base)
        ready = sorted(entries)
        if self._is_contradicted(block, base, buffer):
            ready.sort(key=itemgetter(1))
            self._late = keep = 0
            self._latest = Latest(ready[-1].time_ns, ready[-1].time_ns)
        held: list[_Entry] = []
        while keep > 0 and len(held) < WINDOW_PACKETS and ready:
            held.append(ready.pop())
            keep -= held[-1].size
        rounds = {entry.offset: self._rounds.get(entry.offset, 0) + 1 for entry in held}
        ready += [entry for entry in reversed(held) if rounds[entry.offset] > LIMITS.order_windows]
        self._entries = [entry for entry in held if rounds[entry.offset] <= LIMITS.order_windows]
        self._entries.sort(key=itemgetter(1))
        self._rounds = {entry.offset: rounds[entry.offset] for entry in self._entries}
        self._bytes = sum(map(_SIZE, self._entries))
        self._parts = [(base, buffer)] if self._entries else []
        if self._late:
            self._statistics.moved += self._late
            latest_ns = max(entry.time_ns for entry in self._entries or ready[-1:])
            self._latest = Latest(latest_ns, latest_ns)
            self._late = 0
        for at in range(0, len(ready), BLOCK_PACKETS):
            positions = [entry.offset - base for entry in ready[at : at + BLOCK_PACKETS]]
            yield self._numbered(
                block._replace(buffer=buffer, base=base, positions=positions, number=0)
            )

    def _joined(self, base: int) -> bytearray:
        """Return the bytes of the file from an offset on, as far as packets are held back."""
        buffer = bytearray(self._end - base + SLACK)
        for begin, data in self._parts:
            skip = max(base - begin, 0)
            at = begin + skip - base
            size = min(len(data) - skip - SLACK, len(buffer) - at)
            if size > 0:
                buffer[at : at + size] = data[skip : skip + size]
        return buffer

    def _is_contradicted(self, block: Block, base: int, buffer: bytearray) -> bool:
        """Return whether sequence numbers contradict the times: within one direction, they grow
        where the times go back. A clock that was set back does that; then the times are wrong, and
        sorted by them, acknowledgements would come before what they cover."""
        before: dict[bytes, tuple[int, int, int]] = {}
        against = in_favour = 0
        positions = [entry.offset - base for entry in self._entries[: LIMITS.order_packets]]
        some = block._replace(buffer=buffer, base=base, positions=positions)
        for segment in map(segment_of, some.packets()):
            if isinstance(segment, str):
                continue
            time_ns, seq, ack = before.get(segment.flow, (0, 0, 0))
            if time_ns - segment.time_ns > TOLERANCE_NS:
                ahead = distance(seq, segment.seq) or distance(ack, segment.ack)
                against += 0 < ahead < NEAR_BYTES
                in_favour += 0 < -ahead < NEAR_BYTES
            before[segment.flow] = segment.time_ns, segment.seq, segment.ack
        return against > in_favour


def _state(format_: Format) -> tuple[Any, ...]:
    """Return what a format has declared, and a later walk may change."""
    return (format_.order, format_.first) if isinstance(format_, Pcapng) else ()


def _copied(block: Block) -> Block:
    """Return a block with a buffer of its own."""
    record = block.format.record(block.buffer, block.positions[-1])
    begin, end = block.positions[0], record.start + record.captured
    buffer = bytearray(end - begin + SLACK)
    buffer[: end - begin] = memoryview(block.buffer)[begin:end]
    positions = [at - begin for at in block.positions] if begin else block.positions
    return block._replace(buffer=buffer, base=block.base + begin, positions=positions)
