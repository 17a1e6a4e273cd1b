"""When to look at which hole again: a queue of deadlines in capture time. State without I/O."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from kafkascope.captures.streams.half import Half

NEVER: Final = 1 << 63


class Deadlines:
    """One deadline per direction that counts; entries that were overtaken are skipped."""

    def __init__(self) -> None:
        self.wake_ns = NEVER
        """The next deadline."""
        self._entries: list[tuple[int, int, Half]] = []
        self._serial = 0

    def set(self, half: Half, deadline_ns: int) -> None:
        """Look at `half` at `deadline_ns`, in place of an earlier or later time."""
        half.deadline_ns = deadline_ns
        if half.queued_ns is None or deadline_ns < half.queued_ns:
            half.queued_ns = deadline_ns
            self._serial += 1
            heappush(self._entries, (deadline_ns, self._serial, half))
            self.wake_ns = self._entries[0][0]

    def due(self, time_ns: int) -> Half | None:
        """Take out the direction with the earliest deadline, if that has come."""
        entries = self._entries
        found = None
        while found is None and entries and entries[0][0] <= time_ns:
            half = self._pop()
            if half is not None and half.deadline_ns > time_ns:
                self.set(half, half.deadline_ns)
            else:
                found = half
        self.wake_ns = entries[0][0] if entries else NEVER
        return found

    def first(self) -> Half | None:
        """Take out the direction with the earliest deadline."""
        half = None
        while self._entries and half is None:
            half = self._pop()
        self.wake_ns = self._entries[0][0] if self._entries else NEVER
        return half

    def waiting(self) -> list[Half]:
        """The directions with a deadline, the earliest first."""
        return [half for ns, _, half in sorted(self._entries) if half.queued_ns == ns]

    def wait(self, halves: list[Half]) -> None:
        """Take over what `waiting` gave."""
        for half in halves:
            assert half.queued_ns is not None
            self._serial += 1
            self._entries.append((half.queued_ns, self._serial, half))
        self.wake_ns = self._entries[0][0] if self._entries else NEVER

    def _pop(self) -> Half | None:
        deadline_ns, _, half = heappop(self._entries)
        if half.queued_ns != deadline_ns:
            return None
        half.queued_ns = None
        return half

    def purge(self, keep: int) -> None:
        """Drop what was overtaken when more than `keep` entries are there: time may stand still."""
        if len(self._entries) > keep:
            self._entries = [entry for entry in self._entries if entry[2].queued_ns == entry[0]]
            heapify(self._entries)
