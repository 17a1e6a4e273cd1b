"""Groups of the consumer protocol (KIP-848), whose coordinator assigns partitions. A partition goes
to its next owner when the one before has given it up. Sans-I/O."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, TypeVar

from kafkascope.analyzer.filter.regex import Regex, RegexError
from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.request import (
    Code,
    ErrorResponse,
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
    """A member of a group with epochs: of the consumer protocol, or of a share group."""

    id: str
    client: str
    topics: list[str] = field(default_factory=list)
    last_assignment: set[TopicPartition] | None = None
    seen: float = 0.0

    # Of the consumer protocol.
    instance: str | None = None
    epoch: int = 0
    regex: str = ""
    owned: set[TopicPartition] = field(default_factory=set)
    """What it has, or has been told to have."""
    target: set[TopicPartition] = field(default_factory=set)

    # Of share groups.
    session: dict[TopicPartition, None] | None = None
    """What it fetches, in order; None: it has no session."""
    turn: int = 0
    """The epoch that the next request of the session has."""


@dataclass
class EpochGroup:
    """A group and its epoch."""

    epoch: int = 0
    members: dict[str, EpochMember] = field(default_factory=dict)


G = TypeVar("G", bound=EpochGroup)


class MemberGroups(ABC, Generic[G]):
    """Groups whose members have epochs: what consumer and share groups have in common."""

    kind: ClassVar[str]
    assignor: ClassVar[str]
    new_group: ClassVar[type[Any]] = EpochGroup

    def __init__(self, model: CapturedCluster, budget: MemoryBudget | None = None) -> None:
        self._model = model
        self._groups: dict[str, G] = {}
        self._budget = budget or MemoryBudget()
        self._budget.holds(self._held)

    async def heartbeat(self, request: Request) -> Body:
        body = request.body
        name, epoch = body["group_id"], body["member_epoch"]
        member_id = body["member_id"] or str(uuid.uuid4())
        beat: Body = {"member_id": member_id, "heartbeat_interval_ms": HEARTBEAT_MS}
        try:
            group = self._group(name, member_id, request)
            self._expire(group, member_id)
            if epoch < 0:
                self._remove(group, member_id)
                return {**beat, "member_epoch": epoch}
            member = self._member(group, member_id, request)
            assignment = self._assigned(group, member, body)
        except ErrorResponse as refused:
            return {**beat, **refused.body}
        if assignment == member.last_assignment:
            new = None
        else:
            new = {"topic_partitions": by_topic(assignment)}
            member.last_assignment = assignment
        return {**beat, "member_epoch": group.epoch, "assignment": new}

    def _group(self, name: str, member_id: str, request: Request) -> G:
        """The group of that name, made when it is not known; refused where there is no room."""
        names = request.body.get("subscribed_topic_names")
        regex = request.body.get("subscribed_topic_regex")
        # Plain heartbeats say nothing new.
        known = name in self._groups and member_id in self._groups[name].members
        size = size_of(name, member_id, request.client_id, regex) + size_of_names(names or ())
        fits = (known and not (names or regex)) or self._budget.admit(size)
        if not has_place(self._groups, name, self._budget.limits.epoch_groups) or not fits:
            raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED)
        return self._groups.setdefault(name, self.new_group())

    def _member(self, group: G, member_id: str, request: Request) -> EpochMember:
        """The member that sends a heartbeat, made when it joins."""
        epoch = request.body["member_epoch"]
        member = group.members.get(member_id)
        if member is None:
            if epoch > 0:
                raise ErrorResponse(Code.UNKNOWN_MEMBER_ID)
            if len(group.members) >= self._budget.limits.group_members:
                raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED)
            member = self._joined(group, member_id, request)
            group.members[member_id] = member
            group.epoch += 1
        elif epoch == 0:
            member.last_assignment = None
        elif epoch > group.epoch:
            raise ErrorResponse(Code.FENCED_MEMBER_EPOCH)
        member.seen = time.monotonic()
        return member

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
            error = {"error_code": Code.GROUP_ID_NOT_FOUND, "error_message": message}
            return {**error, "group_id": name, "group_state": "Dead"}
        return {
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
                    **self._details(each),
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

    def _joined(self, group: G, member_id: str, request: Request) -> EpochMember:
        """Return a new member of a group."""
        return EpochMember(member_id, request.client_id or "")

    @abstractmethod
    def _assigned(self, group: G, member: EpochMember, body: Body) -> set[TopicPartition]:
        """Take in what a member says in a heartbeat, and return what it is assigned."""

    @abstractmethod
    def _details(self, member: EpochMember) -> Body:
        """Return what descriptions of a member have besides what all have."""


class ConsumerGroups(MemberGroups[EpochGroup]):
    """All groups of the consumer protocol."""

    kind = "consumer"
    assignor = "uniform"

    def _joined(self, group: EpochGroup, member_id: str, request: Request) -> EpochMember:
        # A static member comes back as the same instance.
        instance = request.body.get("instance_id")
        for old in [m.id for m in group.members.values() if instance and m.instance == instance]:
            self._remove(group, old)
        return replace(super()._joined(group, member_id, request), instance=instance)

    def _held(self) -> int:
        groups = self._groups.values()
        regexes = sum(2 * len(each.regex) for group in groups for each in group.members.values())
        return super()._held() + regexes

    def _subscribe(self, group: EpochGroup, member: EpochMember, body: Body) -> None:
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

    def _topics(self, member: EpochMember) -> set[str]:
        topics = {name for name in member.topics if name in self._model.topics}
        if member.regex:
            regex = Regex(f"(?-i)^(?:{member.regex})$")
            topics |= {name for name in self._model.topics if regex.search(name)}
        return topics

    def _assigned(self, group: EpochGroup, member: EpochMember, body: Body) -> set[TopicPartition]:
        """Assign round robin to those who subscribe; what others still own comes later."""
        if body["member_epoch"] == 0:
            member.owned = set()
        try:
            self._subscribe(group, member, body)
        except RegexError as error:
            raise ErrorResponse(Code.INVALID_REGULAR_EXPRESSION, error_message=str(error)) from None
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
        if mine != member.last_assignment:
            # What it has to give up counts as its own until it says that it has done so.
            member.owned |= mine
        return mine

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

    def _details(self, member: EpochMember) -> Body:
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
