"""Traffic for tests of statistics, and ways to cut it into parts."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.topics import TopicNames
from tests.kit.samples import SAMPLES

Pair: TypeAlias = tuple[Row, Exchange]


@cache
def traffic(name: str) -> tuple[tuple[Pair, ...], TopicNames]:
    """All exchanges of a sample with their rows, and the names of its topics."""
    with open_capture([SAMPLES / name]) as capture:
        exchanges = list(capture.exchanges())
        names = capture.context.names
        # As a command makes them: with the names that are known in the end.
        return tuple((row_of(exchange, names), exchange) for exchange in exchanges), names


@st.composite
def parts(draw: st.DrawFn, pairs: tuple[Pair, ...]) -> list[list[Pair]]:
    """The exchanges in any order, in one to four parts."""
    order = draw(st.permutations(range(len(pairs))))
    cuts = sorted(draw(st.lists(st.integers(0, len(pairs)), max_size=3)))
    ends = [0, *cuts, len(pairs)]
    return [[pairs[index] for index in order[start:end]] for start, end in pairwise(ends)]


def counted(statistic: Any, pairs: Any) -> Any:
    """The statistic after these exchanges."""
    for row, exchange in pairs:
        statistic.add(ExchangeBatch.of(row, exchange))
    return statistic
