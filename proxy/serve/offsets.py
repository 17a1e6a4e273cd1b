"""Committed offsets of groups, before the capture and since: OffsetCommit, OffsetFetch,
TxnOffsetCommit. Sans-I/O."""

from __future__ import annotations

from typing import Final, TypeAlias

from dissectors.reader import Body
from proxy.serve.asked import Asked, Code, Handler, each_partition, naming
from proxy.serve.consumers import ConsumerGroups
from proxy.serve.groups import Groups
from proxy.serve.model import Model, uuid_of

Committed: TypeAlias = dict[tuple[str, int], tuple[int, str | None]]
"""(topic, partition) -> offset, metadata."""

MOST: Final = 100_000
"""Offsets that clients may commit, of all groups together."""


class Offsets:
    """What groups have committed."""

    def __init__(self, model: Model, groups: Groups, consumers: ConsumerGroups) -> None:
        self._model = model
        self._groups = groups
        self._consumers = consumers
        self._known: dict[str, Committed] = {g: dict(known) for g, known in model.offsets.items()}
        self._pending: dict[int, dict[str, Committed]] = {}
        """Producer id -> what its transaction commits."""
        self._count = 0

    def handlers(self) -> dict[str, Handler]:
        """By API."""
        return {
            "OffsetCommit": self._commit,
            "OffsetFetch": self._fetch,
            "TxnOffsetCommit": self._txn_commit,
        }

    def groups(self) -> list[str]:
        """Groups with offsets."""
        return list(self._known)

    def end_transaction(self, producer: int, committed: bool) -> None:
        """Offsets of the producer's transaction count from now on, or never."""
        for group, known in self._pending.pop(producer, {}).items():
            if committed:
                self._known.setdefault(group, {}).update(known)

    async def _commit(self, asked: Asked) -> Body:
        body = asked.body
        error = self._groups.check_commit(body) or self._consumers.check_commit(body)
        if body["topics"] and not error:
            error = self._keep(self._known, body)
        return {"topics": each_partition(body["topics"], error)}

    async def _txn_commit(self, asked: Asked) -> Body:
        body = asked.body
        error = self._groups.check_commit(body) or self._consumers.check_commit(body)
        if body["topics"] and not error:
            error = self._keep(self._pending.setdefault(body["producer_id"], {}), body)
        return {"topics": each_partition(body["topics"], error)}

    def _keep(self, groups: dict[str, Committed], body: Body) -> int:
        known = groups.setdefault(body["group_id"], {})
        for each in body["topics"]:
            name = self._model.name_of(each)
            for part in each["partitions"]:
                place = (name, part["partition_index"])
                if place not in known and self._count >= MOST:
                    return Code.UNKNOWN_SERVER_ERROR
                self._count += place not in known
                known[place] = (part["committed_offset"], part.get("committed_metadata"))
        return 0

    async def _fetch(self, asked: Asked) -> Body:
        body = asked.body
        if "groups" not in body:
            told = self._told(body["group_id"], body["topics"])
            return {"error_code": 0, "topics": told}
        groups = []
        for each in body["groups"]:
            error = self._consumers.check_member(
                each["group_id"], each.get("member_id"), each.get("member_epoch", -1)
            )
            topics = [] if error else self._told(each["group_id"], each["topics"])
            groups.append({"group_id": each["group_id"], "error_code": error, "topics": topics})
        return {"groups": groups}

    def _told(self, group: str, topics: list[Body] | None) -> list[Body]:
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
        told = []
        for each in topics:
            name = self._model.name_of(each)
            parts = []
            for number in each["partition_indexes"]:
                offset, metadata = known.get((name, number), (-1, ""))
                parts.append(
                    {
                        "partition_index": number,
                        "committed_offset": offset,
                        "committed_leader_epoch": -1,
                        "metadata": metadata or "",
                        "error_code": 0,
                    }
                )
            told.append({**naming(each), "partitions": parts})
        return told
