"""Producers of single records: when they wait for their requests, and when there is no more to
send."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.captures.model import Chunk
from tests.analyzer.batches import batch
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.wire import MS, Wire, produce, response


def producing(
    count: int, pause_ns: int, pairs: int = 1, per_request: int = 1, port: int = 9092
) -> Wire:
    """`pairs` requests are in flight at once; `pause_ns` after their responses the next follow."""
    wire = Wire(port=port, number=port)
    number = 0
    while number < count:
        numbers = range(number + 1, number + pairs + 1)
        for each in numbers:
            records = batch([(None, b"v")] * per_request)
            wire.client(produce(each, records=records))
        for each in numbers:
            wire.broker(response("Produce", 7, each))
        number += pairs
        wire.time_ns += pause_ns
    assert any(isinstance(event, Chunk) for event in wire.events)
    return wire


def tiny(*wires: Wire) -> Finding | None:
    return found(wires).get("tiny-batches")


def test_a_producer_that_waits_for_each_response() -> None:
    finding = tiny(producing(300, pause_ns=0))
    assert finding is not None
    assert states(finding.text, "median of 1 record", "99 %")


@pytest.mark.parametrize(
    "wire",
    [
        producing(300, pause_ns=7 * MS),
        producing(300, pause_ns=0, per_request=2),
        producing(199, pause_ns=0),
        producing(300, pause_ns=60 * MS),
    ],
    ids=["a trickle", "batches of two", "too few to say", "a few in a second"],
)
def test_there_is_no_more_to_send(wire: Wire) -> None:
    assert tiny(wire) is None


def test_requests_that_are_in_flight_together_wait_for_each_other() -> None:
    assert tiny(producing(300, pause_ns=7 * MS, pairs=5)) is not None
    assert tiny(producing(300, pause_ns=7 * MS, pairs=2)) is None


def test_a_producer_that_waits_for_one_broker_and_the_other_in_turn() -> None:
    one, other = producing(200, pause_ns=2 * MS), producing(200, pause_ns=2 * MS, port=9093)
    assert tiny(one, other) is not None
