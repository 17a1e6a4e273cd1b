"""Which followers asked for nothing while Produce requests with acks=all waited for them.

Times are kept in slots of a twentieth of a second: little enough for days, and the same in whatever
order exchanges come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from kafkascope.analyzer.findings.counting import Event, Keyed, KeyedMeasures, bits
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.words import duration
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, replica_id

SLOT: Final = 50_000_000
MINUTE: Final = 60_000_000_000
IN_A_MINUTE: Final = MINUTE // SLOT
IN_A_SECOND: Final = IN_A_MINUTE // 60
"""Slots."""


class Slots(KeyedMeasures):
    """The slots of one minute in which something was so."""

    slots: int = bits()

    def at(self, time_ns: int) -> None:
        self.slots |= 1 << (time_ns % MINUTE // SLOT)


def note_fetches(batch: ExchangeBatch, into: Keyed[Slots]) -> None:
    """Take note of when a follower had a Fetch under way, by its leader's address, its id and the
    minute."""
    about = batch.row.broker_address, replica_id(batch.request)
    spans = {(b // SLOT, e // SLOT) for b, e in zip(batch.begins, batch.ends, strict=True)}
    for first, last in spans:
        for slot in range(first, min(last, first + IN_A_MINUTE) + 1):
            into[(*about, slot // IN_A_MINUTE)].at(slot * SLOT)


def idle_followers(fetching: Keyed[Slots], slow: list[Event]) -> str:
    """Return the followers that asked for nothing during half of a slow request and more, whichever
    leader: its address for clients is another one, and a leader that stops gets no Fetch either.
    One that asked for nothing in the second before it may have no partition any more."""
    idle: dict[int, int] = {}
    fetched: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (_, follower, minute), at in fetching.items():
        fetched[follower][minute] |= at.slots
    for follower, minutes in fetched.items():
        for event in slow:
            first, last = event.time_ns // SLOT, (event.time_ns + event.about["latency"]) // SLOT
            busy = _slots(minutes, first - IN_A_SECOND, last)
            count = last - first - (busy >> IN_A_SECOND + 1).bit_count()
            if busy and 2 * count >= last - first:
                idle[follower] = max(idle.get(follower, 0), count * SLOT)
    return "".join(
        f"; follower {follower} sent no Fetch for {duration(took)} meanwhile"
        for follower, took in sorted(idle.items())[: LIMITS.listed]
    )


def _slots(minutes: Mapping[int, int], first: int, last: int) -> int:
    """Return the slots from `first` to `last` with a Fetch, the first one as the lowest bit."""
    start = first // IN_A_MINUTE
    slots = sum(
        minutes.get(minute, 0) << (minute - start) * IN_A_MINUTE
        for minute in range(start, last // IN_A_MINUTE + 1)
    )
    return slots >> first % IN_A_MINUTE & (1 << last - first + 1) - 1
