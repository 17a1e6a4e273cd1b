"""The cluster as a capture shows it: nodes, topics, logs, offsets, versions. Sans-I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar, Final

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.registry import APIS
from kafkascope.dissectors.values import Uuid
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.serve.log import Log

DEFAULT_NODE: Final = 1
# Leads what nobody told the leader of, until all of the capture was read.
NO_LEADER: Final = -1


@dataclass(slots=True)
class Partition:
    """A partition, its leader and its log."""

    leader: int
    replicas: list[int]
    epoch: int = 0
    log: Log = field(default_factory=Log)


@dataclass(slots=True)
class Topic:
    """A topic and its partitions by number."""

    name: str
    id: Uuid
    partitions: dict[int, Partition] = field(default_factory=dict)


@dataclass(slots=True)
class CapturedCluster:
    """The captured cluster, learned from exchanges."""

    names: TopicNames
    limits: Limits = LIMITS
    nodes: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Captured addresses."""
    racks: dict[int, str | None] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    ids: dict[bytes, str] = field(default_factory=dict)
    cluster_id: str | None = None
    controller: int = -1
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """API key -> versions that the captured broker served."""
    features: Body = field(default_factory=dict)
    offsets: dict[str, dict[tuple[str, int], tuple[int, str | None]]] = field(default_factory=dict)
    """Group -> committed offsets before the capture."""
    used_versions: dict[int, set[int]] = field(default_factory=dict)
    """API key -> versions that the captured clients used."""
    coordinators: dict[str, int] = field(default_factory=dict)
    """Group or transactional id -> node."""
    created: set[str] = field(default_factory=set)
    """Topics that the captured clients made."""

    records_dropped: int = 0
    """Messages some of whose records are not kept: there were too many."""
    nodes_truncated: bool = False
    """There are more nodes than are kept."""
    _record_bytes: int = 0
    """Bytes of memory that records take."""
    _first_ids: dict[str, bytes] = field(default_factory=dict)
    """Topic -> the first id that messages told for it, once all of the capture was read."""
    _written: dict[int, dict[int, Log]] = field(default_factory=dict)
    """Producer id -> the logs that its transaction wrote to, by `id`."""

    # --- reading the capture

    def add(self, exchange: Exchange) -> None:
        if exchange.api_key in APIS and exchange.api_version is not None:
            self.used_versions.setdefault(exchange.api_key, set()).add(exchange.api_version)
        request, response = exchange.request_body, exchange.response_body
        if request is not None and response is None and exchange.api == "Produce":
            self._unanswered(request)
        if request is None or response is None:
            return
        handler = self.readers.get(exchange.api)
        if handler is not None:
            handler(self, request, response)

    def finish(self) -> None:
        """Fill in plausible values for what the capture lacks, once all of it was read."""
        if not self.nodes:
            self.nodes[DEFAULT_NODE] = ("", 0)
        first = min(self.nodes)
        if self.controller not in self.nodes:
            self.controller = first
        self.cluster_id = self.cluster_id or "a2Fma2FzY29wZS1zZXJ2ZQ"
        for topic_id, name in self.names.all().items():
            self._first_ids.setdefault(name, topic_id)
        for topic in self.topics.values():
            topic.id = Uuid(self._first_ids.get(topic.name, topic.id))
            self.ids[topic.id] = topic.name
            for part in topic.partitions.values():
                if part.leader not in self.nodes:
                    part.leader = first
                part.log.finish()

    def forget(self, name: str) -> Topic | None:
        gone = self.topics.pop(name, None)
        if gone is not None:
            self.ids.pop(gone.id, None)
        return gone

    def topic(self, name: str) -> Topic:
        found = self.topics.get(name)
        if found is None:
            made = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).digest()
            found = self.topics[name] = Topic(name, Uuid(self._first_ids.get(name, made)))
            self.ids[found.id] = name
        return found

    def partition(self, name: str, number: int) -> Partition:
        topic = self.topic(name)
        found = topic.partitions.get(number)
        if found is None:
            found = topic.partitions[number] = Partition(NO_LEADER, [])
        return found

    def name_of(self, element: Body) -> str:
        """The topic that an element of a request is about, by name or id; "" when unknown."""
        for field_ in ("topic", "name", "topic_name"):
            if element.get(field_):
                return str(element[field_])
        topic_id = bytes(element.get("topic_id") or b"")
        return self.ids.get(topic_id) or self.names.get(topic_id) or ""

    def _parts(self, topics: list[Body], field: str = "partitions") -> Iterator[tuple[str, Body]]:
        for topic in topics:
            if name := self.name_of(topic):
                for part in topic[field]:
                    yield name, part

    def _brokers(self, brokers: list[Body]) -> None:
        for each in brokers:
            node: int = each["node_id"] if "node_id" in each else each["broker_id"]
            if node < 0:
                continue
            if node in self.nodes or len(self.nodes) < self.limits.served_nodes:
                self.nodes[node] = (each["host"], each["port"])
                self.racks[node] = each.get("rack")
            else:
                self.nodes_truncated = True

    def _metadata(self, request: Body, response: Body) -> None:
        self._brokers(response["brokers"])
        self.controller = response.get("controller_id", self.controller)
        self.cluster_id = response.get("cluster_id") or self.cluster_id
        for each in response["topics"]:
            name = each["name"] or self.names.get(bytes(each.get("topic_id", b"")))
            if not name or each["error_code"]:
                continue
            if any(each.get("topic_id", b"")):
                self.topics.setdefault(name, Topic(name, Uuid(each["topic_id"])))
                self.ids[bytes(each["topic_id"])] = name
            topic = self.topic(name)
            for part in each["partitions"]:
                number = part["partition_index"]
                found = topic.partitions.setdefault(number, Partition(part["leader_id"], []))
                found.leader = part["leader_id"]
                found.replicas = list(part["replica_nodes"])
                found.epoch = part.get("leader_epoch", 0)

    def _describe_cluster(self, request: Body, response: Body) -> None:
        self._brokers(response["brokers"])
        self.cluster_id = response["cluster_id"] or self.cluster_id

    def _find_coordinator(self, request: Body, response: Body) -> None:
        found = [e for e in response.get("coordinators", [response]) if not e["error_code"]]
        self._brokers(found)
        for each in found:
            self.coordinators[each.get("key", request.get("key", ""))] = each["node_id"]

    def _api_versions(self, request: Body, response: Body) -> None:
        for each in response["api_keys"]:
            self.versions[each["api_key"]] = (each["min_version"], each["max_version"])
        for name in ("supported_features", "finalized_features", "finalized_features_epoch"):
            if response.get(name):
                self.features[name] = response[name]

    def _fetch(self, request: Body, response: Body) -> None:
        for name, part in self._parts(response["responses"]):
            log = self.partition(name, part["partition_index"]).log
            if part.get("log_start_offset", -1) > 0:
                log.set_log_start(part["log_start_offset"])
            log.set_high_watermark(part["high_watermark"])
            self._keep_aborted(log, part.get("aborted_transactions") or [])
            if part["records"]:
                self._keep(log, part["records"])

    def _produce(self, request: Body, response: Body) -> None:
        bases = {
            (name, part["index"]): part["base_offset"]
            for name, part in self._parts(response["responses"], "partition_responses")
            if not part["error_code"] and part["base_offset"] >= 0
        }
        for name, part in self._parts(request["topic_data"], "partition_data"):
            base = bases.get((name, part["index"]))
            if base is not None and part["records"]:
                self._keep(self.partition(name, part["index"]).log, part["records"], base)

    def _unanswered(self, request: Body) -> None:
        if request["acks"] != 0:
            return
        for name, part in self._parts(request["topic_data"], "partition_data"):
            if part["records"] and self._has_room():
                self._record_bytes += len(part["records"])
                self.partition(name, part["index"]).log.unplaced(part["records"])

    def _has_room(self) -> bool:
        """Whether more records are kept; counts those that are not."""
        full = self._record_bytes > self.limits.captured_bytes
        self.records_dropped += full
        return not full

    def _keep(self, log: Log, records: bytes, base: int | None = None) -> None:
        """Keep records, fetched ones or those that were written at `base`, while there is room."""
        if self._has_room():
            before = log.bytes
            log.add(records, base)
            self._record_bytes += log.bytes - before
            for producer in log.writers():
                self._written.setdefault(producer, {})[id(log)] = log

    def _keep_aborted(self, log: Log, aborted: list[Body]) -> None:
        if aborted and self._has_room():
            before = log.bytes
            for each in aborted:
                log.aborted(each["producer_id"], each["first_offset"])
            self._record_bytes += log.bytes - before

    def _offset_fetch(self, request: Body, response: Body) -> None:
        if "groups" in response:
            pairs = [(each["group_id"], each["topics"]) for each in response["groups"]]
        else:
            pairs = [(request["group_id"], response["topics"])]
        for group, topics in pairs:
            known = self.offsets.setdefault(group, {})
            for name, part in self._parts(topics):
                if part["committed_offset"] >= 0:
                    committed = part["committed_offset"], part["metadata"]
                    known.setdefault((name, part["partition_index"]), committed)
                    self._reached(name, part)

    def _offset_commit(self, request: Body, response: Body) -> None:
        for name, part in self._parts(request["topics"]):
            self._reached(name, part)

    def _reached(self, name: str, part: Body) -> None:
        topic = self.topics.get(name)
        if topic is not None and part["partition_index"] in topic.partitions:
            topic.partitions[part["partition_index"]].log.set_high_watermark(
                part["committed_offset"]
            )

    def _end_txn(self, request: Body, response: Body) -> None:
        if response["error_code"]:
            return
        for log in self._written.pop(request["producer_id"], {}).values():
            log.end_captured(request["producer_id"], request["committed"])

    def _create_topics(self, request: Body, response: Body) -> None:
        self.created.update(e["name"] for e in response["topics"] if not e["error_code"])

    readers: ClassVar[dict[str, Callable[[CapturedCluster, Body, Body], None]]] = {
        "Metadata": _metadata,
        "DescribeCluster": _describe_cluster,
        "FindCoordinator": _find_coordinator,
        "ApiVersions": _api_versions,
        "Fetch": _fetch,
        "Produce": _produce,
        "OffsetFetch": _offset_fetch,
        "OffsetCommit": _offset_commit,
        "EndTxn": _end_txn,
        "CreateTopics": _create_topics,
    }
    """API -> what is learned from its exchanges: of request and response."""
