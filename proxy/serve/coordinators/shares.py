"""Share groups (KIP-932): members read the same partitions, and each record goes to one of them.
They start at the first captured record. Waits for records, else sans-I/O."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.coordinators.consumers import (
    HEARTBEAT_MS,
    MAX_MEMBERS,
    SESSION_S,
    Place,
    by_topic,
    has_place,
    listed_as,
)
from kafkascope.proxy.serve.coordinators.deliveries import LOCK_S, MOST_LOCKS, Delivery
from kafkascope.proxy.serve.coordinators.memory_budget import (
    ENTRY,
    MemoryBudget,
    size_of,
    size_of_names,
)
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import LONGEST_WAIT_S, Code, Handler, Request

MOST_BYTES: Final = 50 << 20
MOST_RECORDS: Final = 500
"""Of a partition in a response, when the request does not say."""
OPENS: Final = 0
CLOSES: Final = -1


@dataclass(slots=True)
class ShareMember:
    """A member of a share group, and its session."""

    client: str = ""
    topics: list[str] = field(default_factory=list)
    last_assignment: set[Place] | None = None
    seen: float = 0.0
    session: dict[Place, None] | None = None
    """What it fetches, in order; None: it has no session."""
    turn: int = 0
    """The epoch that the next request of the session has."""


@dataclass(slots=True)
class ShareGroup:
    """A share group."""

    epoch: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    deliveries: dict[Place, Delivery] = field(default_factory=dict)


class ShareGroups:
    """All share groups."""

    def __init__(
        self, model: CapturedCluster, partitions: Partitions, budget: MemoryBudget | None = None
    ) -> None:
        self._model = model
        self._budget = budget or MemoryBudget()
        self._budget.holds(self._held)
        self._partitions = partitions
        self._groups: dict[str, ShareGroup] = {}

    def handlers(self) -> dict[str, Handler]:
        """The handlers, by API."""
        return {
            "ShareGroupHeartbeat": self._heartbeat,
            "ShareGroupDescribe": self._describe,
            "ShareFetch": self._fetch,
            "ShareAcknowledge": self._acknowledge,
        }

    # --- membership

    async def _heartbeat(self, request: Request) -> Body:
        body, member_id = request.body, request.body["member_id"]
        name = body["group_id"]
        result: Body = {
            "error_code": 0,
            "member_id": member_id,
            "heartbeat_interval_ms": HEARTBEAT_MS,
        }
        topics = body["subscribed_topic_names"]
        size = size_of(name, member_id, request.client_id) + size_of_names(topics or ())
        if not self._fits(name, member_id, size if topics else 0):
            error = Code.GROUP_MAX_SIZE_REACHED
            return {**result, "error_code": error, "member_epoch": 0, "assignment": None}
        group = self._groups.setdefault(name, ShareGroup())
        now = time.monotonic()
        for gone in [i for i, m in group.members.items() if now - m.seen > SESSION_S]:
            self._remove(group, gone)
        if body["member_epoch"] < 0:
            self._remove(group, member_id)
            return {**result, "member_epoch": body["member_epoch"], "assignment": None}
        member = group.members.get(member_id)
        if member is None:
            error = Code.NONE if body["member_epoch"] == 0 else Code.UNKNOWN_MEMBER_ID
            if len(group.members) >= MAX_MEMBERS:
                error = Code.GROUP_MAX_SIZE_REACHED
            if error:
                return {**result, "error_code": error, "member_epoch": 0, "assignment": None}
            member = group.members[member_id] = ShareMember(request.client_id or "")
            group.epoch += 1
        elif body["member_epoch"] == 0:
            member.last_assignment = None
        member.seen = now
        if topics is not None:
            member.topics = list(topics)
        mine = {
            (topic.id, number)
            for name in member.topics
            if (topic := self._model.topics.get(name)) is not None
            for number in topic.partitions
        }
        result["member_epoch"] = group.epoch
        result["assignment"] = (
            None if mine == member.last_assignment else {"topic_partitions": by_topic(mine)}
        )
        member.last_assignment = mine
        return result

    def _fits(self, name: str, member_id: str, size: int) -> bool:
        """Whether what a heartbeat says may be kept; plain heartbeats say nothing new."""
        if not has_place(self._groups, name):
            return False
        known = name in self._groups and member_id in self._groups[name].members
        return (known and not size) or self._budget.admit(max(size, size_of(name, member_id)))

    def _held(self) -> int:
        """Bytes that groups, members, sessions and deliveries take."""
        held = 0
        for name, group in self._groups.items():
            held += size_of(name)
            for each, member in group.members.items():
                held += size_of(each, member.client) + size_of_names(member.topics)
                held += ENTRY * len(member.session or ())
            held += sum(
                ENTRY * (1 + len(each.held) + len(each.free)) for each in group.deliveries.values()
            )
        return held

    def _remove(self, group: ShareGroup, member_id: str) -> None:
        if group.members.pop(member_id, None) is not None:
            group.epoch += 1
            for delivery in group.deliveries.values():
                delivery.leave(member_id)
            self._partitions.wake()

    def listed(self) -> list[Body]:
        """The groups as ListGroups lists them."""
        return listed_as("share", self._groups)

    async def _describe(self, request: Request) -> Body:
        return {"groups": [self._described(name) for name in request.body["group_ids"]]}

    def _described(self, name: str) -> Body:
        group = self._groups.get(name)
        if group is None:
            said = f"Group {name} is not a share group."
            result = {"error_code": Code.GROUP_ID_NOT_FOUND, "error_message": said}
            return {**result, "group_id": name, "group_state": "Dead"}
        members = [
            {
                "member_id": each,
                "member_epoch": group.epoch,
                "client_id": member.client,
                "client_host": "/127.0.0.1",
                "subscribed_topic_names": member.topics,
                "assignment": {
                    "topic_partitions": [
                        {**topic, "topic_name": self._model.ids.get(bytes(topic["topic_id"]), "")}
                        for topic in by_topic(member.last_assignment or set())
                    ]
                },
            }
            for each, member in group.members.items()
        ]
        state = "Stable" if members else "Empty"
        epochs = {"group_epoch": group.epoch, "assignment_epoch": group.epoch}
        result = {
            "error_code": 0,
            "group_id": name,
            "group_state": state,
            "assignor_name": "simple",
        }
        return {**result, **epochs, "members": members}

    # --- records

    def _session(self, body: Body) -> tuple[ShareGroup, ShareMember] | int:
        """The group and the member of a request, or the error."""
        group = self._groups.get(body["group_id"] or "")
        member = None if group is None else group.members.get(body["member_id"] or "")
        epoch = body["share_session_epoch"]
        if group is None or member is None:
            return Code.UNKNOWN_MEMBER_ID
        if epoch == OPENS:
            for delivery in group.deliveries.values():
                delivery.leave(body["member_id"])
            member.session, member.turn = {}, 1
        elif member.session is None:
            return Code.SHARE_SESSION_NOT_FOUND
        elif epoch != CLOSES:
            if epoch != member.turn:
                return Code.INVALID_SHARE_SESSION_EPOCH
            member.turn = member.turn % 0x7FFFFFFF + 1
        return group, member

    def _settled(self, group: ShareGroup, body: Body) -> dict[Place, int]:
        """Apply the acknowledgements of a request. Returns their errors."""
        errors: dict[Place, int] = {}
        for topic in body["topics"]:
            for part in topic["partitions"]:
                place = bytes(topic["topic_id"]), part["partition_index"]
                delivery = group.deliveries.get(place)
                for each in part["acknowledgement_batches"]:
                    error = (
                        Code.INVALID_RECORD_STATE
                        if delivery is None
                        else delivery.settle(
                            body["member_id"],
                            each["first_offset"],
                            each["last_offset"],
                            each["acknowledge_types"],
                        )
                    )
                    errors[place] = errors.get(place, 0) or error
        if errors:
            self._partitions.wake()
        return errors

    def _ended(self, group: ShareGroup, member: ShareMember, body: Body) -> None:
        """Close a session and release what the member did not acknowledge."""
        member.session = None
        for delivery in group.deliveries.values():
            delivery.leave(body["member_id"])
        self._partitions.wake()

    async def _acknowledge(self, request: Request) -> Body:
        body = request.body
        found = self._session(body)
        if isinstance(found, int):
            return {"error_code": found, "responses": []}
        errors = self._settled(found[0], body)
        if body["share_session_epoch"] == CLOSES:
            self._ended(*found, body)
        parts = {place: {"error_code": error} for place, error in errors.items()}
        return {"error_code": 0, "responses": _by_topic(parts), "node_endpoints": []}

    async def _fetch(self, request: Request) -> Body:
        body = request.body
        found = self._session(body)
        if isinstance(found, int):
            return {"error_code": found, "responses": []}
        group, member = found
        parts: dict[Place, Body] = {
            place: {"acknowledge_error_code": error}
            for place, error in self._settled(group, body).items()
        }
        until = time.monotonic() + min(body["max_wait_ms"] / 1000, LONGEST_WAIT_S)
        if body["share_session_epoch"] == CLOSES:
            self._ended(group, member, body)
        elif member.session is not None:
            _change(member.session, body, self._budget)
            while not self._taken(group, member, body, parts):
                if parts or not await self._partitions.until(until) or member.session is None:
                    break
        return {
            "error_code": 0,
            "acquisition_lock_timeout_ms": int(LOCK_S * 1000),
            "responses": _by_topic(parts),
            "node_endpoints": [],
        }

    def _taken(
        self, group: ShareGroup, member: ShareMember, body: Body, parts: dict[Place, Body]
    ) -> bool:
        """Acquire records for a member. Returns whether there were any."""
        left = min(body["max_bytes"], MOST_BYTES)
        records = body.get("max_records") or MOST_RECORDS
        some = False
        for place in member.session or ():
            name = self._model.ids.get(place[0], "")
            part = self._partitions.find(name, place[1])
            if part is None:
                parts.setdefault(place, {})["error_code"] = Code.UNKNOWN_TOPIC_ID
                some = True
                continue
            delivery = group.deliveries.get(place)
            if delivery is None:
                if not self._budget.admit(ENTRY * MOST_LOCKS):
                    parts.setdefault(place, {})["error_code"] = Code.GROUP_MAX_SIZE_REACHED
                    some = True
                    continue
                delivery = group.deliveries[place] = Delivery(part.log.start)
            delivery.expire(time.monotonic())
            if left <= 0 or records <= 0:
                break
            data, acquired = delivery.take(part.log, body["member_id"], records, left)
            if data:
                parts.setdefault(place, {}).update(records=data, acquired_records=acquired)
                left -= len(data)
                records -= sum(e["last_offset"] - e["first_offset"] + 1 for e in acquired)
                some = True
        return some


def _change(session: dict[Place, None], body: Body, budget: MemoryBudget) -> None:
    """Add partitions to a session and remove others, as a request says."""
    for topic in body["topics"]:
        for part in topic["partitions"]:
            place = bytes(topic["topic_id"]), part["partition_index"]
            if place not in session and len(session) < MOST_LOCKS and budget.admit(ENTRY):
                session[place] = None
    for topic in body["forgotten_topics_data"]:
        for number in topic["partitions"]:
            session.pop((bytes(topic["topic_id"]), number), None)


def _by_topic(parts: dict[Place, Body]) -> list[Body]:
    topics: dict[bytes, list[Body]] = {}
    for (topic_id, number), result in parts.items():
        topics.setdefault(topic_id, []).append({"partition_index": number, **result})
    return [{"topic_id": each, "partitions": parts} for each, parts in topics.items()]
