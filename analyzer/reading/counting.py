"""One pass over the inputs into statistics, with what ctrl+c and damage leave of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.reading import Reading, RowAndExchange
from kafkascope.captures.model import Closed, Opened, Resolved


class Through(Protocol):
    """What becomes of exchanges and of connections before they are counted."""

    def told(self, row: Row, exchange: Exchange) -> RowAndExchange:
        """An exchange and its row."""

    def event(self, event: Opened | Closed) -> Opened | Closed:
        """The beginning or end of a connection."""


def count(
    reading: Reading,
    *statistics: Any,
    watch: bool = False,
    through: Through | None = None,
    hosts: Iterable[Resolved] = (),
    whole: Any = None,
) -> None:
    """Add all wanted exchanges; with `watch`, also tell `saw` of beginnings and ends of
    connections, filter or not. All of them as they come out of `through`. `hosts`: what the user
    says that names stand for; neither these nor the names of the capture are counted where
    `through` gives other names. `whole` is a statistic of all exchanges, wanted or not; nothing
    comes to it through `through`."""
    if whole is not None:
        reading.every = whole.add
    others = () if whole is None else (whole,)
    nameds = [each.named for each in (*statistics, *others) if hasattr(each, "named")]

    def named(event: Resolved) -> None:
        for each in nameds:
            each(event)

    for host in hosts if through is None else ():
        named(host)
    if reading.stored is not None:
        if not reading.wish.selects:
            for each in statistics:
                reading.stored.merge_into(each)
            reading.told = reading.stored.exchanges_told
            return
        for each in statistics:
            reading.stored.demand_rows(each)
        reading.rows_suffice = True
    if watch:
        saws = [each.saw for each in (*statistics, *others) if hasattr(each, "saw")]
        reading.capture.watch = _all(saws, through)
    if through is None:
        reading.capture.named = named
    adds = [each.add for each in statistics]
    for row, exchange in reading.rows():
        if through is not None:
            row, exchange = through.told(row, exchange)
        for add in adds:
            add(row, exchange)


def _all(
    functions: list[Callable[[Any], None]], through: Through | None
) -> Callable[[Opened | Closed], None]:
    def told(event: Opened | Closed) -> None:
        if through is not None:
            event = through.event(event)
        for function in functions:
            function(event)

    return told
