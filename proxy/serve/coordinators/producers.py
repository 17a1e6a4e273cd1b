"""Producers and their transactions, with ids and epochs of our own. What a transaction writes is
held back from readers of committed records until it ends. Sans-I/O."""

from __future__ import annotations

from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.registry import layout_of
from kafkascope.dissectors.schema import Versions
from kafkascope.proxy.serve.coordinators.memory_budget import MemoryBudget, size_of
from kafkascope.proxy.serve.coordinators.offsets import Offsets
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import Code, Handler, Request, by_partition

FIRST_ID: Final = 1 << 40
"""Beyond all ids that a captured cluster gave away."""
LAST_EPOCH: Final = 0x7FFE
MOST: Final = 10_000
"""Transactional ids."""
PRODUCERS_FENCED: Final = Versions.parse("2+")
"""Of the APIs of transactions: an old epoch gets PRODUCER_FENCED (KIP-588), INVALID_PRODUCER_EPOCH
before."""


class Producers:
    """The known transactional producers."""

    def __init__(
        self, partitions: Partitions, offsets: Offsets, budget: MemoryBudget | None = None
    ) -> None:
        self._partitions = partitions
        self._offsets = offsets
        self._next = FIRST_ID
        self._known: dict[str, tuple[int, int]] = {}
        """Transactional id -> producer id and epoch."""
        self._budget = budget or MemoryBudget()
        self._budget.holds(lambda: sum(map(size_of, self._known)))

    def handlers(self) -> dict[str, Handler]:
        """The handlers, by API."""
        return {
            "InitProducerId": self._init,
            "AddPartitionsToTxn": self._add_partitions,
            "AddOffsetsToTxn": self._add_offsets,
            "EndTxn": self._end,
        }

    def _fresh(self) -> tuple[int, int]:
        self._next += 1
        return self._next, 0

    async def _init(self, request: Request) -> Body:
        name = request.body["transactional_id"]
        if not name:
            producer, epoch = self._fresh()
            return {"error_code": 0, "producer_id": producer, "producer_epoch": epoch}
        known = self._known.get(name)
        if known is None:
            if not self._budget.admit(size_of(name)):
                error = Code.UNKNOWN_SERVER_ERROR
                return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
            if len(self._known) >= MOST:
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
        self._partitions.end_transaction(producer, epoch, committed)
        self._offsets.end_transaction(producer, committed)

    def _check(self, name: str, producer: int, epoch: int, fenced: Code) -> int:
        known = self._known.get(name)
        if known is None or known[0] != producer:
            return Code.INVALID_PRODUCER_ID_MAPPING
        return 0 if epoch == known[1] else fenced

    async def _add_partitions(self, request: Request) -> Body:
        def of_topics(topics: list[Body], error: int) -> list[Body]:
            return by_partition(
                topics,
                lambda _, number: {"partition_index": number, "partition_error_code": error},
                given="results_by_partition",
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

    async def _add_offsets(self, request: Request) -> Body:
        return {"error_code": self._checked(request)}

    async def _end(self, request: Request) -> Body:
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
    """The error that a producer with an old epoch gets."""
    if request.version in PRODUCERS_FENCED:
        return Code.PRODUCER_FENCED
    return Code.INVALID_PRODUCER_EPOCH
