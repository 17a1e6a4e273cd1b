"""Groups of the consumer protocol (KIP-848), whose coordinator assigns partitions. A partition goes
to its next owner when the one before has given it up. Sans-I/O."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, TypeVar

from kafkascope.analyzer.filter.regex import Regex, RegexError
from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.request import (
    Code,
    MemoryBudget,
    Request,
    has_place,
    listed,
    size_of,
    size_of_names,
)

HEARTBEAT_MS: Final = 1_000
SESSION_S: Final = 45.0

# Topic id and partition.
TopicPartition = tuple[bytes, int]


@dataclass
class EpochMember:
    """A member of a group with epochs."""

    id: str
    client: str
    topics: list[str] = field(default_factory=list)
    last_assignment: set[TopicPartition] | None = None
    seen: float = 0.0


@dataclass
class Consumer(EpochMember):
    """A member of a group of the consumer protocol."""

    instance: str | None = None
    epoch: int = 0
    regex: str = ""
    owned: set[TopicPartition] = field(default_factory=set)
    """What it has, or has been told to have."""
    target: set[TopicPartition] = field(default_factory=set)


M = TypeVar("M", bound=EpochMember)


@dataclass
class EpochGroup(Generic[M]):
    """A group and its epoch."""

    epoch: int = 0
    members: dict[str, M] = field(default_factory=dict)


G = TypeVar("G", bound=EpochGroup[Any])


class MemberGroups(ABC, Generic[M, G]):
    """Groups whose members have epochs: what consumer and share groups have in common."""

    kind: ClassVar[str]
    assignor: ClassVar[str]
    new_group: ClassVar[type[Any]]

    def __init__(self, model: CapturedCluster, budget: MemoryBudget | None = None) -> None:
        self._model = model
        self._groups: dict[str, G] = {}
        self._budget = budget or MemoryBudget()
        self._budget.holds(self._held)

    async def respond_heartbeat(self, request: Request) -> Body:
        return self.heartbeat(request.body, request.client_id or "")

    def heartbeat(self, body: Body, client_id: str = "") -> Body:
        name, epoch = body["group_id"], body["member_epoch"]
        member_id = body["member_id"] or str(uuid.uuid4())
        names, regex = body.get("subscribed_topic_names"), body.get("subscribed_topic_regex")
        # Plain heartbeats say nothing new.
        known = name in self._groups and member_id in self._groups[name].members
        size = size_of(name, member_id, client_id, regex) + size_of_names(names or ())
        fits = (known and not (names or regex)) or self._budget.admit(size)
        limits = self._budget.limits
        if not has_place(self._groups, name, limits.epoch_groups) or not fits:
            return refused(member_id, Code.GROUP_MAX_SIZE_REACHED)
        group = self._groups.setdefault(name, self.new_group())
        self._expire(group, member_id)
        if epoch < 0:
            self._remove(group, member_id)
            return beat(member_id, epoch, None)
        member = group.members.get(member_id)
        if member is None:
            if epoch > 0:
                return refused(member_id, Code.UNKNOWN_MEMBER_ID)
            if len(group.members) >= limits.group_members:
                return refused(member_id, Code.GROUP_MAX_SIZE_REACHED)
            member = group.members[member_id] = self._joined(group, member_id, client_id, body)
            group.epoch += 1
        elif epoch == 0:
            member.last_assignment = None
        elif epoch > group.epoch:
            return refused(member_id, Code.FENCED_MEMBER_EPOCH)
        member.seen = time.monotonic()
        return self._assigned(group, member, body)

    def _held(self) -> int:
        return sum(
            size_of(name)
            + sum(
                size_of(each.id, each.client) + size_of_names(each.topics)
                for each in group.members.values()
            )
            for name, group in self._groups.items()
        )

    def listed(self) -> list[Body]:
        return [
            listed(name, self.kind, "Stable" if group.members else "Empty", self.kind)
            for name, group in self._groups.items()
        ]

    async def describe(self, request: Request) -> Body:
        return {"groups": [self._described(name) for name in request.body["group_ids"]]}

    def _described(self, name: str) -> Body:
        group = self._groups.get(name)
        if group is None:
            message = f"Group {name} is not a {self.kind} group."
            result = {"error_code": Code.GROUP_ID_NOT_FOUND, "error_message": message}
            return {**result, "group_id": name, "group_state": "Dead"}
        return {
            "error_code": 0,
            "group_id": name,
            "group_state": "Stable" if group.members else "Empty",
            "group_epoch": group.epoch,
            "assignment_epoch": group.epoch,
            "assignor_name": self.assignor,
            "members": [
                {
                    "client_host": "/127.0.0.1",
                    "member_id": each.id,
                    "member_epoch": group.epoch,
                    "client_id": each.client,
                    "subscribed_topic_names": each.topics,
                    **self._member(each),
                }
                for each in group.members.values()
            ],
        }

    def _named(self, places: set[TopicPartition]) -> Body:
        topics = [
            {**each, "topic_name": self._model.ids.get(bytes(each["topic_id"]), "")}
            for each in by_topic(places)
        ]
        return {"topic_partitions": topics}

    def _expire(self, group: G, but: str | None = None) -> None:
        now = time.monotonic()
        for gone in [i for i, m in group.members.items() if now - m.seen > SESSION_S and i != but]:
            self._remove(group, gone)

    def _remove(self, group: G, member_id: str) -> bool:
        gone = group.members.pop(member_id, None) is not None
        group.epoch += gone
        return gone

    @abstractmethod
    def _joined(self, group: G, member_id: str, client_id: str, body: Body) -> M:
        """Return a new member of a group."""

    @abstractmethod
    def _assigned(self, group: G, member: M, body: Body) -> Body:
        """Take in what a member says and return the response to its heartbeat."""

    @abstractmethod
    def _member(self, member: M) -> Body:
        """Return what descriptions of a member have besides what all have."""


class ConsumerGroups(MemberGroups[Consumer, EpochGroup[Consumer]]):
    """All groups of the consumer protocol."""

    kind = "consumer"
    assignor = "uniform"
    new_group = EpochGroup

    def _joined(
        self, group: EpochGroup[Consumer], member_id: str, client_id: str, body: Body
    ) -> Consumer:
        # A static member comes back as the same instance.
        instance = body.get("instance_id")
        for old in [m.id for m in group.members.values() if instance and m.instance == instance]:
            self._remove(group, old)
        return Consumer(member_id, client_id, instance=instance)

    def _held(self) -> int:
        groups = self._groups.values()
        regexes = sum(2 * len(each.regex) for group in groups for each in group.members.values())
        return super()._held() + regexes

    def _subscribe(self, group: EpochGroup[Consumer], member: Consumer, body: Body) -> None:
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
        topics = {name for name in member.topics if name in self._model.topics}
        if member.regex:
            regex = Regex(f"(?-i)^(?:{member.regex})$")
            topics |= {name for name in self._model.topics if regex.search(name)}
        return topics

    def _assigned(self, group: EpochGroup[Consumer], member: Consumer, body: Body) -> Body:
        """Assign round robin to those who subscribe; what others still own comes later."""
        if body["member_epoch"] == 0:
            member.owned = set()
        try:
            self._subscribe(group, member, body)
        except RegexError as error:
            return refused(member.id, Code.INVALID_REGULAR_EXPRESSION, str(error))
        if body.get("topic_partitions") is not None:
            # Nobody owns what is not there: the model is the limit of the set.
            member.owned = {
                (topic.id, number)
                for each in body["topic_partitions"]
                if (topic := self._model.topics.get(self._model.name_of(each))) is not None
                for number in each["partitions"]
                if number in topic.partitions
            }
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
            return beat(member.id, member.epoch, None)
        member.last_assignment = mine
        # What it has to give up counts as its own until it says that it has done so.
        member.owned |= mine
        return beat(member.id, member.epoch, {"topic_partitions": by_topic(mine)})

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

    def _member(self, member: Consumer) -> Body:
        return {
            "instance_id": member.instance,
            "member_epoch": member.epoch,
            "subscribed_topic_regex": member.regex or None,
            "assignment": self._named(member.owned),
            "target_assignment": self._named(member.target),
            "member_type": 1,
        }


def by_topic(places: set[TopicPartition]) -> list[Body]:
    """Topic ids with their partitions, as assignments have them."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(places):
        topics.setdefault(topic_id, []).append(number)
    return [{"topic_id": each, "partitions": numbers} for each, numbers in topics.items()]


def beat(member_id: str, epoch: int, assignment: Body | None) -> Body:
    return {
        "error_code": 0,
        "member_id": member_id,
        "member_epoch": epoch,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "assignment": assignment,
    }


def refused(member_id: str, error: Code, message: str | None = None) -> Body:
    return {**beat(member_id, 0, None), "error_code": error, "error_message": message}
