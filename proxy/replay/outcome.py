"""The outcome of a replay: counts, latencies, differences. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafkascope.proxy.replay.compare import Comparison


class Latency(NamedTuple):
    """The latencies of one exchange, in nanoseconds."""

    api: str
    then_ns: int
    now_ns: int


@dataclass(slots=True)
class Outcome:
    """The outcome of a replay."""

    comparison: Comparison
    sent: int = 0
    unanswered: int = 0
    unserved: int = 0
    """Not sent, for the peer lacks the version."""
    settled: int = 0
    """Answers whose error in the capture was one that passes."""
    latencies: list[Latency] = field(default_factory=list)
    seconds: float = 0.0
    """From the first request to the last response."""
