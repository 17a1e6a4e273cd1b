"""The outcome of a replay: counts, latencies, differences. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from kafkascope.proxy.replay.compare import Comparison

MOST_LATENCIES: Final = 100_000
"""Of an API; of more a sample is kept."""


class Latencies:
    """The latencies of an API's exchanges, in nanoseconds: all of them, or a sample in which each
    is as likely as the others."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[tuple[int, int]] = []
        """In the capture, and now."""
        self._random = Random(7)

    def add(self, then_ns: int, now_ns: int) -> None:
        """Add those of an exchange."""
        self.count += 1
        if len(self.kept) < MOST_LATENCIES:
            self.kept.append((then_ns, now_ns))
        elif (place := self._random.randrange(self.count)) < MOST_LATENCIES:
            self.kept[place] = then_ns, now_ns


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
    unmatched: int = 0
    """Answers where the capture has none that can be read."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about what was not done."""
    latencies: dict[str, Latencies] = field(default_factory=dict)
    """By API."""
    seconds: float = 0.0
    """From the first request to the last response."""
