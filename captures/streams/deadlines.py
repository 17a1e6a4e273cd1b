"""When to look at which gap again: a queue of deadlines in capture time. State without I/O."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from kafkascope.captures.streams.direction import DirectionState

NEVER: Final = 1 << 63


class Deadlines:
    """Holds one valid deadline per direction; entries that were replaced are skipped."""

    def __init__(self) -> None:
        self.wake_ns = NEVER
        """The next deadline."""
        self._entries: list[tuple[int, int, DirectionState]] = []
        self._serial = 0

    def set(self, direction: DirectionState, deadline_ns: int) -> None:
        """Set the deadline of a direction, in place of an earlier or later one."""
        direction.deadline_ns = deadline_ns
        if direction.queued_ns is None or deadline_ns < direction.queued_ns:
            direction.queued_ns = deadline_ns
            self._serial += 1
            heappush(self._entries, (deadline_ns, self._serial, direction))
            self.wake_ns = self._entries[0][0]

    def due(self, time_ns: int) -> DirectionState | None:
        """Take out the direction with the earliest deadline, if that has come by `time_ns`."""
        entries = self._entries
        found = None
        while found is None and entries and entries[0][0] <= time_ns:
            direction = self._pop()
            if direction is not None and direction.deadline_ns > time_ns:
                self.set(direction, direction.deadline_ns)
            else:
                found = direction
        self.wake_ns = entries[0][0] if entries else NEVER
        return found

    def waiting(self) -> list[DirectionState]:
        """Return the directions with a deadline, the earliest first."""
        return [
            direction for ns, _, direction in sorted(self._entries) if direction.queued_ns == ns
        ]

    def wait(self, directions: list[DirectionState]) -> None:
        """Take over what `waiting` gave."""
        for direction in directions:
            assert direction.queued_ns is not None
            self._serial += 1
            self._entries.append((direction.queued_ns, self._serial, direction))
        self.wake_ns = self._entries[0][0] if self._entries else NEVER

    def _pop(self) -> DirectionState | None:
        deadline_ns, _, direction = heappop(self._entries)
        if direction.queued_ns != deadline_ns:
            return None
        direction.queued_ns = None
        return direction

    def purge(self, keep: int) -> None:
        """Drop replaced entries when there are more than `keep`: time may stand still."""
        if len(self._entries) > keep:
            self._entries = [entry for entry in self._entries if entry[2].queued_ns == entry[0]]
            heapify(self._entries)
