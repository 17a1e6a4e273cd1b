"""Share groups of a served capture: who gets which record, and what comes again."""

from typing import Any

from kafkascope.dissectors.registry import example, layout_of, write_layout
from kafkascope.proxy.serve.coordinators.shares import ACCEPT, RELEASE, ShareGroups
from kafkascope.proxy.serve.request import Code
from tests.kit.served import answered, batch, cluster_of, read

VALUES = [b"a", b"b", b"c", b"d"]


class Reader:
    """A member of a share group, as a client has it."""

    def __init__(self, groups: ShareGroups, name: str, topic: bytes) -> None:
        self.handlers = {
            "ShareGroupHeartbeat": groups.heartbeat,
            "ShareFetch": groups.fetch,
            "ShareAcknowledge": groups.acknowledge,
        }
        self.name = name
        self.topic = topic
        self.epoch = 0

    async def ask(self, api: str, version: int, **body: Any) -> dict[str, Any]:
        whole = example(f"{api}Request", version) | {"group_id": "g", "member_id": self.name} | body
        return await answered(self.handlers[api], api, version, whole)

    async def join(self) -> dict[str, Any]:
        return await self.ask(
            "ShareGroupHeartbeat", 1, member_epoch=0, subscribed_topic_names=["orders"]
        )

    async def fetch(self, *settled: tuple[int, int, int], most: int = 10) -> list[tuple[int, int]]:
        """Acquired offsets with how often each was delivered. `settled`: first, last, kind."""
        batches = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
            for first, last, kind in settled
        ]
        part = {"partition_index": 0, "acknowledgement_batches": batches}
        topics = [{"topic_id": self.topic, "partitions": [part]}]
        told = await self.ask(
            "ShareFetch",
            2,
            share_session_epoch=self.epoch,
            max_wait_ms=10,
            max_bytes=1 << 20,
            max_records=most,
            topics=topics,
            forgotten_topics_data=[],
        )
        assert told["error_code"] == 0
        self.epoch += 1
        found = []
        for topic in told["responses"]:
            for each in topic["partitions"]:
                assert not each.get("acknowledge_error_code")
                known = {offset for offset, _ in read(each.get("records", b""))}
                for some in each.get("acquired_records", ()):
                    offsets = range(some["first_offset"], some["last_offset"] + 1)
                    assert known.issuperset(offsets)
                    found += [(offset, some["delivery_count"]) for offset in offsets]
        return found


def two_readers() -> tuple[Reader, Reader]:
    model, partitions = cluster_of("orders")
    log = model.partition("orders", 0).log
    log.append(batch(*VALUES[:2]))
    log.append(batch(*VALUES[2:]))
    groups = ShareGroups(model, partitions)
    topic = model.topics["orders"].id
    return Reader(groups, "one", topic), Reader(groups, "two", topic)


async def test_each_record_goes_to_one_member_and_comes_again_when_it_is_released():
    one, two = two_readers()
    told = await one.join()
    (topic,) = told["assignment"]["topic_partitions"]
    assert topic["partitions"] == [0]
    assert (await two.join())["assignment"] is not None
    assert await one.fetch(most=3) == [(0, 1), (1, 1), (2, 1)]
    assert await two.fetch() == [(3, 1)]
    assert await two.fetch() == []
    # One is accepted, one given back, one not told of.
    assert await one.fetch((0, 0, ACCEPT), (1, 1, RELEASE), most=1) == [(1, 2)]
    left = await one.ask("ShareGroupHeartbeat", 1, member_epoch=-1, subscribed_topic_names=None)
    assert left["member_epoch"] == -1
    assert await two.fetch((3, 3, ACCEPT)) == [(1, 3), (2, 2)]


async def test_sessions_have_epochs_and_end():
    one, two = two_readers()
    body = {"share_session_epoch": 0, "topics": [], "forgotten_topics_data": [], "max_wait_ms": 0}
    assert (await one.ask("ShareFetch", 1, **body))["error_code"] == Code.UNKNOWN_MEMBER_ID
    await one.join()
    body["share_session_epoch"] = 4
    assert (await one.ask("ShareFetch", 1, **body))["error_code"] == Code.SHARE_SESSION_NOT_FOUND
    assert len(await one.fetch()) == 4
    told = await one.ask("ShareFetch", 1, **body)
    assert told["error_code"] == Code.INVALID_SHARE_SESSION_EPOCH
    # A record that somebody else has cannot be settled.
    await two.join()
    await two.fetch()
    stolen = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [ACCEPT]}
    part = {"partition_index": 0, "acknowledgement_batches": [stolen]}
    topics = [{"topic_id": two.topic, "partitions": [part]}]
    told = await two.ask("ShareAcknowledge", 1, share_session_epoch=1, topics=topics)
    (topic,) = told["responses"]
    assert topic["partitions"][0]["error_code"] == Code.INVALID_RECORD_STATE
    # The end of a session gives everything back.
    told = await one.ask("ShareAcknowledge", 1, share_session_epoch=-1, topics=[])
    assert told["error_code"] == 0
    two.epoch = 2
    assert [offset for offset, _ in await two.fetch()] == [0, 1, 2, 3]


async def test_a_partition_that_is_not_there_gets_an_error_that_can_be_written():
    one, _ = two_readers()
    await one.join()
    parts = [{"partition_index": 7, "acknowledgement_batches": []}]
    body: dict[str, Any] = {"topics": [{"topic_id": one.topic, "partitions": parts}]}
    body |= {"share_session_epoch": 0, "forgotten_topics_data": [], "max_bytes": 100}
    for version in (1, 2):
        told = await one.ask("ShareFetch", version, **body)
        assert told["responses"][0]["partitions"][0]["error_code"] == Code.UNKNOWN_TOPIC_ID
        assert write_layout(layout_of("ShareFetchResponse", version), told)
