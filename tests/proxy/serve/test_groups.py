"""Groups of a served capture: members come, go, fall silent and share the work."""

import asyncio
from typing import Any

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.registry import example
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.request import Code
from tests.kit.served import answered, cluster_of


def join(group: str, member: str = "", **more: Any) -> dict[str, Any]:
    body = example("JoinGroupRequest", 5)
    protocols = [{"name": "range", "metadata": member.encode()}]
    return body | {
        "group_id": group,
        "member_id": member,
        "protocol_type": "consumer",
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "protocols": protocols,
        **more,
    }


async def joined(groups: Groups, version: int, client: str, body: Body) -> Body:
    return await answered(groups.join, "JoinGroup", version, body, client)


async def synced(groups: Groups, body: Body) -> bytes:
    response = await answered(groups.sync, "SyncGroup", 5, body)
    assert not response["error_code"]
    return bytes(response["assignment"])


async def error_of_heartbeat(groups: Groups, body: Body) -> int:
    return int((await answered(groups.heartbeat, "Heartbeat", 4, body))["error_code"])


async def test_a_second_member_makes_a_rebalance():
    groups = Groups()
    first = (await joined(groups, 5, "a", join("g")))["member_id"]
    told = await joined(groups, 5, "a", join("g", first))
    assert (told["error_code"], told["leader"], told["generation_id"]) == (0, first, 1)
    sync = {"group_id": "g", "member_id": first, "generation_id": 1}
    mine = [{"member_id": first, "assignment": b"all"}]
    assert await synced(groups, {**sync, "assignments": mine}) == b"all"
    assert await error_of_heartbeat(groups, sync) == 0
    assert await error_of_heartbeat(groups, {**sync, "generation_id": 7}) == Code.ILLEGAL_GENERATION
    assert await error_of_heartbeat(groups, {**sync, "member_id": "x"}) == Code.UNKNOWN_MEMBER_ID
    # A second one comes: the first is told, and both join.
    second = (await joined(groups, 5, "b", join("g")))["member_id"]
    coming = asyncio.create_task(joined(groups, 5, "b", join("g", second)))
    await asyncio.sleep(0.01)
    assert await error_of_heartbeat(groups, sync) == Code.REBALANCE_IN_PROGRESS
    again = asyncio.create_task(joined(groups, 5, "a", join("g", first)))
    both = await asyncio.gather(again, coming)
    assert [each["generation_id"] for each in both] == [2, 2]
    assert len(both[0]["members"]) == 2
    assert both[1]["members"] == []
    follower = {"group_id": "g", "member_id": second, "generation_id": 2, "assignments": []}
    waiting = asyncio.create_task(synced(groups, follower))
    await asyncio.sleep(0.01)
    halves = [{"member_id": first, "assignment": b"1"}, {"member_id": second, "assignment": b"2"}]
    leader = {"group_id": "g", "member_id": first, "generation_id": 2, "assignments": halves}
    assert await synced(groups, leader) == b"1"
    assert await waiting == b"2"
    await answered(groups.leave, "LeaveGroup", 0, {"group_id": "g", "member_id": second})
    assert (
        await error_of_heartbeat(groups, {**sync, "generation_id": 2}) == Code.REBALANCE_IN_PROGRESS
    )


async def test_a_static_member_that_is_back_takes_its_own_place():
    groups = Groups()
    request = join("g", group_instance_id="one")
    first = await joined(groups, 5, "a", request)
    sync = {"group_id": "g", "member_id": first["member_id"], "generation_id": 1}
    assert await error_of_heartbeat(groups, sync) == 0
    again = await joined(groups, 5, "a", request)
    assert again["error_code"] == 0
    assert again["member_id"] != first["member_id"]
    assert len(again["members"]) == 1
    assert await error_of_heartbeat(groups, sync) == Code.UNKNOWN_MEMBER_ID


async def test_members_with_nothing_in_common_stay_out():
    groups = Groups()
    first = (await joined(groups, 3, "a", join("g")))["member_id"]
    other = {"name": "sticky", "metadata": b""}
    told = await joined(groups, 3, "b", join("g", protocols=[other]))
    assert told["error_code"] == Code.INCONSISTENT_GROUP_PROTOCOL
    told = await joined(groups, 3, "b", join("g", protocol_type="connect"))
    assert told["error_code"] == Code.INCONSISTENT_GROUP_PROTOCOL
    told = await joined(groups, 3, "b", join("g", protocols=[]))
    assert told["error_code"] == Code.INCONSISTENT_GROUP_PROTOCOL
    told = await answered(groups.describe, "DescribeGroups", 5, {"groups": ["g"]})
    assert [each["member_id"] for each in told["groups"][0]["members"]] == [first]


def heartbeat(member: str, epoch: int, **more: Any) -> dict[str, Any]:
    body = example("ConsumerGroupHeartbeatRequest", 1)
    nothing = dict.fromkeys(("instance_id", "rack_id", "topic_partitions", "server_assignor"))
    nothing |= dict.fromkeys(("subscribed_topic_names", "subscribed_topic_regex"))
    return body | nothing | {"group_id": "g", "member_id": member, "member_epoch": epoch, **more}


async def beat(groups: ConsumerGroups, body: Body) -> Body:
    return await answered(groups.heartbeat, "ConsumerGroupHeartbeat", 1, body)


def given(told: dict[str, Any]) -> set[tuple[bytes, int]] | None:
    if told["assignment"] is None:
        return None
    return {
        (bytes(each["topic_id"]), number)
        for each in told["assignment"]["topic_partitions"]
        for number in each["partitions"]
    }


async def test_a_partition_changes_hands_when_it_was_given_up():
    model, _ = cluster_of("orders", "orders.dead", partitions=2)
    groups = ConsumerGroups(model)
    place = model.topics["orders"].id
    both = {(place, 0), (place, 1)}
    names = {"subscribed_topic_names": ["orders", "nothing"]}
    assert given(await beat(groups, heartbeat("a", 0, **names))) == both
    assert given(await beat(groups, heartbeat("a", 1))) is None
    # The first one has all: the second one gets its part only when that was given up.
    second = await beat(groups, heartbeat("b", 0, **names))
    assert given(second) == set()
    less = given(await beat(groups, heartbeat("a", 1)))
    assert less is not None
    assert len(less) == 1
    assert given(await beat(groups, heartbeat("b", second["member_epoch"]))) is None
    kept = [{"topic_id": place, "partitions": [number]} for _, number in less]
    await beat(groups, heartbeat("a", second["member_epoch"], topic_partitions=kept))
    assert given(await beat(groups, heartbeat("b", second["member_epoch"]))) == both - less
    assert (await beat(groups, heartbeat("a", -1)))["member_epoch"] == -1
    assert given(await beat(groups, heartbeat("b", second["member_epoch"]))) == both


async def test_subscriptions_by_pattern_are_re2_and_whole():
    model, _ = cluster_of("orders", "orders.dead", partitions=2)
    groups = ConsumerGroups(model)
    told = await beat(groups, heartbeat("a", 0, subscribed_topic_regex="orders"))
    assert {topic for topic, _ in given(told) or ()} == {model.topics["orders"].id}
    wrong = await beat(groups, heartbeat("b", 0, subscribed_topic_regex="(?=o)"))
    assert wrong["error_code"] == Code.INVALID_REGULAR_EXPRESSION
    assert wrong["error_message"]


async def test_members_that_are_not_known_have_to_join():
    groups = ConsumerGroups(cluster_of("orders")[0])
    assert (await beat(groups, heartbeat("a", 3)))["error_code"] == Code.UNKNOWN_MEMBER_ID
    await beat(groups, heartbeat("a", 0, subscribed_topic_names=["orders"]))
    assert (await beat(groups, heartbeat("a", 99)))["error_code"] == Code.FENCED_MEMBER_EPOCH
    commit = {"group_id": "g", "member_id": "b", "generation_id_or_member_epoch": 1}
    assert groups.check_commit(commit) == Code.UNKNOWN_MEMBER_ID
    assert groups.check_commit(commit | {"member_id": "a"}) == 0
