"""Requests that stand behind a long poll on their connection: they wait for its end."""

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from tests.kit.samples import CAPTURES
from tests.kit.wire import MS, Wire, beat, heartbeat, partition, request, response, told

SHOP = CAPTURES / "shop.pcap.zst"


def poll(id_: int, most: int = 500) -> bytes:
    return request("Fetch", 11, id_, max_wait_ms=most, min_bytes=1, topics=[])


def nothing(id_: int) -> bytes:
    return response("Fetch", 11, id_, responses=[{"topic": "t", "partitions": [partition()]}])


def rows(wire: Wire) -> list[Row]:
    context = Context()
    found = [row_of(each, context.names) for each in told(wire.events, context)]
    return sorted(found, key=lambda row: row.number)


def after(wire: Wire, milliseconds: int) -> Wire:
    """The next packet comes so much later than the last one."""
    wire.time_ns += (milliseconds - 1) * MS
    return wire


@pytest.mark.parametrize("beyond", [0, 2_000])
def test_a_request_behind_a_long_poll_waits_until_it_ends(beyond: int) -> None:
    """What the poll takes beyond its wait is excess behind it, too."""
    wire = Wire().client(poll(1))
    after(wire, 100).client(heartbeat(2))
    after(wire, 400 + beyond).broker(nothing(1))
    after(wire, 30).broker(beat(2))
    first, second = rows(wire)
    assert (first.wait_ns, first.latency_beyond_wait_ns) == (500 * MS, beyond * MS)
    assert (second.wait_ns, second.latency_beyond_wait_ns) == (400 * MS, (beyond + 30) * MS)


def test_a_response_that_takes_long_to_arrive_is_no_wait() -> None:
    answer = nothing(1)
    wire = Wire().client(poll(1))
    after(wire, 10).broker(answer[:9])
    after(wire, 600).broker(answer[9:])
    (row,) = rows(wire)
    assert (row.wait_ns, row.latency_ns) == (10 * MS, 610 * MS)


def test_a_long_poll_behind_another_one_begins_at_its_end() -> None:
    wire = Wire().client(poll(1)).client(poll(2)).client(heartbeat(3))
    after(wire, 498).broker(nothing(1))
    after(wire, 500).broker(nothing(2))
    after(wire, 5).broker(beat(3))
    assert [round((row.latency_beyond_wait_ns or 0) / MS) for row in rows(wire)] == [0, 0, 5]


def test_a_request_behind_a_group_that_forms_waits_for_it() -> None:
    wire = Wire().client(request("JoinGroup", 5, 1, group_id="g"))
    after(wire, 1_000).client(heartbeat(2))
    after(wire, 2_000).broker(response("JoinGroup", 5, 1, generation_id=4))
    after(wire, 5).broker(beat(2))
    assert [row.wait_ns // MS for row in rows(wire)] == [3_000, 2_000]


def test_a_request_after_the_answer_or_before_the_poll_does_not_wait() -> None:
    wire = Wire().client(poll(1))
    after(wire, 500).broker(nothing(1))
    wire.client(heartbeat(2))
    after(wire, 700).broker(beat(2))
    assert rows(wire)[1].wait_ns == 0
    # Who answers out of order is no broker of Kafka's: nothing was held back.
    wire = Wire().client(heartbeat(1)).client(poll(2))
    after(wire, 500).broker(nothing(2))
    after(wire, 1).broker(beat(1))
    assert rows(wire)[0].wait_ns == 0


def test_healthy_requests_of_a_real_consumer_are_not_slow() -> None:
    """Java asks for the end of an epoch on the connection on which its Fetch waits."""
    with open_capture([str(SHOP)]) as capture:
        found = [row_of(each, capture.context.names) for each in capture.exchanges()]
    asked = [row for row in found if row.api == "OffsetForLeaderEpoch" and row.latency_ns]
    assert max(row.latency_ns or 0 for row in asked) > 500 * MS
    assert max(row.latency_beyond_wait_ns or 0 for row in asked) < 100 * MS
