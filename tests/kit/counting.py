"""Exchanges with their rows, ways to cut them into parts, and statistics that count them."""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Closed, Opened, StreamEvent
from tests.kit.samples import SAMPLES
from tests.kit.wire import told

Pair: TypeAlias = tuple[Row, Exchange]


@cache
def traffic(name: str, folder: Path = SAMPLES) -> tuple[tuple[Pair, ...], TopicNames]:
    """All exchanges of a capture with their rows, and the names of its topics."""
    with open_capture([folder / name]) as capture:
        exchanges = list(capture.exchanges())
        names = capture.context.names
        # As a command makes them: with the names that are known in the end.
        return tuple((row_of(exchange, names), exchange) for exchange in exchanges), names


def pairs_in(events: Iterable[StreamEvent]) -> list[Pair]:
    """All exchanges of these events with their rows."""
    context = Context()
    return [(row_of(exchange, context.names), exchange) for exchange in told(events, context)]


@st.composite
def parts(draw: st.DrawFn, pairs: tuple[Pair, ...]) -> list[list[Pair]]:
    """The exchanges in any order, in one to four parts."""
    order = draw(st.permutations(range(len(pairs))))
    cuts = sorted(draw(st.lists(st.integers(0, len(pairs)), max_size=3)))
    ends = [0, *cuts, len(pairs)]
    return [[pairs[index] for index in order[start:end]] for start, end in pairwise(ends)]


def counted(statistic: Any, pairs: Iterable[Pair]) -> Any:
    """The statistic after these exchanges."""
    for row, exchange in pairs:
        statistic.add(ExchangeBatch.of(row, exchange))
    return statistic


def count_capture(path: Path, *statistics: Any, **options: Any) -> TopicNames:
    """Let these count the exchanges and the connections of a capture; the names of its topics."""
    watchers = [each.saw for each in statistics if hasattr(each, "saw")]
    with open_capture([path], **options) as capture:

        def watch(event: Opened | Closed) -> None:
            for saw in watchers:
                saw(event)

        capture.watch = watch
        for exchange in capture.exchanges():
            row = row_of(exchange, capture.context.names)
            for each in statistics:
                each.add(ExchangeBatch.of(row, exchange))
        return capture.context.names
