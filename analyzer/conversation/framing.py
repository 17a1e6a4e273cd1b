"""Chunks of one direction -> Frames.

A frame is an int32 size and that many bytes:

00 00 00 2a | 00 12 00 04 00 00 00 01 ...      size | payload

`FrameBuffer` follows the sizes. When a gap falls inside a frame and both sizes are known, it counts
to the frame's end; otherwise, and when a size is nonsense, it searches for the next frame
(`resync`). Sans-I/O; knows nothing of connections, apart from what a `FrameHeuristic` tells it
about frames.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.conversation.resync import FrameHeuristic, ResyncBuffer
from kafkascope.analyzer.model import Cut, Frame, Origin, Part
from kafkascope.captures.model import Chunk, Gap, Piece
from kafkascope.captures.resumable import Dump, Resumable

# The most of one frame that is held: above the brokers' limit for requests of 100 MB.
HOLD_BYTES: Final = 128 * 1024 * 1024

# What it takes to remember where a packet's share of a frame stands.
PART_BYTES: Final = 250

# What is kept of a frame that is too large: its header, so that its answer still pairs.
HEAD_BYTES: Final = 4096


class Skipped(NamedTuple):
    """Bytes of the stream that belong to no frame that could be found."""

    offset: int
    size: int
    time_ns: int
    head: bytes
    """The first of the skipped bytes, as far as they are held."""
    lost_at: Part | None = None
    """Where those of the first packet stand in the input, when they follow a whole frame and begin
    with a size that is none: no gap took it away."""


Unit = Frame | Skipped

_SIZE = struct.Struct(">i")


class FrameBuffer(Resumable):
    """The frames of one direction. `feed` and `gap` in stream order, `close` at the end."""

    STATE = (
        "_blocks",
        "_cut",
        "_first_ns",
        "_block_bytes",
        "_last_ns",
        "_nonsense",
        "_offset",
        "_parts",
        "_passed",
        "_sized_by",
        "_total",
    )
    __slots__ = (*STATE, "_resync", "heuristic")

    def __init__(self, heuristic: FrameHeuristic) -> None:
        self.heuristic = heuristic
        """Heuristic for frames of this direction; the owner may change it."""
        self._resync: ResyncBuffer | None = None
        self._blocks: list[bytes] = []
        self._block_bytes = 0
        """Bytes in `_blocks`."""
        self._passed = 0
        """Bytes of the current frame that went by, seen or not, size field included."""
        self._total = 0
        """The same when the frame is whole; 0 while the size field is incomplete."""
        self._parts: list[Part] = []
        self._sized_by: tuple[Piece, ...] = ()
        """Where the size field stands, when it came in several chunks."""
        self._offset = 0
        self._first_ns = 0
        self._last_ns = 0
        self._cut: Cut = ""
        self._nonsense = False
        """The search began at a size that is none, and nothing was skipped since."""

    def dump(self) -> Dump:
        """Return the state, of the search too where there is one."""
        search = None if self._resync is None else self._resync.dump()
        return {**super().dump(), "resync": search}

    def load(self, state: Dump) -> Self:
        if state["resync"] is not None:
            self._resync = ResyncBuffer(self.heuristic).load(state["resync"])
        return super().load(state)

    @property
    def partial(self) -> bool:
        """Whether the first bytes of a frame are here, but not its last."""
        return self._passed > 0

    @property
    def waits(self) -> bool:
        """Whether bytes are held of which no frame was made."""
        return self._passed > 0 or (self._resync is not None and len(self._resync.held) > 0)

    @property
    def sized(self) -> bool:
        """Whether the size of the frame is known that is not whole: it will be delivered, whole
        or cut."""
        return self._total > 0

    @property
    def origin(self) -> Origin:
        """Where the frame begins that is not whole."""
        return Origin(self._parts[0].packet, self._offset)

    @property
    def first_packet(self) -> int:
        """Number of the first packet with bytes that are held."""
        return self._parts[0].packet if self._resync is None else self._resync.first_packet

    @property
    def resyncing(self) -> bool:
        return self._resync is not None

    @property
    def held(self) -> int:
        """Memory that the frame takes which is not whole yet."""
        return self._block_bytes + len(self._parts) * PART_BYTES

    def evict(self) -> None:
        """Keep only the head of a frame that is not whole yet."""
        if self._total and not self._cut and self._block_bytes > HEAD_BYTES:
            self._blocks = [b"".join(self._blocks)[:HEAD_BYTES]]
            self._block_bytes = HEAD_BYTES
            self._cut = "too-large"

    def head(self) -> bytes:
        """Return the first bytes of the payload of the frame that is not whole yet."""
        if not self._blocks:
            return b""
        first = self._blocks[0]
        if len(first) < HEAD_BYTES and len(self._blocks) > 1:
            first = b"".join(self._blocks[:64])
        return first[4:HEAD_BYTES]

    def resync(self) -> None:
        """Search for a frame from now on: the first byte to come may be in the middle of one."""
        if self._resync is None:
            self._resync = ResyncBuffer(self.heuristic)

    def feed(self, chunk: Chunk) -> list[Unit]:
        """Return the frames that end in a chunk, for owners whose heuristic learns nothing from
        frames; others use `units`."""
        return [unit for units in self.units(chunk) for unit in units]

    def units(self, chunk: Chunk) -> Iterator[list[Unit]]:
        """Yield the frames that end in a chunk, in lists: those before the first bytes that are no
        frame, then the results of the search, packet by packet. So the search depends on what the
        heuristic has learned by then, and not on how many packets are in a chunk."""
        read = 0
        if self._resync is None:
            out: list[Unit] = []
            read = self._follow(chunk.data, chunk.offset, chunk.pieces, out, apart=True)
            yield out
            if self._resync is None:
                return
            yield self._search()
        for part in chunk.by_piece() if read < len(chunk.data) else ():
            if part.offset - chunk.offset < read:
                continue
            if self._resync is None:
                out = []
                self._follow(part.data, part.offset, part.pieces, out, apart=True)
                yield out
            else:
                self._resync.add(part.data, part.offset, part.pieces)
            if self._resync is not None:
                yield self._search()

    def gap(self, gap: Gap) -> list[Unit]:
        """Return the frames that end with this gap, or that cannot be whole because of it."""
        out = self._search(last=True)
        if self._resync is not None:
            self._abandon(self._resync, out)
        else:
            if self._total and gap.size is not None and self._passed + gap.size <= self._total:
                self._cut = self._cut or "gap"
                self._passed += gap.size
                self._last_ns = max(self._last_ns, gap.time_ns)
                if self._passed == self._total:
                    out.append(self._finish())
                return out
            self._give_up("gap", out)
        self._nonsense = False
        self._resync = ResyncBuffer(self.heuristic)
        return out

    def close(self) -> list[Unit]:
        """Return what is left when no more bytes come."""
        out = self._search(last=True)
        if self._resync is not None:
            self._abandon(self._resync, out)
            self._resync = None
        self._give_up("end", out)
        return out

    def _give_up(self, why: Cut, out: list[Unit]) -> None:
        """Give up the current frame, which will not become whole."""
        if not self._passed:
            return
        self._cut = self._cut or why
        if self._total:
            out.append(self._finish())
        else:
            head = b"".join(self._blocks)
            out.append(Skipped(self._offset, len(head), self._first_ns, head))
            self._reset()

    def _reset(self) -> None:
        self._blocks = []
        self._parts = []
        self._sized_by = ()
        self._block_bytes = self._passed = self._total = 0
        self._cut = ""

    def _finish(self) -> Frame:
        data = self._blocks[0] if len(self._blocks) == 1 else b"".join(self._blocks)
        self._blocks = []  # so that a large one is there twice while it is cut, and not three times
        frame = Frame(
            data[4:],
            self._offset,
            self._total - 4,
            self._first_ns,
            self._last_ns,
            tuple(self._parts),
            self._cut,
        )
        self._reset()
        return frame

    def _follow(
        self, data: bytes, offset: int, pieces: list[Piece], out: list[Unit], *, apart: bool = False
    ) -> int:
        """Follow the sizes through consecutive bytes, and where one is nonsense hold the others for
        a search: all, or only those of its packet when packets are looked at `apart`. How many
        bytes were read."""
        size = len(data)
        at = 0
        index = 0
        while at < size:
            if not self._passed and size - at >= 4:
                # The usual case: whole frames in one chunk, nothing to put together.
                (length,) = _SIZE.unpack_from(data, at)
                if not 0 <= length <= LIMITS.frame_bytes:
                    stop = _packet_end(pieces, at + 3, size) if apart else size
                    self._lost(data[at:stop], offset + at, _between(pieces, at, stop))
                    return stop
                end = at + 4 + length
                if end <= size:
                    while index + 1 < len(pieces) and pieces[index + 1].start <= at:
                        index += 1
                    first_ns = pieces[index].time_ns
                    parts: list[Part] = []
                    index = _parts(pieces, index, at, end, parts)
                    out.append(
                        Frame(
                            data[at + 4 : end],
                            offset + at,
                            length,
                            first_ns,
                            pieces[index].time_ns,
                            tuple(parts),
                        )
                    )
                    at = end
                    continue
            while index + 1 < len(pieces) and pieces[index + 1].start <= at:
                index += 1
            if not self._passed:
                self._offset = offset + at
                self._first_ns = pieces[index].time_ns
                if size - at >= 4:
                    self._total = 4 + length
            if not self._total:
                take = min(4 - self._passed, size - at)
            else:
                take = min(self._total - self._passed, size - at)
            end = at + take
            begun = index
            if not self._cut:
                self._blocks.append(data if take == size else data[at:end])
                self._block_bytes += take
                index = _parts(pieces, index, at, end, self._parts)
                if self._block_bytes > HOLD_BYTES:
                    self.evict()
            else:
                while index + 1 < len(pieces) and pieces[index + 1].start < end:
                    index += 1
            if not self._total:
                self._sized_by += tuple(pieces[begun : index + 1])
            self._last_ns = pieces[index].time_ns
            self._passed += take
            at = end
            if not self._total and self._passed == 4:
                head = b"".join(self._blocks)
                (length,) = _SIZE.unpack(head)
                if not 0 <= length <= LIMITS.frame_bytes:
                    stop = _packet_end(pieces, at - 1, size) if apart else size
                    self._lost_head(head, data[at:stop], offset + at, _between(pieces, at, stop))
                    return stop
                self._total = 4 + length
            if self._total and self._passed == self._total:
                out.append(self._finish())
        return size

    def _lost(self, data: bytes, offset: int, pieces: list[Piece]) -> None:
        self._nonsense = True
        self._resync = ResyncBuffer(self.heuristic)
        self._resync.add(data, offset, pieces)

    def _lost_head(self, head: bytes, rest: bytes, offset: int, pieces: list[Piece]) -> None:
        """Begin a search as `_lost` does, when the size came in several chunks."""
        parts, start = self._parts, self._offset
        times = {(piece.file, piece.packet): piece.time_ns for piece in self._sized_by}
        self._reset()
        self._nonsense = True
        self._resync = ResyncBuffer(self.heuristic)
        held: list[Piece] = []
        at = 0
        for part in parts:
            time_ns = times[part.file, part.packet]
            held.append(Piece(at, time_ns, part.packet, part.file, part.at))
            at += part.size
        self._resync.add(head, start, held)
        if rest:
            self._resync.add(rest, offset, pieces)

    def _search(self, *, last: bool = False) -> list[Unit]:
        """Go on resyncing; when a frame is found, follow sizes again from there."""
        out: list[Unit] = []
        while (search := self._resync) is not None:
            found = search.search(last=last)
            if found is None:
                if search.surplus:
                    out.append(self._skipped(search, search.surplus))
                break
            if found:
                out.append(self._skipped(search, found))
            self._resync = None
            self._follow(*search.rest(), out)
        return out

    def _abandon(self, search: ResyncBuffer, out: list[Unit]) -> None:
        """Forget what is held: nothing was found in it."""
        if search.held:
            out.append(self._skipped(search, len(search.held)))

    def _skipped(self, search: ResyncBuffer, count: int) -> Skipped:
        """Drop the first bytes that a search holds."""
        offset, count, time_ns, head, first = search.drop(count)
        nonsense, self._nonsense = self._nonsense, False
        return Skipped(offset, count, time_ns, head, first if nonsense else None)


def _parts(pieces: list[Piece], index: int, start: int, end: int, out: list[Part]) -> int:
    """Append where [start, end) lies in the input, from piece `index` on; the last piece's
    index."""
    piece = pieces[index]
    here = piece.at + start - piece.start
    if out and out[-1].packet == piece.packet and out[-1].at + out[-1].size == here:
        # The same one goes on: the size before it was read alone.
        start -= out.pop().size
    last = len(pieces) - 1
    while index < last and pieces[index + 1].start < end:
        stop = pieces[index + 1].start
        out.append(Part(piece.file, piece.at + start - piece.start, stop - start, piece.packet))
        start = stop
        index += 1
        piece = pieces[index]
    out.append(Part(piece.file, piece.at + start - piece.start, end - start, piece.packet))
    return index


def _packet_end(pieces: list[Piece], at: int, size: int) -> int:
    """Return where the piece with the byte `at` ends."""
    return next((piece.start for piece in pieces if piece.start > at), size)


def _between(pieces: list[Piece], start: int, end: int) -> list[Piece]:
    """Return the pieces of the bytes from `start` on and before `end`."""
    out: list[Piece] = []
    for number, piece in enumerate(pieces):
        stop = pieces[number + 1].start if number + 1 < len(pieces) else end
        if stop > start and piece.start < end:
            cut = max(0, start - piece.start)
            out.append(piece._replace(start=piece.start + cut - start, at=piece.at + cut))
    return out
