"""Sequences and transactions of producers."""

from __future__ import annotations

from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.producers.story import lanes_of, transactions_of
from tests.analyzer.statistics.laws import counted, traffic
from tests.kit.wire import Wire, request, told


def batch(time: int, sequence: int, records: int = 1, error: int = 0, epoch: int = 0) -> Event:
    about = {
        "producer": 7,
        "epoch": epoch,
        "topic": "t",
        "partition": 0,
        "sequence": sequence,
        "records": records,
        "error": error,
        "answered": True,
        "end_ns": time + 1,
    }
    return Event(time, str(time), 0, time, "batch", about)


def event(time: int, kind: str, error: int | None = 0, epoch: int = 0, **more: Any) -> Event:
    about = {"producer": 7, "epoch": epoch, "error": error, "end_ns": time + 1, **more}
    return Event(time, str(time), 0, time, kind, about)


def test_sequences_that_follow_each_other_have_no_gap() -> None:
    (lane,) = lanes_of([batch(1, 0, 10), batch(2, 10, 5), batch(3, 15)])
    assert (lane.first_sequence, lane.last_sequence, lane.records) == (0, 15, 16)
    assert (lane.missing, lane.repeats, lane.gap, lane.repeated) == (0, 0, None, None)


def test_a_batch_sent_again_is_a_repeat_and_no_gap() -> None:
    (lane,) = lanes_of([batch(1, 0, 10), batch(2, 0, 10), batch(3, 10)])
    assert (lane.repeats, lane.repeated, lane.missing) == (1, 2, 0)


def test_missing_sequences_are_counted() -> None:
    (lane,) = lanes_of([batch(1, 0, 10), batch(2, 25, 5)])
    assert (lane.missing, lane.gap) == (15, 2)


def test_a_refused_batch_leaves_a_gap_until_it_is_accepted() -> None:
    refused = [batch(1, 0, 10), batch(2, 10, 5, error=7), batch(3, 15, 5)]
    assert lanes_of(refused)[0].missing == 5
    assert lanes_of([*refused, batch(4, 10, 5)])[0].missing == 0
    # A duplicate is one that the broker has.
    assert lanes_of([*refused, batch(4, 10, 5, error=46)])[0].missing == 0


def test_sequences_begin_again_after_the_last_one() -> None:
    (lane,) = lanes_of([batch(1, (1 << 31) - 2, 4), batch(2, 2, 3)])
    assert (lane.missing, lane.first_sequence, lane.last_sequence) == (0, (1 << 31) - 2, 4)


def test_every_epoch_is_a_lane_of_its_own() -> None:
    found = lanes_of([batch(1, 0, 10), batch(2, 0, 3, epoch=1)])
    assert [(lane.producer_epoch, lane.repeats) for lane in found] == [(0, 0), (1, 0)]


PARTITIONS = [["t", 0]]


@pytest.mark.parametrize(
    ("events", "outcomes"),
    [
        ([event(1, "partitions", partitions=PARTITIONS)], ["open"]),
        (
            [event(1, "partitions", partitions=PARTITIONS), event(2, "end", committed=True)],
            ["committed"],
        ),
        (
            [
                batch(1, 0),
                event(2, "end", 51, committed=False),
                event(3, "end", committed=False),
                # The client asks again, for the answer got lost.
                event(4, "end", committed=False),
            ],
            ["aborted"],
        ),
        ([batch(1, 0), event(2, "init")], ["superseded"]),
        ([batch(1, 0), event(2, "end", 90, committed=True)], ["fenced"]),
        ([batch(1, 0, error=47)], []),
        ([event(1, "end", committed=True)], ["committed"]),
        (
            [batch(1, 0), event(2, "end", committed=True), batch(3, 1), batch(4, 2)],
            ["committed", "open"],
        ),
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
    found, context = Producers(), Context()
    for exchange in told(wire.events, context):
        found.add(ExchangeBatch.of(row_of(exchange, context.names), exchange))
    (line,) = found.rows()
    assert line["clients"] == ["app"]
