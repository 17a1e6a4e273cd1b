"""Facts of bodies: topics, partitions, groups, errors and records, as the kernel's walker finds
them in the bytes, by the trees of `trees`; and the names of topics that bodies give to ids."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.bodies.trees import node_of
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.walk import structs, visits
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire, UuidWire
from kafkascope.dissectors.values import Uuid
from kafkascope.kernel import walker
from kafkascope.kernel.walker import (
    ABSENT,
    Facts,
    Node,
    Texts,
    note_request,
    note_response,
    walk_request,
    walk_response,
)

if TYPE_CHECKING:
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.registry import Decoded

TEXTS: Final = Texts()
"""Names that were decoded, of all connections."""

ATTRIBUTES: Final = {
    walker.TOPIC: ("topics",),
    walker.EACH_TOPIC: ("topics",),
    walker.TOPIC_ID: ("topic_ids",),
    walker.EACH_ID: ("topic_ids",),
    walker.PARTITION: ("partitions",),
    walker.EACH_PARTITION: ("partitions",),
    walker.GROUP: ("groups",),
    walker.EACH_GROUP: ("groups",),
    walker.MEMBER: ("members",),
    walker.GENERATION: ("generations",),
    walker.PRODUCER_ID: ("producer_ids",),
    walker.EACH_PRODUCER: ("producer_ids",),
    walker.PRODUCER_EPOCH: ("producer_epochs",),
    walker.TRANSACTIONAL_ID: ("transactional_ids",),
    walker.EACH_TRANSACTION: ("transactional_ids",),
    walker.ACKS: ("acks",),
    walker.THROTTLE: ("throttle_ms",),
    walker.BASE_OFFSET: ("offset",),
    walker.RECORDS: ("blobs",),
    walker.NULLABLE_RECORDS: ("blobs",),
    walker.COORDINATOR_KEY: ("groups", "transactional_ids"),
    walker.ERROR: ("errors",),
    walker.SECOND_ERROR: ("errors",),
}
"""What of `BodyFacts` a field fills, by its role."""


class BodyFacts(NamedTuple):
    """Facts of the two bodies of an exchange, in the order of the wire, without duplicates."""

    topics: tuple[str, ...] = ()
    topic_ids: tuple[bytes, ...] = ()
    partitions: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    generations: tuple[int, ...] = ()
    producer_ids: tuple[int, ...] = ()
    producer_epochs: tuple[int, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    errors: tuple[tuple[Any, ...], ...] = ()
    """Tuples (code, top, topic, topic id, partition, group, message); each that there is."""
    blobs: list[bytes] | tuple[Any, ...] | None = None
    """Contents of records fields, or what the kernel counted in them: the first fields of
    `contents.Contents`. None when the message has no such field. Empty bytes stand for null in a
    Fetch response; empty fields are left out."""
    acks: int | None = None
    throttle_ms: int = 0
    offset: int | None = None


NO_FACTS: Final = BodyFacts()


def facts_of(found: Facts, blobs: list[bytes] | tuple[Any, ...] | None) -> BodyFacts:
    """Return what the walker has found; `blobs`: as `BodyFacts` has them."""
    return BodyFacts(
        tuple(found.topics or ()),
        tuple(map(Uuid, found.topic_ids or ())),
        tuple(found.partitions or ()),
        tuple(found.groups or ()),
        tuple(found.members or ()),
        tuple(found.generations or ()),
        tuple(found.producer_ids or ()),
        tuple(found.producer_epochs or ()),
        tuple(found.transactional_ids or ()),
        tuple(found.errors or ()),
        blobs,
        None if found.acks == ABSENT else found.acks,
        found.throttle,
        None if found.base_offset == ABSENT else found.base_offset,
    )


def blobs_of(found: Facts, data: bytes) -> list[bytes]:
    """Return the records fields of the message that was walked last."""
    spans = found.spans or ()
    return [data[at : at + size] for at, size in zip(spans[::2], spans[1::2], strict=True)]


def facts_in(
    request: Decoded | None, response: Decoded | None, payloads: tuple[bytes, bytes]
) -> BodyFacts:
    """Return what the bodies of an exchange say, as far as they could be decoded. `payloads`: those
    of both messages, empty for one that is None."""
    found, blobs = Facts(TEXTS), []
    messages = zip((request, response), payloads, (walk_request, walk_response), strict=True)
    for decoded, data, walk in messages:
        if decoded is not None:
            found.spans = None
            walk(node_of(decoded.layout), data, decoded.body_at, decoded.end, found)
            blobs += blobs_of(found, data)
    return facts_of(found, blobs if found.carries else None)


def facts_of_bodies(
    request: tuple[Layout | None, Body | None], response: tuple[Layout | None, Body | None]
) -> BodyFacts:
    """Return what bodies say that come without bytes, and without contents of records."""
    found = Facts(TEXTS)
    for (layout, body), note in ((request, note_request), (response, note_response)):
        if layout is not None and body is not None:
            note(node_of(layout), body, found)
    return facts_of(found, None)


@cache
def attributes(layout: Layout) -> frozenset[str]:
    """Return the attributes of `BodyFacts` that a body of a layout can fill."""
    return frozenset(_filled(node_of(layout)))


def _filled(node: Node) -> set[str]:
    inside = map(_filled, (*node.kids, *node.tags))
    return set(ATTRIBUTES.get(node.role, ())).union(*inside)


def teaches(layout: Layout) -> bool:
    """Return whether a body may hold pairs of topic id and name."""
    return visits(layout, _pair_of) is not None


def learn(layout: Layout, body: dict[str, Any], names: TopicNames) -> None:
    """Learn the names of topics in a body."""
    for (topic_id, name), struct in structs(layout, body, _pair_of):
        names.learn(struct[topic_id], struct[name])


def _pair_of(wire: StructWire) -> tuple[str, str] | None:
    """Return the fields of the topic's id and name where a struct has both."""
    slots = (*wire.slots, *wire.tags)
    ids = [s.name for s in slots if isinstance(s.wire, UuidWire) and "topic_id" in s.name]
    names = [
        s.name for s in slots if s.field.entity == "topicName" and not isinstance(s.wire, ArrayWire)
    ]
    return (ids[0], names[0]) if ids and names else None
