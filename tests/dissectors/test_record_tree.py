"""The nodes of a records field tile it, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissectors.record_tree import record_nodes
from dissectors.record_writer import encode_batch, encode_message_set
from dissectors.records import Record
from dissectors.tree import Node


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


@pytest.mark.parametrize("codec", range(5))
def test_batches(codec: int) -> None:
    data = b"xx" + encode_batch(some(2), codec=codec) * 2
    nodes = record_nodes(data, 2, len(data))
    tiled(nodes, 2, len(data))
    inside = nodes[0].children[-1].inside
    records = inside.nodes if inside else nodes[0].children[-1].children
    assert [node.name for node in records] == ["record[0]", "record[1]", "record[2]"]
    values = {node.name: node.value for node in records[0].children}
    assert (values["key"], values["value"]) == (b"key", b"value")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_message_sets(magic: int, codec: int) -> None:
    data = encode_message_set(magic, some(magic), codec=codec)
    nodes = record_nodes(data, 0, len(data))
    tiled(nodes, 0, len(data))
    assert {node.name for node in nodes} == {"message"}


@given(st.integers(0, 2), st.integers(0, 3), st.data())
@settings(max_examples=150)
def test_cut_and_damaged_fields_still_tile(magic: int, codec: int, data: st.DataObject) -> None:
    records = some(magic)
    whole = (
        encode_batch(records, codec=codec)
        if magic == 2
        else encode_message_set(magic, records, codec=codec)
    )
    field = bytearray(whole[: data.draw(st.integers(1, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        field[data.draw(st.integers(0, len(field) - 1))] = data.draw(st.integers(0, 255))
    tiled(record_nodes(bytes(field), 0, len(field)), 0, len(field))


def test_a_wrong_checksum_is_said() -> None:
    data = bytearray(encode_batch(some(2)))
    data[-1] ^= 1
    (node,) = record_nodes(bytes(data), 0, len(data))
    crc = next(child for child in node.children if child.name == "crc")
    assert str(crc.value).endswith("(wrong)")
