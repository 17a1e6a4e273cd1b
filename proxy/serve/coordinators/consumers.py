"""Groups of the consumer protocol (KIP-848), whose coordinator assigns partitions. A partition goes
to its next owner when the one before has given it up. Sans-I/O."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from kafkascope.analyzer.filter.regex import Regex, RegexError
from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.coordinators.memory_budget import (
    ENTRY,
    MemoryBudget,
    size_of,
    size_of_names,
)
from kafkascope.proxy.serve.request import Code, Handler, Request

HEARTBEAT_MS: Final = 1_000
SESSION_S: Final = 45.0
MAX_GROUPS: Final = 1_000
MAX_MEMBERS: Final = 1_000
LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
"""A static member, which comes back as the same instance."""

Place = tuple[bytes, int]
"""Topic id and partition."""


@dataclass(slots=True)
class Consumer:
    """A member of such a group."""

    id: str
    instance: str | None
    client: str
    epoch: int = 0
    topics: list[str] = field(default_factory=list)
    regex: str = ""
    owned: set[Place] = field(default_factory=set)
    """What it has, or has been told to have."""
    target: set[Place] = field(default_factory=set)
    last_assignment: set[Place] | None = None
    seen: float = 0.0


@dataclass(slots=True)
class ConsumerGroup:
    """A group and its epoch."""

    epoch: int = 0
    members: dict[str, Consumer] = field(default_factory=dict)


class ConsumerGroups:
    """All groups of the consumer protocol."""

    def __init__(self, model: CapturedCluster, budget: MemoryBudget | None = None) -> None:
        self._model = model
        self._groups: dict[str, ConsumerGroup] = {}
        self._budget = budget or MemoryBudget()
        self._budget.holds(self._held)

    def handlers(self) -> dict[str, Handler]:
        """The handlers, by API."""
        return {"ConsumerGroupHeartbeat": self._heartbeat, "ConsumerGroupDescribe": self._describe}

    async def _heartbeat(self, request: Request) -> Body:
        return self.heartbeat(request.body, request.client_id or "")

    def heartbeat(self, body: Body, client_id: str = "") -> Body:
        """The response to a ConsumerGroupHeartbeat."""
        name = body["group_id"]
        member_id = body["member_id"] or str(uuid.uuid4())
        names = body.get("subscribed_topic_names") or ()
        texts = (name, member_id, client_id, body.get("subscribed_topic_regex"))
        if not self._fits(name, member_id, size_of(*texts) + size_of_names(names)):
            return _refused(member_id, Code.GROUP_MAX_SIZE_REACHED)
        group = self._groups.setdefault(name, ConsumerGroup())
        self._expire(group, member_id)
        if body["member_epoch"] in (LEAVES, LEAVES_FOR_A_WHILE):
            _remove(group, member_id)
            return _beat(member_id, body["member_epoch"], None)
        member = group.members.get(member_id)
        if member is None:
            if body["member_epoch"] > 0:
                return _refused(member_id, Code.UNKNOWN_MEMBER_ID)
            if len(group.members) >= MAX_MEMBERS:
                return _refused(member_id, Code.GROUP_MAX_SIZE_REACHED)
            instance = body.get("instance_id")
            for old in [
                m.id for m in group.members.values() if instance and m.instance == instance
            ]:
                _remove(group, old)
            member = group.members[member_id] = Consumer(member_id, instance, client_id)
            group.epoch += 1
        elif body["member_epoch"] == 0:
            member.last_assignment = None
            member.owned = set()
        elif body["member_epoch"] > group.epoch:
            return _refused(member_id, Code.FENCED_MEMBER_EPOCH)
        member.seen = time.monotonic()
        try:
            self._subscribe(group, member, body)
        except RegexError as error:
            return _refused(member_id, Code.INVALID_REGULAR_EXPRESSION, str(error))
        if body.get("topic_partitions") is not None:
            # Nobody owns what is not there: the model is the limit of the set.
            member.owned = {
                (topic.id, number)
                for each in body["topic_partitions"]
                if (topic := self._model.topics.get(self._model.name_of(each))) is not None
                for number in each["partitions"]
                if number in topic.partitions
            }
        return self._assigned(group, member)

    def _fits(self, name: str, member_id: str, size: int) -> bool:
        """Whether what a heartbeat says may be kept; plain heartbeats say nothing new."""
        if not has_place(self._groups, name):
            return False
        known = name in self._groups and member_id in self._groups[name].members
        return (known and size < 2 * ENTRY) or self._budget.admit(size)

    def _held(self) -> int:
        """Bytes that groups and members take."""
        return sum(
            size_of(name)
            + sum(
                size_of(each.id, each.client, each.regex) + size_of_names(each.topics)
                for each in group.members.values()
            )
            for name, group in self._groups.items()
        )

    def _subscribe(self, group: ConsumerGroup, member: Consumer, body: Body) -> None:
        names = body.get("subscribed_topic_names")
        pattern = body.get("subscribed_topic_regex")
        if names is None and pattern is None:
            return
        if pattern:
            Regex(pattern)
        topics = member.topics if names is None else list(names)
        regex = member.regex if pattern is None else pattern
        if (topics, regex) != (member.topics, member.regex):
            member.topics, member.regex = topics, regex
            group.epoch += 1

    def _topics(self, member: Consumer) -> set[str]:
        wanted = {name for name in member.topics if name in self._model.topics}
        if member.regex:
            regex = Regex(f"(?-i)^(?:{member.regex})$")
            wanted |= {name for name in self._model.topics if regex.search(name)}
        return wanted

    def _assigned(self, group: ConsumerGroup, member: Consumer) -> Body:
        """Assign round robin to those who subscribe; what others still own comes later."""
        of = {each.id: self._topics(each) for each in group.members.values()}
        for each in group.members.values():
            each.target = set()
        turn = 0
        for name in sorted(set().union(*of.values())):
            topic = self._model.topics[name]
            those = sorted(
                (m for m in group.members.values() if name in of[m.id]), key=attrgetter("id")
            )
            for number in sorted(topic.partitions):
                those[turn % len(those)].target.add((topic.id, number))
                turn += 1
        taken = {p for m in group.members.values() if m is not member for p in m.owned}
        mine = member.target - taken
        member.epoch = group.epoch
        if mine == member.last_assignment:
            return _beat(member.id, member.epoch, None)
        member.last_assignment = mine
        # What it has to give up counts as its own until it says that it has done so.
        member.owned |= mine
        return _beat(member.id, member.epoch, {"topic_partitions": by_topic(mine)})

    def _expire(self, group: ConsumerGroup, but: str) -> None:
        now = time.monotonic()
        for gone in [m.id for m in group.members.values() if now - m.seen > SESSION_S]:
            if gone != but:
                _remove(group, gone)

    # --- what others ask

    def check_commit(self, body: Body) -> int:
        """The error of a commit by a member of such a group; 0: none."""
        epoch = body.get("generation_id_or_member_epoch", -1)
        return self.check_member(body["group_id"], body.get("member_id"), epoch)

    def check_member(self, name: str, member_id: str | None, epoch: int) -> int:
        """The error of a request by a member; 0: none, as for those from outside of the group."""
        group = self._groups.get(name)
        if group is None or not member_id or epoch < 0:
            return 0
        member = group.members.get(member_id)
        if member is None:
            return Code.UNKNOWN_MEMBER_ID
        return Code.STALE_MEMBER_EPOCH if epoch > member.epoch else 0

    def listed(self) -> list[Body]:
        """The groups as ListGroups lists them."""
        return listed_as("consumer", self._groups)

    async def _describe(self, request: Request) -> Body:
        return {"groups": [self._described(name) for name in request.body["group_ids"]]}

    def _described(self, name: str) -> Body:
        group = self._groups.get(name)
        if group is None:
            said = f"Group {name} is not a consumer group."
            return {
                "group_id": name,
                "error_code": Code.GROUP_ID_NOT_FOUND,
                "error_message": said,
                "group_state": "Dead",
            }
        members = [
            {
                "member_id": each.id,
                "instance_id": each.instance,
                "member_epoch": each.epoch,
                "client_id": each.client,
                "client_host": "/127.0.0.1",
                "subscribed_topic_names": each.topics,
                "subscribed_topic_regex": each.regex or None,
                "assignment": {"topic_partitions": self._named(each.owned)},
                "target_assignment": {"topic_partitions": self._named(each.target)},
                "member_type": 1,
            }
            for each in group.members.values()
        ]
        return {
            "error_code": 0,
            "group_id": name,
            "group_state": "Stable" if members else "Empty",
            "group_epoch": group.epoch,
            "assignment_epoch": group.epoch,
            "assignor_name": "uniform",
            "members": members,
        }

    def _named(self, places: set[Place]) -> list[Body]:
        return [
            {**each, "topic_name": self._model.ids.get(bytes(each["topic_id"]), "")}
            for each in by_topic(places)
        ]


def listed_as(kind: str, groups: Mapping[str, Any]) -> list[Body]:
    """Groups of one kind, which have members, as ListGroups lists them."""
    return [
        {
            "group_id": name,
            "protocol_type": kind,
            "group_state": "Stable" if group.members else "Empty",
            "group_type": kind,
        }
        for name, group in groups.items()
    ]


def has_place(groups: dict[str, Any], name: str) -> bool:
    """Whether a group is known or may be added: an empty one makes room when there are too many."""
    if name in groups or len(groups) < MAX_GROUPS:
        return True
    empty = next((other for other, each in groups.items() if not each.members), None)
    if empty is None:
        return False
    del groups[empty]
    return True


def by_topic(places: set[Place]) -> list[Body]:
    """Topic ids with their partitions, as assignments have them."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(places):
        topics.setdefault(topic_id, []).append(number)
    return [{"topic_id": each, "partitions": numbers} for each, numbers in topics.items()]


def _remove(group: ConsumerGroup, member_id: str) -> None:
    if group.members.pop(member_id, None) is not None:
        group.epoch += 1


def _beat(member_id: str, epoch: int, assignment: Body | None) -> Body:
    return {
        "error_code": 0,
        "member_id": member_id,
        "member_epoch": epoch,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "assignment": assignment,
    }


def _refused(member_id: str, error: Code, said: str | None = None) -> Body:
    return {**_beat(member_id, 0, None), "error_code": error, "error_message": said}
