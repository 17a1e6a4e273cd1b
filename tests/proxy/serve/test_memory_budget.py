"""What clients may make a served capture keep has a limit, and an error that Kafka has for it."""

import asyncio
from typing import Any

from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.serve.captured_cluster import CapturedCluster, Partition
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.coordinators.producers import Offsets
from kafkascope.proxy.serve.request import Code, MemoryBudget, Request
from kafkascope.proxy.serve.server import ClientLog
from tests.kit.served import answered, serving

SMALL = Limits(state_bytes=1 << 20, recount_s=0.0)


def model_of_a_topic() -> CapturedCluster:
    model = CapturedCluster(TopicNames())
    model.topic("t").partitions[0] = Partition(1, [1])
    return model


def commit(group: str, metadata: str | None = "", topic: str = "t", number: int = 0) -> Request:
    part = {"partition_index": number, "committed_offset": 5, "committed_metadata": metadata}
    topics = [{"name": topic, "partitions": [part]}]
    return Request(6, {"group_id": group, "member_id": "", "topics": topics})


def error_of(body: Body | None) -> int:
    return body["topics"][0]["partitions"][0]["error_code"]


def committed(budget: MemoryBudget) -> tuple[Offsets, Any]:
    model = model_of_a_topic()
    offsets = Offsets(model, Groups(budget), ConsumerGroups(model, budget), budget)
    return offsets, offsets.commit


async def test_commits_are_held_against_what_brokers_take() -> None:
    offsets, ask = committed(MemoryBudget())
    assert error_of(await ask(commit("g", "x" * LIMITS.offset_metadata_chars))) == 0
    too_long = "x" * (LIMITS.offset_metadata_chars + 1)
    assert error_of(await ask(commit("h", too_long))) == Code.OFFSET_METADATA_TOO_LARGE
    unknown = Code.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(await ask(commit("h", topic="nosuch"))) == unknown
    assert error_of(await ask(commit("h", number=7))) == unknown
    assert offsets.groups() == ["g"]


async def test_a_flood_of_commits_ends_at_the_limit() -> None:
    budget = MemoryBudget(SMALL)
    offsets, ask = committed(budget)
    codes = [error_of(await ask(commit(f"{n}" + "g" * 1000))) for n in range(3_000)]
    assert set(codes) == {0, Code.INVALID_COMMIT_OFFSET_SIZE}
    assert len(offsets.groups()) == codes.count(0) < 1_000
    assert budget.refusals == codes.count(Code.INVALID_COMMIT_OFFSET_SIZE)
    # The same group again takes no more room than before.
    assert error_of(await ask(commit("0" + "g" * 1000))) == 0


def join(number: int, size: int) -> Body:
    return {
        "group_id": "g",
        "member_id": "",
        "group_instance_id": f"i{number}",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": bytes(size)}],
    }


async def joined(groups: Groups, number: int) -> Body:
    return await answered(groups.join, "JoinGroup", 5, join(number, 100_000))


async def test_members_with_much_to_say_fill_a_group_and_leave_it_empty() -> None:
    groups = Groups(MemoryBudget(SMALL))
    joins = [asyncio.create_task(joined(groups, n)) for n in range(9)]
    told = [await each for each in joins]
    refused = [each for each in told if each["error_code"] == Code.GROUP_MAX_SIZE_REACHED]
    well = [each for each in told if not each["error_code"]]
    assert len(refused) + len(well) == 9
    assert refused
    leaving = [{"member_id": each["member_id"]} for each in well]
    await groups.leave(Request(5, {"group_id": "g", "members": leaving}))
    again = await joined(groups, 9)
    assert again["error_code"] == 0


async def test_leaving_a_group_that_is_not_there_makes_none() -> None:
    groups = Groups()
    told = await answered(groups.leave, "LeaveGroup", 2, {"group_id": "nosuch", "member_id": "m"})
    assert told["error_code"] == Code.UNKNOWN_MEMBER_ID
    assert groups.listed() == []


async def test_a_client_that_comes_is_told_once() -> None:
    async with serving("libraries.pcap") as served:
        for _ in range(3):
            peer = await served.peer()
            body = {"client_software_name": "lib\x1b[31m", "client_software_version": "1.2"}
            assert (await peer.ask("ApiVersions", 3, body))["api_keys"]
            await peer.close()
        (line,) = served.told
        assert 'client "kafkascope-replay" connected, lib' in line
        assert line.startswith("127.0.0.1:")
        assert "1.2" in line
        assert "\x1b" not in line


def test_a_flood_of_different_lines_is_cut() -> None:
    said: list[str] = []
    now = [0.0]
    lines = ClientLog(said.append, clock=lambda: now[0])
    for number in range(10_000):
        lines.log("me", f"line {number}")
    assert len(said) == LIMITS.log_burst
    now[0] = 5.0
    lines.log("me", "the last")
    assert said[-1] == f"me: the last ({10_000 - LIMITS.log_burst} lines before it were suppressed)"
