"""Committed offsets, from before the capture and since, and producers with their transactions, with
ids and epochs of our own. What a transaction writes is held back from readers of committed records
until it ends. Sans-I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.registry import layout_of
from kafkascope.dissectors.schema import Versions
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import (
    ENTRY,
    Code,
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
            failed = error or self._keep(groups, body["group_id"], topic, part)
            return {"partition_index": part["partition_index"], "error_code": failed}

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
            return {"error_code": 0, "topics": self._committed(body["group_id"], body["topics"])}
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
            by_name: dict[str, list[int]] = {}
            for name, number in known:
                by_name.setdefault(name, []).append(number)
            topics = [
                {
                    "name": name,
                    "topic_id": self.model.topic(name).id,
                    "partition_indexes": numbers,
                }
                for name, numbers in by_name.items()
                if name in self.model.topics
            ]

        def committed(topic: Body, number: int) -> Body:
            place = self.model.name_of(topic), number
            offset, metadata = known.get(place, (-1, ""))
            return {
                "partition_index": number,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "metadata": metadata or "",
                "error_code": 0,
            }

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

    async def init(self, request: Request) -> Body:
        name = request.body["transactional_id"]
        if not name:
            producer, epoch = self._fresh()
            return {"error_code": 0, "producer_id": producer, "producer_epoch": epoch}
        known = self._known.get(name)
        if known is None:
            if not self.budget.admit(size_of(name)):
                error = Code.UNKNOWN_SERVER_ERROR
                return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
            if len(self._known) >= self.budget.limits.transactional_ids:
                self._known.pop(next(iter(self._known)))
            known = self._fresh()
        else:
            # Whoever was there before is fenced, and what it had open is aborted.
            self._ended(*known, committed=False)
            producer, epoch = known
            known = (producer, epoch + 1) if epoch < LAST_EPOCH else self._fresh()
        self._known[name] = known
        return {"error_code": 0, "producer_id": known[0], "producer_epoch": known[1]}

    def _ended(self, producer: int, epoch: int, *, committed: bool) -> None:
        self.partitions.end_transaction(producer, epoch, committed)
        self.offsets.end_transaction(producer, committed)

    def _check(self, name: str, producer: int, epoch: int, fenced: Code) -> int:
        known = self._known.get(name)
        if known is None or known[0] != producer:
            return Code.INVALID_PRODUCER_ID_MAPPING
        return 0 if epoch == known[1] else fenced

    async def add_partitions(self, request: Request) -> Body:
        def of_topics(topics: list[Body], error: int) -> list[Body]:
            return by_partition(
                topics,
                lambda _, number: {"partition_index": number, "partition_error_code": error},
                target="results_by_partition",
            )

        body = request.body
        if "transactions" in body:
            whole = []
            for each in body["transactions"]:
                name = each["transactional_id"]
                error = self._check(
                    name, each["producer_id"], each["producer_epoch"], Code.PRODUCER_FENCED
                )
                topics = of_topics(each["topics"], error)
                whole.append({"transactional_id": name, "topic_results": topics})
            return {"error_code": 0, "results_by_transaction": whole}
        error = self._check(
            body["v3_and_below_transactional_id"],
            body["v3_and_below_producer_id"],
            body["v3_and_below_producer_epoch"],
            _fenced(request),
        )
        return {"results_by_topic_v3_and_below": of_topics(body["v3_and_below_topics"], error)}

    def _checked(self, request: Request) -> int:
        body = request.body
        name, producer = body["transactional_id"], body["producer_id"]
        return self._check(name, producer, body["producer_epoch"], _fenced(request))

    async def add_offsets(self, request: Request) -> Body:
        return {"error_code": self._checked(request)}

    async def end(self, request: Request) -> Body:
        error = self._checked(request)
        body = request.body
        name, producer, epoch = (
            body["transactional_id"],
            body["producer_id"],
            body["producer_epoch"],
        )
        if error:
            return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
        self._ended(producer, epoch, committed=body["committed"])
        # Since epochs are in the response, every transaction has its own (KIP-890).
        if layout_of("EndTxnResponse", request.version).has("producer_epoch"):
            producer, epoch = (producer, epoch + 1) if epoch < LAST_EPOCH else self._fresh()
            self._known[name] = producer, epoch
        return {"error_code": 0, "producer_id": producer, "producer_epoch": epoch}


def _fenced(request: Request) -> Code:
    if request.version in PRODUCERS_FENCED:
        return Code.PRODUCER_FENCED
    return Code.INVALID_PRODUCER_EPOCH
