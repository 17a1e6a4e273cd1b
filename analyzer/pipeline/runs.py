"""Runs of chunks joined to one: segments come one by one here, and each chunk has a fixed cost."""

from __future__ import annotations

from typing import Final

from kafkascope.captures.model import Chunk, Piece

MOST_BYTES: Final = 1 << 20
"""Limit of a run."""


class Runs:
    """Holds chunks back as long as they continue in the same direction."""

    def __init__(self) -> None:
        self._held: list[Chunk] = []
        self._next = 0
        self._bytes = 0

    def takes(self, chunk: Chunk) -> bool:
        """Add a chunk to the run; return False when it does not continue one."""
        held = self._held
        if not held:
            return False
        last = held[-1]
        if (
            chunk.offset != self._next
            or chunk.direction != last.direction
            or chunk.connection is not last.connection
            or self._bytes > MOST_BYTES
        ):
            return False
        self._add(chunk)
        return True

    def begin(self, chunk: Chunk) -> None:
        """Begin a run with a chunk."""
        self._add(chunk)

    def _add(self, chunk: Chunk) -> None:
        size = len(chunk.data)
        self._held.append(chunk)
        self._next = chunk.offset + size
        self._bytes += size

    def end(self) -> Chunk | None:
        """Return the run as one chunk; None when there is none."""
        held = self._held
        if not held:
            return None
        first = held[0]
        if len(held) > 1:
            pieces: list[Piece] = []
            at = 0
            for chunk in held:
                for start, *rest in chunk.pieces:
                    pieces.append(Piece(at + start, *rest))
                at += len(chunk.data)
            data = b"".join([chunk.data for chunk in held])
            first = Chunk(first.connection, first.direction, first.offset, data, pieces)
        self._held = []
        self._bytes = 0
        return first
