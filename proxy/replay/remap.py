"""Maps ids of a capture to those of a live cluster and back: topics, groups, members, generations,
producers, nodes, the cluster. They are learned from pairs of responses. Sans-I/O.

Fields are found by the marks of their declarations; those that have none are in `EPOCHS` and
`GENERATIONS`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import Picks, innermost
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import BytesWire, Layout, Slot, UuidWire
from kafkascope.dissectors.records.records import Partial, batches, crc_of
from kafkascope.dissectors.values import Uuid
from kafkascope.proxy.limits import LIMITS, remember

# Of a group: values from JoinGroup or ConsumerGroupHeartbeat.
GENERATIONS: Final = frozenset({"generation_id", "generation_id_or_member_epoch", "member_epoch"})
# Epochs of leaders that a broker checks only when they are given; the peer's are others.
UNCHECKED: Final = frozenset({"current_leader_epoch", "last_fetched_epoch"})
# Ids of members that clients choose themselves, and of replicas: they stay.
SAME: Final = frozenset({"group_instance_id", "instance_id", "process_id", "replica_id"})
# Types of config resources whose name is a node id: broker, broker logger.
BROKER_RESOURCES: Final = frozenset({4, 8})
PREFIXED: Final = frozenset({"groupId", "transactionalId", "coordinatorKey"})
# Marks of fields that another cluster calls otherwise.
KINDS: Final = PREFIXED | {
    *("memberId", "clusterId", "resourceName", "producerId", "brokerId", "path")
}
SWITCH: Final = "allow_auto_topic_creation"
# Types of resources whose names are groups or transactional ids: two of ACLs, one of configs.
PREFIXED_RESOURCES: Final = frozenset({3, 5, 32})
_PRODUCER: Final = struct.Struct(">qh")
# Of producer id and epoch in a magic 2 batch.
_PRODUCER_AT: Final = 43
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17


class IdMap:
    """Captured id -> live id, and back. Unknown ids stay as they are."""

    def __init__(self, limit: int = LIMITS.ids) -> None:
        self._limit = limit
        self._live: dict[Any, Any] = {}
        self._captured: dict[Any, Any] = {}

    def learn(self, captured: Any, live: Any) -> None:
        remember(self._live, captured, live, self._limit)
        remember(self._captured, live, captured, self._limit)

    def live(self, captured: Any) -> Any:
        return self._live.get(captured, captured)

    def captured(self, live: Any) -> Any:
        return self._captured.get(live, live)


class ProducerIds:
    """Ids and epochs of producers. Epochs that only the client knows of (it raises its own after an
    error, KIP-360) follow the last one that both brokers sent."""

    def __init__(self) -> None:
        self._live: dict[tuple[int, int], tuple[int, int]] = {}
        self._last: dict[int, tuple[int, tuple[int, int]]] = {}
        """Captured id -> (captured epoch, live id and epoch)."""
        self._captured: dict[int, int] = {}

    def learn(self, captured: Body, live: Body) -> None:
        """Note a response that tells id and epoch (EndTxn does from version 5 on)."""
        if captured.get("producer_id", -1) < 0 or live.get("producer_id", -1) < 0:
            return
        then = captured["producer_id"], captured["producer_epoch"]
        now = live["producer_id"], live["producer_epoch"]
        remember(self._live, then, now, LIMITS.ids)
        remember(self._last, then[0], (then[1], now), LIMITS.ids)
        remember(self._captured, now[0], then[0], LIMITS.ids)

    def live(self, producer: int, epoch: int) -> tuple[int, int]:
        found = self._live.get((producer, epoch))
        if found is None and producer in self._last:
            known, (id_, live) = self._last[producer]
            found = (id_, live + epoch - known if epoch >= 0 else epoch)
        return found or (producer, epoch)

    def captured(self, producer: int) -> int:
        return self._captured.get(producer, producer)


class Remap:
    """The maps of a whole replay."""

    def __init__(self, *, prefix: str = "", writes: bool = False) -> None:
        self.prefix = prefix
        """Prefix of groups and transactional ids."""
        self.writes = writes
        """Whether requests may change anything; else Metadata creates no topics."""
        self.topic_ids = IdMap()
        self.members = IdMap()
        self.nodes = IdMap()
        self.cluster_id: str | None = None
        self.captured_cluster_id: str | None = None
        self._generations: dict[tuple[str, str, int], int] = {}
        """(group, member or "" for all of them, captured) -> live."""
        self.producers = ProducerIds()
        self.folders = IdMap()
        """Folders of logs, on the brokers' machines."""
        self._by_kind = {"memberId": self.members, "brokerId": self.nodes, "path": self.folders}

    # --- requests

    def request(self, layout: Layout, body: Body) -> Body:
        """A captured request as the peer has to get it; the same object when nothing changes."""
        group = next(iter(_GROUPS.values(layout, body)), "")
        name = layout.message.name

        def change(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
            return self._to_live(name, slot, value, around, group)

        return _TO_LIVE.changed(layout, body, change)

    def _to_live(
        self, message: str, slot: Slot, value: Any, around: Mapping[str, Any], group: str
    ) -> Any:
        kind = slot.field.entity or slot.field.subject
        resource = _resource_type(around) if kind == "resourceName" else None
        if kind in PREFIXED or resource in PREFIXED_RESOURCES:
            return self.prefix + value if value else value
        if kind == "clusterId":
            return self.cluster_id if value else value
        if resource in BROKER_RESOURCES:
            return str(self.nodes.live(int(value))) if value.isdigit() else value
        if _is_topic_id(slot):
            return Uuid(self.topic_ids.live(bytes(value)))
        if kind == "producerId":
            # v3_and_below_producer_id -> v3_and_below_producer_epoch
            epoch = around.get(slot.name.removesuffix("id") + "epoch", -1)
            return self.producers.live(value, epoch)[0]
        if slot.name.endswith("producer_epoch"):
            producer = around.get(slot.name.removesuffix("epoch") + "id", -1)
            return self.producers.live(producer, value)[1]
        if slot.name in GENERATIONS:
            return self._generation(around.get("group_id", group), around, value)
        if slot.name in UNCHECKED:
            return -1
        if message == "ApiVersionsRequest" and slot.name == "node_id":
            return -1 if value < 0 else self.nodes.live(value)
        if message == "MetadataRequest" and slot.name == SWITCH:
            return value and self.writes
        if isinstance(value, bytes) and _holds_records(slot):
            return self._records(value)
        known = None if slot.name in SAME else self._by_kind.get(kind)
        return value if known is None else known.live(value)

    def _generation(self, group: str, around: Mapping[str, Any], value: int) -> int:
        """The live generation, or epoch of a member (KIP-848: each has its own)."""
        if value <= 0:
            return value  # joins, leaves, or is no member
        member = around.get("member_id") or ""
        known = self._generations
        return known.get((group, member, value), known.get((group, "", value), value))

    def _records(self, data: bytes) -> bytes:
        out: bytearray | None = None
        try:
            for batch in batches(data):
                if isinstance(batch, Partial) or batch.magic != 2 or batch.producer_id < 0:
                    continue
                known = batch.producer_id, batch.producer_epoch
                found = self.producers.live(*known)
                if found == known:
                    continue
                if out is None:
                    out = bytearray(data)
                _PRODUCER.pack_into(out, batch.at + _PRODUCER_AT, *found)
                whole = bytes(out[batch.at : batch.at + batch.size])
                _CRC.pack_into(out, batch.at + _CRC_AT, crc_of(whole, batch._replace(at=0)))
        except DissectError:
            pass
        return data if out is None else bytes(out)

    # --- answers

    def response(self, layout: Layout, body: Body) -> Body:
        """A live response in the capture's terms; the same object when nothing changes."""
        return _TO_CAPTURED.changed(layout, body, self._to_captured)

    def _to_captured(self, slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
        kind = slot.field.entity or slot.field.subject
        resource = _resource_type(around) if kind == "resourceName" else None
        if kind in PREFIXED or resource in PREFIXED_RESOURCES:
            return value.removeprefix(self.prefix)
        if kind == "clusterId":
            return self.captured_cluster_id if value == self.cluster_id else value
        if kind == "producerId":
            return self.producers.captured(value)
        if _is_topic_id(slot):
            return Uuid(self.topic_ids.captured(bytes(value)))
        known = self._by_kind.get(kind)
        return value if known is None else known.captured(value)

    # --- learning

    def learn(self, api: str, request: Body, captured: Body, live: Body) -> None:
        """Learn the ids that later requests use. `request` is the captured one."""
        if api in ("InitProducerId", "EndTxn"):
            self.producers.learn(captured, live)
        elif api == "JoinGroup":
            self._joined(request, captured, live)
        elif api in ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"):
            self._member(captured.get("member_id"), live.get("member_id"))
            if not captured["error_code"] and not live["error_code"]:
                member = captured["member_id"] or request["member_id"]
                place = (request["group_id"], member, captured["member_epoch"])
                remember(self._generations, place, live["member_epoch"], LIMITS.ids)
        elif api == "DescribeLogDirs":
            sides = (sorted(e["log_dir"] for e in body["results"]) for body in (captured, live))
            for then, now in zip(*sides, strict=False):
                self.folders.learn(then, now)

    def _joined(self, request: Body, captured: Body, live: Body) -> None:
        self._member(captured["member_id"], live["member_id"])
        group = request["group_id"]
        if captured["error_code"] == 0 and live["error_code"] == 0:
            place = group, "", captured["generation_id"]
            remember(self._generations, place, live["generation_id"], LIMITS.ids)
        rest = [each["member_id"] for each in live["members"]]
        known = {self.members.captured(each) for each in rest}
        missing = [e["member_id"] for e in captured["members"] if e["member_id"] not in known]
        strangers = [each for each in rest if self.members.captured(each) == each]
        if len(missing) == len(strangers) == 1:
            # The one whose own answer is not here yet.
            self._member(missing[0], strangers[0])

    def _member(self, captured: str | None, live: str | None) -> None:
        if captured and live:
            self.members.learn(captured, live)


def _resource_type(around: Mapping[str, Any]) -> Any:
    return around.get("resource_type", around.get("resource_type_filter"))


def _holds_records(slot: Slot) -> bool:
    _, wire = innermost(slot.wire)
    return isinstance(wire, BytesWire) and wire.records


def _is_topic_id(slot: Slot) -> bool:
    return slot.name == "topic_id" and isinstance(innermost(slot.wire)[1], UuidWire)


def _goes_to_live(slot: Slot) -> bool:
    return (
        (slot.field.entity or slot.field.subject) in KINDS
        or slot.name in GENERATIONS | UNCHECKED | {"node_id", SWITCH}
        or slot.name.endswith("producer_epoch")
        or _is_topic_id(slot)
        or _holds_records(slot)
    )


def _goes_to_captured(slot: Slot) -> bool:
    return (slot.field.entity or slot.field.subject) in KINDS or _is_topic_id(slot)


_TO_LIVE: Final = Picks(_goes_to_live)
_TO_CAPTURED: Final = Picks(_goes_to_captured)
_GROUPS: Final = Picks(lambda slot: slot.field.entity == "groupId")
