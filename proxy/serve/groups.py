"""Groups that live: classic ones (JoinGroup, SyncGroup, heartbeats) and those of KIP-848. Every
wait
has a limit."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from dissectors.reader import Body

FORMING: Final = 0.15
"""Seconds that the first members of a group have to come together."""
HEARTBEAT_MS: Final = 3_000
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_PROTOCOL: Final = 23
UNKNOWN_MEMBER: Final = 25
REBALANCING: Final = 27
MEMBER_ID_REQUIRED: Final = 79
FENCED_EPOCH: Final = 110
STATES: Final = {
    "empty": "Empty",
    "joining": "PreparingRebalance",
    "syncing": "CompletingRebalance",
    "stable": "Stable",
}
"""As DescribeGroups names them."""
MAX_GROUPS: Final = 10_000
MAX_MEMBERS: Final = 1_000
GROUP_MAX_SIZE: Final = 81


@dataclass(slots=True)
class Member:
    """A member of a classic group."""

    id: str
    instance: str | None
    session_s: float
    rebalance_s: float
    protocols: list[Body]
    seen: float
    joining: asyncio.Future[int] | None = None
    syncing: asyncio.Future[int] | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class Group:
    """A classic group."""

    name: str
    type: str = ""
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    state: str = "empty"
    """empty, joining, syncing, stable."""
    members: dict[str, Member] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Ids that were handed out."""
    timer: asyncio.TimerHandle | None = None


class Groups:
    """All classic groups of a served capture."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def _group(self, name: str) -> Group:
        if name not in self._groups and len(self._groups) >= MAX_GROUPS:
            self._groups.pop(next(iter(self._groups)))
        return self._groups.setdefault(name, Group(name))

    async def join(self, version: int, client_id: str | None, body: Body) -> Body:
        """JoinGroup; answers when all members are here."""
        group = self._group(body["group_id"])
        self._expire(group)
        member_id = body["member_id"]
        if not member_id:
            member_id = f"{client_id or 'member'}-{uuid.uuid4()}"
            if len(group.members) >= MAX_MEMBERS:
                return _joined(GROUP_MAX_SIZE, "")
            if version >= 4 and not body.get("group_instance_id"):
                group.known.add(member_id)
                return _joined(MEMBER_ID_REQUIRED, member_id)
        elif member_id not in group.members and member_id not in group.known:
            return _joined(UNKNOWN_MEMBER, member_id)
        group.known.discard(member_id)
        session = body["session_timeout_ms"] / 1000
        member = group.members.get(member_id)
        if member is None:
            member = group.members[member_id] = Member(
                member_id, body.get("group_instance_id"), session, 0, [], 0
            )
        member.session_s = session
        limit_ms: int = body.get("rebalance_timeout_ms") or body["session_timeout_ms"]
        member.rebalance_s = max(limit_ms, 1) / 1000
        member.protocols = body["protocols"]
        member.seen = time.monotonic()
        group.type = body["protocol_type"]
        if _common(group) is None:
            del group.members[member_id]
            return _joined(INCONSISTENT_PROTOCOL, member_id)
        loop = asyncio.get_running_loop()
        if member.joining is None or member.joining.done():
            member.joining = loop.create_future()
        self._rebalance(group)
        try:
            error = await asyncio.wait_for(asyncio.shield(member.joining), member.rebalance_s + 5)
        except TimeoutError:
            error = REBALANCING
        if error:
            return _joined(error, member_id)
        member.seen = time.monotonic()
        members = []
        if group.leader == member_id:
            members = [
                {
                    "member_id": each.id,
                    "group_instance_id": each.instance,
                    "metadata": _metadata(each, group.protocol),
                }
                for each in group.members.values()
            ]
        return {
            **_joined(0, member_id),
            "generation_id": group.generation,
            "protocol_type": group.type,
            "protocol_name": group.protocol,
            "leader": group.leader,
            "members": members,
        }

    def _rebalance(self, group: Group) -> None:
        """Begin, or end as soon as everybody has joined."""
        group.state = "joining"
        for member in group.members.values():
            if member.syncing is not None and not member.syncing.done():
                member.syncing.set_result(REBALANCING)
        waiting = [m for m in group.members.values() if m.joining is None or m.joining.done()]
        if group.timer is not None:
            group.timer.cancel()
        longest = max((m.rebalance_s for m in group.members.values()), default=1.0)
        delay = FORMING if not waiting else min(longest, 30.0)
        group.timer = asyncio.get_running_loop().call_later(delay, self._complete, group)

    def _complete(self, group: Group) -> None:
        """Everybody who joined is in; the others are out."""
        gone = [m.id for m in group.members.values() if m.joining is None or m.joining.done()]
        for member_id in gone:
            del group.members[member_id]
        if not group.members:
            group.state = "empty"
            return
        group.generation += 1
        group.protocol = _common(group) or ""
        if group.leader not in group.members:
            group.leader = next(iter(group.members))
        group.state = "syncing"
        for member in group.members.values():
            member.assignment = b""
            if member.joining is not None and not member.joining.done():
                member.joining.set_result(0)
            member.joining = None

    async def sync(self, body: Body) -> Body:
        """SyncGroup; answers when the leader has sent the assignment."""
        group, error = self._checked(body)
        blank = {
            "error_code": error,
            "protocol_type": None,
            "protocol_name": None,
            "assignment": b"",
        }
        if error or group is None:
            return blank
        if group.state == "joining":
            return {**blank, "error_code": REBALANCING}
        member = group.members[body["member_id"]]
        if body["member_id"] == group.leader and group.state == "syncing":
            for each in body["assignments"]:
                if each["member_id"] in group.members:
                    group.members[each["member_id"]].assignment = each["assignment"]
            group.state = "stable"
            for other in group.members.values():
                if other.syncing is not None and not other.syncing.done():
                    other.syncing.set_result(0)
        elif group.state == "syncing":
            member.syncing = asyncio.get_running_loop().create_future()
            try:
                error = await asyncio.wait_for(member.syncing, member.rebalance_s + 5)
            except TimeoutError:
                error = REBALANCING
            if error:
                return {**blank, "error_code": error}
        return {
            "error_code": 0,
            "protocol_type": group.type,
            "protocol_name": group.protocol,
            "assignment": member.assignment,
        }

    def heartbeat(self, body: Body) -> int:
        """The error of a heartbeat."""
        group, error = self._checked(body)
        if error or group is None:
            return error
        self._expire(group)
        return REBALANCING if group.state == "joining" else 0

    def check_commit(self, body: Body) -> int:
        """The error of a commit by a member; those from outside of the group are welcome."""
        if not body.get("member_id") or body.get("generation_id_or_member_epoch", -1) < 0:
            return 0
        group = self._groups.get(body["group_id"])
        if group is None or body["member_id"] not in group.members:
            return 0 if group is None else UNKNOWN_MEMBER
        group.members[body["member_id"]].seen = time.monotonic()
        return (
            0 if body["generation_id_or_member_epoch"] == group.generation else ILLEGAL_GENERATION
        )

    def leave(self, body: Body) -> list[Body]:
        """LeaveGroup; one answer for each member."""
        group = self._group(body["group_id"])
        members = body.get("members") or [{"member_id": body.get("member_id", "")}]
        told = []
        for each in members:
            found = each["member_id"]
            if not found and each.get("group_instance_id"):
                found = next(
                    (
                        m.id
                        for m in group.members.values()
                        if m.instance == each["group_instance_id"]
                    ),
                    "",
                )
            gone = group.members.pop(found, None)
            told.append({**each, "error_code": 0 if gone else UNKNOWN_MEMBER})
            if gone is not None and gone.joining is not None and not gone.joining.done():
                gone.joining.set_result(UNKNOWN_MEMBER)
        if group.members:
            self._rebalance(group)
        else:
            group.state = "empty"
        return told

    def described(self, name: str) -> Body:
        """What DescribeGroups tells."""
        group = self._groups.get(name)
        if group is None:
            return {"group_id": name, "group_state": "Dead", "members": [], "error_code": 0}
        return {
            "error_code": 0,
            "group_id": name,
            "group_state": STATES[group.state],
            "protocol_type": group.type,
            "protocol_data": group.protocol,
            "members": [
                {
                    "member_id": each.id,
                    "group_instance_id": each.instance,
                    "client_id": each.id.rpartition("-")[0],
                    "client_host": "/127.0.0.1",
                    "member_metadata": _metadata(each, group.protocol),
                    "member_assignment": each.assignment,
                }
                for each in group.members.values()
            ],
        }

    def names(self) -> list[tuple[str, str]]:
        """(group, protocol type) of all groups."""
        return [(group.name, group.type) for group in self._groups.values()]

    def _checked(self, body: Body) -> tuple[Group | None, int]:
        group = self._groups.get(body["group_id"])
        if group is None or body["member_id"] not in group.members:
            return None, UNKNOWN_MEMBER
        group.members[body["member_id"]].seen = time.monotonic()
        if body["generation_id"] != group.generation:
            return group, REBALANCING if group.state == "joining" else ILLEGAL_GENERATION
        return group, 0

    def _expire(self, group: Group) -> None:
        """Members that were silent for their session are out."""
        now = time.monotonic()
        gone = [
            member.id
            for member in group.members.values()
            if member.joining is None and now - member.seen > max(member.session_s, 1)
        ]
        for member_id in gone:
            del group.members[member_id]
        if gone and group.members and group.state != "joining":
            self._rebalance(group)


def _joined(error: int, member_id: str) -> Body:
    return {
        "error_code": error,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": "" if error != MEMBER_ID_REQUIRED else None,
        "leader": "",
        "member_id": member_id,
        "members": [],
    }


def _common(group: Group) -> str | None:
    """The first protocol that all members have; None when there is none."""
    members = list(group.members.values())
    for each in members[0].protocols if members else ():
        if all(any(p["name"] == each["name"] for p in m.protocols) for m in members):
            name: str = each["name"]
            return name
    return None


def _metadata(member: Member, protocol: str) -> bytes:
    for each in member.protocols:
        if each["name"] == protocol:
            data: bytes = each["metadata"]
            return data
    return b""


# --- KIP-848


@dataclass(slots=True)
class Consumer:
    """A member of a group of the consumer protocol."""

    id: str
    epoch: int = 0
    topics: list[str] = field(default_factory=list)
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    target: set[tuple[bytes, int]] = field(default_factory=set)
    told: set[tuple[bytes, int]] | None = None
    seen: float = 0.0


class ConsumerGroups:
    """Groups of KIP-848: the coordinator assigns. A partition goes to its next owner when the one
    before has given it up."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Consumer]] = {}
        self._epochs: dict[str, int] = {}

    def heartbeat(self, body: Body, partitions: Any) -> Body:
        """ConsumerGroupHeartbeat; `partitions` gives (topic id, number) pairs of topics by name."""
        name = body["group_id"]
        members = self._groups.setdefault(name, {})
        member_id = body["member_id"] or str(uuid.uuid4())
        now = time.monotonic()
        for gone in [m.id for m in members.values() if now - m.seen > 45 and m.id != member_id]:
            self._remove(name, gone)
        if body["member_epoch"] < 0:
            self._remove(name, member_id)
            return _beat(member_id, body["member_epoch"], None)
        member = members.get(member_id)
        if member is None:
            if body["member_epoch"] > 0:
                return {**_beat(member_id, 0, None), "error_code": UNKNOWN_MEMBER}
            member = members[member_id] = Consumer(member_id)
            self._epochs[name] = self._epochs.get(name, 0) + 1
        elif body["member_epoch"] == 0:
            member.told = None
            member.owned = set()
        elif body["member_epoch"] > self._epochs[name]:
            return {**_beat(member_id, 0, None), "error_code": FENCED_EPOCH}
        member.seen = now
        if body.get("subscribed_topic_names") is not None and (
            body["subscribed_topic_names"] != member.topics
        ):
            member.topics = list(body["subscribed_topic_names"])
            self._epochs[name] += 1
        if body.get("topic_partitions") is not None:
            member.owned = {
                (bytes(each["topic_id"]), number)
                for each in body["topic_partitions"]
                for number in each["partitions"]
            }
        self._assign(members, partitions)
        taken = {p for m in members.values() if m is not member for p in m.owned}
        mine = {p for p in member.target if p not in taken}
        member.epoch = self._epochs[name]
        if mine == member.told:
            return _beat(member_id, member.epoch, None)
        member.told = mine
        member.owned = mine | (member.owned & mine)
        topics: dict[bytes, list[int]] = {}
        for topic_id, number in sorted(mine):
            topics.setdefault(topic_id, []).append(number)
        told = [{"topic_id": each, "partitions": numbers} for each, numbers in topics.items()]
        return _beat(member_id, member.epoch, {"topic_partitions": told})

    def _remove(self, name: str, member_id: str) -> None:
        if self._groups.get(name, {}).pop(member_id, None) is not None:
            self._epochs[name] = self._epochs.get(name, 0) + 1

    @staticmethod
    def _assign(members: dict[str, Consumer], partitions: Any) -> None:
        """Round robin over those who subscribe."""
        for member in members.values():
            member.target = set()
        wanted = sorted({topic for member in members.values() for topic in member.topics})
        turn = 0
        for topic in wanted:
            those = sorted((m for m in members.values() if topic in m.topics), key=lambda m: m.id)
            for place in partitions(topic):
                those[turn % len(those)].target.add(place)
                turn += 1


def _beat(member_id: str, epoch: int, assignment: Body | None) -> Body:
    return {
        "error_code": 0,
        "member_id": member_id,
        "member_epoch": epoch,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "assignment": assignment,
    }
