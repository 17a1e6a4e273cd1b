"""Which answers to Fetch a broker could have given at once, and the waits that follow."""

from collections.abc import Sequence
from typing import Any

import pytest

from kafkascope.analyzer.bodies.log_ends import LogEnds
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.pipeline import state
from kafkascope.dissectors.records.reader import Record
from kafkascope.dissectors.records.writer import encode_message
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
        name = {"topic": "t"} if self.version < 13 else {"topic_id": HERE}
        topics = [{**name, "partitions": [{"partition": n} for n in self.numbers]}]
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


ONE, TWO = (partition(blob=records(n)) for n in range(2))
DENIED = [partition(n, error_code=29, high_watermark=-1) for n in (0, 1)]
MESSAGE = encode_message(1, Record(3, 0, None, b"v", []))
SIZE = len(records(0))
BOTH = {"numbers": (0, 1)}


def damaged(data: bytes) -> bytes:
    return data[:16] + b"\x63" + data[17:]


def grown(*ends: int) -> list[dict[str, Any]]:
    """The end of the log, and then each time the record that stood before the new end."""
    first, *others = ends
    return [partition(high_watermark=first)] + [
        partition(blob=records(end - 1), high_watermark=end) for end in others
    ]


WAITS: dict[str, tuple[list[int], dict[str, Any], list[Any]]] = {
    "at the end it waits for what is written": ([500] * 3, {}, grown(7, 8, 9)),
    "a batch that reaches beyond the told end is new": ([500, 500], {}, [
        partition(high_watermark=7), partition(blob=records(6, count=2), high_watermark=8),
    ]),
    "what is not committed is behind the last stable offset": ([500, 0], {"isolation_level": 0}, [
        partition(last_stable_offset=5), partition(blob=records(5)),
    ]),
    "who reads what is committed waits there": ([500, 500], {"isolation_level": 1}, [
        partition(last_stable_offset=5), partition(blob=records(5)),
    ]),
    "min_bytes are there": ([500, 0], {"min_bytes": 2 * SIZE}, [
        partition(high_watermark=2),
        partition(blob=records(0) + records(1) + records(2), high_watermark=3),
    ]),
    "min_bytes are not there": ([500, 500], {"min_bytes": 2 * SIZE + 1}, [
        partition(high_watermark=2),
        partition(blob=records(0) + records(1) + records(2), high_watermark=3),
    ]),
    "min_bytes are summed over partitions": ([500, 0], BOTH | {"min_bytes": 2 * SIZE}, [
        (partition(0), partition(1)), (partition(0, records(0)), partition(1, records(0))),
    ]),
    "no more than max_bytes": ([500, 0], BOTH | {"min_bytes": 10**6, "max_bytes": 2 * SIZE}, [
        (partition(0), partition(1)), (partition(0, records(0)), partition(1, records(0))),
    ]),
    "one partition behind its end is enough": ([500, 0], BOTH, [
        (partition(0, high_watermark=3), partition(1, high_watermark=9)),
        (partition(0, records(3), high_watermark=4), partition(1, records(4))),
    ]),
    "nothing to wait for is no wait": ([0], {"min_bytes": 0}, [partition()]),
    "KRaft waits though no bytes are asked for": (
        [500], {"version": 12, "min_bytes": 0, "replica_id": 3}, [partition()],
    ),
    "KRaft waits, by its newer field": ([500], {
        "version": 17, "min_bytes": 0, "replica_state": {"replica_id": 3, "replica_epoch": 1},
    }, [partition()]),
    "a follower may be held back by a quota": ([500, 500], {"replica_id": 3}, [ONE, TWO]),
    # It may be another log by then: the topic was made anew, or its end was cut off.
    "an error makes the end of the log unknown": ([500] * 3, {}, [
        partition(), partition(error_code=1, high_watermark=-1),
        partition(blob=records(0), high_watermark=1),
    ]),
    "who is denied all partitions did not wait": (
        [0, 500], BOTH, [tuple(DENIED), (DENIED[0], partition(1))],
    ),
    "damaged batches prove nothing": ([500] * 3, {}, [
        ONE, partition(blob=damaged(records(1))), partition(blob=records(1)[:40]),
    ]),
    "message sets are counted as batches are": ([500, 0], {"version": 3}, [
        partition(high_watermark=4), partition(blob=MESSAGE, high_watermark=4),
    ]),
    "a new message set": ([500, 500], {"version": 3}, [
        partition(high_watermark=3), partition(blob=MESSAGE, high_watermark=4),
    ]),
    **{
        f"an error {code} may come up while a broker waits": ([500] * 3, {}, [
            partition(error_code=error, high_watermark=-1) for error in (0, code, code)
        ])
        for code in (3, 6, 74, 100)
    },
}  # fmt: skip


@pytest.mark.parametrize(("waits", "asked", "answers"), WAITS.values(), ids=WAITS)
def test_waits(waits: list[int], asked: dict[str, Any], answers: list[Any]) -> None:
    reader = Reader(**asked)
    for answer in answers:
        reader.fetch(*(answer if isinstance(answer, tuple) else (answer,)))
    assert reader.waits() == waits


def test_an_end_counts_from_the_time_when_it_was_told() -> None:
    """Of two requests in flight, the second one was sent before the first told anything."""
    reader = Reader()
    reader.send()
    reader.send()
    reader.wire.time_ns += 600 * MS
    reader.take(partition(blob=records(0)), id_=1)
    reader.take(partition(blob=records(1)), id_=2)
    assert reader.waits() == [500, 500]


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
        said = {"current_leader": {"leader_id": 1, "leader_epoch": 1}, "records": b""}
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
    ends = LogEnds()
    asked = {"min_bytes": 1}
    said = {"responses": [{"topic": "t", "partitions": [partition()]}]}
    assert not ends.response(asked, 1, said, 2, None)
    again = LogEnds().load(state.read(state.write(ends.dump())))
    said = {"responses": [{"topic": "t", "partitions": [partition(blob=records(0))]}]}
    assert again.response(asked, 3, said, 4, None)
