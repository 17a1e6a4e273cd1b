"""What a feed gives many at a time counts the same as one exchange after the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.statistics import feed as feeding
from kafkascope.analyzer.statistics.feed import Feed, is_odd, wants
from tests.analyzer.statistics.laws import SAMPLES, traffic

FILES = sorted(path.name for path in SAMPLES.iterdir() if ".pcap" in path.name)
MANY = ("rebalance.pcap", "transactions.pcap", "java-old.pcap")


def one_by_one(pairs: Any) -> dict[str, Any]:
    counted: dict[str, Any] = {**accumulators()}
    takers = list(Feed(counted.values())._takers)
    for row, exchange in pairs:
        for taker in takers:
            if wants(taker, row.api_key, odd=is_odd(row)):
                taker.add(row, exchange)
    return {name: each.dump() for name, each in counted.items()}


def fed(pairs: Any) -> tuple[dict[str, Any], int]:
    """The states, and how many exchanges waited."""
    counted: dict[str, Any] = {**accumulators()}
    feed, waited = Feed(counted.values()), 0
    for row, exchange in pairs:
        before = feed.waiting
        feed.add(row, exchange)
        waited += feed.waiting != before
    feed.settle()
    return {name: each.dump() for name, each in counted.items()}, waited


@pytest.mark.parametrize("name", FILES)
def test_states_are_the_same(name: str) -> None:
    pairs, _ = traffic(name)
    assert fed(pairs)[0] == one_by_one(pairs)


@pytest.mark.parametrize("name", MANY)
def test_usual_exchanges_wait(name: str) -> None:
    pairs, _ = traffic(name)
    moving = [row for row, _ in pairs if row.api_key in (0, 1) and row.state == "answered"]
    assert fed(pairs)[1] > len(moving) // 2


@settings(max_examples=30)
@given(
    data=st.data(),
    name=st.sampled_from(MANY),
    most=st.integers(1, 60),
    size=st.integers(1, 20_000),
)
def test_it_does_not_matter_when_they_are_given(
    data: st.DataObject, name: str, most: int, size: int
) -> None:
    pairs, _ = traffic(name)
    some = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=80, unique_by=id))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeding, "MOST_WAITING", most)
        patch.setattr(feeding, "MOST_BYTES", size)
        assert fed(some)[0] == one_by_one(some)
