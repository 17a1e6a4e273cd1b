"""Connections with TLS whose secret the key log does not have yet: who waits, how long, how much.

Programs write a secret when they have it, and packets may be read before that line. What waits is
bounded in memory and in time. State without I/O: time arrives with `Conversations.retry_secrets`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.conversation.undecided import EVENT_BYTES
from kafkascope.captures.model import Chunk, StreamEvent
from kafkascope.captures.tls.records import PIECE_BYTES

# What a connection takes that waits, beside what came since.
CONNECTION_BYTES: Final = 8 << 10
# Time between two looks for connections without a handshake: each tries all secrets that are new,
# and most of these are other connections', whose handshakes are about to be read.
SEARCH_SECONDS: Final = 1.0

LONG: Final = f"{LIMITS.secret_wait_s:.0f} s"
BEYOND: Final = f"until more than {LIMITS.encrypted_bytes >> 20} MB were buffered"
END: Final = "until the capture ended"
"""Texts that say how long was waited."""


class _Waits:
    """One that waits."""

    __slots__ = ("bytes", "midstream", "since")

    def __init__(self, size: int, *, midstream: bool) -> None:
        self.bytes = size
        self.midstream = midstream
        self.since: float | None = None
        """None: no time was reported since."""


class Waiters:
    """Connections by their numbers, those first that wait for the longest time."""

    def __init__(self, most: int = LIMITS.encrypted_bytes) -> None:
        self._most = most
        self._waits: OrderedDict[int, _Waits] = OrderedDict()
        self._bytes = 0
        self._seen = [0, 0]
        """Changes of the key log at the last look for those with a handshake, and without."""
        self._search = 0.0
        """Time of the next look for those without."""

    def __contains__(self, number: int) -> bool:
        return number in self._waits

    def numbers(self) -> Iterator[int]:
        """Yield all that wait, also those that others make wait no more or again meanwhile."""
        for number in list(self._waits):
            if number in self._waits:
                yield number

    def begin(self, number: int, held: int, midstream: bool) -> None:
        """A connection waits from now on, with `held` bytes. `midstream`: without its handshake."""
        self._waits[number] = _Waits(0, midstream=midstream)
        self._count(number, CONNECTION_BYTES + held)

    def add(self, number: int, event: StreamEvent) -> None:
        """An event came for one that waits."""
        size = EVENT_BYTES
        if isinstance(event, Chunk):
            size += len(event.data) + len(event.pieces) * PIECE_BYTES
        self._count(number, size)

    def _count(self, number: int, size: int) -> None:
        self._waits[number].bytes += size
        self._bytes += size

    def end(self, number: int) -> None:
        self._bytes -= self._waits.pop(number).bytes

    def beyond(self) -> Iterator[int]:
        """Yield those that are too much; each has to `end`."""
        while self._bytes > self._most and self._waits:
            yield next(iter(self._waits))

    def worth_a_look(self, changes: int, seconds: float) -> Iterator[int]:
        """Yield those for which there may be a secret. `changes`: of the key log."""
        for midstream in (False, True):
            if changes == self._seen[midstream] or (midstream and seconds < self._search):
                continue
            self._seen[midstream] = changes
            if midstream:
                self._search = seconds + SEARCH_SECONDS
            for number in self.numbers():
                if self._waits[number].midstream is midstream:
                    yield number

    def overdue(self, seconds: float) -> Iterator[int]:
        """Yield those that waited for too long."""
        for each in reversed(self._waits.values()):
            if each.since is not None:
                break
            each.since = seconds
        for number in self.numbers():
            if seconds - (self._waits[number].since or seconds) < LIMITS.secret_wait_s:
                return
            yield number
