"""The thresholds of statistics that decide whether something is a finding, each with its reason.

Detectors read what the statistics made of them; `analyzer.findings.rules` has all thresholds.
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
    "addresses.looks": Limit(3, "count", "a tool that lists metadata sends one or two requests"),
    "addresses.pace": Limit(
        60 * SECOND,
        "ns",
        "between two lookups on average; clients refresh their metadata every 5 or 10 minutes",
    ),
    "addresses.starts": Limit(
        4,
        "count",
        "connections with lookups and nothing else, at any pace: an application that starts again",
    ),
    "addresses.needed": Limit(
        10,
        "times",
        "that a client gets the address of a broker that it needs and never connects to; starting "
        "clients look up a few",
    ),
    "addresses.needed-pace": Limit(
        5 * SECOND,
        "ns",
        "between two of these on average; clients retry missing metadata every second",
    ),
    "connects.answer": Limit(
        SECOND, "ns", "before the end of the capture: TCP retransmits a SYN after this time"
    ),
    "rebalances.handover": Limit(
        5 * SECOND,
        "ns",
        "the second half of a cooperative rebalance follows when members have released their "
        "partitions",
    ),
    "unowned.pause": Limit(
        2 * SECOND,
        "ns",
        "a starting leader that does not know the topics yet rejoins within a second",
    ),
    "refused.connections": Limit(
        3, "count", "with ApiVersions alone; clients open single ones, and use them later"
    ),
    "refused.share": Limit(50, "percent", "of the connections of the client"),
    "stuck.fetches": Limit(3, "count", "of one offset; a restart reads it twice"),
}


def limit(name: str) -> int:
    return LIMITS[name].value
