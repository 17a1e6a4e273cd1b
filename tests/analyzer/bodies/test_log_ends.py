"""Which answers to Fetch a broker could have given at once, and the waits that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkascope.analyzer.bodies.log_ends import LogEnds
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.dissectors.values import Uuid
from tests.kit.wire import MS, Wire, partition, records, request, response, told

HERE = Uuid(range(16))


class Reader:
    """A connection that fetches; each answer takes 700 ms, and up to 500 ms are asked for."""

    def __init__(
        self,
        version: int = 11,
        numbers: Sequence[int] = (0,),
        limits: ConversationLimits = LIMITS,
        **asked: Any,
    ) -> None:
        self.wire, self.limits = Wire(), limits
        self.version = version
        self.numbers = numbers
        self.asked = {"max_wait_ms": 500, "min_bytes": 1} | asked
        self.ids = 0

    def send(self, **asked: Any) -> None:
        self.ids += 1
        each: dict[str, Any] = {
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "last_fetched_epoch": -1,
        }
        each |= {"log_start_offset": -1, "partition_max_bytes": 1000}
        each |= {"replica_directory_id": Uuid(16), "high_watermark": -1}
        name = {"topic": "t"} if self.version < 13 else {"topic_id": HERE}
        topics = [{**name, "partitions": [{"partition": n, **each} for n in self.numbers]}]
        fields = {"topics": topics} | self.asked | asked
        self.wire.client(request("Fetch", self.version, self.ids, **fields))

    def take(self, *partitions: dict[str, Any], id_: int | None = None, **answer: Any) -> None:
        name = {"topic": "t"} if self.version < 13 else {"topic_id": HERE}
        said = {"responses": [{**name, "partitions": list(partitions)}]} | answer
        self.wire.broker(response("Fetch", self.version, id_ or self.ids, **said))

    def fetch(self, *partitions: dict[str, Any], **asked: Any) -> None:
        self.send(**asked)
        self.wire.time_ns += 699 * MS
        self.take(*partitions)

    def rows(self) -> list[Row]:
        context = Context(limits=self.limits)
        return [row_of(each, context.names) for each in told(self.wire.events, context)]

    def waits(self) -> list[int]:
        """In milliseconds."""
        return [row.wait_ns // MS for row in self.rows()]


@pytest.mark.parametrize("version", [4, 11, 13, 16])
def test_a_reader_behind_the_end_of_the_log_does_not_wait(version: int) -> None:
    reader = Reader(version)
    reader.fetch(partition(blob=records(0)))
    reader.fetch(partition(blob=records(1)))
    first, second = reader.rows()
    # What came first may have been written while the broker waited for it.
    assert (first.wait_ns, first.latency_beyond_wait_ns) == (500 * MS, 200 * MS)
    assert (second.wait_ns, second.latency_beyond_wait_ns) == (0, 700 * MS)


def test_a_reader_at_the_end_waits_for_what_is_written() -> None:
    reader = Reader()
    reader.fetch(partition(high_watermark=7))
    reader.fetch(partition(blob=records(7), high_watermark=8))
    reader.fetch(partition(blob=records(8), high_watermark=9))
    assert reader.waits() == [500, 500, 500]


def test_a_batch_that_reaches_beyond_the_told_end_is_new() -> None:
    reader = Reader()
    reader.fetch(partition(high_watermark=7))
    reader.fetch(partition(blob=records(6, count=2), high_watermark=8))
    assert reader.waits() == [500, 500]


def test_who_reads_what_is_committed_waits_at_the_last_stable_offset() -> None:
    for level, expected in ((0, 0), (1, 500)):
        reader = Reader(isolation_level=level)
        reader.fetch(partition(last_stable_offset=5))
        reader.fetch(partition(blob=records(5)))
        assert reader.waits() == [500, expected]


def test_min_bytes_have_to_be_there() -> None:
    one = len(records(0))
    for wanted, expected in ((2 * one, 0), (2 * one + 1, 500)):
        reader = Reader(min_bytes=wanted)
        reader.fetch(partition(high_watermark=2))
        new = records(0) + records(1) + records(2)
        reader.fetch(partition(blob=new, high_watermark=3))
        assert reader.waits() == [500, expected]


def test_min_bytes_are_summed_over_partitions_and_no_more_than_max_bytes() -> None:
    one = len(records(0))
    for asked in ({"min_bytes": 2 * one}, {"min_bytes": 10**6, "max_bytes": 2 * one}):
        reader = Reader(numbers=(0, 1), **asked)
        reader.fetch(partition(0), partition(1))
        reader.fetch(partition(0, records(0)), partition(1, records(0)))
        assert reader.waits() == [500, 0]


def test_one_partition_behind_its_end_is_enough() -> None:
    reader = Reader(numbers=(0, 1))
    reader.fetch(partition(0, high_watermark=3), partition(1, high_watermark=9))
    reader.fetch(partition(0, records(3), high_watermark=4), partition(1, records(4)))
    assert reader.waits() == [500, 0]


def test_nothing_to_wait_for_is_no_wait() -> None:
    reader = Reader(min_bytes=0)
    reader.fetch(partition())
    assert reader.waits() == [0]


def test_kraft_waits_though_no_bytes_are_asked_for() -> None:
    for version, replica in (
        (12, {"replica_id": 3}),
        (17, {"replica_state": {"replica_id": 3, "replica_epoch": 1}}),
    ):
        reader = Reader(version, min_bytes=0, **replica)
        reader.fetch(partition())
        assert reader.waits() == [500]


def test_a_follower_may_be_held_back_by_a_quota() -> None:
    reader = Reader(replica_id=3)
    reader.fetch(partition(blob=records(0)))
    reader.fetch(partition(blob=records(1)))
    assert reader.waits() == [500, 500]


def test_an_end_counts_from_the_time_when_it_was_told() -> None:
    """Of two requests in flight, the second one was sent before the first told anything."""
    reader = Reader()
    reader.send()
    reader.send()
    reader.wire.time_ns += 600 * MS
    reader.take(partition(blob=records(0)), id_=1)
    reader.take(partition(blob=records(1)), id_=2)
    assert reader.waits() == [500, 500]


@pytest.mark.parametrize("code", [3, 6, 74, 100])
def test_an_error_may_come_up_while_a_broker_waits(code: int) -> None:
    reader = Reader()
    for error in (0, code, code):
        reader.fetch(partition(error_code=error, high_watermark=-1))
    assert reader.waits() == [500, 500, 500]


def test_an_error_makes_the_end_of_the_log_unknown() -> None:
    """It may be another log by then: the topic was made anew, or its end was cut off."""
    reader = Reader()
    reader.fetch(partition())
    reader.fetch(partition(error_code=1, high_watermark=-1))
    reader.fetch(partition(blob=records(0), high_watermark=1))
    assert reader.waits() == [500, 500, 500]


def test_who_is_denied_all_partitions_did_not_wait() -> None:
    denied = [partition(n, error_code=29, high_watermark=-1) for n in (0, 1)]
    reader = Reader(numbers=(0, 1))
    reader.fetch(*denied)
    reader.fetch(denied[0], partition(1))
    assert reader.waits() == [0, 500]


def test_an_incremental_fetch_waits_for_the_rest_of_its_session() -> None:
    reader = Reader(numbers=(0, 1))
    reader.send(session_epoch=0)
    reader.take(partition(0), partition(1), session_id=9)
    refused = partition(0, error_code=29, high_watermark=-1)
    for epoch in (1, 2):
        reader.fetch(refused, session_id=9, session_epoch=epoch, topics=[])
    assert reader.waits()[1:] == [500, 500]


def test_a_refused_request_did_not_wait() -> None:
    reader = Reader()
    reader.send(session_id=9, session_epoch=4)
    reader.wire.time_ns += 699 * MS
    reader.take(error_code=71)
    assert reader.waits() == [0]


def test_damaged_batches_prove_nothing() -> None:
    reader = Reader()
    reader.fetch(partition(blob=records(0)))
    damaged = bytearray(records(1))
    damaged[16] = 99
    reader.fetch(partition(blob=bytes(damaged)))
    reader.fetch(partition(blob=records(1)[:40]))
    assert reader.waits() == [500, 500, 500]


def test_message_sets_are_counted_as_batches_are() -> None:
    from kafkascope.dissectors.records.reader import Record
    from kafkascope.dissectors.records.writer import encode_message

    old = encode_message(1, Record(3, 0, None, b"v", []))
    for end, expected in ((4, 0), (3, 500)):
        reader = Reader(3)
        reader.fetch(partition(high_watermark=end))
        reader.fetch(partition(blob=old, high_watermark=4))
        assert reader.waits() == [500, expected]


def test_too_many_partitions_are_forgotten() -> None:
    few = LIMITS._replace(bodies=LIMITS.bodies._replace(log_ends=2))
    numbers = (0, 1, 2)
    reader = Reader(numbers=numbers, limits=few)
    reader.fetch(*map(partition, numbers))
    for number in (2, 0):
        reader.fetch(partition(number, records(0)))
    assert reader.waits() == [500, 0, 500]


def shared(*answers: dict[str, Any], min_bytes: int = 1) -> list[int]:
    wire = Wire()
    for number, answer in enumerate(answers):
        named = {"partition_index": 0, "acknowledgement_batches": []}
        topics = [] if number else [{"topic_id": HERE, "partitions": [named]}]
        asked = {"group_id": "g", "member_id": "m", "share_session_epoch": number, "topics": topics}
        wire.client(request("ShareFetch", 1, number, max_wait_ms=500, min_bytes=min_bytes, **asked))
        wire.time_ns += 699 * MS
        said = {
            "partition_index": 0,
            "error_code": 0,
            "error_message": None,
            "acknowledge_error_code": 0,
            "acknowledge_error_message": None,
            "current_leader": {"leader_id": 1, "leader_epoch": 1},
            "records": b"",
            "acquired_records": [],
        }
        responses = [{"topic_id": HERE, "partitions": [said | answer]}]
        wire.broker(response("ShareFetch", 1, number, responses=responses))
    context = Context()
    return [row_of(each, context.names).wait_ns // MS for each in told(wire.events, context)]


def test_a_share_consumer_cannot_be_told_from_one_that_waits() -> None:
    acquired = [{"first_offset": 0, "last_offset": 0, "delivery_count": 1}]
    took = {"records": records(0), "acquired_records": acquired}
    assert shared(took, took, {}) == [500, 500, 500]
    assert shared({}, min_bytes=0) == [500]


def test_a_share_consumer_that_is_denied_did_not_wait() -> None:
    assert shared({"error_code": 29}, {"error_code": 29}, {"error_code": 6}) == [0, 0, 500]


def test_what_is_known_is_carried_to_the_next_batch() -> None:
    from kafkascope.analyzer.pipeline import state

    ends = LogEnds()
    asked = {"min_bytes": 1}
    said = {"responses": [{"topic": "t", "partitions": [partition()]}]}
    assert not ends.response(asked, 1, said, 2, None)
    again = LogEnds().load(state.read(state.write(ends.dump())))
    said = {"responses": [{"topic": "t", "partitions": [partition(blob=records(0))]}]}
    assert again.response(asked, 3, said, 4, None)
