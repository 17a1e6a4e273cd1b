"""The thresholds of statistics that decide whether something is a finding, each with its reason.

Detectors read what the statistics made of them; `analyzer.findings.limits` has all thresholds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SECOND: Final = 1_000_000_000


class Limit(NamedTuple):
    """A threshold."""

    value: int
    unit: str
    """ns, ms, bytes, count, times, percent, per second, per minute."""
    why: str


LIMITS: Final[dict[str, Limit]] = {
    "addresses.looks": Limit(3, "count", "a tool that lists metadata asks once or twice"),
    "addresses.pace": Limit(
        60 * SECOND,
        "ns",
        "between two looks on average; clients refresh their metadata every five or ten minutes",
    ),
    "addresses.needed": Limit(
        10,
        "times",
        "that a client is told of a node that it needs and never calls; starting clients ask a few",
    ),
    "addresses.needed-pace": Limit(
        5 * SECOND, "ns", "between two of these on average; clients ask each second what they miss"
    ),
    "connects.answer": Limit(
        SECOND, "ns", "before the end of the capture: TCP itself waits so long until it asks again"
    ),
    "rebalances.handover": Limit(
        5 * SECOND,
        "ns",
        "the second half of a cooperative rebalance follows when members gave up their partitions",
    ),
    "unowned.pause": Limit(
        2 * SECOND,
        "ns",
        "a leader that does not know the topics yet when it starts joins again within a second",
    ),
    "stuck.fetches": Limit(3, "count", "of one offset; a restart reads it twice"),
}


def limit(name: str) -> int:
    """Return the value of a threshold."""
    return LIMITS[name].value
