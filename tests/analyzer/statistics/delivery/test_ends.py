"""Where logs begin and end over time."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.statistics.delivery.ends import (
    APART,
    Periods,
    Positions,
    Series,
    at,
    value_at,
)
from kafkascope.analyzer.statistics.limits import LIMITS
from tests.kit.wire import SECOND


@given(
    st.lists(st.tuples(st.integers(0, 4_000 * SECOND), st.integers(0, 1_000)), max_size=300),
    st.data(),
)
def test_a_series_does_not_depend_on_order_or_parts(
    told: list[tuple[int, int]], data: st.DataObject
) -> None:
    whole = Series()
    parts = [Series(), Series(), Series()]
    for time_ns, offset in told:
        whole.add(time_ns, offset)
    for time_ns, offset in data.draw(st.permutations(told)):
        parts[data.draw(st.integers(0, 2))].add(time_ns, offset)
    first, second, third = (Series().load(json.loads(json.dumps(each.dump()))) for each in parts)
    first.merge(second)
    third.merge(first)
    assert third.dump() == whole.dump()
    assert len(whole) <= LIMITS.log_slots
    if told:
        assert max(offset for _, offset in whole) == max(offset for _, offset in told)


def test_ends_lie_on_a_line_and_begins_move_in_steps() -> None:
    series = [(10, 100), (20, 200)]
    assert [at(series, time_ns) for time_ns in (5, 10, 15, 20, 99)] == [None, 100, 150, 200, 200]
    assert [value_at(series, time_ns) for time_ns in (5, 11, 99)] == [100, 200, 200]
    assert at([], 1) is None
    assert value_at([], 1) == -1


@given(
    polls=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=30), data=st.data()
)
def test_periods_do_not_depend_on_order(polls: list[tuple[int, int]], data: st.DataObject) -> None:
    second = APART // 2
    one, two = Periods(), Periods()
    for begin, length in polls:
        one.add(begin * second, (begin + length) * second)
    for begin, length in data.draw(st.permutations(polls)):
        two.add(begin * second, (begin + length) * second)
    assert one.dump() == two.dump()
    assert all(end - begin > APART for begin, end in one.pauses())


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 50)), max_size=400), st.data())
def test_positions_of_parts_are_those_of_the_whole(
    asked: list[tuple[int, int]], data: st.DataObject
) -> None:
    whole, parts = Positions(), [Positions(), Positions()]
    for offset, time_ns in asked:
        whole.add(offset, time_ns)
        parts[data.draw(st.integers(0, 1))].add(offset, time_ns)
    parts[0].merge(Positions().load(parts[1].dump()))
    assert parts[0].dump() == whole.dump()
    assert len(whole.dump()) <= LIMITS.positions
