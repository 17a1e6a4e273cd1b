"""One pass over the inputs into statistics, which stay usable after ctrl+c and damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, Protocol

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.reading import Reading, RowAndExchange
from kafkascope.analyzer.reading.remarks import note_damage
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.feed import Feed
from kafkascope.captures.model import Closed, Opened, Resolved


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
    _count(reading, statistics, statistics if watch else (), through, hosts, whole)
    for each in (*statistics, whole):
        if hasattr(each, "damaged_places"):
            note_damage(each, reading.capture, one_way=reading.is_one_way)


def _count(
    reading: Reading,
    statistics: Sequence[Any],
    watching: Sequence[Any],
    through: Through | None,
    hosts: Iterable[Resolved],
    whole: Any,
) -> None:
    if reading.stored is not None and whole is not None:
        merge = reading.stored.merge_whole if reading.stored.filter else reading.stored.merge_into
        merge(whole)
        whole = None
    others = () if whole is None else (whole,)
    feed, every = Feed(statistics), Feed(others)
    if whole is not None and through is not None:
        reading.on_exchange = lambda *pair: every.give(
            ExchangeBatch.of(*through.transformed(*pair))
        )
    nameds = [each.named for each in (*statistics, *others) if hasattr(each, "named")]

    def named(event: Resolved) -> None:
        for each in nameds:
            each(event)

    if reading.stored is not None:
        if not reading.options.selects:
            for each in statistics:
                reading.stored.merge_into(each)
            reading.exchanges_read = reading.stored.exchanges_read
            for host in hosts:
                named(host)
            return
        for each in statistics:
            reading.stored.demand_rows(each)
        reading.rows_suffice = True
    saws = [each.saw for each in (*watching, *others) if hasattr(each, "saw")]
    jobs = 0 if through is not None or reading.capture.watch is not None else reading.jobs
    if jobs and _together(reading, jobs, (feed, statistics), (every, others), saws, named):
        for host in hosts:
            named(host)
        return
    for host in hosts if through is None else ():
        named(host)
    if saws:
        reading.capture.watch = _all(saws, through)
    if through is not None:
        for row, exchange in reading.rows():
            feed.give(ExchangeBatch.of(*through.transformed(row, exchange)))
        return
    reading.capture.named = named
    if reading.takes_all:
        for rows, items in reading.batches():
            feed.take(items, rows)
            every.take(items, rows)
    else:
        if others:
            reading.on_exchange = every.add
        for row, exchange in reading.rows():
            feed.add(row, exchange)
    feed.settle()
    every.settle()


def _together(
    reading: Reading,
    jobs: int,
    some: tuple[Feed, Sequence[Any]],
    all_: tuple[Feed, Sequence[Any]],
    saws: Sequence[Callable[[Any], None]],
    named: Callable[[Resolved], None],
) -> bool:
    """Let several processes count what matches in `some`, and everything in `all_`, each in copies
    of the statistics; return whether they could."""
    from kafkascope.analyzer.pipeline.tables.numbers import ranked
    from kafkascope.analyzer.pool.messages import Work
    from kafkascope.captures.streams.shares import NeedsSingleProcess

    (feed, statistics), (every, others) = some, all_
    counted = (*statistics, *others)

    def dumped() -> list[Any]:
        feed.settle()
        every.settle()
        return [each.dump() for each in counted]

    all_match = reading.filter is None
    work = Work(
        reading.filter,
        on_match=[] if all_match else [feed.add],
        on_exchange=[every.add] if others and not all_match else [],
        on_batch=[feed.take, every.take] if all_match else [],
        on_connection=_all(saws, None) if saws else None,
        on_name=named,
        result=dumped,
    )
    empty = deepcopy(counted)
    try:
        for _ in reading.together(jobs, work):
            pass
    except NeedsSingleProcess:
        return False
    pool = reading.pooled
    assert pool is not None
    assert pool.summary is not None
    rank = pool.merge.rank
    for worker, states in enumerate(pool.summary.results):
        for at, (mine, fresh) in enumerate(zip(counted, empty, strict=True)):
            state = ranked(states[at], rank)
            states[at] = None  # full tables are large, and there are two of them otherwise
            if worker:
                mine.merge(deepcopy(fresh).load(state))
            else:
                mine.load(state)
    return True


def _all(
    functions: Sequence[Callable[[Any], None]], through: Through | None
) -> Callable[[Opened | Closed], None]:
    def pass_on(event: Opened | Closed) -> None:
        if through is not None:
            event = through.event(event)
        for function in functions:
            function(event)

    return pass_on
