"""Ports on the way to the reading process."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.spans import spans, within
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.numbers import ProcessNumbers

DEMO = str(Path(__file__).parents[3] / "captures" / "samples" / "libraries.pcap")


@given(st.sets(st.integers(1, 40)))
def test_the_same_ports_come_out(ports: set[int]) -> None:
    told = json.loads(json.dumps(spans(ports)))
    assert within(told) == ports


def test_neighbours_are_told_together() -> None:
    assert spans([9095, 9092, 9094, 9093, 19092]) == [(9092, 9095), (19092, 19092)]


def test_all_ports_there_are_fit_a_command_line() -> None:
    every = range(1, 65_536)
    Feed([DEMO], ports=every).close()
    ProcessNumbers([DEMO], ports=every).close()
