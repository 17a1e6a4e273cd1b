"""Committed offsets, from before the capture and since: OffsetCommit, OffsetFetch, TxnOffsetCommit.
Sans-I/O."""

from __future__ import annotations

from typing import Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.serve.captured_cluster import CapturedCluster, uuid_of
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.coordinators.memory_budget import ENTRY, MemoryBudget, size_of
from kafkascope.proxy.serve.request import Code, Handler, Request, by_partition

Committed: TypeAlias = dict[tuple[str, int], tuple[int, str | None]]
"""(topic, partition) -> offset, metadata."""

METADATA_LIMIT: Final = 4096
"""Of the text beside an offset: offset.metadata.max.bytes of brokers."""


class Offsets:
    """The committed offsets of all groups."""

    def __init__(
        self,
        model: CapturedCluster,
        groups: Groups,
        consumers: ConsumerGroups,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._model = model
        self._groups = groups
        self._consumers = consumers
        self._known: dict[str, Committed] = {g: dict(known) for g, known in model.offsets.items()}
        self._pending: dict[int, dict[str, Committed]] = {}
        """Producer id -> what its transaction commits."""
        self._budget = budget or MemoryBudget()
        self._budget.holds(self._held)

    def handlers(self) -> dict[str, Handler]:
        """The handlers, by API."""
        return {
            "OffsetCommit": self._commit,
            "OffsetFetch": self._fetch,
            "TxnOffsetCommit": self._txn_commit,
        }

    def groups(self) -> list[str]:
        """The groups that have committed offsets."""
        return list(self._known)

    def end_transaction(self, producer: int, committed: bool) -> None:
        """Commit or discard the offsets of a producer's transaction."""
        for group, known in self._pending.pop(producer, {}).items():
            if committed:
                self._known.setdefault(group, {}).update(known)

    async def _commit(self, request: Request) -> Body:
        return self._commit_all(request.body, self._known)

    async def _txn_commit(self, request: Request) -> Body:
        body = request.body
        producer = body["producer_id"]
        pending = self._pending.get(producer, {})
        result = self._commit_all(body, pending)
        if pending:
            self._pending[producer] = pending
        return result

    def _commit_all(self, body: Body, groups: dict[str, Committed]) -> Body:
        """Keep the offsets that a request commits. Returns an error for each partition."""
        error = self._groups.check_commit(body) or self._consumers.check_commit(body)

        def kept(topic: Body, part: Body) -> Body:
            failed = error or self._keep(groups, body["group_id"], topic, part)
            return {"partition_index": part["partition_index"], "error_code": failed}

        return {"topics": by_partition(body["topics"], kept)}

    def _keep(self, groups: dict[str, Committed], group: str, each: Body, part: Body) -> int:
        """Keep an offset. Returns the error; 0: none."""
        number, metadata = part["partition_index"], part.get("committed_metadata")
        if len(metadata or "") > METADATA_LIMIT:
            return Code.OFFSET_METADATA_TOO_LARGE
        topic = self._model.topics.get(self._model.name_of(each))
        if topic is None or number not in topic.partitions:
            return Code.UNKNOWN_TOPIC_OR_PARTITION
        known = groups.get(group)
        size = size_of(group) if known is None else 0
        place = (topic.name, number)
        if known is None or place not in known:
            size += ENTRY
        if metadata:
            size += size_of(metadata)
        if size and not self._budget.admit(size):
            return Code.INVALID_COMMIT_OFFSET_SIZE
        if known is None:
            known = groups[group] = {}
        known[place] = (part["committed_offset"], metadata)
        return 0

    def _held(self) -> int:
        """Bytes that committed and pending offsets take."""
        return sum(
            size_of(group) + sum(ENTRY + size_of(metadata) for _, metadata in known.values())
            for groups in (self._known, *self._pending.values())
            for group, known in groups.items()
        )

    async def _fetch(self, request: Request) -> Body:
        body = request.body
        if "groups" not in body:
            return {"error_code": 0, "topics": self._committed(body["group_id"], body["topics"])}
        groups = []
        for each in body["groups"]:
            error = self._consumers.check_member(
                each["group_id"], each.get("member_id"), each.get("member_epoch", -1)
            )
            topics = [] if error else self._committed(each["group_id"], each["topics"])
            groups.append({"group_id": each["group_id"], "error_code": error, "topics": topics})
        return {"groups": groups}

    def _committed(self, group: str, topics: list[Body] | None) -> list[Body]:
        known = self._known.get(group, {})
        if topics is None:
            by_name: dict[str, list[int]] = {}
            for name, number in known:
                by_name.setdefault(name, []).append(number)
            topics = [
                {
                    "name": name,
                    "topic_id": uuid_of(self._model.topic(name)),
                    "partition_indexes": numbers,
                }
                for name, numbers in by_name.items()
                if name in self._model.topics
            ]

        def committed(topic: Body, number: int) -> Body:
            place = self._model.name_of(topic), number
            offset, metadata = known.get(place, (-1, ""))
            return {
                "partition_index": number,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "metadata": metadata or "",
                "error_code": 0,
            }

        return by_partition(topics, committed, "partition_indexes")
