"""Bodies that would take too much memory are refused before they do, by both readers alike; trees
of large ones show a part."""

import gc
import struct
from functools import partial

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.reader import UNKNOWN_TAG_WEIGHT, weight
from kafkascope.dissectors.codec.structs import parse
from kafkascope.dissectors.codec.tree import REST, Node, annotate
from kafkascope.dissectors.errors import DissectError, TooLarge
from kafkascope.dissectors.limits import LIMITS, DissectorLimits
from kafkascope.dissectors.registry import decode_body, encode_body, example, layout_of
from kafkascope.dissectors.values import write_uvarint
from tests.kit.layouts import assert_tiles, struct_of

MILLION = 1 << 20


def empty_topics(count: int) -> bytes:
    """An OffsetFetch response of topics without name and partitions."""
    return struct.pack(">i", count) + bytes(6 * count)


def unknown_tags(count: int) -> bytes:
    section = [write_uvarint(count)]
    section += [write_uvarint(100 + tag) + b"\0" for tag in range(count)]
    return b"".join(section)


def refusals(name: str, version: int, data: bytes) -> list[TooLarge]:
    """The errors of both readers."""
    errors = []
    for read in (partial(decode_body, name, version), partial(parse, layout_of(name, version))):
        with pytest.raises(TooLarge) as raised:
            read(data)
        errors.append(raised.value)
    return errors


def test_a_million_empty_topics_are_too_large() -> None:
    for error in refusals("OffsetFetchResponse", 0, empty_topics(MILLION)):
        assert "128 MB" in str(error)
        assert error.offset == 4


def test_so_are_very_many_unknown_tags() -> None:
    count = LIMITS.body_bytes // UNKNOWN_TAG_WEIGHT + 1
    plain = encode_body("MetadataRequest", 12, example("MetadataRequest", 12))
    refusals("MetadataRequest", 12, plain[:-1] + unknown_tags(count))
    head = struct.pack(">hhih", 3, 12, 1, -1) + unknown_tags(count)
    with pytest.raises(TooLarge):
        registry.read_request_header(head)


def test_a_large_cluster_is_not() -> None:
    layout = layout_of("MetadataResponse", 12)
    topics = struct_of(layout.body, "topics")
    each = 8 + weight(struct_of(topics, "partitions")) + 6 * (8 + 32)
    assert 140_000 * each < LIMITS.body_bytes


def test_what_is_beyond_the_limit_shares_a_node() -> None:
    data = empty_topics(100)
    root = annotate(layout_of("OffsetFetchResponse", 0), data, limits=DissectorLimits(nodes=50))
    (topics,) = root.children
    rest = topics.children[-1]
    shown = len(topics.children) - 2
    assert (rest.name, rest.value) == (REST, 100 - shown)
    assert 0 < shown < 20
    assert_tiles(root, len(data))


def test_unknown_tags_beyond_it_too() -> None:
    plain = encode_body("MetadataRequest", 12, example("MetadataRequest", 12))
    data = plain[:-1] + unknown_tags(100)
    root = annotate(layout_of("MetadataRequest", 12), data, limits=DissectorLimits(nodes=60))
    section = root.children[-1]
    shown = [node for node in section.children if node.name == "tag"]
    rest = section.children[-1]
    assert rest.name == REST
    assert 0 <= rest.value + len(shown) - 100 <= 1
    assert_tiles(root, len(data))


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
