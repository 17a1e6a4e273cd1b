"""One pass over the inputs into statistics, which stay usable after ctrl+c and damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.reading import Reading, RowAndExchange
from kafkascope.captures.model import Closed, Opened, Resolved

Add: TypeAlias = Callable[[Row, Exchange], None]


class Through(Protocol):
    """Transforms exchanges and connections before they are counted."""

    def transformed(self, row: Row, exchange: Exchange) -> RowAndExchange:
        """Return an exchange and its row, transformed."""

    def event(self, event: Opened | Closed) -> Opened | Closed:
        """Return the beginning or end of a connection, transformed."""


def count(
    reading: Reading,
    *statistics: Any,
    watch: bool = False,
    through: Through | None = None,
    hosts: Iterable[Resolved] = (),
    whole: Any = None,
) -> None:
    """Add all matching exchanges to the statistics; with `watch`, also call their `saw` with
    beginnings and ends of connections, whatever the filter. All of them pass through `through`.
    `hosts`: addresses of names that the user gave; neither these nor the names of the capture are
    counted where `through` gives other names. `whole` is a statistic of all exchanges, and of all
    beginnings and ends."""
    if whole is not None:
        reading.every = whole.add if through is None else _through(whole.add, through)
    others = () if whole is None else (whole,)
    nameds = [each.named for each in (*statistics, *others) if hasattr(each, "named")]

    def named(event: Resolved) -> None:
        for each in nameds:
            each(event)

    for host in hosts if through is None else ():
        named(host)
    if reading.stored is not None:
        if not reading.options.selects:
            for each in statistics:
                reading.stored.merge_into(each)
            if whole is not None:
                reading.stored.merge_whole(whole)
            reading.exchanges_read = reading.stored.exchanges_read
            return
        for each in statistics:
            reading.stored.demand_rows(each)
        reading.rows_suffice = True
    watching = (*(statistics if watch else ()), *others)
    saws = [each.saw for each in watching if hasattr(each, "saw")]
    if saws:
        reading.capture.watch = _all(saws, through)
    if through is None:
        reading.capture.named = named
    asking = [each for each in (*statistics, *others) if not getattr(each, "ROWS_SUFFICE", False)]
    reading.rows_suffice = reading.rows_suffice or not (asking or through)
    adds = [each.add for each in statistics]
    for row, exchange in reading.rows():
        if through is not None:
            row, exchange = through.transformed(row, exchange)
        for add in adds:
            add(row, exchange)


def _through(add: Add, through: Through) -> Add:
    return lambda row, exchange: add(*through.transformed(row, exchange))


def _all(
    functions: list[Callable[[Any], None]], through: Through | None
) -> Callable[[Opened | Closed], None]:
    def told(event: Opened | Closed) -> None:
        if through is not None:
            event = through.event(event)
        for function in functions:
            function(event)

    return told
