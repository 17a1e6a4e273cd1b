"""Pauses of members: times without a fetch that exceed a limit, or come near it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.statistics.delivery.model import Happening
from kafkascope.analyzer.statistics.delivery.parts import Periods

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.delivery.delivery import Belongs

SECOND: Final = 1_000_000_000
MS: Final = 1_000_000
LEAST_PAUSE: Final = 5 * SECOND
"""Of those that are listed when no limit is known."""


def pauses(
    group: str, who: str, belongs: Belongs, periods: Periods, lives: list[tuple[int, int]]
) -> Iterator[Happening]:
    """Yield the pauses of a client. `lives`: (first, last) heard of each member that it was."""
    # Since KIP-62 the rebalance timeout is max.poll.interval.ms; before, the session was.
    limit_ms = belongs.rebalance_ms or belongs.session_ms
    what = "max.poll.interval.ms" if belongs.rebalance_ms else "session.timeout.ms"
    for begin, end in periods.pauses():
        length = end - begin
        if belongs.last_ns is not None and begin > belongs.last_ns:
            continue
        if _between_lives(lives, begin, end, limit_ms):
            continue
        if limit_ms is None:
            if length < LEAST_PAUSE:
                continue
            why = "; its timeouts are unknown (it joined before the capture)"
        elif length * 2 < limit_ms * MS:
            continue
        else:
            over = "more than" if length > limit_ms * MS else "near"
            why = f", {over} its {what} ({limit_ms / 1000:g} s)"
        text = f"{who} did not fetch for {length / SECOND:.1f} s{why}"
        yield Happening(begin, "pause", group, "", None, length, None, text)


def _between_lives(
    lives: list[tuple[int, int]], begin: int, end: int, limit_ms: int | None
) -> bool:
    """Return whether a client ended in a pause and started again: its last member was silent, too,
    long before it had exceeded a limit."""
    least = (end - begin if limit_ms is None else limit_ms * MS) // 2
    born = [first for first, _ in lives if begin < first <= end]
    heard = [min(last, end) for first, last in lives if first <= begin]
    return bool(born and heard) and max(heard) < begin + least
