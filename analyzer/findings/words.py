"""Words of sentences about findings: names, counts, times and lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.text import Spelled, plural, spelled

__all__ = ["Spelled", "duration", "listed", "plural", "size", "spelled"]


def listed(values: Iterable[Any], most: int = LIMITS.listed, between: str = ", ") -> str:
    """Return the first few of a list, and how many more there are."""
    found = [spelled(value) for value in values]
    rest = len(found) - most
    return Spelled(between.join(found[:most]) + (f" and {rest} more" if rest > 0 else ""))
