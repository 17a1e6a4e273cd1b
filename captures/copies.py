"""Exact copies of a segment: a capture on all interfaces of a container host holds everything
twice.

Only tells; the bytes of a copy go through reassembly like those of a retransmission. State without
I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WINDOW: Final = 256
"""Packets looked back. Copies follow each other within one batch of a network driver (64
packets)."""
SPAN_NS: Final = 1_000_000
"""On one interface a copy comes within 1 ms; what comes later is a retransmission."""

Mark = tuple[int, int, int]
"""Fingerprint, time, interface."""


class Copies:
    """Remembers the fingerprints of the last packets."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        """The last packets, at least `WINDOW` where there were as many; trimmed now and then."""
        self._latest: dict[int, int] = {}
        """Fingerprint -> its last index, counted from the start of the capture."""
        self._dropped = 0
        """Packets that are no longer in `_marks`."""
        self._indexed = 0
        """Packets that are in `_latest`: those that came in bulk are entered when they are asked
        for."""

    def seen(self, mark: Mark) -> bool:
        """Enter a packet; True when it is a copy of one within the window."""
        marks = self._marks
        index = self._dropped + len(marks)
        if self._indexed != index:
            self._index()
        before = self._latest.get(mark[0], -WINDOW - 1)
        self._latest[mark[0]] = index
        marks.append(mark)
        self._indexed = index + 1
        if len(marks) >= 8 * WINDOW:
            self._trim()
        if index - before > WINDOW:
            return False
        _, time_ns, interface = marks[before - self._dropped]
        return interface != mark[2] or abs(mark[1] - time_ns) <= SPAN_NS

    def seen_all(
        self, prints: list[int], times: Sequence[int], interfaces: Sequence[int]
    ) -> list[bool] | None:
        """Enter many packets; None when no two of them and of the window are alike."""
        marks = self._marks
        window = {mark[0] for mark in marks[-WINDOW:]}
        size = len(window)
        window.update(prints)
        if len(window) != size + len(prints):
            return [self.seen(mark) for mark in zip(prints, times, interfaces, strict=True)]
        last = slice(-WINDOW, None)
        marks += zip(prints[last], times[last], interfaces[last], strict=True)
        self._dropped += len(prints) - len(prints[last])
        self._trim()
        return None

    def _trim(self) -> None:
        extra = len(self._marks) - WINDOW
        if extra > 0:
            del self._marks[:extra]
            self._dropped += extra
        self._indexed = -1

    def _index(self) -> None:
        start = self._dropped
        self._latest = {mark[0]: start + index for index, mark in enumerate(self._marks)}
        self._indexed = start + len(self._marks)
