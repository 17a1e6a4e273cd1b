"""One pass over the inputs into statistics, with what ctrl+c and damage leave of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.commands.reading import Reading


def count(reading: Reading, *statistics: Any, watch: bool = False) -> None:
    """Add all wanted exchanges; with `watch`, also tell `saw` of beginnings and ends of
    connections, filter or not."""
    if reading.stored is not None:
        for each in statistics:
            reading.stored.merge_into(each)
        reading.told = reading.stored.exchanges_told
        return
    if watch:
        reading.capture.watch = _all([each.saw for each in statistics if hasattr(each, "saw")])
    adds = [each.add for each in statistics]
    for row, exchange in reading.rows():
        for add in adds:
            add(row, exchange)


def _all(functions: list[Callable[[Any], None]]) -> Callable[[Any], None]:
    def told(event: Any) -> None:
        for function in functions:
            function(event)

    return told
