"""Splits a request for several brokers into a part for each, and merges their responses.

Which fields say for whom an element is stands in the declarations: topics and groups are entities,
partitions are numbers beside them. Sans-I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from copy import copy
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import Picks, struct_of
from kafkascope.dissectors.layout import ArrayWire, Layout, NumberWire, Slot, StructWire, Wire

PARTITION_NAMES: Final = ("partition", "partition_index", "index")

# (topic by name or id, partition) -> node.
LeaderOf: TypeAlias = Callable[[str | bytes, int], int]
CoordinatorOf: TypeAlias = Callable[[str], int]


class TopicArray(NamedTuple):
    """An array of topics in a body."""

    name: str
    wire: StructWire
    """Layout of a topic."""
    partitions: tuple[tuple[str, str], ...]
    """Its arrays about partitions, each with the field that numbers them: "" for numbers."""


@cache
def _topic_arrays(layout: Layout) -> tuple[TopicArray, ...]:
    found = []
    for slot in layout.body.slots:
        wire = struct_of(slot.wire) if isinstance(slot.wire, ArrayWire) else None
        if wire is not None and any(map(_names_topic, wire.slots)):
            arrays = ((inner.name, _partition_name(inner.wire)) for inner in wire.slots)
            numbered = tuple((name, number) for name, number in arrays if number is not None)
            found.append(TopicArray(slot.name, wire, numbered))
    return tuple(found)


def by_leader(layout: Layout, body: Body, leader_of: LeaderOf) -> dict[int, Body]:
    """Node -> its part of a request about partitions; all of it where one node leads them. A
    request about none is for node -1."""
    nodes = {leader_of(topic, number) for topic, number, _ in partitions(layout, body)}
    if len(nodes) <= 1:
        return {nodes.pop() if nodes else -1: body}
    parts: dict[int, Body] = {}
    arrays = _topic_arrays(layout)
    for array in arrays:
        for each in body[array.name] or ():
            for node, share in _shares(array, each, leader_of).items():
                if node not in parts:
                    parts[node] = {**body, **{other.name: [] for other in arrays}}
                parts[node][array.name].append(share)
    return parts or {-1: body}


def _shares(array: TopicArray, value: Body, leader_of: LeaderOf) -> dict[int, Body]:
    topic = topic_in(array.wire, value)
    shares: dict[int, Body] = {}
    for inner, number in array.partitions:
        for each in value[inner] or ():
            node = leader_of(topic, each[number] if number else each)
            if node not in shares:
                shares[node] = {**value, **{name: [] for name, _ in array.partitions}}
            shares[node][inner].append(each)
    return shares


def partitions(layout: Layout, body: Body) -> Iterator[tuple[str | bytes, int, Any]]:
    """Yield the partitions that a body is about: the topic by name or id, a number, and what the
    body says of it, which may be the number alone."""
    for array in _topic_arrays(layout):
        for each in body[array.name] or ():
            topic = topic_in(array.wire, each)
            for inner, number in array.partitions:
                for part in each[inner] or ():
                    yield topic, part[number] if number else part, part


def failed_partitions(layout: Layout, body: Body, codes: frozenset[int]) -> set[tuple[Any, int]]:
    return {
        (topic, number)
        for topic, number, part in partitions(layout, body)
        if isinstance(part, Mapping) and part.get("error_code") in codes
    }


def parted(
    layout: Layout, body: Body, chosen: set[tuple[Any, int]]
) -> tuple[Body | None, Body | None]:
    """The part of a body that is about other partitions, and that about these; None when nothing
    is."""
    parts = by_leader(layout, body, lambda *partition: int(partition in chosen))
    return parts.get(0), parts.get(1)


def by_coordinator(
    layout: Layout, body: Body, node_of: CoordinatorOf, entity: str
) -> dict[int, Body]:
    """Node -> its part of a request about groups or transactional ids (`entity`)."""
    for slot in layout.body.slots:
        if not isinstance(slot.wire, ArrayWire):
            continue
        name = _named(slot, entity)
        if name is None:
            continue
        parts: dict[int, Body] = {}
        for each in body[slot.name] or ():
            node = node_of(each[name] if name else each)
            parts.setdefault(node, {**body, slot.name: []})[slot.name].append(each)
        if parts:
            return parts
    for slot in layout.body.slots:
        if slot.field.entity == entity and isinstance(body[slot.name], str) and body[slot.name]:
            return {node_of(body[slot.name]): body}
    return {-1: body}


def entities(layout: Layout, body: Body, entity: str) -> list[str]:
    found = _picks_of(entity).values(layout, body)
    return list(dict.fromkeys(value for value in found if isinstance(value, str) and value))


def topics(layout: Layout, body: Body) -> set[str | bytes]:
    return {value for value in _TOPICS.values(layout, body) if value}


def errors(layout: Layout, body: Body) -> list[int]:
    return [value for value in _ERRORS.values(layout, body) if value]


_ERRORS: Final = Picks(lambda slot: slot.field.enum == "ErrorCode")


@cache
def _picks_of(entity: str) -> Picks:
    return Picks(lambda slot: slot.field.entity == entity)


def _named(slot: Slot, entity: str) -> str | None:
    """The field of the array's elements that names the entity; "" when the elements do."""
    assert isinstance(slot.wire, ArrayWire)
    element = slot.wire.element
    if not isinstance(element, StructWire):
        return "" if slot.field.entity == entity else None
    return next((each.name for each in element.slots if each.field.entity == entity), None)


def _names_topic(slot: Slot) -> bool:
    return slot.field.entity == "topicName" or slot.name == "topic_id"


_TOPICS: Final = Picks(_names_topic)


def topic_in(wire: StructWire, value: Body) -> str | bytes:
    """The topic of an element: its name, or its id."""
    for slot in wire.slots:
        if _names_topic(slot) and value[slot.name]:
            found = value[slot.name]
            if isinstance(found, str) or any(found):
                return found  # type: ignore[no-any-return]
    return ""


def topic_of(element: Body) -> str | bytes:
    """The topic of an element whose fields are known: its name, or its id."""
    return element.get("topic") or element.get("name") or bytes(element.get("topic_id") or b"")


def _partition_name(wire: Wire) -> str | None:
    """The field that numbers the partitions of an array; "" when the elements are the numbers."""
    element = wire.element if isinstance(wire, ArrayWire) else None
    if isinstance(element, NumberWire):
        return ""
    slots = element.slots if isinstance(element, StructWire) else ()
    return next((slot.name for slot in slots if slot.name in PARTITION_NAMES), None)


def merged(layout: Layout, bodies: list[Body]) -> Body:
    """The responses to the parts of a request as one: arrays put together (topics that several
    have, by topic), the first error, the longest throttle."""
    out = copy(bodies[0])
    for slot in (*layout.body.slots, *layout.body.tags):
        values = [body[slot.name] for body in bodies]
        if isinstance(slot.wire, ArrayWire):
            out[slot.name] = _joined(slot.wire, values)
        elif slot.field.enum == "ErrorCode":
            out[slot.name] = next((value for value in values if value), 0)
        elif slot.name == "throttle_time_ms":
            out[slot.name] = max(values)
    return out


def _joined(wire: ArrayWire, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    element = wire.element
    if not isinstance(element, StructWire) or not any(map(_names_topic, element.slots)):
        return list({repr(each): each for value in known for each in value}.values())
    topics: dict[Hashable, Body] = {}
    for each in (each for value in known for each in value):
        topic = topic_in(element, each)
        if topic not in topics:
            topics[topic] = copy(each)
            continue
        for slot in element.slots:
            if isinstance(slot.wire, ArrayWire):
                both = (topics[topic][slot.name], each[slot.name])
                topics[topic][slot.name] = [one for some in both for one in some or ()]
    return list(topics.values())
