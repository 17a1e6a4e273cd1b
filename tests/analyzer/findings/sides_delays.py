"""Both sides of the limits of what delays requests on their way."""

from __future__ import annotations

from collections.abc import Callable

from tests.analyzer.findings.lines import Line, found, severity
from tests.analyzer.findings.sides import Side
from tests.analyzer.findings.test_delays import (
    interrupted,
    lost_requests,
    queued,
    slow,
    transferred,
    unread,
)
from tests.analyzer.wire import MS

LEAST = 100 * MS


def told(rule: str, make: Callable[[int], Line]) -> Callable[[int], bool]:
    return lambda size: rule in found([make(size)], rule)


def is_warning(rule: str, make: Callable[[int], Line]) -> Callable[[int], bool]:
    return lambda size: severity([make(size)], rule) == "warning"


TRANSFERS: dict[str, Callable[[int, int], Line]] = {
    "client-not-reading": lambda takes_ns, count: unread(1, takes_ns, count),
    "broker-not-reading": lambda takes_ns, count: unread(0, takes_ns, count),
    "broker-stopped-sending": lambda takes_ns, count: interrupted(takes_ns - MS, count),
    "slow-transfer": lambda takes_ns, count: transferred(1, takes_ns, count),
}
"""Rule -> what takes so long, so many times."""

SIDES: dict[tuple[str, ...], Side] = {
    **{
        (rule, "delays.least"): Side(
            told(rule, lambda n, make=make: make(n, 3)),  # type: ignore[misc]
            LEAST - 1,
            LEAST,
        )
        for rule, make in TRANSFERS.items()
    },
    **{
        (rule, "slow.count"): Side(
            is_warning(rule, lambda n, make=make: make(3 * LEAST, n)),  # type: ignore[misc]
            2,
            3,
        )
        for rule, make in TRANSFERS.items()
    },
    ("lost-segments", "slow.count"): Side(is_warning("lost-segments", lost_requests), 2, 3),
    ("lost-segments", "slow.count", "soon"): Side(
        told("lost-segments", lambda n: lost_requests(n, 30 * MS, trip_ns=10 * MS)), 2, 3
    ),
    ("queued-requests", "delays.least"): Side(told("queued-requests", queued), LEAST - 1, LEAST),
    ("queued-requests", "queued.least"): Side(
        told("queued-requests", lambda n: queued(3 * LEAST, n)), 4, 5
    ),
    ("queued-requests", "queued.share"): Side(
        told("queued-requests", lambda n: queued(3 * LEAST, n, others=100 - n)), 49, 50
    ),
    ("slow-answers", "server.time"): Side(
        told("slow-answers", lambda n: slow(3, n)), 200 * MS - 1, 200 * MS
    ),
    ("slow-answers", "server.few"): Side(
        told("slow-answers", lambda n: slow(2, n)), 500 * MS - 1, 500 * MS
    ),
    ("slow-answers", "slow.count", "server"): Side(
        told("slow-answers", lambda n: slow(n, 300 * MS)), 2, 3
    ),
}
