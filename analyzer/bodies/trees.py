"""Makes the trees that the walker goes over, from the layouts of messages.

Which field is what follows from the marks of the declarations (entity) and Kafka's names.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from kafkascope.dissectors.codec.reader import weight
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    minimum_size,
)
from kafkascope.kernel import walker
from kafkascope.kernel.walker import Node

PARTITION_NAMES: Final = frozenset({"partition", "partition_index", "partition_id"})
"""Fields with partition numbers; `index` is one too inside a topic."""
PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
GENERATIONS: Final = frozenset(
    {"generation_id", "generation", "member_epoch", "generation_id_or_member_epoch"}
)
ENTITIES: Final = {
    "topicName": (walker.TOPIC, walker.EACH_TOPIC),
    "groupId": (walker.GROUP, walker.EACH_GROUP),
    "producerId": (walker.PRODUCER_ID, walker.EACH_PRODUCER),
    "transactionalId": (walker.TRANSACTIONAL_ID, walker.EACH_TRANSACTION),
}
"""Roles of a field, and of the elements of an array, by the entity of their declaration."""

PARTS: Final = {
    "partition": walker.P_INDEX,
    "partition_index": walker.P_INDEX,
    "index": walker.P_INDEX,
    "error_code": walker.P_ERROR,
    "high_watermark": walker.P_HIGH,
    "last_stable_offset": walker.P_STABLE,
    "log_start_offset": walker.P_START,
    "preferred_read_replica": walker.P_ELSEWHERE,
    "records": walker.P_RECORDS,
    "fetch_offset": walker.P_OFFSET,
    "base_offset": walker.P_BASE,
}
"""Fields of a partition in Produce and Fetch."""
TOPS: Final = {
    "replica_id": walker.F_REPLICA,
    "max_wait_ms": walker.F_MAX_WAIT,
    "min_bytes": walker.F_MIN_BYTES,
    "max_bytes": walker.F_MAX_BYTES,
    "isolation_level": walker.F_ISOLATION,
    "session_id": walker.F_SESSION,
    "session_epoch": walker.F_EPOCH,
    "error_code": walker.F_ERROR,
}
"""Fields of the body."""
STATE: Final = frozenset({"ProduceRequest", "ProduceResponse", "FetchRequest", "FetchResponse"})
"""Messages of whose partitions the state of a connection wants to know."""

WAITS: Final = frozenset({"JoinGroupResponse", "SyncGroupResponse"})
"""Messages that come late on purpose unless they are an error."""


class _Making:
    def __init__(self, layout: Layout) -> None:
        self.message = layout.message.name
        self.response = layout.message.kind == "response"
        self.state = self.message in STATE
        self.waits = self.message in WAITS
        self.coordinator = self.message == "FindCoordinatorRequest"

    def struct(self, wire: StructWire, in_topic: bool, path: tuple[str, ...]) -> Node:
        node = Node(walker.STRUCT)
        node.flexible, node.nullable = wire.flexible, wire.nullable
        node.top = not path
        slots = (*wire.slots, *wire.tags)
        in_topic = in_topic or any(map(_names_topic, slots))
        roles = self.errors(slots)
        node.errors = walker.ERROR in roles.values()
        kids = [self.slot(slot, in_topic, path, roles) for slot in wire.slots]
        node.kids = _joined(kids)
        for slot in wire.tags:
            tagged = self.slot(slot, in_topic, path, roles)
            tagged.tag = slot.tag if slot.tag is not None else -1
            node.tags.append(tagged)
        for kid, slot in zip((*kids, *node.tags), slots, strict=True):
            kid.name = slot.name
            if _is_noted(kid):
                node.noted.append(kid)
        mine = (walker.TOPIC, walker.TOPIC_ID, walker.PARTITION, walker.GROUP)
        node.scoped = any(each.role in mine for each in (*node.kids, *node.tags))
        return node

    def errors(self, slots: tuple[Slot, ...]) -> dict[str, int]:
        if not self.response:
            return {}
        roles: dict[str, int] = {}
        pairs = (
            (walker.ERROR, walker.MESSAGE),
            (walker.SECOND_ERROR, walker.SECOND_MESSAGE),
        )
        codes = [
            slot.name
            for slot in slots
            if slot.name.endswith("error_code") and isinstance(slot.wire, NumberWire)
        ]
        names = {slot.name for slot in slots}
        for name, (code, message) in zip(codes, pairs, strict=False):
            roles[name] = code
            text = name.removesuffix("code") + "message"
            if text in names:
                roles[text] = message
        assert len(codes) <= len(pairs)
        return roles

    def slot(
        self, slot: Slot, in_topic: bool, path: tuple[str, ...], roles: dict[str, int]
    ) -> Node:
        name, wire = slot.name, slot.wire
        role = roles.get(name, 0)
        if self.coordinator and name == "key_type":
            role = walker.KEY_TYPE
        elif self.coordinator and name in ("key", "coordinator_keys"):
            role = walker.COORDINATOR_KEY
        node = self.value(wire, in_topic, (*path, name), role or self.role(slot, in_topic))
        if self.state:
            self.note_state(node, slot, path)
        elif self.waits and not path and name == "error_code":
            node.kind, node.part = walker.NUMBER, walker.F_ERROR
        return node

    def note_state(self, node: Node, slot: Slot, path: tuple[str, ...]) -> None:
        """Say what a field of Produce or Fetch is for the state of a connection."""
        name = slot.name
        if not path:
            node.part = TOPS.get(name, 0)
            if name == "rack_id":
                node.role = walker.RACK
            if name == "node_endpoints":
                node.part = walker.F_ENDPOINTS
        elif path == ("replica_state",) and name == "replica_id":
            node.part = walker.F_REPLICA
        elif path == ("forgotten_topics_data",) and name == "partitions":
            for each in node.kids:
                each.part = walker.P_FORGOTTEN
            node.fixed = 0
        elif path[-1].startswith("partition") and len(path) == 2:
            node.part = PARTS.get(name, 0)
        if node.part and node.kind == walker.SKIP and isinstance(slot.wire, NumberWire):
            node.kind = walker.NUMBER

    def role(self, slot: Slot, in_topic: bool) -> int:
        name, wire, entity = slot.name, slot.wire, slot.field.entity
        if isinstance(wire, ArrayWire):
            element = wire.element
            if isinstance(element, StructWire | ArrayWire):
                return 0
            if entity in ENTITIES:
                return ENTITIES[entity][1]
            if isinstance(element, UuidWire) and "topic_id" in name:
                return walker.EACH_ID
            if name in PARTITION_LISTS and in_topic:
                return walker.EACH_PARTITION
            return 0
        if isinstance(wire, StructWire):
            return 0
        if isinstance(wire, BytesWire):
            if not wire.records or name.startswith("unaligned"):
                return 0
            return walker.NULLABLE_RECORDS if self.message == "FetchResponse" else walker.RECORDS
        if isinstance(wire, UuidWire):
            return walker.TOPIC_ID if "topic_id" in name else 0
        if entity in ENTITIES and not name.startswith("owner"):
            return ENTITIES[entity][0]
        if isinstance(wire, NumberWire):
            return self.number(name, in_topic)
        return walker.MEMBER if name == "member_id" else 0

    def number(self, name: str, in_topic: bool) -> int:
        if name in PARTITION_NAMES or (name == "index" and in_topic):
            return walker.PARTITION
        if name in GENERATIONS:
            return walker.GENERATION
        return {
            "producer_epoch": walker.PRODUCER_EPOCH,
            "throttle_time_ms": walker.THROTTLE,
            "acks": walker.ACKS,
            "base_offset": walker.BASE_OFFSET,
        }.get(name, 0)

    def value(self, wire: Wire, in_topic: bool, path: tuple[str, ...], role: int) -> Node:
        match wire:
            case NumberWire():
                node = Node(walker.NUMBER if role else walker.SKIP)
                node.size, node.signed = wire.size, wire.code.islower()
            case BoolWire():
                node = Node(walker.SKIP)
                node.size = 1
            case UuidWire():
                node = Node(walker.UUID if role else walker.SKIP)
                node.size = 16
            case StringWire():
                node = Node(walker.STRING)
                node.compact, node.nullable, node.long = wire.compact, wire.nullable, wire.long
            case BytesWire():
                node = Node(walker.BYTES)
                node.compact, node.nullable = wire.compact, wire.nullable
            case ArrayWire():
                return self.array(wire, in_topic, path, role)
            case StructWire():
                return self.struct(wire, in_topic, path)
        node.role = role
        return node

    def array(self, wire: ArrayWire, in_topic: bool, path: tuple[str, ...], role: int) -> Node:
        assert not wire.operations
        node = Node(walker.ARRAY)
        node.compact, node.nullable = wire.compact, wire.nullable
        node.least = max(1, minimum_size(wire.element))
        node.weight = 8 + weight(wire.element)
        element = self.value(wire.element, in_topic, path, role)
        node.kids = [element]
        if element.kind == walker.SKIP:
            node.fixed = element.size
        elif element.kind == walker.STRUCT and _is_skipped(element):
            node.fixed = element.kids[0].size
        return node


def _names_topic(slot: Slot) -> bool:
    if isinstance(slot.wire, UuidWire):
        return "topic_id" in slot.name
    named = slot.field.entity == "topicName" and not slot.name.startswith("owner")
    return named and isinstance(slot.wire, StringWire)


def _is_skipped(node: Node) -> bool:
    if node.flexible or node.nullable or len(node.kids) != 1:
        return False
    return node.kids[0].kind == walker.SKIP


def _is_noted(node: Node) -> bool:
    return bool(node.role or node.noted) or any(map(_is_noted, node.kids))


def _joined(kids: list[Node]) -> list[Node]:
    out: list[Node] = []
    for kid in kids:
        if kid.kind == walker.SKIP and out and out[-1].kind == walker.SKIP:
            more = Node(walker.SKIP)
            more.size = out[-1].size + kid.size
            out[-1] = more
        else:
            out.append(kid)
    return out


@cache
def node_of(layout: Layout) -> Node:
    """Return the tree of a layout of Kafka."""
    return _Making(layout).struct(layout.body, False, ())
