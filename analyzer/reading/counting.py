"""One pass over the inputs into statistics, which stay usable after ctrl+c and damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Protocol, TypeAlias

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.reading import Reading, RowAndExchange
from kafkascope.analyzer.reading.remarks import note_damage
from kafkascope.analyzer.statistics.feed import Feed
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
    _count(reading, statistics, watch=watch, through=through, hosts=hosts, whole=whole)
    for each in (*statistics, whole):
        if hasattr(each, "damaged_places"):
            note_damage(each, reading.capture)


def _count(
    reading: Reading,
    statistics: Sequence[Any],
    *,
    watch: bool,
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
    if whole is not None:
        reading.every = every.add if through is None else _through(every.add, through)
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
    watching = (*(statistics if watch else ()), *others)
    saws = [each.saw for each in watching if hasattr(each, "saw")]
    needs = {getattr(each, "NEEDS", "bodies") for each in (*statistics, *others)}
    if through is None and "bodies" not in needs:
        reading.rows_suffice = True
        reading.heads_suffice = needs == {"heads"}
    jobs = 0 if through is not None or reading.capture.watch is not None else reading.jobs
    if jobs and _together(reading, jobs, (feed, statistics), (every, others), saws, nameds):
        for host in hosts:
            named(host)
        return
    for host in hosts if through is None else ():
        named(host)
    if saws:
        reading.capture.watch = _all(saws, through)
    if through is None:
        reading.capture.named = named
    add = feed.add
    for row, exchange in reading.rows():
        if through is not None:
            row, exchange = through.transformed(row, exchange)
        add(row, exchange)
    feed.settle()
    every.settle()


def _together(
    reading: Reading,
    jobs: int,
    some: tuple[Feed, Sequence[Any]],
    all_: tuple[Feed, Sequence[Any]],
    saws: Sequence[Callable[[Any], None]],
    nameds: Sequence[Callable[[Resolved], None]],
) -> bool:
    """Let several processes count what matches in `some`, and everything in `all_`, each in copies
    of the statistics; return whether they could."""
    from kafkascope.analyzer.pipeline.tables.numbers import ranked
    from kafkascope.analyzer.pool.messages import Alone, Work

    (feed, statistics), (every, others) = some, all_
    counted = (*statistics, *others)

    def dumped() -> list[Any]:
        feed.settle()
        every.settle()
        return [each.dump() for each in counted]

    work = Work(
        reading.filter,
        adds=[feed.add],
        alls=[every.add] if others else [],
        saws=saws,
        nameds=nameds,
        result=dumped,
        whole=not reading.rows_suffice,
        heads=reading.heads_suffice,
    )
    empty = deepcopy(counted)
    try:
        for _ in reading.together(jobs, work):
            pass
    except Alone:
        return False
    pool = reading.pooled
    assert pool is not None
    assert pool.sums is not None
    for worker, states in enumerate(pool.sums.results):
        rank = partial(pool.gathering.rank, worker)
        for at, (mine, fresh) in enumerate(zip(counted, empty, strict=True)):
            state = ranked(states[at], rank)
            states[at] = None  # full tables are large, and there are two of them otherwise
            if worker:
                mine.merge(deepcopy(fresh).load(state))
            else:
                mine.load(state)
    return True


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
