"""Which followers asked for nothing while Produce requests with acks=all waited for them.

Times are kept in slots of a twentieth of a second: little enough for days, and the same in whatever
order exchanges come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.findings.counting import Event, Keyed, KeyedMeasures, bits
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.words import duration
from kafkascope.analyzer.merging.tables import by_key
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
    leaders = by_key(
        (follower, leader) for leader, follower in {key[:2] for key, _ in fetching.items()}
    )
    for follower, of_it in leaders.items():
        for event in slow:
            first, last = event.time_ns // SLOT, (event.time_ns + event.about["latency"]) // SLOT
            since = first - IN_A_SECOND
            busy = {
                slot for leader in of_it for slot in _busy(fetching, leader, follower, since, last)
            }
            count = last - first - sum(slot > first for slot in busy)
            if busy and 2 * count >= last - first:
                idle[follower] = max(idle.get(follower, 0), count * SLOT)
    return "".join(
        f"; follower {follower} sent no Fetch for {duration(took)} meanwhile"
        for follower, took in sorted(idle.items())[: LIMITS.listed]
    )


def _busy(
    fetching: Keyed[Slots], leader: str, follower: int, first: int, last: int
) -> Iterator[int]:
    for slot in range(first, last + 1):
        key = leader, follower, slot // IN_A_MINUTE
        if key in fetching and fetching[key].slots >> slot % IN_A_MINUTE & 1:
            yield slot
