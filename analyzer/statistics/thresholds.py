"""The thresholds of statistics that decide whether something is a finding, each with its reason.

Detectors read what the statistics made of them; `analyzer.findings.rules` has all thresholds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.times import SECOND


class Threshold(NamedTuple):
    """A threshold."""

    value: int
    unit: str
    """ns, ms, bytes, count, times, percent, per second, per minute."""
    why: str


def threshold(value: str, why: str) -> Threshold:
    """Return a threshold of a number with its unit; times are in seconds, and kept in
    nanoseconds."""
    number, _, unit = value.partition(" ")
    if unit == "s":
        return Threshold(round(float(number) * SECOND), "ns", why)
    return Threshold(int(number), unit, why)


THRESHOLDS: Final = {
    "addresses.looks": threshold("3 count", "a tool that lists metadata sends one or two requests"),
    "addresses.pace": threshold(
        "60 s",
        "between two lookups on average; clients refresh their metadata every 5 or 10 minutes",
    ),
    "addresses.starts": threshold(
        "4 count",
        "connections with lookups and nothing else, at any pace: an application that starts again",
    ),
    "addresses.needed": threshold(
        "10 times",
        "that a client gets the address of a broker that it needs and never connects to; "
        "starting clients look up a few",
    ),
    "addresses.needed-pace": threshold(
        "5 s", "between two of these on average; clients retry missing metadata every second"
    ),
    "connects.answer": threshold(
        "1 s", "before the end of the capture: TCP retransmits a SYN after this time"
    ),
    "rebalances.handover": threshold(
        "5 s",
        "the second half of a cooperative rebalance follows when members have released their "
        "partitions",
    ),
    "unowned.pause": threshold(
        "2 s", "a starting leader that does not know the topics yet rejoins within a second"
    ),
    "refused.connections": threshold(
        "3 count", "with ApiVersions alone; clients open single ones, and use them later"
    ),
    "refused.share": threshold("50 percent", "of the connections of the client"),
    "stuck.fetches": threshold("3 count", "of one offset; a restart reads it twice"),
}


def limit(name: str) -> int:
    return THRESHOLDS[name].value
