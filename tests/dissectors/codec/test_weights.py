"""Bodies that would take too much memory are refused before they do, by both readers alike; trees
of large ones show a part."""

from __future__ import annotations

import gc
import struct

import pytest

from kafkascope.dissectors.codec.reader import UNKNOWN_TAG_WEIGHT, weight
from kafkascope.dissectors.codec.structs import parse
from kafkascope.dissectors.codec.tree import REST, Node, annotate
from kafkascope.dissectors.errors import DissectError, TooLarge
from kafkascope.dissectors.layout import ArrayWire, StructWire
from kafkascope.dissectors.limits import LIMITS, DissectorLimits
from kafkascope.dissectors.registry import (
    decode_body,
    encode_body,
    example,
    layout_of,
    read_request_header,
)
from kafkascope.dissectors.values import write_uvarint

MILLION = 1 << 20


def empty_topics(count: int) -> bytes:
    """An OffsetFetch response of topics without name and partitions."""
    return struct.pack(">i", count) + bytes(6 * count)


def unknown_tags(count: int) -> bytes:
    section = [write_uvarint(count)]
    section += [write_uvarint(100 + tag) + b"\0" for tag in range(count)]
    return b"".join(section)


def element_of(wire: StructWire, name: str) -> StructWire:
    array = next(slot.wire for slot in wire.slots if slot.name == name)
    assert isinstance(array, ArrayWire)
    assert isinstance(array.element, StructWire)
    return array.element


def test_a_million_empty_topics_are_too_large() -> None:
    data = empty_topics(MILLION)
    for read in (
        lambda: decode_body("OffsetFetchResponse", 0, data),
        lambda: parse(layout_of("OffsetFetchResponse", 0), data),
    ):
        with pytest.raises(TooLarge, match="128 MB") as raised:
            read()
        assert raised.value.offset == 4


def test_so_are_very_many_unknown_tags() -> None:
    count = LIMITS.body_bytes // UNKNOWN_TAG_WEIGHT + 1
    plain = encode_body("MetadataRequest", 12, example("MetadataRequest", 12))
    data = plain[:-1] + unknown_tags(count)
    for read in (
        lambda: decode_body("MetadataRequest", 12, data),
        lambda: parse(layout_of("MetadataRequest", 12), data),
    ):
        with pytest.raises(TooLarge):
            read()
    head = struct.pack(">hhih", 3, 12, 1, -1) + unknown_tags(count)
    with pytest.raises(TooLarge):
        read_request_header(head)


def test_a_large_cluster_is_not() -> None:
    layout = layout_of("MetadataResponse", 12)
    topics = element_of(layout.body, "topics")
    each = 8 + weight(element_of(topics, "partitions")) + 6 * (8 + 32)
    assert 140_000 * each < LIMITS.body_bytes


def test_what_is_beyond_the_limit_shares_a_node() -> None:
    data = empty_topics(100)
    root = annotate(layout_of("OffsetFetchResponse", 0), data, limits=DissectorLimits(nodes=50))
    (topics,) = root.children
    rest = topics.children[-1]
    shown = len(topics.children) - 2
    assert (rest.name, rest.value) == (REST, 100 - shown)
    assert 0 < shown < 20
    at = 0
    for leaf in root.leaves():
        assert leaf.start == at
        at = leaf.end
    assert at == len(data)


def test_unknown_tags_beyond_it_too() -> None:
    plain = encode_body("MetadataRequest", 12, example("MetadataRequest", 12))
    data = plain[:-1] + unknown_tags(100)
    root = annotate(layout_of("MetadataRequest", 12), data, limits=DissectorLimits(nodes=60))
    section = root.children[-1]
    shown = [node for node in section.children if node.name == "tag"]
    rest = section.children[-1]
    assert rest.name == REST
    assert 0 <= rest.value + len(shown) - 100 <= 1
    at = 0
    for leaf in root.leaves():
        assert leaf.start == at
        at = leaf.end
    assert at == len(data)


# --- trees of messages: what making one leaves behind ---------------------------------------------


COUNT = 1_000


def kept() -> int:
    """Nodes that nobody but the garbage collector can let go of."""
    return sum(type(each) is Node for each in gc.get_objects())


@pytest.mark.parametrize("cut", [0, 10])
def test_a_tree_goes_with_its_last_reader(cut: int) -> None:
    topics = [{"name": f"t{number}"} for number in range(COUNT)]
    data = encode_body("MetadataRequest", 1, {"topics": topics})
    layout = layout_of("MetadataRequest", 1)
    gc.collect()
    gc.disable()
    try:
        before = kept()
        if cut:
            with pytest.raises(DissectError):
                annotate(layout, data[:-cut])
        else:
            tree = annotate(layout, data)
            assert kept() - before > COUNT
            del tree
        assert kept() == before
    finally:
        gc.enable()
