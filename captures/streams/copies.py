"""Exact copies of segments: a capture on all interfaces of a container host holds everything twice.

Copies are only recognised here; reassembly treats their bytes like those of a retransmission. State
without I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from kafkascope.captures.resumable import Dump, Resumable

WINDOW: Final = 256
"""Packets that are looked back. Copies follow within one batch of a network driver (64 packets)."""
SPAN_NS: Final = 1_000_000
"""On one interface a copy comes within 1 ms; what comes later is a retransmission."""

Mark = tuple[int, int, int]
"""Fingerprint, time, interface."""


class Copies(Resumable):
    """Remembers the fingerprints of the last packets. Packets are told apart by their numbers, so
    that a connection alone gives the same answers as the whole capture."""

    def __init__(self) -> None:
        self._marks: list[tuple[Mark, int]] = []
        """The last packets with their numbers, at least `WINDOW` where there were as many; trimmed
        now and then."""
        self._latest: dict[int, tuple[Mark, int]] = {}
        """Fingerprint -> the last packet that has it."""
        self._indexed = True
        """All of `_marks` is in `_latest`; packets in bulk are entered there on demand."""
        self._number = 0

    def seen(self, mark: Mark, number: int | None = None) -> bool:
        """Enter a packet; return whether it is a copy of one within the window. `number` is its
        number in the capture, by default the one behind the last."""
        if not self._indexed:
            self._index()
        self._number = number = self._number + 1 if number is None else number
        before = self._latest.get(mark[0])
        self._latest[mark[0]] = (mark, number)
        self._marks.append((mark, number))
        if len(self._marks) >= 8 * WINDOW:
            self._trim()
        if before is None or number - before[1] > WINDOW:
            return False
        _, time_ns, interface = before[0]
        return interface != mark[2] or abs(mark[1] - time_ns) <= SPAN_NS

    def seen_all(
        self,
        prints: list[int],
        times: Sequence[int],
        interfaces: Sequence[int],
        numbers: Sequence[int] | None = None,
    ) -> list[bool] | None:
        """Enter many packets; return which of them are copies, None when none is."""
        if numbers is None:
            numbers = range(self._number + 1, self._number + 1 + len(prints))
        window = {mark[0] for mark, _ in self._marks[-WINDOW:]}
        size = len(window)
        window.update(prints)
        if len(window) != size + len(prints):
            marks = zip(prints, times, interfaces, strict=True)
            return [self.seen(mark, number) for mark, number in zip(marks, numbers, strict=True)]
        last = slice(-WINDOW, None)
        few = zip(prints[last], times[last], interfaces[last], strict=True)
        self._marks += zip(few, numbers[last], strict=True)
        if numbers:
            self._number = numbers[-1]
        self._trim()
        return None

    def dump(self) -> Dump:
        """Return the packets within the window: none to come can be a copy of an older one."""
        oldest = self._number - WINDOW
        marks = [[*mark, number] for mark, number in self._marks if number > oldest]
        return {"marks": marks, "number": self._number}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        self._number = state["number"]
        self._marks = [((copy, at, card), number) for copy, at, card, number in state["marks"]]
        self._indexed = False
        return self

    def _trim(self) -> None:
        del self._marks[:-WINDOW]
        self._indexed = False

    def _index(self) -> None:
        self._latest = {entry[0][0]: entry for entry in self._marks}
        self._indexed = True
