"""Share groups (KIP-932): members read the same partitions, and each record goes to one of them.
They start at the first captured record. Waits for records, else sans-I/O."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.coordinators.consumers import (
    EpochGroup,
    EpochMember,
    MemberGroups,
    TopicPartition,
)
from kafkascope.proxy.serve.log import Log
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import ENTRY, Code, ErrorResponse, MemoryBudget, Request

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class Acquired(NamedTuple):
    """A record that a member has acquired."""

    member: str
    deliveries: int
    until: float


class ShareProgress:
    """How far a group is with a partition."""

    def __init__(self, start: int, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self.next = start
        """The first offset that nobody had yet."""
        self.held: dict[int, Acquired] = {}
        self.free: dict[int, int] = {}
        """Offsets that were given back -> how often they were delivered."""

    def expire(self, now: float) -> None:
        for offset in [o for o, held in self.held.items() if held.until <= now]:
            self._release(offset)

    def leave(self, member: str) -> None:
        for offset in [o for o, held in self.held.items() if held.member == member]:
            self._release(offset)

    def _release(self, offset: int) -> None:
        held = self.held.pop(offset)
        if held.deliveries < self._limits.share_deliveries:
            self.free[offset] = held.deliveries

    def settle(self, member: str, first: int, last: int, kinds: list[int]) -> int:
        """Apply a batch of acknowledgements. One type counts for all offsets. Returns the error; 0:
        none."""
        if not 0 <= last - first < self._limits.share_locks or len(kinds) not in (
            1,
            last - first + 1,
        ):
            return Code.INVALID_RECORD_STATE
        error = 0
        for index, offset in enumerate(range(first, last + 1)):
            held = self.held.get(offset)
            kind = kinds[index if len(kinds) > 1 else 0]
            if held is None or held.member != member:
                error = error if kind == GAP else Code.INVALID_RECORD_STATE
            elif kind == RELEASE:
                self._release(offset)
            elif kind == RENEW:
                self.held[offset] = held._replace(
                    until=time.monotonic() + self._limits.share_lock_s
                )
            else:
                del self.held[offset]
        return error

    def take(self, log: Log, member: str, most: int, most_bytes: int) -> tuple[bytes, list[Body]]:
        """Acquire records for a member. Returns the records and the ranges of offsets acquired."""
        most = min(most, self._limits.share_locks - len(self.held))
        start = min([*self.free, self.next])
        data: list[bytes] = []
        taken: list[tuple[int, int]] = []
        size = 0
        until = time.monotonic() + self._limits.share_lock_s
        for entry in log.entries(start):
            if len(taken) >= most or (data and size + len(entry.data) > most_bytes):
                break
            offsets = self._available(max(entry.base, start), entry.last, most - len(taken))
            for offset, deliveries in offsets:
                self.free.pop(offset, None)
                self.held[offset] = Acquired(member, deliveries + 1, until)
                self.next = max(self.next, offset + 1)
                taken.append((offset, deliveries + 1))
            if offsets:
                data.append(entry.data)
                size += len(entry.data)
        return b"".join(data), list(_ranges(taken))

    def _available(self, first: int, last: int, most: int) -> list[tuple[int, int]]:
        given_back = sorted(o for o in self.free if first <= o <= last)[:most]
        offsets = [(offset, self.free[offset]) for offset in given_back]
        fresh = max(first, self.next)
        return offsets + [(o, 0) for o in range(fresh, min(last + 1, fresh + most - len(offsets)))]


def _ranges(acquired: list[tuple[int, int]]) -> Iterator[Body]:
    """Yield the runs of consecutive offsets that were delivered equally often."""

    def run_of(item: tuple[int, tuple[int, int]]) -> tuple[int, int]:
        index, (offset, deliveries) = item
        return offset - index, deliveries

    for (_, deliveries), run in groupby(enumerate(acquired), run_of):
        offsets = [offset for _, (offset, _) in run]
        ends = {"first_offset": offsets[0], "last_offset": offsets[-1]}
        yield {**ends, "delivery_count": deliveries}


OPENS: Final = 0
CLOSES: Final = -1


@dataclass
class ShareGroup(EpochGroup):
    """A share group."""

    deliveries: dict[TopicPartition, ShareProgress] = field(default_factory=dict)


class ShareGroups(MemberGroups[ShareGroup]):
    """All share groups."""

    kind = "share"
    assignor = "simple"
    new_group = ShareGroup

    def __init__(
        self, model: CapturedCluster, partitions: Partitions, budget: MemoryBudget | None = None
    ) -> None:
        super().__init__(model, budget)
        self._partitions = partitions

    # --- membership

    def _assigned(self, group: ShareGroup, member: EpochMember, body: Body) -> set[TopicPartition]:
        if body["subscribed_topic_names"] is not None:
            member.topics = list(body["subscribed_topic_names"])
        return {
            (topic.id, number)
            for name in member.topics
            if (topic := self._model.topics.get(name)) is not None
            for number in topic.partitions
        }

    def _held(self) -> int:
        entries = 0
        for group in self._groups.values():
            entries += sum(len(each.session or ()) for each in group.members.values())
            entries += sum(1 + len(e.held) + len(e.free) for e in group.deliveries.values())
        return super()._held() + ENTRY * entries

    def _remove(self, group: ShareGroup, member_id: str) -> bool:
        gone = super()._remove(group, member_id)
        if gone:
            self._leave(group, member_id)
        return gone

    def _leave(self, group: ShareGroup, member_id: str) -> None:
        for delivery in group.deliveries.values():
            delivery.leave(member_id)
        self._partitions.wake()

    def _details(self, member: EpochMember) -> Body:
        return {"assignment": self._with_names(member.last_assignment or set())}

    # --- records

    def _session(self, body: Body) -> tuple[ShareGroup, EpochMember]:
        """The group and the member whose session a request opens or continues."""
        group = self._groups.get(body["group_id"] or "")
        member = None if group is None else group.members.get(body["member_id"] or "")
        epoch = body["share_session_epoch"]
        if group is None or member is None:
            raise ErrorResponse(Code.UNKNOWN_MEMBER_ID)
        if epoch == OPENS:
            for delivery in group.deliveries.values():
                delivery.leave(member.id)
            member.session, member.next_session_epoch = {}, 1
        elif member.session is None:
            raise ErrorResponse(Code.SHARE_SESSION_NOT_FOUND)
        elif epoch != CLOSES:
            if epoch != member.next_session_epoch:
                raise ErrorResponse(Code.INVALID_SHARE_SESSION_EPOCH)
            member.next_session_epoch = member.next_session_epoch % 0x7FFFFFFF + 1
        return group, member

    def _end_session(self, group: ShareGroup, member: EpochMember) -> None:
        member.session = None
        self._leave(group, member.id)

    def _settled(self, group: ShareGroup, body: Body) -> dict[TopicPartition, int]:
        """Apply the acknowledgements of a request. Returns their errors."""
        errors: dict[TopicPartition, int] = {}
        for topic in body["topics"]:
            for part in topic["partitions"]:
                place = bytes(topic["topic_id"]), part["partition_index"]
                delivery = group.deliveries.get(place)
                for each in part["acknowledgement_batches"]:
                    error: int = Code.INVALID_RECORD_STATE
                    if delivery is not None:
                        ends = each["first_offset"], each["last_offset"]
                        kinds = each["acknowledge_types"]
                        error = delivery.settle(body["member_id"], *ends, kinds)
                    errors[place] = errors.get(place, 0) or error
        if errors:
            self._partitions.wake()
        return errors

    async def acknowledge(self, request: Request) -> Body:
        body = request.body
        group, member = self._session(body)
        errors = self._settled(group, body)
        if body["share_session_epoch"] == CLOSES:
            self._end_session(group, member)
        parts = {place: {"error_code": error} for place, error in errors.items()}
        return {"responses": _by_topic(parts)}

    async def fetch(self, request: Request) -> Body:
        body = request.body
        group, member = self._session(body)
        parts: dict[TopicPartition, Body] = {
            place: {"acknowledge_error_code": error}
            for place, error in self._settled(group, body).items()
        }
        until = time.monotonic() + min(body["max_wait_ms"] / 1000, self._budget.limits.wait_s)
        if body["share_session_epoch"] == CLOSES:
            self._end_session(group, member)
        elif member.session is not None:
            _change(member.session, body, self._budget)
            while not self._taken(group, member, body, parts):
                if parts or not await self._partitions.until(until) or member.session is None:
                    break
        lock_ms = int(self._budget.limits.share_lock_s * 1000)
        return {"acquisition_lock_timeout_ms": lock_ms, "responses": _by_topic(parts)}

    def _taken(
        self, group: ShareGroup, member: EpochMember, body: Body, parts: dict[TopicPartition, Body]
    ) -> bool:
        limits = self._budget.limits
        left = min(body["max_bytes"], limits.fetch_bytes)
        records = body.get("max_records") or limits.share_records
        some = False
        for place in member.session or ():
            part = self._partitions.find(self._model.ids.get(place[0], ""), place[1])
            delivery = group.deliveries.get(place)
            error = Code.NONE
            if part is None:
                error = Code.UNKNOWN_TOPIC_ID
            elif delivery is None and not self._budget.admit(ENTRY * limits.share_locks):
                error = Code.GROUP_MAX_SIZE_REACHED
            if error or part is None:
                parts.setdefault(place, {})["error_code"] = error
                some = True
                continue
            if delivery is None:
                delivery = group.deliveries[place] = ShareProgress(part.log.start, limits)
            delivery.expire(time.monotonic())
            if left <= 0 or records <= 0:
                break
            data, acquired = delivery.take(part.log, member.id, records, left)
            if data:
                parts.setdefault(place, {}).update(records=data, acquired_records=acquired)
                left -= len(data)
                records -= sum(e["last_offset"] - e["first_offset"] + 1 for e in acquired)
                some = True
        return some


def _change(session: dict[TopicPartition, None], body: Body, budget: MemoryBudget) -> None:
    for topic in body["topics"]:
        for part in topic["partitions"]:
            place = bytes(topic["topic_id"]), part["partition_index"]
            if (
                place not in session
                and len(session) < budget.limits.share_locks
                and budget.admit(ENTRY)
            ):
                session[place] = None
    for topic in body["forgotten_topics_data"]:
        for number in topic["partitions"]:
            session.pop((bytes(topic["topic_id"]), number), None)


def _by_topic(parts: dict[TopicPartition, Body]) -> list[Body]:
    topics: dict[bytes, list[Body]] = {}
    for (topic_id, number), result in parts.items():
        topics.setdefault(topic_id, []).append({"partition_index": number, **result})
    return [{"topic_id": each, "partitions": parts} for each, parts in topics.items()]
