"""Fetch sessions of a served capture (KIP-227): who is told changes alone knows as much as who asks
for everything, for less work."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.fetch_sessions import LAST_EPOCH, Changes, FetchSessions
from kafkascope.proxy.serve.log import Log
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import Code, Request
from tests.kit.served import PRODUCER, answered, batch, cluster_of, read

TOPICS = ("orders", "payments")
VERSION = 12


class Client:
    """A client with a session, as librdkafka and Java have it."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self.id, self.epoch = 0, 0
        self.positions: dict[tuple[str, int], int] = {}
        self._told: dict[tuple[str, int], int] = {}
        """Positions that the session has."""
        self.watermarks: dict[tuple[str, int], int] = {}
        self.records: dict[tuple[str, int], list[tuple[int, bytes | None]]] = {}

    async def poll(self, wait_ms: int = 0, **more: Any) -> Body:
        """Fetch, take in what came; returns the response."""
        whole = self.epoch <= 0
        asked = {
            place: at
            for place, at in self.positions.items()
            if whole or self._told.get(place) != at
        }
        forgotten = [] if whole else [place for place in self._told if place not in self.positions]
        self._told = dict(self.positions)
        response = await fetch(
            self._partitions, asked, forgotten, self.id, self.epoch, wait_ms, **more
        )
        if response["error_code"]:
            self.id, self.epoch = 0, 0
            return response
        if self.epoch >= 0:
            self.id = response["session_id"]
            self.epoch = self.epoch + 1 if self.id else 0
        for topic in response["responses"]:
            for part in topic["partitions"]:
                place = topic["topic"], part["partition_index"]
                assert place in self.positions
                self.watermarks[place] = part["high_watermark"]
                found = [row for row in read(part["records"]) if row[0] >= self.positions[place]]
                self.records.setdefault(place, []).extend(found)
                if found:
                    self.positions[place] = found[-1][0] + 1
        return response


async def fetch(
    partitions: Partitions,
    asked: dict[tuple[str, int], int],
    forgotten: list[tuple[str, int]] = [],  # noqa: B006
    session_id: int = 0,
    epoch: int = -1,
    wait_ms: int = 0,
    **more: Any,
) -> Body:
    def element(place: tuple[str, int], **fields: Any) -> Body:
        return {"topic": place[0], "partitions": [fields or place[1]]}

    topics = [
        element(place, partition=place[1], fetch_offset=at, partition_max_bytes=100)
        for place, at in asked.items()
    ]
    body = {"max_wait_ms": wait_ms, "topics": topics, "session_id": session_id}
    body |= {"session_epoch": epoch, "forgotten_topics_data": list(map(element, forgotten))}
    return await answered(partitions.fetch, "Fetch", VERSION, {**body, **more})


async def write(partitions: Partitions, topic: str, number: int, *values: bytes) -> None:
    data = {"index": number, "records": batch(*values)}
    body = {"acks": 1, "topic_data": [{"name": topic, "partition_data": [data]}]}
    await partitions.produce(Request(9, body))


def served(count: int, limits: Limits = LIMITS) -> tuple[CapturedCluster, Partitions]:
    return cluster_of(*TOPICS, partitions=count, limits=limits)


PLACES = st.tuples(st.sampled_from(TOPICS), st.integers(0, 2))


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from(["write", "read", "leave", "poll"]), PLACES), max_size=40)
)
def test_changes_alone_tell_as_much_as_everything(steps: list[tuple[str, tuple[str, int]]]) -> None:
    async def use() -> None:
        _, partitions = served(3)
        known, whole = Client(partitions), Client(partitions)
        clients = known, whole
        for number, (step, place) in enumerate([*steps, *[("poll", ("", 0))] * 60]):
            if step == "write":
                await write(partitions, *place, b"%d" % number * 30, b"%d" % number)
            for each in clients:
                if step == "read":
                    each.positions.setdefault(place, len(each.records.get(place, ())))
                elif step == "leave":
                    each.positions.pop(place, None)
                elif step == "poll":
                    whole.epoch = -1
                    # Room for some of what there is: the rest must come later.
                    await each.poll(max_bytes=150)
        assert known.records == whole.records
        assert known.positions == whole.positions
        wanted = known.positions
        assert {k: v for k, v in known.watermarks.items() if k in wanted} == {
            k: v for k, v in whole.watermarks.items() if k in wanted
        }
        assert known.id or not known.positions
        assert (await known.poll())["responses"] == []

    asyncio.run(use())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Log]:
    """The logs that were read, in their order."""
    found: list[Log] = []
    read = Log.read

    def noted(log: Log, *more: Any) -> bytes:
        found.append(log)
        return read(log, *more)

    monkeypatch.setattr(Log, "read", noted)
    return found


async def test_where_nothing_changed_nothing_is_read(asked: list[Log]) -> None:
    model, partitions = served(500)
    client = Client(partitions)
    client.positions = {(name, number): 0 for name in TOPICS for number in range(500)}
    response = await client.poll()
    assert sum(len(topic["partitions"]) for topic in response["responses"]) == 1000
    asked.clear()
    for _ in range(20):
        assert (await client.poll())["responses"] == []
    assert asked == []
    await write(partitions, "orders", 7, b"new")
    (topic,) = (await client.poll())["responses"]
    assert [part["partition_index"] for part in topic["partitions"]] == [7]
    assert asked == [model.topics["orders"].partitions[7].log]


async def test_what_a_response_has_no_room_for_comes_with_the_next() -> None:
    _, partitions = served(3)
    places = [(name, number) for name in TOPICS for number in range(3)]
    client = Client(partitions)
    client.positions = dict.fromkeys(places, 0)
    for place in places:
        await write(partitions, *place, b"a")
        await write(partitions, *place, b"b")
    order = []
    for _ in range(12):
        before = dict(client.positions)
        await client.poll(max_bytes=1)
        order += [place for place in places if client.positions[place] > before[place]]
    # One that has more comes behind the others.
    assert sorted(order[:6]) == sorted(order[6:]) == places
    assert set(client.positions.values()) == {2}


async def test_what_failed_is_told_again_once_it_does_not() -> None:
    _, partitions = served(1)
    client = Client(partitions)
    client.positions = {("orders", 0): 5}
    for epoch in (1, 2):
        ((part,),) = [each["partitions"] for each in (await client.poll())["responses"]]
        assert part["error_code"] == Code.OFFSET_OUT_OF_RANGE
        assert client.epoch == epoch
    client.positions = {("orders", 0): 0}
    ((part,),) = [each["partitions"] for each in (await client.poll())["responses"]]
    assert (part["error_code"], part["high_watermark"]) == (0, 0)
    assert (await client.poll())["responses"] == []


async def test_a_session_that_is_not_there_is_told() -> None:
    _, partitions = served(1)
    asked = {("orders", 0): 0}
    begun = await fetch(partitions, asked, epoch=0)
    number = begun["session_id"]
    assert number > 0
    for session_id, epoch, error in (
        (number + 1, 1, Code.FETCH_SESSION_ID_NOT_FOUND),
        (number, 2, Code.INVALID_FETCH_SESSION_EPOCH),
        (number, 1, 0),
        (number, 1, Code.INVALID_FETCH_SESSION_EPOCH),
        (number, 2, 0),
    ):
        response = await fetch(partitions, {}, [], session_id, epoch)
        assert response["error_code"] == error
        assert response["session_id"] == (0 if error else number)
    ended = await fetch(partitions, asked, [], number, -1)
    assert ended["session_id"] == ended["error_code"] == 0
    assert ended["responses"]
    response = await fetch(partitions, {}, [], number, 3)
    assert response["error_code"] == Code.FETCH_SESSION_ID_NOT_FOUND
    # Whoever forgets all it had has no session any more.
    number = (await fetch(partitions, asked, epoch=0))["session_id"]
    assert (await fetch(partitions, {}, [("orders", 0)], number, 1))["session_id"] == 0


def test_epochs_begin_again_behind_the_last() -> None:
    sessions = FetchSessions(Changes(), LIMITS)
    topics = [{"topic": "orders", "partitions": [{"partition": 0}]}]
    session = sessions.of({"session_id": 0, "session_epoch": 0, "topics": topics})
    session.epoch = LAST_EPOCH
    for epoch in (LAST_EPOCH, 1, 2):
        body = {"session_id": session.id, "session_epoch": epoch, "topics": []}
        assert sessions.of(body) is session


@pytest.mark.parametrize(
    "limits", [Limits(fetch_sessions=2), Limits(fetch_session_bytes=900)], ids=["sessions", "bytes"]
)
async def test_the_oldest_session_makes_room(limits: Limits) -> None:
    _, partitions = served(1, limits)
    asked = {("orders", 0): 0}
    first, second = [(await fetch(partitions, asked, epoch=0))["session_id"] for _ in range(2)]
    assert not (await fetch(partitions, {}, [], first, 1))["error_code"]
    third = (await fetch(partitions, asked, epoch=0))["session_id"]
    gone = await fetch(partitions, {}, [], second, 1)
    assert gone["error_code"] == Code.FETCH_SESSION_ID_NOT_FOUND
    for number, epoch in ((first, 2), (third, 1)):
        assert not (await fetch(partitions, {}, [], number, epoch))["error_code"]
    if limits.fetch_session_bytes == 900:
        # One that is too large for all of the room is served, and not kept.
        asked = {(name, number): 0 for name in TOPICS for number in range(2)}
        large = await fetch(partitions, asked, epoch=0)
        assert large["session_id"] == 0
        assert len(large["responses"]) == 2


async def test_a_waiting_fetch_looks_again_when_its_partitions_change(asked: list[Log]) -> None:
    _, partitions = served(2)
    client = Client(partitions)
    client.positions = {("orders", 0): 0}
    await client.poll()
    asked.clear()
    waiting = asyncio.create_task(client.poll(wait_ms=30_000))
    for _ in range(10):
        await asyncio.sleep(0)
        await write(partitions, "orders", 1, b"another's")
    await asyncio.sleep(0.01)
    assert not waiting.done()
    assert asked == []
    await write(partitions, "orders", 0, b"ours")
    await asyncio.wait_for(waiting, 5)
    assert client.records == {("orders", 0): [(0, b"ours")]}


async def test_the_end_of_a_transaction_and_of_a_topic_are_told() -> None:
    model, partitions = served(1)
    client = Client(partitions)
    client.positions = dict.fromkeys((("orders", 0), ("payments", 0)), 0)
    await client.poll(isolation_level=1)
    log = model.topics["orders"].partitions[0].log
    data = {"index": 0, "records": batch(b"held", transaction=True)}
    body = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": [data]}]}
    await partitions.produce(Request(9, body))
    ((part,),) = [
        each["partitions"] for each in (await client.poll(isolation_level=1))["responses"]
    ]
    assert (part["records"], part["high_watermark"]) == (b"", 1)
    partitions.end_transaction(PRODUCER, 0, committed=True)
    await client.poll(isolation_level=1)
    assert client.records["orders", 0][0] == (0, b"held")
    assert log.stable == log.end == 2
    # A second end finds nothing open.
    partitions.end_transaction(PRODUCER, 0, committed=False)
    assert log.end == 2
    gone = model.forget("payments")
    partitions.gone(gone)
    for _ in range(2):  # until the client leaves it
        (topic,) = [
            each
            for each in (await client.poll(isolation_level=1))["responses"]
            if each["topic"] == "payments"
        ]
        assert topic["partitions"][0]["error_code"] == Code.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_by_id_are_told_of_changes_too() -> None:
    model, partitions = served(1)
    topic_id = model.topics["orders"].id
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}
    topic = {"topic_id": topic_id, "partitions": [part]}
    body = {"max_wait_ms": 0, "topics": [topic], "session_id": 0, "session_epoch": 0}
    begun = await partitions.fetch(Request(16, body))
    await write(partitions, "orders", 0, b"new")
    body |= {"topics": [], "session_id": begun["session_id"], "session_epoch": 1}
    response = await partitions.fetch(Request(16, body))
    (told,) = response["responses"]
    assert told["topic_id"] == topic_id
    assert read(told["partitions"][0]["records"]) == [(0, b"new")]
