"""Classic groups: JoinGroup, SyncGroup, heartbeats, members that join, leave and expire. Every wait
has a limit."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.values import Versions
from kafkascope.proxy.serve.request import (
    Code,
    ErrorResponse,
    MemoryBudget,
    Request,
    has_place,
    listed,
    size_of,
    size_of_names,
    size_of_protocols,
)

# States, as DescribeGroups names them.
EMPTY, JOINING, SYNCING, STABLE = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
# Of JoinGroup: members come twice, the second time with the id that they were given (KIP-394).
MEMBER_ID_NEEDED: Final = Versions.parse("4+")


@dataclass(slots=True)
class ClassicMember:
    """A member of a classic group."""

    id: str
    instance: str | None
    session_s: float = 0.0
    rebalance_s: float = 0.0
    protocols: list[Body] = field(default_factory=list)
    seen: float = 0.0
    joining: asyncio.Future[Code] | None = None
    syncing: asyncio.Future[Code] | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class ClassicGroup:
    """A classic group."""

    name: str
    type: str = ""
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    state: str = EMPTY
    members: dict[str, ClassicMember] = field(default_factory=dict)
    known: dict[str, None] = field(default_factory=dict)
    """Ids that were handed out and are not used yet, oldest first."""
    timer: asyncio.TimerHandle | None = None


class Groups:
    """All classic groups of a served capture."""

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self._groups: dict[str, ClassicGroup] = {}
        self._budget = budget or MemoryBudget()
        self._limits = self._budget.limits
        self._budget.holds(self._held)

    def _group(self, name: str) -> ClassicGroup | None:
        """The group of that name, made when it is not known. None: there are too many."""
        if name not in self._groups:
            room = has_place(self._groups, name, self._limits.classic_groups)
            if not room or not self._budget.admit(size_of(name)):
                return None
            self._groups[name] = ClassicGroup(name)
        return self._groups[name]

    def _held(self) -> int:
        held = 0
        for group in self._groups.values():
            held += size_of(group.name) + size_of_names(group.known)
            for member in group.members.values():
                held += size_of(member.id, member.assignment) + size_of_protocols(member.protocols)
        return held

    async def join(self, request: Request) -> Body:
        body, member_id = request.body, request.body["member_id"]
        group = self._group(body["group_id"])
        if group is None:
            raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED, member_id=member_id)
        self._expire(group)
        if not member_id:
            member_id = self._new_member_id(group, request)
        elif member_id not in group.members and member_id not in group.known:
            raise ErrorResponse(Code.UNKNOWN_MEMBER_ID, member_id=member_id)
        member = self._member_that_joins(group, member_id, body)
        if member.joining is None or member.joining.done():
            member.joining = asyncio.get_running_loop().create_future()
        self._rebalance(group)
        await _waited(asyncio.shield(member.joining), member)
        member.seen = time.monotonic()
        others = group.members.values() if group.leader == member_id else ()
        return {
            "generation_id": group.generation,
            "protocol_type": group.type,
            "protocol_name": group.protocol,
            "leader": group.leader,
            "member_id": member_id,
            "members": [
                {
                    "member_id": each.id,
                    "group_instance_id": each.instance,
                    "metadata": _metadata(each, group.protocol),
                }
                for each in others
            ],
        }

    def _new_member_id(self, group: ClassicGroup, request: Request) -> str:
        """Return the id of a member that comes without one; some only learn it (KIP-394)."""
        instance = request.body.get("group_instance_id")
        member_id = f"{instance or request.client_id or 'member'}-{uuid.uuid4()}"
        if len(group.members) >= self._limits.group_members:
            raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED)
        if request.version in MEMBER_ID_NEEDED and not instance:
            if len(group.known) >= self._limits.offered_ids:
                group.known.pop(next(iter(group.known)))
            elif not self._budget.admit(size_of(member_id)):
                raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED)
            group.known[member_id] = None
            raise ErrorResponse(Code.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None)
        _replace(group, instance)
        return member_id

    def _member_that_joins(self, group: ClassicGroup, member_id: str, body: Body) -> ClassicMember:
        """Return a member, new or known, with what it says in a JoinGroup."""
        member = group.members.get(member_id)
        fresh = member is None
        more = size_of_protocols(body["protocols"])
        more += size_of(member_id) if member is None else -size_of_protocols(member.protocols)
        if more > 0 and not self._budget.admit(more):
            raise ErrorResponse(Code.GROUP_MAX_SIZE_REACHED, member_id=member_id)
        group.known.pop(member_id, None)
        if member is None:
            instance = body.get("group_instance_id")
            member = group.members[member_id] = ClassicMember(member_id, instance)
        member.session_s = min(max(body["session_timeout_ms"] / 1000, 1), self._limits.rebalance_s)
        limit_ms: int = body.get("rebalance_timeout_ms") or body["session_timeout_ms"]
        member.rebalance_s = min(max(limit_ms, 1) / 1000, self._limits.rebalance_s)
        had, member.protocols = member.protocols, body["protocols"]
        member.seen = time.monotonic()
        alone = len(group.members) == 1
        if _common(group) is None or not (alone or group.type == body["protocol_type"]):
            member.protocols = had
            if fresh:
                del group.members[member_id]
            raise ErrorResponse(Code.INCONSISTENT_GROUP_PROTOCOL, member_id=member_id)
        group.type = body["protocol_type"]
        return member

    def _rebalance(self, group: ClassicGroup) -> None:
        """Begin a rebalance, or complete it when everybody has joined."""
        group.state = JOINING
        for member in group.members.values():
            _settle(member.syncing, Code.REBALANCE_IN_PROGRESS)
        waiting = [m for m in group.members.values() if m.joining is None or m.joining.done()]
        if group.timer is not None:
            group.timer.cancel()
        # A broker waits for the longest rebalance timeout of the members. Where all have joined,
        # more may come to a group that forms.
        longest = max((m.rebalance_s for m in group.members.values()), default=1.0)
        delay = self._limits.forming_s if not waiting else min(longest, 30.0)
        group.timer = asyncio.get_running_loop().call_later(delay, self._complete, group)

    def _complete(self, group: ClassicGroup) -> None:
        """Complete a rebalance: members that have not joined are removed."""
        gone = [m.id for m in group.members.values() if m.joining is None or m.joining.done()]
        for member_id in gone:
            del group.members[member_id]
        if not group.members:
            group.state = EMPTY
            return
        group.generation += 1
        group.protocol = _common(group) or ""
        if group.leader not in group.members:
            group.leader = next(iter(group.members))
        group.state = SYNCING
        for member in group.members.values():
            member.assignment = b""
            _settle(member.joining, Code.NONE)
            member.joining = None

    async def sync(self, request: Request) -> Body:
        body = request.body
        group, member = self._of_member(body)
        if group.state == JOINING:
            raise ErrorResponse(Code.REBALANCE_IN_PROGRESS)
        if member.id == group.leader and group.state == SYNCING:
            if not self._budget.admit(sum(size_of(e["assignment"]) for e in body["assignments"])):
                raise ErrorResponse(Code.UNKNOWN_SERVER_ERROR)
            for each in body["assignments"]:
                if each["member_id"] in group.members:
                    group.members[each["member_id"]].assignment = each["assignment"]
            group.state = STABLE
            for other in group.members.values():
                _settle(other.syncing, Code.NONE)
        elif group.state == SYNCING:
            # Until the leader has sent the assignment.
            member.syncing = asyncio.get_running_loop().create_future()
            await _waited(member.syncing, member)
        return {
            "protocol_type": group.type,
            "protocol_name": group.protocol,
            "assignment": member.assignment,
        }

    async def heartbeat(self, request: Request) -> Body:
        group, _ = self._of_member(request.body)
        self._expire(group)
        if group.state == JOINING:
            raise ErrorResponse(Code.REBALANCE_IN_PROGRESS)
        return {}

    def check_commit(self, body: Body) -> int:
        """The error of a commit by a member; 0: none, as for those from outside of the group."""
        generation = body.get("generation_id_or_member_epoch", -1)
        group = self._groups.get(body["group_id"])
        if group is None or not body.get("member_id") or generation < 0:
            return 0
        if body["member_id"] not in group.members:
            return Code.UNKNOWN_MEMBER_ID
        group.members[body["member_id"]].seen = time.monotonic()
        return 0 if generation == group.generation else Code.ILLEGAL_GENERATION

    async def leave(self, request: Request) -> Body:
        body = request.body
        group = self._groups.get(body["group_id"]) or ClassicGroup(body["group_id"])
        result: list[Body] = []
        for each in body.get("members") or [body]:
            found = each.get("member_id", "")
            if not found and each.get("group_instance_id"):
                instance = each["group_instance_id"]
                same = (m.id for m in group.members.values() if m.instance == instance)
                found = next(same, "")
            gone = group.members.pop(found, None)
            result.append({**each, "error_code": 0 if gone else Code.UNKNOWN_MEMBER_ID})
            if gone is not None:
                _settle(gone.joining, Code.UNKNOWN_MEMBER_ID)
        if group.members:
            self._rebalance(group)
        else:
            group.state = EMPTY
        # One member leaves until version 2, and has its error at the top.
        return {"members": result} if "members" in body else result[0]

    async def describe(self, request: Request) -> Body:
        return {"groups": [self._described(name) for name in request.body["groups"]]}

    def _described(self, name: str) -> Body:
        group = self._groups.get(name)
        if group is None:
            return {"group_id": name, "group_state": "Dead"}
        return {
            "group_id": name,
            "group_state": group.state,
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

    def listed(self) -> list[Body]:
        return [
            listed(group.name, group.type, group.state, "classic")
            for group in self._groups.values()
        ]

    def _of_member(self, body: Body) -> tuple[ClassicGroup, ClassicMember]:
        """The group and the member of a request, which has to be of the current generation."""
        group = self._groups.get(body["group_id"])
        if group is None or body["member_id"] not in group.members:
            raise ErrorResponse(Code.UNKNOWN_MEMBER_ID)
        member = group.members[body["member_id"]]
        member.seen = time.monotonic()
        if body["generation_id"] != group.generation:
            joining = group.state == JOINING
            raise ErrorResponse(Code.REBALANCE_IN_PROGRESS if joining else Code.ILLEGAL_GENERATION)
        return group, member

    def _expire(self, group: ClassicGroup) -> None:
        now = time.monotonic()
        gone = [
            member.id
            for member in group.members.values()
            if member.joining is None and now - member.seen > member.session_s
        ]
        for member_id in gone:
            del group.members[member_id]
        if gone and group.members and group.state != JOINING:
            self._rebalance(group)


def _replace(group: ClassicGroup, instance: str | None) -> None:
    """Fence the former id of a static member that is back under a new one (KIP-345)."""
    for old in [m for m in group.members.values() if instance and m.instance == instance]:
        del group.members[old.id]
        _settle(old.joining, Code.FENCED_INSTANCE_ID)
        _settle(old.syncing, Code.FENCED_INSTANCE_ID)


async def _waited(turn: asyncio.Future[Code], member: ClassicMember) -> None:
    """Wait until a member's request may go on; it is refused where it may not."""
    try:
        error = await asyncio.wait_for(turn, member.rebalance_s + 5)
    except TimeoutError:
        error = Code.REBALANCE_IN_PROGRESS
    if error:
        raise ErrorResponse(error, member_id=member.id)


def _settle(waiting: asyncio.Future[Code] | None, error: Code) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(error)


def _common(group: ClassicGroup) -> str | None:
    offers = [[each["name"] for each in m.protocols] for m in group.members.values()]
    common = set(offers[0]).intersection(*offers) if offers else ()
    return next((name for name in offers[0] if name in common), None) if offers else None


def _metadata(member: ClassicMember, protocol: str) -> bytes:
    found = (each["metadata"] for each in member.protocols if each["name"] == protocol)
    return next(found, b"")
