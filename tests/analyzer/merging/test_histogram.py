"""Percentiles are close, whatever is counted."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.merging.histogram import Histogram, bounds_of, bucket_of

VALUES = st.lists(st.integers(0, 1 << 70), min_size=1, max_size=60)


def histogram(values: list[int]) -> Histogram:
    new = Histogram()
    for value in values:
        new.add_all([value])
    return new


@given(st.integers(0, 1 << 70))
def test_buckets_hold_their_values_and_are_narrow(value: int) -> None:
    low, high = bounds_of(bucket_of(value))
    assert low <= value <= high
    assert (high - low) * 32 <= low or low == high


@given(st.integers(0, 5000))
def test_buckets_follow_each_other(bucket: int) -> None:
    assert bounds_of(bucket)[1] + 1 == bounds_of(bucket + 1)[0]


@given(VALUES, st.floats(0.01, 1))
def test_percentiles_are_a_little_above_the_truth_at_most(values: list[int], share: float) -> None:
    found = histogram(values).percentile(share)
    true = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    assert found is not None
    assert true <= found <= true * 33 // 32 + 1
    assert found <= max(values)


@given(VALUES, VALUES)
def test_merging_is_counting_both(one: list[int], two: list[int]) -> None:
    merged = histogram(one)
    merged.merge(histogram(two))
    assert merged.dump() == histogram([*two, *one]).dump()
    assert Histogram().load(merged.dump()).dump() == merged.dump()


def test_no_values_have_no_percentile() -> None:
    assert Histogram().percentile(0.5) is None
    assert histogram([-5]).percentile(0.5) == 0
