"""Committed offsets, from before the capture and since, and producers with their transactions, with
ids and epochs of our own. What a transaction writes is held back from readers of committed records
until it ends. Sans-I/O."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.registry import layout_of
from kafkascope.dissectors.values import Versions
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import (
    ENTRY,
    Code,
    ErrorResponse,
    MemoryBudget,
    Request,
    by_partition,
    size_of,
)

# (topic, partition) -> offset, metadata.
Committed: TypeAlias = dict[tuple[str, int], tuple[int, str | None]]


@dataclass(eq=False)
class Offsets:
    """The committed offsets of all groups."""

    model: CapturedCluster
    classic: Groups
    consumers: ConsumerGroups
    budget: MemoryBudget = field(default_factory=MemoryBudget)

    def __post_init__(self) -> None:
        captured = self.model.offsets
        self._known: dict[str, Committed] = {name: dict(captured[name]) for name in captured}
        self._pending: dict[int, dict[str, Committed]] = {}
        """Producer id -> what its transaction commits."""
        self.budget.holds(self._held)

    def groups(self) -> list[str]:
        return list(self._known)

    def end_transaction(self, producer: int, committed: bool) -> None:
        for group, known in self._pending.pop(producer, {}).items():
            if committed:
                self._known.setdefault(group, {}).update(known)

    async def commit(self, request: Request) -> Body:
        return self._commit_all(request.body, self._known)

    async def commit_in_transaction(self, request: Request) -> Body:
        body = request.body
        producer = body["producer_id"]
        pending = self._pending.get(producer, {})
        result = self._commit_all(body, pending)
        if pending:
            self._pending[producer] = pending
        return result

    def _commit_all(self, body: Body, groups: dict[str, Committed]) -> Body:
        """Keep the offsets that a request commits. Returns an error for each partition."""
        error = self.classic.check_commit(body) or self.consumers.check_commit(body)

        def kept(topic: Body, part: Body) -> Body:
            return {"error_code": error or self._keep(groups, body["group_id"], topic, part)}

        return {"topics": by_partition(body["topics"], kept)}

    def _keep(self, groups: dict[str, Committed], group: str, each: Body, part: Body) -> int:
        """Keep an offset. Returns the error; 0: none."""
        number, metadata = part["partition_index"], part.get("committed_metadata")
        if len(metadata or "") > self.budget.limits.offset_metadata_chars:
            return Code.OFFSET_METADATA_TOO_LARGE
        topic = self.model.topics.get(self.model.name_of(each))
        if topic is None or number not in topic.partitions:
            return Code.UNKNOWN_TOPIC_OR_PARTITION
        known = groups.get(group)
        size = size_of(group) if known is None else 0
        place = (topic.name, number)
        if known is None or place not in known:
            size += ENTRY
        if metadata:
            size += size_of(metadata)
        if size and not self.budget.admit(size):
            return Code.INVALID_COMMIT_OFFSET_SIZE
        if known is None:
            known = groups[group] = {}
        known[place] = (part["committed_offset"], metadata)
        return 0

    def _held(self) -> int:
        return sum(
            size_of(group) + sum(ENTRY + size_of(metadata) for _, metadata in known.values())
            for groups in (self._known, *self._pending.values())
            for group, known in groups.items()
        )

    async def fetch(self, request: Request) -> Body:
        body = request.body
        if "groups" not in body:
            return {"topics": self._committed(body["group_id"], body["topics"])}
        groups = []
        for each in body["groups"]:
            error = self.consumers.check_member(
                each["group_id"], each.get("member_id"), each.get("member_epoch", -1)
            )
            topics = [] if error else self._committed(each["group_id"], each["topics"])
            groups.append({"group_id": each["group_id"], "error_code": error, "topics": topics})
        return {"groups": groups}

    def _committed(self, group: str, topics: list[Body] | None) -> list[Body]:
        known = self._known.get(group, {})
        if topics is None:
            known_topics = self.model.topics
            by_name: defaultdict[str, list[int]] = defaultdict(list)
            for name, number in known:
                by_name[name].append(number)
            topics = [
                {"name": name, "topic_id": known_topics[name].id, "partition_indexes": numbers}
                for name, numbers in by_name.items()
                if name in known_topics
            ]

        def committed(topic: Body, number: int) -> Body:
            place = self.model.name_of(topic), number
            offset, metadata = known.get(place, (-1, ""))
            return {"committed_offset": offset, "metadata": metadata or ""}

        return by_partition(topics, committed, "partition_indexes")


# Beyond all ids that a captured cluster gave away.
FIRST_ID: Final = 1 << 40
LAST_EPOCH: Final = 0x7FFE
# Of the APIs of transactions: an old epoch gets PRODUCER_FENCED (KIP-588), INVALID_PRODUCER_EPOCH
# before.
PRODUCERS_FENCED: Final = Versions.parse("2+")


@dataclass(eq=False)
class Producers:
    """The known transactional producers."""

    partitions: Partitions
    offsets: Offsets
    budget: MemoryBudget = field(default_factory=MemoryBudget)

    def __post_init__(self) -> None:
        self._next = FIRST_ID
        self._known: dict[str, tuple[int, int]] = {}
        """Transactional id -> producer id and epoch."""
        self.budget.holds(lambda: sum(map(size_of, self._known)))

    def _fresh(self) -> tuple[int, int]:
        self._next += 1
        return self._next, 0

    def _next_epoch(self, producer: int, epoch: int) -> tuple[int, int]:
        return (producer, epoch + 1) if epoch < LAST_EPOCH else self._fresh()

    async def init(self, request: Request) -> Body:
        name = request.body["transactional_id"]
        known = self._known.get(name) if name else None
        if known is not None:
            # Whoever was there before is fenced, and what it had open is aborted.
            self._ended(*known, committed=False)
            known = self._next_epoch(*known)
        else:
            if name and not self.budget.admit(size_of(name)):
                raise ErrorResponse(Code.UNKNOWN_SERVER_ERROR, producer_epoch=-1)
            if name and len(self._known) >= self.budget.limits.transactional_ids:
                self._known.pop(next(iter(self._known)))
            known = self._fresh()
        if name:
            self._known[name] = known
        return {"producer_id": known[0], "producer_epoch": known[1]}

    def _ended(self, producer: int, epoch: int, *, committed: bool) -> None:
        self.partitions.end_transaction(producer, epoch, committed)
        self.offsets.end_transaction(producer, committed)

    def _check(self, request: Request, transaction: Body, prefix: str = "") -> Code:
        """The error of a producer that is not the last one of its transactional id. `prefix`: of
        the fields that say which one it is."""
        known = self._known.get(transaction[f"{prefix}transactional_id"])
        if known is None or known[0] != transaction[f"{prefix}producer_id"]:
            return Code.INVALID_PRODUCER_ID_MAPPING
        if known[1] == transaction[f"{prefix}producer_epoch"]:
            return Code.NONE
        fenced = request.version in PRODUCERS_FENCED
        return Code.PRODUCER_FENCED if fenced else Code.INVALID_PRODUCER_EPOCH

    async def add_partitions(self, request: Request) -> Body:
        def added(transaction: Body, prefix: str = "") -> list[Body]:
            result = {"partition_error_code": self._check(request, transaction, prefix)}
            topics = transaction[f"{prefix}topics"]
            return by_partition(topics, lambda _, __: result, target="results_by_partition")

        body = request.body
        if "transactions" not in body:
            return {"results_by_topic_v3_and_below": added(body, "v3_and_below_")}
        return {
            "results_by_transaction": [
                {"transactional_id": each["transactional_id"], "topic_results": added(each)}
                for each in body["transactions"]
            ]
        }

    async def add_offsets(self, request: Request) -> Body:
        return {"error_code": self._check(request, request.body)}

    async def end(self, request: Request) -> Body:
        body = request.body
        if error := self._check(request, body):
            raise ErrorResponse(error)
        known = body["producer_id"], body["producer_epoch"]
        self._ended(*known, committed=body["committed"])
        # Since epochs are in the response, every transaction has its own (KIP-890).
        if layout_of("EndTxnResponse", request.version).has("producer_epoch"):
            known = self._known[body["transactional_id"]] = self._next_epoch(*known)
        return {"producer_id": known[0], "producer_epoch": known[1]}
