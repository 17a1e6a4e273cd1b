"""Search for the next frame where its begin is unknown: after a gap, nonsense, or a start
midstream.

Bytes are held until a position looks like a frame and is confirmed: by the client id or correlation
ids of the connection, by starting with a packet, or by the frame after it. Every byte is examined
a bounded number of times.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Protocol

from kafkascope.analyzer.conversation.plausible import (
    HEAD_BYTES,
    NEAR,
    Data,
    Plausibility,
    cut_request,
    find_request,
    judge_request,
    judge_response,
    response_finder,
    same_client,
)
from kafkascope.analyzer.model import Part
from kafkascope.analyzer.ranks import MOST_TEXT
from kafkascope.captures.model import Piece
from kafkascope.captures.resumable import Resumable
from kafkascope.captures.signatures import HEAD

# A candidate that nothing else confirms waits for the frame after it. Without a bound a size that
# is chance would hold 512 MB and delay all exchanges after it. Larger frames are found all the
# same: they begin a packet, or repeat the client id.

# Bytes that are held for a candidate.
WINDOW: Final = 256 * 1024

_SIZE = struct.Struct(">i")
_SIZE_AND_ID = struct.Struct(">ii")


class FrameHeuristic(Protocol):
    """Heuristic for frames of one direction."""

    def finder(self) -> Callable[[Data, int], int]:
        """Return a function of (bytes, position) that returns the next candidate's position, or -1
        when there is none."""

    def judge(self, data: Data, at: int, fresh: bool) -> Plausibility:
        """Judge a position; `fresh`: a packet starts there."""

    def starts(self, data: Data, at: int) -> bool:
        """Return whether a packet of which the capture has only the bytes from `at` on begins with
        a frame. By default no: `judge` has already seen a whole header."""
        return False

    def follows(self, data: Data, first: int, second: int) -> Plausibility:
        """Return whether a frame at `second` confirms the one at `first`; NO, MORE or YES."""


class RequestHeuristic(Resumable):
    """Requests: by header, and surely by the connection's own client id."""

    STATE = ("client_id", "lenient")

    def __init__(self) -> None:
        self.client_id: bytes | None = None
        """The connection's, once known; never a very long one, which thousands of connections would
        hold."""
        self.lenient = False
        """Whether unknown keys and versions pass at the start of a packet: the connection is known
        to be Kafka's."""

    def know(self, client_id: str | None) -> None:
        """Keep the client id of the first request whose id is not very long."""
        if self.client_id is None and client_id and len(client_id) <= MOST_TEXT:
            self.client_id = client_id.encode("utf-8", "surrogateescape")

    def finder(self) -> Callable[[Data, int], int]:
        return find_request

    def judge(self, data: Data, at: int, fresh: bool) -> Plausibility:
        """Judge a position: YES for the known client id or the start of a packet."""
        verdict = judge_request(data, at, not (self.lenient and fresh), self.client_id)
        if verdict is Plausibility.MAYBE and (fresh or same_client(data, at, self.client_id)):
            return Plausibility.YES
        return verdict

    def starts(self, data: Data, at: int) -> bool:
        """Judge by the header, whose client id may be cut off."""
        return cut_request(data, at, not self.lenient)

    def follows(self, data: Data, first: int, second: int) -> Plausibility:
        verdict = judge_request(data, second, client_id=self.client_id)
        return Plausibility.YES if verdict is Plausibility.MAYBE else verdict


class ResponseHeuristic(FrameHeuristic):
    """Responses: they begin with nothing but size and correlation id, so the ids in flight
    decide."""

    def __init__(self, in_flight: Callable[[], list[int]]) -> None:
        self._in_flight = in_flight

    def finder(self) -> Callable[[Data, int], int]:
        """Return a function that finds a plausible size before a correlation id in flight."""
        return response_finder(self._in_flight())

    def judge(self, data: Data, at: int, fresh: bool) -> Plausibility:
        """Judge a position: YES for an id in flight at the start of a packet."""
        if at + 8 > len(data):
            return Plausibility.MORE
        verdict = judge_response(data, at, self._in_flight())
        if verdict is Plausibility.MAYBE:
            return Plausibility.YES if fresh else verdict
        if fresh and self._any(data, at):
            return Plausibility.MAYBE
        return Plausibility.NO

    def follows(self, data: Data, first: int, second: int) -> Plausibility:
        """Judge whether the next response's id is a little higher, or in flight too."""
        if second + 8 > len(data):
            return Plausibility.MORE
        (_, before) = _SIZE_AND_ID.unpack_from(data, first)
        (_, after) = _SIZE_AND_ID.unpack_from(data, second)
        near = self._any(data, second) and 0 < after - before <= NEAR
        return Plausibility.YES if near or after in self._in_flight() else Plausibility.NO

    @staticmethod
    def _any(data: Data, at: int) -> bool:
        return judge_response(data, at, range(1 << 31)) is Plausibility.MAYBE


class ResyncBuffer(Resumable):
    """Bytes of one direction in which the start of a frame is searched for."""

    STATE = ("_looked", "_offset", "_pieces", "_starts", "_search_at", "held", "surplus")
    __slots__ = (*STATE, "_heuristic")

    def __init__(self, heuristic: FrameHeuristic) -> None:
        self._heuristic = heuristic
        self.held = bytearray()
        self._offset = 0
        """Stream offset of the first held byte."""
        self._pieces: list[Piece] = []
        """With `start` in `held`."""
        self._starts: list[int] = []
        """Positions where packets start, ascending."""
        self._looked = 0
        """Position before which no frame starts."""
        self._search_at = 0
        """Count of held bytes before which another search would find nothing new."""
        self.surplus = 0
        """Held bytes that may be dropped: no frame starts in them."""

    @property
    def first_packet(self) -> int:
        return min(piece.packet for piece in self._pieces)

    def add(self, data: bytes, offset: int, pieces: list[Piece]) -> None:
        """Hold more bytes, which follow the ones held."""
        held = self.held
        if not held:
            self._offset = offset
        base = len(held)
        last = self._pieces[-1] if self._pieces else None
        for part in pieces:
            piece = part._replace(start=base + part.start)
            if last is None or piece.packet != last.packet:
                self._starts.append(piece.start)
            elif piece.at - last.at == piece.start - last.start:
                continue  # the packet continues: its first 4 bytes, a size, came apart
            self._pieces.append(piece)
            last = piece
        held += data

    def search(self, *, last: bool = False) -> int | None:
        """Return the position of the next frame; None when it is not there yet. `last`: no more
        bytes will follow."""
        held = self.held
        if len(held) < self._search_at and not last:
            return None
        find = self._heuristic.finder()
        at = self._looked
        while True:
            at = self._candidate(find, at)
            if at < 0:
                self._looked = max(self._looked, len(held) - HEAD_BYTES + 1, 0)
                self._search_at = 0
                self.surplus = self._looked
                return None
            verdict = self._verdict(at, last)
            if verdict is Plausibility.YES:
                return at
            if verdict is Plausibility.MORE:
                self._looked = at
                self.surplus = at
                return None
            at += 1

    def _candidate(self, find: Callable[[Data, int], int], at: int) -> int:
        """Return the next candidate: one that the heuristic finds, or the start of a packet."""
        candidate = find(self.held, at)
        index = bisect_right(self._starts, at - 1)
        start = self._starts[index] if index < len(self._starts) else -1
        if candidate < 0 or (0 <= start < candidate):
            return start
        return candidate

    def _verdict(self, at: int, last: bool) -> Plausibility:
        held = self.held
        index = bisect_right(self._starts, at) - 1
        fresh = index >= 0 and self._starts[index] == at
        verdict = self._heuristic.judge(held, at, fresh)
        if verdict is Plausibility.MORE:
            self._search_at = 0
            if last:
                cut = fresh and self._heuristic.starts(held, at)
                return Plausibility.YES if cut else Plausibility.NO
            return verdict
        if verdict is not Plausibility.MAYBE:
            return verdict
        (size,) = _SIZE.unpack_from(held, at)
        behind = at + 4 + size
        if behind > at + WINDOW:
            return Plausibility.NO
        verdict = (
            self._heuristic.follows(held, at, behind) if behind < len(held) else Plausibility.MORE
        )
        if verdict is Plausibility.MORE:
            if last:
                return Plausibility.YES if behind == len(held) else Plausibility.NO
            self._search_at = min(behind + HEAD_BYTES, at + WINDOW)
        return verdict

    def drop(self, count: int) -> tuple[int, int, int, bytes, Part | None]:
        """Drop the first bytes. Return their stream offset, count, time, first bytes, and where the
        first packet's share of them is in the input."""
        first = self._pieces[0] if self._pieces else None
        time_ns = 0 if first is None else first.time_ns
        part = None
        if first is not None:
            size = self._pieces[1].start if len(self._pieces) > 1 else count
            part = Part(first.file, first.at, min(size, count), first.packet)
        dropped = (self._offset, count, time_ns, bytes(self.held[:HEAD]), part)
        del self.held[:count]
        self._offset += count
        self._looked = max(0, self._looked - count)
        self._search_at = max(0, self._search_at - count)
        self.surplus = 0
        pieces: list[Piece] = []
        for number, piece in enumerate(self._pieces):
            is_last = number + 1 == len(self._pieces)
            stop = len(self.held) + count if is_last else self._pieces[number + 1].start
            if stop > count or (is_last and not pieces):
                cut = max(0, count - piece.start)
                pieces.append(piece._replace(start=piece.start + cut - count, at=piece.at + cut))
        self._pieces = pieces if self.held else []
        self._starts = [start - count for start in self._starts if start >= count]
        return dropped

    def rest(self) -> tuple[bytes, int, list[Piece]]:
        return bytes(self.held), self._offset, self._pieces
