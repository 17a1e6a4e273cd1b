"""Groups of the consumer protocol (KIP-848), whose coordinator assigns partitions. A partition goes
to its next owner when the previous one has revoked it. Sans-I/O."""

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

    # Only of the consumer protocol.
    instance: str | None = None
    epoch: int = 0
    regex: str = ""
    owned: set[TopicPartition] = field(default_factory=set)
    """Partitions that it owns, or that responses assigned to it."""
    target: set[TopicPartition] = field(default_factory=set)

    # Only of share groups.
    session: dict[TopicPartition, None] | None = None
    """Partitions of its share session, in order; None without a session."""
    next_session_epoch: int = 0


@dataclass
class EpochGroup:
    """A group and its epoch."""

    epoch: int = 0
    members: dict[str, EpochMember] = field(default_factory=dict)


G = TypeVar("G", bound=EpochGroup)


class MemberGroups(ABC, Generic[G]):
    """Groups whose members have epochs: the common part of consumer and share groups."""

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
        response: Body = {"member_id": member_id, "heartbeat_interval_ms": HEARTBEAT_MS}
        try:
            group = self._group(name, member_id, request)
            self._expire(group, member_id)
            if epoch < 0:
                self._remove(group, member_id)
                return {**response, "member_epoch": epoch}
            member = self._member(group, member_id, request)
            assignment = self._assigned(group, member, body)
        except ErrorResponse as refused:
            return {**response, **refused.body}
        if assignment == member.last_assignment:
            changed = None
        else:
            changed = {"topic_partitions": by_topic(assignment)}
            member.last_assignment = assignment
        return {**response, "member_epoch": group.epoch, "assignment": changed}

    def _group(self, name: str, member_id: str, request: Request) -> G:
        """Return the group of that name, new or known; `ErrorResponse` if there is no room."""
        names = request.body.get("subscribed_topic_names")
        regex = request.body.get("subscribed_topic_regex")
        # A plain heartbeat adds nothing to the memory.
        known = name in self._groups and member_id in self._groups[name].members
        size = size_of(name, member_id, request.client_id, regex) + size_of_names(names or ())
        fits = (known and not (names or regex)) or self._budget.admit(size)
        if not has_place(self._groups, name, self._budget.limits.epoch_groups) or not fits:
            raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED)
        return self._groups.setdefault(name, self.new_group())

    def _member(self, group: G, member_id: str, request: Request) -> EpochMember:
        """Return the member that sends a heartbeat, new if it joins."""
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
                size_of(member.id, member.client) + size_of_names(member.topics)
                for member in group.members.values()
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
                    "member_id": member.id,
                    "member_epoch": group.epoch,
                    "client_id": member.client,
                    "subscribed_topic_names": member.topics,
                    **self._details(member),
                }
                for member in group.members.values()
            ],
        }

    def _with_names(self, partitions: set[TopicPartition]) -> Body:
        """Return an assignment as descriptions of groups have it."""
        topics = [
            {**topic, "topic_name": self._model.ids.get(bytes(topic["topic_id"]), "")}
            for topic in by_topic(partitions)
        ]
        return {"topic_partitions": topics}

    def _expire(self, group: G, sender: str | None = None) -> None:
        """Remove the members whose session has timed out, except the sender of a heartbeat."""
        oldest = time.monotonic() - SESSION_S
        for member in list(group.members.values()):
            if member.seen < oldest and member.id != sender:
                self._remove(group, member.id)

    def _remove(self, group: G, member_id: str) -> bool:
        removed = group.members.pop(member_id, None) is not None
        group.epoch += removed
        return removed

    def _joined(self, group: G, member_id: str, request: Request) -> EpochMember:
        """Return a new member of a group."""
        return EpochMember(member_id, request.client_id or "")

    @abstractmethod
    def _assigned(self, group: G, member: EpochMember, body: Body) -> set[TopicPartition]:
        """Apply the body of a member's heartbeat, and return the member's assignment."""

    @abstractmethod
    def _details(self, member: EpochMember) -> Body:
        """Return the fields of a member that only descriptions of this kind of group have."""


class ConsumerGroups(MemberGroups[EpochGroup]):
    """All groups of the consumer protocol."""

    kind = "consumer"
    assignor = "uniform"

    def _joined(self, group: EpochGroup, member_id: str, request: Request) -> EpochMember:
        # A static member that restarts has a new id and the same instance.
        instance = request.body.get("instance_id")
        for member in list(group.members.values()):
            if instance and member.instance == instance:
                self._remove(group, member.id)
        return replace(super()._joined(group, member_id, request), instance=instance)

    def _held(self) -> int:
        members = (member for group in self._groups.values() for member in group.members.values())
        return super()._held() + sum(2 * len(member.regex) for member in members)

    def _subscribe(self, group: EpochGroup, member: EpochMember, body: Body) -> None:
        names = body.get("subscribed_topic_names")
        pattern = body.get("subscribed_topic_regex")
        if pattern:
            Regex(pattern)  # raises RegexError
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
        """Assign all partitions round robin to their subscribers; return those of the member that
        no other member owns any more."""
        if body["member_epoch"] == 0:
            member.owned = set()
        try:
            self._subscribe(group, member, body)
        except RegexError as error:
            raise ErrorResponse(Code.INVALID_REGULAR_EXPRESSION, error_message=str(error)) from None
        if body.get("topic_partitions") is not None:
            # Partitions that the capture lacks are ignored, which bounds the set.
            member.owned = {
                (topic.id, number)
                for owned in body["topic_partitions"]
                if (topic := self._model.topics.get(self._model.name_of(owned))) is not None
                for number in owned["partitions"]
                if number in topic.partitions
            }
        members = sorted(group.members.values(), key=attrgetter("id"))
        topics = {each.id: self._topics(each) for each in members}
        for each in members:
            each.target = set()
        turn = 0
        for name in sorted(set().union(*topics.values())):
            topic = self._model.topics[name]
            subscribers = [each for each in members if name in topics[each.id]]
            for number in sorted(topic.partitions):
                subscribers[turn % len(subscribers)].target.add((topic.id, number))
                turn += 1
        owned_by_others = {p for each in members if each is not member for p in each.owned}
        assigned = member.target - owned_by_others
        member.epoch = group.epoch
        if assigned != member.last_assignment:
            # Partitions to revoke stay owned until a heartbeat no longer lists them.
            member.owned |= assigned
        return assigned

    def check_commit(self, body: Body) -> int:
        """Return the error of a member's OffsetCommit; 0: none."""
        epoch = body.get("generation_id_or_member_epoch", -1)
        return self.check_member(body["group_id"], body.get("member_id"), epoch)

    def check_member(self, name: str, member_id: str | None, epoch: int) -> int:
        """Return the error of a member's request; 0: none, also for clients that are no members."""
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
            "assignment": self._with_names(member.owned),
            "target_assignment": self._with_names(member.target),
            "member_type": 1,
        }


def by_topic(partitions: set[TopicPartition]) -> list[Body]:
    """Return topic IDs with the numbers of their partitions, as assignments have them."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        topics.setdefault(topic_id, []).append(number)
    return [{"topic_id": topic_id, "partitions": numbers} for topic_id, numbers in topics.items()]
