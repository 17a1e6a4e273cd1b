"""Limits that keep the report of a large capture readable."""

from __future__ import annotations

from typing import Final, NamedTuple


class ReportLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # Causes with a sentence in the summary, and such a sentence; all causes follow below.
    summary_causes: int = 3
    sentence_chars: int = 240
    # Causes, and consequences of one.
    causes: int = 100
    # Lines of a table, bars of a chart, groups with a timeline.
    lines: int = 60
    bars: int = 15
    groups: int = 12
    # Topics of the map: with the summary they are the first screen.
    mapped_topics: int = 10
    # Fetch sessions whose partitions are remembered, to rename them.
    sessions: int = 256


LIMITS: Final = ReportLimits()
