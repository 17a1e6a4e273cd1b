"""One request in, one answer out: from the model and from state, else the captured answer to the
most
similar request, else a declared one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from dissectors.reader import Body
from dissectors.registry import APIS, Decoded, layout_of
from dissectors.walk import changed
from proxy.serve.fitting import fitted
from proxy.serve.groups import ConsumerGroups, Groups
from proxy.serve.library import NEAR, Library
from proxy.serve.model import Model, Partition, uuid_of

UNKNOWN_SERVER_ERROR: Final = -1
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC: Final = 3
UNSUPPORTED_VERSION: Final = 35
UNKNOWN_TOPIC_ID: Final = 100
EARLIEST: Final = -2
LATEST: Final = -1
NEWEST: Final = -3
MOST_BYTES: Final = 50 << 20
LONGEST_WAIT: Final = 60.0


class Answer(NamedTuple):
    """What to send back."""

    version: int
    """Of the body."""
    body: Body | None
    """None: nothing, for acks=0."""
    note: str = ""
    """A line for whoever watches; empty when the answer is the one to be expected."""


class Refused(Exception):
    """There is no answer: the connection is closed. One line for people."""


Handler = Callable[["Broker", int, Body, str | None], Awaitable[Body | None]]


class Broker:
    """A captured cluster that answers. `places`: node -> the address where it listens now."""

    def __init__(
        self,
        model: Model,
        library: Library,
        places: dict[int, tuple[str, int]],
        *,
        original_pace: bool = False,
    ) -> None:
        self.model = model
        self.places = places
        self._library = library
        self._original_pace = original_pace
        self._groups = Groups()
        self._consumers = ConsumerGroups()
        self._offsets = {group: dict(known) for group, known in model.offsets.items()}
        self._producer = 1000
        self._epochs: dict[str, tuple[int, int]] = {}
        self._pending: dict[str, dict[str, Any]] = {}
        self._written = asyncio.Event()

    async def answer(
        self, key: int, version: int, client_id: str | None, decoded: Decoded
    ) -> Answer:
        """The answer to a request; `Refused` when there is none."""
        api = APIS[key]
        handler = HANDLERS.get(api.name)
        layout = layout_of(f"{api.name}Response", version)
        if handler is not None:
            body = await handler(self, version, decoded.body, client_id)
            return Answer(version, None if body is None else fitted(layout, body))
        return await self._captured(key, version, decoded)

    async def _captured(self, key: int, version: int, decoded: Decoded) -> Answer:
        name = APIS[key].name
        match = self._library.nearest(key, version, decoded.layout, decoded.body)
        layout = layout_of(f"{name}Response", version)
        if match is None:
            error = self.error(key, version, UNKNOWN_SERVER_ERROR)
            said = f"{name} v{version}: the capture has no answer to this API"
            if error is None:
                raise Refused(said)
            return Answer(version, error, said)
        if self._original_pace:
            await asyncio.sleep(min((match.exchange.latency_ns or 0) / 1e9, LONGEST_WAIT))
        response = match.exchange.response
        assert response is not None
        assert response.decoded is not None
        body = fitted(layout, changed(response.decoded.layout, response.body or {}, self._moved))
        note = ""
        if match.likeness < NEAR:
            note = (
                f"{name} v{version}: nothing like it was asked in the capture; answered as "
                f"exchange {match.exchange.number} ({match.likeness:.0%} alike)"
            )
        return Answer(version, body, note)

    def _moved(self, slot: Any, value: Any, around: Any) -> Any:
        """Addresses of captured nodes become ours."""
        if slot.field.endpoint and isinstance(around, dict):
            place = self.places.get(around.get("node_id", around.get("broker_id")) or 0)
            if place is not None:
                return place[1] if isinstance(value, int) else place[0]
        return value

    def error(self, key: int, version: int, code: int) -> Body | None:
        """An answer that is nothing but an error; None when the API cannot say one at its top."""
        layout = layout_of(f"{APIS[key].name}Response", version)
        names = [slot.name for slot in layout.body.slots if slot.field.enum == "ErrorCode"]
        return fitted(layout, dict.fromkeys(names, code)) if names else None

    def versions(self) -> list[Body]:
        """What ApiVersions offers: what the captured broker served, as far as we can answer it."""
        told = []
        for key, api in APIS.items():
            asked = self.model.asked.get(key, set())
            low, high = self.model.versions.get(
                key, (min(asked, default=api.versions.low), max(asked, default=api.versions.high))
            )
            known = key in self.model.versions or bool(asked)
            if api.name not in HANDLERS:
                if not asked:
                    continue
            elif not known:
                continue
            low, high = max(low, api.versions.low), min(high, api.versions.high)
            if low <= high:
                told.append({"api_key": key, "min_version": low, "max_version": high})
        return told

    # --- handlers

    async def _api_versions(self, version: int, body: Body, client_id: str | None) -> Body:
        return {"error_code": 0, "api_keys": self.versions(), **self.model.features}

    async def _metadata(self, version: int, body: Body, client_id: str | None) -> Body:
        model = self.model
        wanted = body["topics"]
        if wanted is None or (version == 0 and not wanted):
            names: list[tuple[str, Any]] = [(name, None) for name in sorted(model.topics)]
        else:
            names = [(model.name_of(each), each) for each in wanted]
        topics = []
        for name, each in names:
            topic = model.topics.get(name)
            if topic is None or not topic.partitions:
                missing: Body = {"error_code": UNKNOWN_TOPIC, "name": name or None}
                missing["partitions"] = []
                if each is not None and any(each.get("topic_id", b"")):
                    missing |= {"error_code": UNKNOWN_TOPIC_ID, "topic_id": each["topic_id"]}
                topics.append(missing)
                continue
            topics.append(
                {
                    "error_code": 0,
                    "name": name,
                    "topic_id": uuid_of(topic),
                    "is_internal": name.startswith("__"),
                    "partitions": [
                        {
                            "error_code": 0,
                            "partition_index": number,
                            "leader_id": part.leader,
                            "leader_epoch": part.epoch,
                            "replica_nodes": part.replicas or [part.leader],
                            "isr_nodes": part.replicas or [part.leader],
                            "offline_replicas": [],
                        }
                        for number, part in sorted(topic.partitions.items())
                    ],
                }
            )
        return {
            "brokers": self._brokers("node_id"),
            "cluster_id": model.cluster_id,
            "controller_id": model.controller,
            "topics": topics,
        }

    def _brokers(self, name: str) -> list[Body]:
        return [
            {name: node, "host": host, "port": port, "rack": self.model.racks.get(node)}
            for node, (host, port) in sorted(self.places.items())
        ]

    async def _describe_cluster(self, version: int, body: Body, client_id: str | None) -> Body:
        return {
            "error_code": 0,
            "endpoint_type": 1,
            "cluster_id": self.model.cluster_id,
            "controller_id": self.model.controller,
            "brokers": self._brokers("broker_id"),
        }

    async def _find_coordinator(self, version: int, body: Body, client_id: str | None) -> Body:
        node = min(self.places)
        host, port = self.places[node]
        told = {"error_code": 0, "error_message": None, "node_id": node, "host": host, "port": port}
        keys = body.get("coordinator_keys", [])
        return {**told, "coordinators": [{**told, "key": key} for key in keys]}

    async def _fetch(self, version: int, body: Body, client_id: str | None) -> Body:
        """Answers at once when there is something, else after max_wait."""
        until = time.monotonic() + min(body["max_wait_ms"] / 1000, LONGEST_WAIT)
        while True:
            self._written.clear()
            answer, ready = self._read(version, body)
            left = until - time.monotonic()
            if ready or left <= 0:
                return answer
            try:
                await asyncio.wait_for(self._written.wait(), left)
            except TimeoutError:
                pass

    def _read(self, version: int, body: Body) -> tuple[Body, bool]:
        magic = 0 if version < 2 else 1 if version < 4 else 2
        left = min(body.get("max_bytes", MOST_BYTES), MOST_BYTES)
        topics, ready = [], False
        for each in body["topics"]:
            name = self.model.name_of(each)
            parts = []
            for asked in each["partitions"]:
                part = self._partition(name, asked["partition"])
                told: Body = {"partition_index": asked["partition"], "records": b""}
                if part is None:
                    told |= {"error_code": UNKNOWN_TOPIC_ID if not name else UNKNOWN_TOPIC}
                    told |= {"high_watermark": -1, "last_stable_offset": -1, "log_start_offset": -1}
                    ready = True
                else:
                    told |= self._portion(part, asked, left, magic)
                    left -= len(told["records"])
                    ready |= bool(told["records"]) or told["error_code"] != 0
                parts.append(told)
            topics.append({**_named(each), "partitions": parts})
        return {"error_code": 0, "session_id": 0, "responses": topics}, ready

    def _portion(self, part: Partition, asked: Body, left: int, magic: int) -> Body:
        log, offset = part.log, asked["fetch_offset"]
        told: Body = {
            "error_code": 0,
            "high_watermark": log.end,
            "last_stable_offset": log.end,
            "log_start_offset": log.start,
            "aborted_transactions": [
                {"producer_id": producer, "first_offset": first} for producer, first in log.aborted
            ],
            "preferred_read_replica": -1,
            "records": b"",
        }
        if not 0 <= offset <= log.end:
            return {**told, "error_code": OFFSET_OUT_OF_RANGE}
        if log.holds(offset) and left > 0:
            told["records"] = log.read(
                offset, min(left, max(asked["partition_max_bytes"], 1)), magic
            )
        return told

    def _partition(self, name: str, number: int) -> Partition | None:
        topic = self.model.topics.get(name)
        return None if topic is None else topic.partitions.get(number)

    async def _list_offsets(self, version: int, body: Body, client_id: str | None) -> Body:
        topics = []
        for each in body["topics"]:
            parts = []
            for asked in each["partitions"]:
                part = self._partition(self.model.name_of(each), asked["partition_index"])
                told: Body = {"partition_index": asked["partition_index"], "error_code": 0}
                if part is None:
                    told |= {"error_code": UNKNOWN_TOPIC, "offset": -1, "timestamp": -1}
                else:
                    offset, stamp = self._offset_at(part, asked["timestamp"])
                    told |= {"offset": offset, "timestamp": stamp, "leader_epoch": part.epoch}
                    told["old_style_offsets"] = [offset] if offset >= 0 else []
                parts.append(told)
            topics.append({**_named(each), "partitions": parts})
        return {"topics": topics}

    @staticmethod
    def _offset_at(part: Partition, timestamp: int) -> tuple[int, int]:
        if timestamp == LATEST:
            return part.log.end, -1
        if timestamp in (EARLIEST, -4):
            return part.log.start, -1
        if timestamp == NEWEST:
            return part.log.newest()
        return part.log.offset_for(timestamp)

    async def _leader_epoch(self, version: int, body: Body, client_id: str | None) -> Body:
        topics = []
        for each in body["topics"]:
            parts = []
            for asked in each["partitions"]:
                part = self._partition(self.model.name_of(each), asked["partition"])
                told = {"partition": asked["partition"], "error_code": 0 if part else UNKNOWN_TOPIC}
                if part is not None:
                    told |= {"leader_epoch": part.epoch, "end_offset": part.log.end}
                parts.append(told)
            topics.append({**_named(each), "partitions": parts})
        return {"topics": topics}

    async def _produce(self, version: int, body: Body, client_id: str | None) -> Body | None:
        topics = []
        for each in body["topic_data"]:
            name = self.model.name_of(each)
            parts = []
            for asked in each["partition_data"]:
                told: Body = {"index": asked["index"], "error_code": 0, "base_offset": -1}
                part = self._partition(name, asked["index"])
                if part is None:
                    told["error_code"] = UNKNOWN_TOPIC if name else UNKNOWN_TOPIC_ID
                elif asked["records"]:
                    told["base_offset"] = part.log.append(asked["records"])
                    told["log_start_offset"] = part.log.start
                told["log_append_time_ms"] = -1
                parts.append(told)
            topics.append({**_named(each), "partition_responses": parts})
        self._written.set()
        return None if body["acks"] == 0 else {"responses": topics}

    # --- groups

    async def _join(self, version: int, body: Body, client_id: str | None) -> Body:
        told = await self._groups.join(version, client_id, body)
        if version < 7 and told["protocol_name"] is None:
            told["protocol_name"] = ""
        return told

    async def _sync(self, version: int, body: Body, client_id: str | None) -> Body:
        return await self._groups.sync(body)

    async def _heartbeat(self, version: int, body: Body, client_id: str | None) -> Body:
        return {"error_code": self._groups.heartbeat(body)}

    async def _leave(self, version: int, body: Body, client_id: str | None) -> Body:
        members = self._groups.leave(body)
        error = members[0]["error_code"] if version < 3 and members else 0
        return {"error_code": error, "members": members}

    async def _describe_groups(self, version: int, body: Body, client_id: str | None) -> Body:
        return {"groups": [self._groups.described(name) for name in body["groups"]]}

    async def _list_groups(self, version: int, body: Body, client_id: str | None) -> Body:
        told = [{"group_id": name, "protocol_type": kind} for name, kind in self._groups.names()]
        return {"error_code": 0, "groups": told}

    async def _consumer_heartbeat(self, version: int, body: Body, client_id: str | None) -> Body:
        def partitions(name: str) -> list[tuple[bytes, int]]:
            topic = self.model.topics.get(name)
            return (
                [] if topic is None else [(topic.id, number) for number in sorted(topic.partitions)]
            )

        return self._consumers.heartbeat(body, partitions)

    async def _offset_commit(self, version: int, body: Body, client_id: str | None) -> Body:
        error = self._groups.check_commit(body)
        known = self._offsets.setdefault(body["group_id"], {})
        if not error:
            self._keep(known, body["topics"])
        return {"topics": _each_partition(body["topics"], error)}

    def _keep(self, known: dict[Any, Any], topics: list[Body]) -> None:
        for each in topics:
            name = self.model.name_of(each)
            for part in each["partitions"]:
                place = (name, part["partition_index"])
                known[place] = (part["committed_offset"], part.get("committed_metadata"))

    async def _offset_fetch(self, version: int, body: Body, client_id: str | None) -> Body:
        if "groups" in body:
            told = [
                {
                    "group_id": each["group_id"],
                    "error_code": 0,
                    "topics": self._committed(each["group_id"], each["topics"]),
                }
                for each in body["groups"]
            ]
            return {"groups": told}
        return {"error_code": 0, "topics": self._committed(body["group_id"], body["topics"])}

    def _committed(self, group: str, topics: list[Body] | None) -> list[Body]:
        known = self._offsets.get(group, {})
        if topics is None:
            by_name: dict[str, list[int]] = {}
            for name, number in known:
                by_name.setdefault(name, []).append(number)
            topics = [
                {"name": n, "topic_id": uuid_of(self.model.topic(n)), "partition_indexes": numbers}
                for n, numbers in by_name.items()
            ]
        told = []
        for each in topics:
            name = self.model.name_of(each)
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
            told.append({**_named(each), "partitions": parts})
        return told

    # --- producers and transactions

    async def _init_producer(self, version: int, body: Body, client_id: str | None) -> Body:
        txn = body["transactional_id"]
        known = self._epochs.get(txn or "")
        if txn and known is not None:
            producer, epoch = known[0], known[1] + 1
        else:
            self._producer += 1
            producer, epoch = self._producer, 0
        if txn:
            self._epochs[txn] = (producer, epoch)
            self._pending.pop(txn, None)
        return {"error_code": 0, "producer_id": producer, "producer_epoch": epoch}

    async def _add_partitions(self, version: int, body: Body, client_id: str | None) -> Body:
        def told(topics: list[Body]) -> list[Body]:
            return [
                {
                    "name": each["name"],
                    "results_by_partition": [
                        {"partition_index": number, "partition_error_code": 0}
                        for number in each["partitions"]
                    ],
                }
                for each in topics
            ]

        if "transactions" in body:
            whole = [
                {"transactional_id": t["transactional_id"], "topic_results": told(t["topics"])}
                for t in body["transactions"]
            ]
            return {"error_code": 0, "results_by_transaction": whole}
        return {"results_by_topic_v3_and_below": told(body["v3_and_below_topics"])}

    async def _no_error(self, version: int, body: Body, client_id: str | None) -> Body:
        return {"error_code": 0}

    async def _txn_offset_commit(self, version: int, body: Body, client_id: str | None) -> Body:
        pending = self._pending.setdefault(body["transactional_id"], {})
        self._keep(pending.setdefault(body["group_id"], {}), body["topics"])
        return {"topics": _each_partition(body["topics"], 0)}

    async def _end_txn(self, version: int, body: Body, client_id: str | None) -> Body:
        pending = self._pending.pop(body["transactional_id"], {})
        if body["committed"]:
            for group, known in pending.items():
                self._offsets.setdefault(group, {}).update(known)
        return {
            "error_code": 0,
            "producer_id": body["producer_id"],
            "producer_epoch": body["producer_epoch"],
        }

    # --- SASL

    async def _sasl_handshake(self, version: int, body: Body, client_id: str | None) -> Body:
        mechanisms = self.model.mechanisms or ["PLAIN"]
        error = 0 if body["mechanism"] in mechanisms else 33
        return {"error_code": error, "mechanisms": mechanisms}

    async def _sasl_authenticate(self, version: int, body: Body, client_id: str | None) -> Body:
        """Everybody is let in with PLAIN; the proof of SCRAM needs a password that nobody has."""
        if body["auth_bytes"].startswith(b"n,") or body["auth_bytes"].startswith(b"y,"):
            said = "a served capture cannot prove that it knows a SCRAM password; use PLAIN"
            return {"error_code": 58, "error_message": said, "auth_bytes": b""}
        return {"error_code": 0, "error_message": None, "auth_bytes": b""}


def _named(each: Body) -> Body:
    """The fields that name a topic, as it was asked for."""
    return {name: each[name] for name in ("name", "topic", "topic_id") if name in each}


def _each_partition(topics: list[Body], error: int) -> list[Body]:
    return [
        {
            **_named(each),
            "partitions": [
                {"partition_index": part["partition_index"], "error_code": error}
                for part in each["partitions"]
            ],
        }
        for each in topics
    ]


HANDLERS: Final[dict[str, Handler]] = {
    "ApiVersions": Broker._api_versions,
    "Metadata": Broker._metadata,
    "DescribeCluster": Broker._describe_cluster,
    "FindCoordinator": Broker._find_coordinator,
    "Fetch": Broker._fetch,
    "ListOffsets": Broker._list_offsets,
    "OffsetForLeaderEpoch": Broker._leader_epoch,
    "Produce": Broker._produce,
    "JoinGroup": Broker._join,
    "SyncGroup": Broker._sync,
    "Heartbeat": Broker._heartbeat,
    "LeaveGroup": Broker._leave,
    "DescribeGroups": Broker._describe_groups,
    "ListGroups": Broker._list_groups,
    "ConsumerGroupHeartbeat": Broker._consumer_heartbeat,
    "OffsetCommit": Broker._offset_commit,
    "OffsetFetch": Broker._offset_fetch,
    "InitProducerId": Broker._init_producer,
    "AddPartitionsToTxn": Broker._add_partitions,
    "AddOffsetsToTxn": Broker._no_error,
    "TxnOffsetCommit": Broker._txn_offset_commit,
    "EndTxn": Broker._end_txn,
    "SaslHandshake": Broker._sasl_handshake,
    "SaslAuthenticate": Broker._sasl_authenticate,
}
"""APIs that are answered from the model and from state. All others from captured answers."""
