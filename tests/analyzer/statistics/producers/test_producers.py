"""Sequences and transactions of producers."""

from typing import Any

import pytest

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.producers.story import lanes_of, transactions_of
from tests.kit.counting import counted, pairs_in, traffic
from tests.kit.wire import Wire, request


def event(time: int, kind: str, error: int | None = 0, epoch: int = 0, **more: Any) -> Event:
    about = {"producer": 7, "epoch": epoch, "error": error, "end_ns": time + 1, **more}
    return Event(time, str(time), 0, time, kind, about)


def batch(time: int, sequence: int, records: int = 1, error: int = 0, epoch: int = 0) -> Event:
    about = {"topic": "t", "partition": 0, "sequence": sequence, "records": records}
    return event(time, "batch", error, epoch, answered=True, **about)


TURN = (1 << 31) - 2  # sequences begin again behind the next one


@pytest.mark.parametrize(
    ("events", "first", "last", "faults"),
    [
        ([batch(1, 0, 10), batch(2, 10, 5), batch(3, 15)], 0, 15, (0, None, 0, None)),
        ([batch(1, 0, 10), batch(2, 0, 10), batch(3, 10)], 0, 10, (0, None, 1, 2)),
        ([batch(1, 0, 10), batch(2, 25, 5)], 0, 29, (15, 2, 0, None)),
        ([batch(1, TURN, 4), batch(2, 2, 3)], TURN, 4, (0, None, 0, None)),
    ],
)
def test_sequences_follow_each_other(
    events: list[Event], first: int, last: int, faults: tuple[int | None, ...]
) -> None:
    (lane,) = lanes_of(events)
    assert (lane.first_sequence, lane.last_sequence) == (first, last)
    assert (lane.missing, lane.gap, lane.repeats, lane.repeated) == faults


def test_a_refused_batch_leaves_a_gap_until_it_is_accepted() -> None:
    refused = [batch(1, 0, 10), batch(2, 10, 5, error=7), batch(3, 15, 5)]
    assert lanes_of(refused)[0].missing == 5
    # 46: a duplicate is one that the broker has.
    for error in (0, 46):
        assert lanes_of([*refused, batch(4, 10, 5, error=error)])[0].missing == 0


def test_every_epoch_is_a_lane_of_its_own() -> None:
    found = lanes_of([batch(1, 0, 10), batch(2, 0, 3, epoch=1)])
    assert [(lane.producer_epoch, lane.repeats) for lane in found] == [(0, 0), (1, 0)]


BEGUN = event(1, "partitions", partitions=[["t", 0]])
COMMIT = event(2, "end", committed=True)
# The client asks again, for the answer got lost.
ABORTS = [event(at, "end", error, committed=False) for at, error in ((2, 51), (3, 0), (4, 0))]


@pytest.mark.parametrize(
    ("events", "outcomes"),
    [
        ([BEGUN], ["open"]),
        ([BEGUN, COMMIT], ["committed"]),
        ([COMMIT], ["committed"]),
        ([batch(1, 0), COMMIT, batch(3, 1), batch(4, 2)], ["committed", "open"]),
        ([batch(1, 0), *ABORTS], ["aborted"]),
        ([batch(1, 0), event(2, "init")], ["superseded"]),
        ([batch(1, 0), event(2, "end", 90, committed=True)], ["fenced"]),
        ([batch(1, 0, error=47)], []),
    ],
)
def test_how_transactions_end(events: list[Event], outcomes: list[str]) -> None:
    assert [each.outcome for each in transactions_of("x", events)] == outcomes


def test_what_a_transaction_holds() -> None:
    events = [
        event(1, "partitions", partitions=[["t", 0], ["t", 1]]),
        batch(2, 0, 10),
        event(3, "offsets", group="g"),
        event(4, "end", committed=True),
    ]
    (found,) = transactions_of("x", events)
    assert found.partitions == {("t", 0), ("t", 1)}
    assert (found.records, found.groups) == (10, {"g"})
    assert (found.begin_ns, found.end_ns) == (1, 5)


def test_real_transactions() -> None:
    pairs, names = traffic("transactions.pcap")
    found = counted(Producers(), pairs)
    ends = [(each["outcome"], each["records"]) for each in found.transactions(names)]
    assert ends == [("committed", 10), ("aborted", 10), ("committed", 10)] * 2
    lines = found.rows(names)
    assert [(line["committed"], line["aborted"]) for line in lines[:2]] == [(2, 1), (2, 1)]
    assert {line["missing"] for line in lines} == {0}
    assert {line["repeats"] for line in found.lanes(names)} == {0}


def test_a_broker_that_adds_partitions_for_a_producer_is_not_its_client() -> None:
    wire = Wire()
    added = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0, "topics": []}
    each = {**added, "verify_only": False}
    wire.client(request("AddPartitionsToTxn", 5, 1, "of-a-broker", transactions=[each]))
    old = {f"v3_and_below_{name}": value for name, value in added.items()}
    wire.client(request("AddPartitionsToTxn", 3, 2, "app", **old))
    (line,) = counted(Producers(), pairs_in(wire.events)).rows()
    assert line["clients"] == ["app"]
