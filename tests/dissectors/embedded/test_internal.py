"""Records that Kafka writes for itself: what was encoded comes back by topic, key and value."""

import struct
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.embedded import internal
from kafkascope.dissectors.embedded.internal import COORDINATOR_TOPICS, FRAMED_TOPICS, decode
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated, UnknownVersion
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.messages import DATA
from kafkascope.dissectors.registry import example, layout_of, message, variants_of, write_layout
from kafkascope.dissectors.schema import Message
from kafkascope.dissectors.values import write_uvarint
from tests.strategies import bodies


def declared(module: str) -> list[Message]:
    return [message(name) for name, home in DATA.items() if home == module]


PAIRS = [
    (topic, key, next(v for v in found if v.kind == "coordinator-value" and v.key == key.key))
    for topic, modules in COORDINATOR_TOPICS.items()
    for found in [[each for module in modules for each in declared(module)]]
    for key in found
    if key.kind == "coordinator-key"
]
FRAMED = [(t, each) for t, module in FRAMED_TOPICS.items() for each in declared(module)]


def versions(declaration: Message) -> range:
    return range(declaration.versions.low, declaration.versions.high + 1)


def layouts(declaration: Message) -> list[Layout]:
    name = declaration.name
    return [layout_of(name, version) for version in versions(declaration)]


def short(number: int) -> bytes:
    return struct.pack(">h", number)


def framed(declaration: Message, version: int, body: bytes, frame: int = 1) -> bytes:
    head = (frame, declaration.key, version)
    return b"".join(map(write_uvarint, head)) + body


def test_every_declaration_of_an_internal_record_is_reached() -> None:
    reached = {name for _, key, value in PAIRS for name in (key.name, value.name)}
    reached |= {each.name for _, each in FRAMED}
    kinds = ("coordinator-key", "coordinator-value", "metadata")
    assert reached == {name for name in DATA if message(name).kind in kinds}


VALUES = [*FRAMED, *((topic, value) for topic, _, value in PAIRS)]
KEYS = {value.name: key for _, key, value in PAIRS}


def record_of(
    declaration: Message, layout: Layout, body: Any, key: Any = None, frame: int = 1
) -> tuple[bytes | None, bytes]:
    """Key and value of a record; `key`: the body of the key, where it has one."""
    content = write_layout(layout, body)
    if declaration.name not in KEYS:
        return None, framed(declaration, layout.version, content, frame)
    named = KEYS[declaration.name].name
    key_content = write_layout(layout_of(named, 0), example(named, 0) if key is None else key)
    return short(declaration.key or 0) + key_content, short(layout.version) + content


@pytest.mark.parametrize(
    ("topic", "declaration"), VALUES, ids=lambda each: getattr(each, "name", each)
)
@given(data=st.data())
@settings(max_examples=5)
def test_records(topic: str, declaration: Message, data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(layouts(declaration)))
    body, key = data.draw(bodies(layout)), KEYS.get(declaration.name)
    key_body = key and data.draw(bodies(layout_of(key.name, 0)))
    found = decode(
        topic, *record_of(declaration, layout, body, key_body, data.draw(st.integers(0, 1)))
    )
    assert found.error is None
    assert (found.value.message, found.value.version) == (declaration.name, layout.version)
    if key is not None:
        assert (found.key.message, found.key.body, found.key.surplus) == (key.name, key_body, 0)
    if not found.value.note:  # a variant may fit bytes with unknown tags better
        assert found.value.body == body


VARIANTS = [
    (topic, declaration, layout)
    for topic, declaration in VALUES
    for version in versions(declaration)
    for layout in variants_of(declaration.name, version)
]


@pytest.mark.parametrize(
    ("topic", "declaration", "layout"), VARIANTS, ids=lambda each: getattr(each, "name", "")
)
@given(data=st.data())
@settings(max_examples=6)
def test_a_layout_of_other_releases_is_taken_where_only_it_fits(
    topic: str, declaration: Message, layout: Layout, data: st.DataObject
) -> None:
    body = data.draw(bodies(layout))
    assume("_tagged_fields" not in repr(body))
    found = decode(topic, *record_of(declaration, layout, body))
    assert found.error is None
    assert found.value.surplus == 0
    # The main layout goes first, and now and then it takes these bytes, too.
    if found.value.note:
        assert found.value.note.startswith("layout of Kafka ")


def test_there_are_variants_of_both_kinds() -> None:
    assert {declaration.kind for _, declaration, _ in VARIANTS} == {"metadata", "coordinator-value"}


def test_the_metadata_log_goes_by_its_id_too() -> None:
    value = framed(message("NoOpRecord"), 0, b"\0")
    for found in (
        decode(None, None, value, topic_id=internal.CLUSTER_METADATA_ID),
        decode("__cluster_metadata", None, value),
    ):
        assert found.value.message == "NoOpRecord"
    assert internal.is_internal(None, internal.CLUSTER_METADATA_ID)
    assert not internal.is_internal("orders")
    assert decode("orders", b"k", b"v") is None


@pytest.mark.parametrize(
    ("topic", "key", "value", "fields"),
    [  # as connect-mirror 4.3.1 writes them
        ("src.checkpoints.internal", "000367727000097372632e6c696e657300000003",
         "00000000000000000064000000000000005a00046d657461",
         ("grp", "src.lines", 3, 100, 90, "meta")),
        ("mm2-offset-syncs.dst.internal", "00056c696e657300000001",
         "00000000000000050000000000000004", ("lines", 1, 5, 4)),
    ],
)  # fmt: skip
def test_records_of_mirror_maker(
    topic: str, key: str, value: str, fields: tuple[object, ...]
) -> None:
    found = decode(topic, bytes.fromhex(key), bytes.fromhex(value))
    assert (*found.key.body.values(), *found.value.body.values()) == fields
    assert (found.key.surplus, found.value.surplus) == (0, 0)


def test_a_null_value_deletes() -> None:
    key = short(2) + short(3) + b"abc"
    found = decode("__consumer_offsets", key, None)
    assert found.key.body == {"group": "abc"}
    assert (found.value, found.error) == (None, None)


@pytest.mark.parametrize(
    ("topic", "key", "value", "error"),
    [
        ("__consumer_offsets", None, b"", Malformed),
        ("__consumer_offsets", b"\0", None, Truncated),
        ("__consumer_offsets", short(999), None, Malformed),
        ("__consumer_offsets", short(2) + short(9) + b"ab", None, Truncated),
        ("__transaction_state", short(0) + short(1) + b"t", short(99), UnknownVersion),
        ("__cluster_metadata", None, b"", Truncated),
        ("__cluster_metadata", None, b"\x02\x14\0\0", UnknownVersion),
        ("__cluster_metadata", None, b"\x01\x7f\0\0", Malformed),
        ("__remote_log_metadata", None, b"\x01\0\x7f", UnknownVersion),
        ("a.checkpoints.internal", short(1) + b"g" + short(1) + b"t" + bytes(4), b"", Truncated),
        ("a.checkpoints.internal", None, short(1) + bytes(18), UnknownVersion),
        ("mm2-offset-syncs.b.internal", short(1), None, Truncated),
    ],
)
def test_what_cannot_be_decoded_says_why(
    topic: str, key: bytes | None, value: bytes | None, error: type[DissectError]
) -> None:
    found = decode(topic, key, value)
    assert isinstance(found.error, error)
    assert found.value is None


def test_the_key_stays_when_the_value_cannot_be_decoded() -> None:
    found = decode("__transaction_state", short(0) + short(1) + b"t", short(99))
    assert found.key.body == {"transactional_id": "t"}


# --- control records

CONTROL: list[tuple[int, str | None, bytes | None, dict[str, Any] | None]] = [
    (0, "EndTxnMarker", short(0) + struct.pack(">i", 7), {"coordinator_epoch": 7}),
    (1, "EndTxnMarker", short(0) + struct.pack(">i", 7), {"coordinator_epoch": 7}),
    # A version that nobody knows yet is read as the newest: its fields only grow at the end.
    (1, "EndTxnMarker", short(5) + struct.pack(">i", 7) + b"new", {"coordinator_epoch": 7}),
    (3, "SnapshotHeaderRecord", None, None),
    (4, "SnapshotFooterRecord", short(0) + b"\0", {"version": 0}),
    (5, "KRaftVersionRecord", short(0) + short(1) + b"\0", {"version": 0, "kraft_version": 1}),
]


@pytest.mark.parametrize(("number", "name", "value", "body"), CONTROL)
def test_control_records(
    number: int, name: str | None, value: bytes | None, body: dict[str, Any] | None
) -> None:
    found = decode("any", short(0) + short(number), value, control=True)
    assert found.error is None
    assert found.key.body == {"version": 0, "type": number}
    if value is None:
        assert found.value is None
    else:
        assert (found.value.message, found.value.body) == (name, body)


@pytest.mark.parametrize("layout", variants_of("LeaderChangeMessage", 0))
def test_a_leader_change_of_the_first_releases_has_no_version(layout: Layout) -> None:
    body = {"leader_id": 3, "voters": [{"voter_id": n} for n in (1, 2, 3)]}
    body |= {slot.name: [{"voter_id": 3}] for slot in layout.body.slots[2:]}
    value = write_layout(layout, body)
    found = decode("__cluster_metadata", short(0) + short(2), value, control=True)
    assert found.error is None
    assert found.value.body == body
    assert found.value.note == f"layout of Kafka {layout.message.releases}"


def test_a_control_record_of_a_type_nobody_knows_has_a_key_only() -> None:
    found = decode("any", short(0) + short(77), b"whatever", control=True)
    assert (found.value, found.error, found.key.note) == (None, None, "77")
    assert decode("any", short(0) + short(1), None, control=True).key.note == "COMMIT"
    assert decode("any", b"\0", None, control=True).key is None


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_control_record_without_a_key_is_an_error(key: bytes | None) -> None:
    found = decode("any", key, b"", control=True)
    assert isinstance(found.error, Truncated)


MIRRORED = ("mm2-offset-syncs.b.internal", "a.checkpoints.internal")
TOPICS = ["any", *COORDINATOR_TOPICS, *FRAMED_TOPICS, *MIRRORED]


@given(
    st.sampled_from(TOPICS),
    st.booleans(),
    st.none() | st.binary(max_size=40) | st.integers(0, 30).map(lambda n: short(n) + bytes(9)),
    st.none() | st.binary(max_size=60) | st.binary(max_size=30).map(lambda b: b"\x01" + b),
)
@settings(max_examples=400)
def test_garbage_is_an_error_and_never_an_exception(
    topic: str, control: bool, key: bytes | None, value: bytes | None
) -> None:
    found = decode(topic, key, value, control=control)
    assert found is None or isinstance(found, internal.Internal)
