"""Responds with what clients learn of the cluster: its nodes at our addresses, its topics,
coordinators. Makes and deletes topics. Sans-I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.values import Versions
from kafkascope.proxy.serve.captured_cluster import CapturedCluster, Partition, Topic
from kafkascope.proxy.serve.request import Code, Request, naming

# Of Metadata: an empty list asks for all topics, as null does later.
ALL_WHEN_EMPTY: Final = Versions.parse("0")


@dataclass(eq=False)
class ServedCluster:
    """The served nodes and topics. `places`: node -> the address where it listens now. `gone` is
    told of topics that are deleted."""

    model: CapturedCluster
    places: dict[int, tuple[str, int]]
    gone: Callable[[Topic], None]

    def __post_init__(self) -> None:
        self._made = 0
        self._to_make = set(self.model.created)
        """Topics that the capture's clients made, and ours have not yet."""

    async def metadata(self, request: Request) -> Body:
        model = self.model
        requested = request.body["topics"]
        if requested is None or (request.version in ALL_WHEN_EMPTY and not requested):
            topics = [self._described(model.topics[name]) for name in sorted(model.topics)]
            topics = [each for each in topics if not each["error_code"]]
        else:
            topics = [self._described_by(each) for each in requested]
        return {
            "brokers": self._brokers("node_id"),
            "cluster_id": model.cluster_id,
            "controller_id": model.controller,
            "topics": topics,
        }

    def _described_by(self, each: Body) -> Body:
        name = self.model.name_of(each)
        topic = self.model.topics.get(name)
        if topic is not None:
            return self._described(topic)
        if any(each.get("topic_id") or b""):
            unknown = {"error_code": Code.UNKNOWN_TOPIC_ID, "topic_id": each["topic_id"]}
            return {**unknown, "name": name or None}
        return {"error_code": Code.UNKNOWN_TOPIC_OR_PARTITION, "name": name}

    def _described(self, topic: Topic) -> Body:
        return {
            "error_code": 0 if topic.partitions else Code.UNKNOWN_TOPIC_OR_PARTITION,
            "name": topic.name,
            "topic_id": topic.id,
            "is_internal": topic.name.startswith("__"),
            "partitions": [
                {
                    "partition_index": number,
                    "leader_id": part.leader,
                    "leader_epoch": part.epoch,
                    "replica_nodes": part.replicas or [part.leader],
                    "isr_nodes": part.replicas or [part.leader],
                    # Java takes no null for these, although the protocol has it.
                    "eligible_leader_replicas": [],
                    "last_known_elr": [],
                }
                for number, part in sorted(topic.partitions.items())
            ],
        }

    async def describe_partitions(self, request: Request) -> Body:
        requested = request.body["topics"] or [{"name": name} for name in sorted(self.model.topics)]
        return {"topics": [self._described_by(each) for each in requested]}

    def _brokers(self, name: str) -> list[Body]:
        return [
            {name: node, "host": host, "port": port, "rack": self.model.racks.get(node)}
            for node, (host, port) in sorted(self.places.items())
        ]

    async def describe(self, request: Request) -> Body:
        return {
            "cluster_id": self.model.cluster_id,
            "controller_id": self.model.controller,
            "brokers": self._brokers("broker_id"),
        }

    async def find_coordinator(self, request: Request) -> Body:
        def coordinator(key: str) -> Body:
            node = self.model.coordinators.get(key, -1)
            if node not in self.places:
                node = min(self.places)
            host, port = self.places[node]
            place = {"node_id": node, "host": host, "port": port}
            return {**place, "key": key, "error_message": None}

        keys = request.body.get("coordinator_keys", [])
        return {
            **coordinator(request.body.get("key", "")),
            "coordinators": [coordinator(key) for key in keys],
        }

    # --- topics that clients make

    async def create(self, request: Request) -> Body:
        """Topics that the capture's clients made can be made again, once: a served capture answers
        the same program as it was answered before."""
        only = request.body.get("validate_only", False)
        return {"topics": [self._created(each, only) for each in request.body["topics"]]}

    def _created(self, each: Body, only: bool) -> Body:
        assigned = each["assignments"]
        count = len(assigned) or (1 if each["num_partitions"] == -1 else each["num_partitions"])
        if error := self._refusal(each["name"], count):
            return {**naming(each), "error_code": error, "error_message": None}
        replicas = len(assigned[0]["broker_ids"]) if assigned else each["replication_factor"]
        result = {"num_partitions": count, "replication_factor": max(replicas, 1)}
        if not only:
            self._to_make.discard(each["name"])
            result["topic_id"] = self._made_topic(each["name"], count).id
        return {**naming(each), **result}

    def _refusal(self, name: str, count: int) -> Code:
        """Why a topic of so many partitions cannot be made."""
        known = self.model.topics.get(name)
        if not 0 < len(name) <= 249:
            return Code.INVALID_TOPIC_EXCEPTION
        if known is not None and known.partitions and name not in self._to_make:
            return Code.TOPIC_ALREADY_EXISTS
        if count < 1:
            return Code.INVALID_PARTITIONS
        full = count > self.model.limits.created_partitions - self._made
        return Code.POLICY_VIOLATION if full else Code.NONE

    def _made_topic(self, name: str, count: int) -> Topic:
        topic = self.model.topic(name)
        nodes: Sequence[int] = sorted(self.places)
        for number in range(count):
            if number not in topic.partitions:
                node = nodes[number % len(nodes)]
                topic.partitions[number] = Partition(node, [node])
                self._made += 1
        return topic

    async def delete(self, request: Request) -> Body:
        names = request.body.get("topic_names", ())
        requested = request.body.get("topics", [{"name": name} for name in names])
        result = []
        for each in requested:
            name = self.model.name_of(each)
            gone = self.model.forget(name)
            if gone is not None:
                self.gone(gone)
                known: Body = {"topic_id": gone.id}
            else:
                by_id = any(each.get("topic_id") or b"") and not each.get("name")
                error = Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION
                known = {**naming(each), "error_code": error}
            result.append({**known, "name": name or each.get("name")})
        return {"responses": result}
