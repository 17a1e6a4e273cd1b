"""Where logs begin and end over time."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.statistics.delivery.ends import Series, at, value_at
from kafkascope.analyzer.statistics.limits import LIMITS
from tests.analyzer.statistics.delivery.audits import audit_of, line_of
from tests.kit.samples import CAPTURES
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


def test_the_end_is_what_anybody_was_told_of_it() -> None:
    """The reader fetched last in the middle; the producer went on."""
    capture: Path = CAPTURES / "causes" / "growing-lag-librdkafka.pcap.gz"
    line = line_of(audit_of(capture), "frames")
    assert line["end_offset"] > 1_500
    assert line["lag"] == line["end_offset"] - line["committed_offset"]
