"""The laws that hold the products of one layout equal, for every message and version.

read(b) == parse(b), and both refuse every proper prefix
build(parse(b)) == b == write(parse(b))
the leaves of the tree tile the message
"""

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec import jsonform, structs, tree
from kafkascope.dissectors.codec.reader import REFUSALS, reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout, resolve
from kafkascope.dissectors.registry import decode_body, encode_body, example
from tests.kit.layouts import assert_tiles
from tests.matrix import mostly_slow
from tests.strategies import bodies

EXAMPLES = int(os.environ.get("LAW_EXAMPLES", settings().max_examples // 20))
LAW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def layouts() -> list[Layout]:
    """One of those that are equal: versions of a message often differ in meaning only."""
    found: dict[tuple[str, str], Layout] = {}
    for name in registry.message_names():
        message = registry.message(name)
        versions = range(message.versions.low, message.versions.high + 1)
        each = [resolve(message, version) for version in versions]
        each += [resolve(variant, variant.versions.low) for variant in message.variants]
        for layout in each:
            found.setdefault((name, repr(layout.body)), layout)
    return list(found.values())


def called(layout: Layout) -> str:
    return f"{layout.message.name}-{layout.version}-{layout.message.releases}".rstrip("-")


LAYOUTS = layouts()
NEWEST = {layout.message.name: layout for layout in LAYOUTS}
SOME = list(NEWEST.values())[::3]
each_layout = pytest.mark.parametrize(
    "layout", mostly_slow(LAYOUTS, lambda layout: any(layout is one for one in SOME)), ids=called
)
"""Fast: the newest of each third message, for laws about what all messages share."""


def prefixes(data: bytes, leaves: list[tree.Node]) -> list[int]:
    """All lengths up to 64; beyond, each leaf's boundary and its neighbours, and 16 at random."""
    ends = set(range(min(64, len(data))))
    for leaf in leaves:
        ends |= {leaf.start - 1, leaf.start, leaf.start + 1}
    ends |= set(random.Random(len(data)).choices(range(len(data) or 1), k=16))
    return sorted(end for end in ends if 0 <= end < len(data))


@each_layout
def test_products_agree(layout: Layout) -> None:
    read, write = reader(layout), writer(layout)

    @LAW
    @given(bodies(layout))
    def law(body: dict[str, object]) -> None:
        data = write(body)
        assert structs.build(layout, body) == data
        assert read(data, 0) == (body, len(data))
        assert structs.parse(layout, data) == (body, len(data))
        # A body that begins in the middle of a buffer, with bytes behind it.
        assert read(b"ab" + data + b"c", 2) == (body, len(data) + 2)

        root = tree.annotate(layout, data)
        leaves = [leaf for leaf in root.leaves() if leaf.end > leaf.start]
        assert root.value == body
        assert_tiles(root, len(data))

        for end in prefixes(data, leaves):
            with pytest.raises(REFUSALS):
                read(data[:end], 0)
            with pytest.raises(DissectError) as caught:
                structs.parse(layout, data[:end])
            assert 0 <= caught.value.offset <= end

        text = jsonform.dumps(body)
        again = jsonform.body_from_json(layout, jsonform.orjson.loads(text))
        assert again == body

    law()


@each_layout
def test_damaged_bytes_give_a_body_or_a_dissect_error(layout: Layout) -> None:
    read = reader(layout)

    @LAW
    @given(bodies(layout), st.data())
    def law(body: dict[str, object], draw: st.DataObject) -> None:
        data = bytearray(writer(layout)(body))
        if not data:
            return
        for _ in range(draw.draw(st.integers(1, 3))):
            at = draw.draw(st.integers(0, len(data) - 1))
            data[at] = draw.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        damaged = bytes(data)
        try:
            expected = structs.parse(layout, damaged)
        except DissectError:
            with pytest.raises(REFUSALS):
                read(damaged, 0)
        else:
            # As text: a NaN is not equal to itself.
            assert repr(read(damaged, 0)) == repr(expected)

    law()


# --- A broken tagged section says that it is the section that is broken ---------------------------


@pytest.mark.parametrize("section", [b"", b"\x05\x00", b"\x01\x05\x09aa", b"\x02\x05\x00\x03\x00"])
def test_the_section_is_named(section: bytes) -> None:
    body = encode_body("HeartbeatRequest", 4, example("HeartbeatRequest", 4))
    assert body.endswith(b"\0")
    with pytest.raises(DissectError) as caught:
        decode_body("HeartbeatRequest", 4, body[:-1] + section)
    assert caught.value.path == "_tagged_fields"


def test_the_section_of_an_inner_struct_has_the_path_to_it() -> None:
    topics = [{"topic": "a", "partitions": []}]
    body = encode_body("FetchRequest", 12, {**example("FetchRequest", 12), "topics": topics})
    at = body.index(b"\x02a\x01") + 3
    with pytest.raises(DissectError) as caught:
        decode_body("FetchRequest", 12, body[:at] + b"\xff\xff\xff\xff\xff\xff" + body[at + 1 :])
    assert caught.value.path == "topics[0]._tagged_fields"
