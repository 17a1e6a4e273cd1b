"""The nodes of a records field tile it, whatever it holds."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.layout import NumberWire, resolve
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.messages.record_batch import MESSAGE_SET_ENTRY, RECORD_BATCH
from kafkascope.dissectors.records import batches
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.tree import NodeBudget, record_nodes
from kafkascope.dissectors.records.writer import encode_batch, encode_message, encode_message_set
from kafkascope.dissectors.registry import read_layout
from tests.kit.batches import batch_of, encoded


def tiled(nodes: list[Node], start: int, end: int) -> None:
    at = start
    for node in nodes:
        for leaf in node.leaves():
            assert leaf.start == at
            at = leaf.end
        if node.inside is not None:
            tiled(node.inside.nodes, 0, len(node.inside.data))
    assert at == end


def some(magic: int) -> list[Record]:
    headers = (("h", b"1"), ("nil", None)) if magic == 2 else ()
    time = 1_700_000_000_000 if magic else None
    return [
        Record(5, time, b"key", b"value", headers),
        Record(6, time, None, b"", ()),
        Record(7, time, b"", None, ()),
    ]


def nodes_of(data: bytes, start: int = 0, **options: Any) -> list[Node]:
    """The nodes of a field, which tile it."""
    nodes = record_nodes(data, start, len(data), **options)
    tiled(nodes, start, len(data))
    return nodes


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", range(5))
def test_whole_fields(magic: int, codec: int) -> None:
    if magic < 2:
        nodes = nodes_of(encoded(magic, some(magic), min(codec, 3)))
        assert {node.name for node in nodes} == {"message"}
        return
    nodes = nodes_of(b"xx" + encode_batch(some(2), codec=codec) * 2, 2)
    inside = nodes[0].children[-1].inside
    records = inside.nodes if inside else nodes[0].children[-1].children
    assert [node.name for node in records] == ["record[0]", "record[1]", "record[2]"]
    values = {node.name: node.value for node in records[0].children}
    assert (values["key"], values["value"]) == (b"key", b"value")


@given(st.integers(0, 2), st.integers(0, 3), st.data())
@settings(max_examples=150)
def test_cut_and_damaged_fields_still_tile(magic: int, codec: int, data: st.DataObject) -> None:
    whole = encoded(magic, some(magic), codec)
    field = bytearray(whole[: data.draw(st.integers(1, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        field[data.draw(st.integers(0, len(field) - 1))] = data.draw(st.integers(0, 255))
    nodes_of(bytes(field))


def test_a_wrong_checksum_is_said() -> None:
    data = bytearray(encode_batch(some(2)))
    data[-1] ^= 1
    (node,) = nodes_of(bytes(data))
    crc = next(child for child in node.children if child.name == "crc")
    assert str(crc.value).endswith("(wrong)")


def test_the_declarations_are_what_is_read_by_hand() -> None:
    codes = [slot.wire for slot in resolve(RECORD_BATCH, 2).body.slots]
    form = ">" + "".join(wire.code for wire in codes if isinstance(wire, NumberWire))
    assert batches._V2.format == form
    assert batches._V2.size == batches.HEADER_SIZE


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_reads_by_its_declaration(magic: int) -> None:
    record = Record(7, 1_700_000_000_000 if magic else None, None, b"value", ())
    data = encode_message(magic, record)
    body, end = read_layout(resolve(MESSAGE_SET_ENTRY, magic), data)
    assert end == len(data)
    assert (body["offset"], body["key"], body["value"]) == (7, None, b"value")
    assert body.get("timestamp") == record.timestamp


def test_the_header_says_what_its_bits_mean() -> None:
    data = encode_batch(some(2), codec=1, attributes=16 | 32)
    (node,) = nodes_of(data)
    values = {child.name: child.value for child in node.children}
    assert values["attributes"] == "49 (gzip, transactional, control)"
    time = next(child for child in node.children if child.name == "base_timestamp")
    assert time.slot.field.unit == "time_ms"


def test_more_records_than_anybody_scrolls_through_are_one_node() -> None:
    count = LIMITS.record_nodes + 10
    nodes = nodes_of(batch_of(0, count, b"\x0c\0\0\0\x01\x01\0" * count))
    assert nodes[0].children[-1].children[-1].value == "11 records are not shown"
    nodes = nodes_of(encode_message(1, Record(0, 1, None, None, ())) * (LIMITS.record_nodes + 3))
    assert (len(nodes), nodes[-1].value) == (LIMITS.record_nodes + 1, "not shown")


def test_message_sets_within_one_share_a_limit() -> None:
    inner = encode_message_set(1, [Record(0, 1, None, bytes(4 << 20), ())], codec=1)
    data = encode_message(1, Record(99, 1, None, compress(1, inner * 100), ()), 1)
    nodes = nodes_of(data)
    (value,) = [child for child in nodes[0].children if child.name == "value"]
    last = [child for child in value.inside.nodes[-1].children if child.name == "value"]
    assert last[0].value.endswith("not opened: the batches opened before take 28 MB of 32 MB")


def test_fields_of_a_message_share_a_limit() -> None:
    large = encode_batch([Record(0, 1, None, bytes(20 << 20), ())], codec=4)
    small = encode_batch(some(2), codec=4)
    budget = NodeBudget()
    told = []
    for data in (large, large, small):
        (node,) = record_nodes(data, 0, len(data), budget=budget)
        told.append(node.children[-1])
    assert [each.inside is not None for each in told] == [True, False, True]
    assert told[1].value.endswith("not opened: the batches opened before take 20 MB of 32 MB")


def test_more_headers_than_anybody_scrolls_through_have_no_nodes() -> None:
    headers = [("", None)] * (LIMITS.record_nodes - 1000)
    data = encode_batch([Record(0, 1, None, None, headers)] * 3)
    nodes = nodes_of(data)
    first, second, rest = nodes[0].children[-1].children
    assert first.children[-1].name == f"header[{len(headers) - 1}]"
    assert second.children[-1].value == f"{len(headers) - 997} headers are not shown"
    assert rest.value == "1 records are not shown"


def test_a_piece_of_a_snapshot_begins_inside_a_batch() -> None:
    whole = encode_batch(some(2))
    data = whole[20:] + whole + whole[:30]
    nodes = nodes_of(data, unaligned=True)
    assert [node.name for node in nodes] == ["partial_batch", "record_batch", "partial_batch"]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_what_does_not_expand_says_why(magic: int) -> None:
    if magic == 2:
        data = encode_batch(some(2), attributes=1)
    else:
        data = encode_message(magic, Record(5, 1, None, b"no gzip", ()), 1)
    (node,) = nodes_of(data)
    assert "no gzip data" in node.children[-1].value


@pytest.mark.parametrize(
    "record",
    [
        b"\x0e\0\0\0\x01\x01\0",  # longer than what is there
        b"\x0c\0\0\0\x01\x01\x40",  # more headers than bytes
        b"\x0e\0\0\0\x01\x01\0\0",  # a byte too many
        b"\x0c\0\0\0\x40\x01\0",  # a key beyond the end
        b"\x0c\0\0" + b"\xff" * 5,  # a varint without end
    ],
)
def test_a_record_that_does_not_fit_is_one_node(record: bytes) -> None:
    (node,) = nodes_of(batch_of(0, 1, record))
    (only,) = node.children[-1].children
    assert (only.name, only.value) == ("undecoded", "record 0 does not fit")


def test_records_that_the_count_leaves_out_are_one_node() -> None:
    data = bytearray(encode_batch(some(2)))
    data[60] = 2
    (node,) = nodes_of(bytes(data))
    assert node.children[-1].children[-1].value == "bytes after the last record"


def test_a_message_without_key_and_value() -> None:
    data = bytes(8) + b"\0\0\0\x16" + bytes(4) + b"\1\0" + bytes(8) + b"\x7f" * 8
    (node,) = nodes_of(data)
    assert node.children[-1].value == "no key and value"
