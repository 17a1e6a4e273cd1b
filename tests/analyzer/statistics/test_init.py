"""The laws of all statistics: order and division do not matter, and a state comes back whole."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.merging.measures import Measures
from kafkascope.analyzer.merging.tables import Keyed
from kafkascope.analyzer.statistics.accumulators import STATISTICS
from kafkascope.analyzer.statistics.model import WrongState
from tests.kit.counting import counted, parts, traffic

FILES = ("rebalance.pcap", "transactions.pcap", "java-old.pcap", "zookeeper.pcap")
NAMES = sorted(STATISTICS)
LIMITED = sorted(set(STATISTICS) - {"rates"})


def made(name: str, limit: int | None) -> Any:
    statistic: Any = STATISTICS[name]()
    if limit is not None:
        # Rates get wider instead.
        for limited in [statistic] if name == "rates" else tables_of(statistic):
            limited.limit = min(limit, limited.limit)
    return statistic


def tables_of(measures: Any) -> Iterator[Keyed[Any]]:
    """All tables of a statistic."""
    for name in measures.RULES:
        value = getattr(measures, name)
        if isinstance(value, Keyed):
            yield value
        elif isinstance(value, Measures):
            yield from tables_of(value)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(data=st.data(), file=st.sampled_from(FILES), limit=st.sampled_from([None, 2, 5]))
def test_any_division_and_order_give_the_same(
    name: str, data: st.DataObject, file: str, limit: int | None
) -> None:
    pairs, names = traffic(file)
    whole = counted(made(name, limit), pairs)
    divided = [counted(made(name, limit), part) for part in data.draw(parts(pairs))]
    sum_ = divided.pop(data.draw(st.integers(0, len(divided) - 1)))
    for each in data.draw(st.permutations(divided)):
        sum_.merge(each)
    assert sum_.rows(names) == whole.rows(names)
    assert sum_.dump() == whole.dump()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", FILES)
def test_a_state_comes_back_whole(name: str, file: str) -> None:
    pairs, names = traffic(file)
    whole = counted(made(name, None), pairs)
    state = whole.dump()
    again = STATISTICS[name]().load(json.loads(json.dumps(state)))
    assert again.rows(names) == whole.rows(names)
    assert again.dump() == state
    # It counts on from there.
    half = len(pairs) // 2
    first = STATISTICS[name]().load(counted(made(name, None), pairs[:half]).dump())
    assert counted(first, pairs[half:]).rows(names) == whole.rows(names)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_of_another_version_is_refused(name: str) -> None:
    state = made(name, None).dump()
    with pytest.raises(WrongState):
        STATISTICS[name]().load({**state, "version": 99})
    with pytest.raises(WrongState):
        STATISTICS[name]().load({**state, "statistic": "other"})


@pytest.mark.parametrize("name", NAMES)
def test_nothing_gives_no_rows(name: str) -> None:
    assert made(name, None).rows() == []


@pytest.mark.parametrize("name", LIMITED)
def test_keys_are_bounded(name: str) -> None:
    pairs, names = traffic("rebalance.pcap")
    few = counted(made(name, 1), pairs)
    assert len(few.rows(names)) <= 2


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_columns_that_are_declared(name: str) -> None:
    pairs, names = traffic("rebalance.pcap")
    kind = STATISTICS[name]
    for line in counted(made(name, None), pairs).rows(names):
        assert {column.name for column in kind.COLUMNS} <= line.keys()
