"""Responds with what clients learn of the cluster: its nodes at our addresses, its topics,
coordinators. Makes and deletes topics. Sans-I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.schema import Versions
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
            return {**unknown, "name": name or None, "partitions": []}
        return {"error_code": Code.UNKNOWN_TOPIC_OR_PARTITION, "name": name, "partitions": []}

    def _described(self, topic: Topic) -> Body:
        result: Body = {
            "error_code": 0 if topic.partitions else Code.UNKNOWN_TOPIC_OR_PARTITION,
            "name": topic.name,
            "topic_id": topic.id,
            "is_internal": topic.name.startswith("__"),
            "partitions": [],
        }
        for number, part in sorted(topic.partitions.items()):
            replicas = part.replicas or [part.leader]
            result["partitions"].append(
                {
                    "error_code": 0,
                    "partition_index": number,
                    "leader_id": part.leader,
                    "leader_epoch": part.epoch,
                    "replica_nodes": replicas,
                    "isr_nodes": replicas,
                    "offline_replicas": [],
                    # Java takes no null for these, although the protocol has it.
                    "eligible_leader_replicas": [],
                    "last_known_elr": [],
                }
            )
        return result

    async def describe_partitions(self, request: Request) -> Body:
        requested = request.body["topics"] or [{"name": name} for name in sorted(self.model.topics)]
        return {"topics": [self._described_by(each) for each in requested], "next_cursor": None}

    def _brokers(self, name: str) -> list[Body]:
        return [
            {name: node, "host": host, "port": port, "rack": self.model.racks.get(node)}
            for node, (host, port) in sorted(self.places.items())
        ]

    async def describe(self, request: Request) -> Body:
        return {
            "error_code": 0,
            "endpoint_type": 1,
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
            found = {"error_code": 0, "error_message": None, "key": key}
            return {**found, "node_id": node, "host": host, "port": port}

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
        name = each["name"]
        replicas = [len(a["broker_ids"]) for a in each["assignments"]] or [
            each["replication_factor"]
        ]
        count = len(each["assignments"]) or each["num_partitions"]
        count = 1 if count == -1 else count
        result: Body = {**naming(each), "error_code": 0, "num_partitions": count}
        result |= {"replication_factor": max(replicas[0], 1), "configs": []}
        known = self.model.topics.get(name)
        if not 0 < len(name) <= 249:
            result |= {"error_code": Code.INVALID_TOPIC_EXCEPTION}
        elif known is not None and known.partitions and name not in self._to_make:
            result |= {"error_code": Code.TOPIC_ALREADY_EXISTS}
        elif count < 1:
            result |= {"error_code": Code.INVALID_PARTITIONS}
        elif count > self.model.limits.created_partitions - self._made:
            result |= {"error_code": Code.POLICY_VIOLATION}
        elif not only:
            self._to_make.discard(name)
            self._add(name, count)
            result["topic_id"] = self.model.topic(name).id
        if result["error_code"]:
            result |= {"num_partitions": -1, "replication_factor": -1, "error_message": None}
        return result

    def _add(self, name: str, count: int) -> None:
        topic = self.model.topic(name)
        nodes: Sequence[int] = sorted(self.places)
        for number in range(count):
            if number not in topic.partitions:
                node = nodes[number % len(nodes)]
                topic.partitions[number] = Partition(node, [node])
                self._made += 1

    async def delete(self, request: Request) -> Body:
        names = request.body.get("topic_names", ())
        requested = request.body.get("topics", [{"name": name} for name in names])
        result = []
        for each in requested:
            name = self.model.name_of(each)
            gone = self.model.forget(name)
            error = Code.NONE
            if gone is not None:
                self.gone(gone)
            else:
                by_id = any(each.get("topic_id") or b"") and not each.get("name")
                error = Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION
            topic_id = {"topic_id": gone.id} if gone is not None else naming(each)
            result.append({**topic_id, "name": name or each.get("name"), "error_code": error})
        return {"responses": result}
