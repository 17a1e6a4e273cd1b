"""The delivery of a partition to a share group (KIP-932): which member has acquired which record,
and which are delivered again. Sans-I/O."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.serve.log import Log
from kafkascope.proxy.serve.request import Code

LOCK_S: Final = 30.0
"""So long a record is a member's; then it is for others again."""
MOST_LOCKS: Final = 2_000
"""Records of a partition that members have at once."""
MOST_DELIVERIES: Final = 5
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class Acquired(NamedTuple):
    """A record that a member has acquired."""

    member: str
    deliveries: int
    until: float


class Delivery:
    """How far a group is with a partition."""

    def __init__(self, start: int) -> None:
        self.next = start
        """The first offset that nobody had yet."""
        self.held: dict[int, Acquired] = {}
        self.free: dict[int, int] = {}
        """Offsets that were given back -> how often they were delivered."""

    def expire(self, now: float) -> None:
        """Release the records that members have had for too long."""
        for offset in [o for o, held in self.held.items() if held.until <= now]:
            self._release(offset)

    def leave(self, member: str) -> None:
        """Release the records of a member."""
        for offset in [o for o, held in self.held.items() if held.member == member]:
            self._release(offset)

    def _release(self, offset: int) -> None:
        held = self.held.pop(offset)
        if held.deliveries < MOST_DELIVERIES:
            self.free[offset] = held.deliveries

    def settle(self, member: str, first: int, last: int, kinds: list[int]) -> int:
        """Apply a batch of acknowledgements. One type counts for all offsets. Returns the error; 0:
        none."""
        if not 0 <= last - first < MOST_LOCKS or len(kinds) not in (1, last - first + 1):
            return Code.INVALID_RECORD_STATE
        error = 0
        for index, offset in enumerate(range(first, last + 1)):
            held = self.held.get(offset)
            kind = kinds[index if len(kinds) > 1 else 0]
            if held is None or held.member != member:
                error = error if kind == GAP else Code.INVALID_RECORD_STATE
            elif kind == RELEASE:
                self._release(offset)
            elif kind == RENEW:
                self.held[offset] = held._replace(until=time.monotonic() + LOCK_S)
            else:
                del self.held[offset]
        return error

    def take(self, log: Log, member: str, most: int, most_bytes: int) -> tuple[bytes, list[Body]]:
        """Acquire records for a member. Returns the records and the ranges of offsets acquired."""
        most = min(most, MOST_LOCKS - len(self.held))
        start = min([*self.free, self.next])
        data: list[bytes] = []
        taken: list[tuple[int, int]] = []
        size = 0
        until = time.monotonic() + LOCK_S
        for entry in log.entries(start):
            if len(taken) >= most or (data and size + len(entry.data) > most_bytes):
                break
            wanted = self._wanted(max(entry.base, start), entry.last, most - len(taken))
            for offset, deliveries in wanted:
                self.free.pop(offset, None)
                self.held[offset] = Acquired(member, deliveries + 1, until)
                self.next = max(self.next, offset + 1)
                taken.append((offset, deliveries + 1))
            if wanted:
                data.append(entry.data)
                size += len(entry.data)
        return b"".join(data), list(_ranges(taken))

    def _wanted(self, first: int, last: int, most: int) -> list[tuple[int, int]]:
        given_back = sorted(o for o in self.free if first <= o <= last)[:most]
        wanted = [(offset, self.free[offset]) for offset in given_back]
        fresh = max(first, self.next)
        return wanted + [(o, 0) for o in range(fresh, min(last + 1, fresh + most - len(wanted)))]


def _ranges(taken: list[tuple[int, int]]) -> Iterator[Body]:
    found: Body | None = None
    for offset, deliveries in taken:
        if found and found["last_offset"] + 1 == offset and found["delivery_count"] == deliveries:
            found["last_offset"] = offset
            continue
        if found:
            yield found
        found = {"first_offset": offset, "last_offset": offset, "delivery_count": deliveries}
    if found:
        yield found
