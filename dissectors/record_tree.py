"""The nodes of a records field: batch headers, records and their fields, each with its bytes.

The nodes of a batch tile it. Those of compressed records refer to the expanded bytes and hang on
`Node.inside`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from dissectors.compression import decompress
from dissectors.errors import DissectError
from dissectors.records import HEADER_SIZE, MAX_DEPTH, Batch, Partial, batches, crc_ok, open_batch
from dissectors.tree import Inside, Node

_V2: Final = (
    ("base_offset", ">q"),
    ("batch_length", ">i"),
    ("partition_leader_epoch", ">i"),
    ("magic", ">b"),
    ("crc", ">I"),
    ("attributes", ">h"),
    ("last_offset_delta", ">i"),
    ("base_timestamp", ">q"),
    ("max_timestamp", ">q"),
    ("producer_id", ">q"),
    ("producer_epoch", ">h"),
    ("base_sequence", ">i"),
    ("record_count", ">i"),
)
_ENTRY: Final = (
    ("offset", ">q"),
    ("message_size", ">i"),
    ("crc", ">I"),
    ("magic", ">b"),
    ("attributes", ">b"),
)


def record_nodes(data: bytes, start: int, end: int, depth: int = 0) -> list[Node]:
    """One node per batch or entry of the field `data[start:end]`; what cannot be read is a node
    that says why."""
    field = data[start:end]
    nodes: list[Node] = []
    at = 0
    try:
        for each in batches(field):
            nodes.append(_batch(field, each, start, depth))
            at = each.at + each.size
    except DissectError as error:
        nodes.append(Node("undecoded", start + at, end, f"{error.reason}"))
    return nodes


def _batch(data: bytes, batch: Batch | Partial, shift: int, depth: int) -> Node:
    start, end = shift + batch.at, shift + batch.at + batch.size
    if isinstance(batch, Partial):
        return Node("partial_batch", start, end, f"{batch.size} bytes, cut by the end of the field")
    magic_2 = batch.magic == 2
    fields, at = [], batch.at
    for name, form in _V2 if magic_2 else _ENTRY:
        fields.append(_number(data, name, form, at, shift))
        at = fields[-1].end - shift
    if not crc_ok(data, batch):
        crc = next(node for node in fields if node.name == "crc")
        crc.value = f"{crc.value} (wrong)"
    if magic_2:
        node = Node("record_batch", start, end, None, None, fields)
        node.children.append(_body(data, batch, shift))
        return node
    node = Node("message", start, end, None, None, fields)
    if batch.magic == 1:
        fields.append(_number(data, "timestamp", ">q", at, shift))
        at += 8
    stop = batch.at + batch.size
    for each in _message_rest(data, batch, at, stop, shift, depth):
        fields.append(each)
        at = each.end - shift
    if at < stop:
        fields.append(Node("undecoded", shift + at, shift + stop, "no key and value"))
    return node


def _number(data: bytes, name: str, form: str, at: int, shift: int) -> Node:
    size = struct.calcsize(form)
    (value,) = struct.unpack_from(form, data, at)
    return Node(name, shift + at, shift + at + size, value)


def _body(data: bytes, batch: Batch, shift: int) -> Node:
    at, end = batch.at + HEADER_SIZE, batch.at + batch.size
    node = Node("records", shift + at, shift + end)
    count = batch.record_count or 0
    try:
        if batch.codec:
            body = decompress(batch.codec, data[at:end])
            node.value = f"{batch.codec_name}, {end - at} bytes hold {len(body)}"
            node.inside = Inside(body, list(_records(body, 0, count, 0)))
        elif at < end:
            node.children = list(_records(data[:end], at, count, shift))
    except DissectError as error:
        node.value = f"{batch.codec_name}, {end - at} bytes: {error.reason}"
    return node


def _records(data: bytes, at: int, count: int, shift: int) -> Iterator[Node]:
    for index in range(count):
        try:
            node = _record(data, at, index, shift)
        except (IndexError, DissectError):
            yield Node("undecoded", shift + at, shift + len(data), f"record {index} does not fit")
            return
        yield node
        at = node.end - shift
    if at < len(data):
        yield Node("undecoded", shift + at, shift + len(data), "bytes behind the last record")


class _Reader:
    """Varints and blobs of one record, each a node."""

    def __init__(self, data: bytes, at: int, shift: int) -> None:
        self.data, self.at, self.shift = data, at, shift
        self.nodes: list[Node] = []

    def add(self, name: str, start: int, value: Any) -> None:
        self.nodes.append(Node(name, self.shift + start, self.shift + self.at, value))

    def varint(self, name: str) -> int:
        start = self.at
        value = bits = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                break
            if bits > 63:
                raise IndexError
        value = value >> 1 ^ -(value & 1)
        self.add(name, start, value)
        return value

    def blob(self, name: str, convert: Callable[[bytes], Any] = bytes) -> Any:
        """Length and content as children of one node."""
        outer, self.nodes = self.nodes, []
        start = self.at
        length = self.varint("length")
        value = None
        if length >= 0:
            if self.at + length > len(self.data):
                raise IndexError
            begin, self.at = self.at, self.at + length
            value = convert(self.data[begin : self.at])
            if length:
                self.add("data", begin, value)
        children, self.nodes = self.nodes, outer
        self.add(name, start, value)
        self.nodes[-1].children = children
        return value


def _record(data: bytes, at: int, index: int, shift: int) -> Node:
    reader = _Reader(data, at, shift)
    length = reader.varint("length")
    end = reader.at + length
    if length < 0 or end > len(data):
        raise IndexError
    reader.at += 1
    reader.add("attributes", reader.at - 1, data[reader.at - 1])
    reader.varint("timestamp_delta")
    reader.varint("offset_delta")
    reader.blob("key")
    reader.blob("value")
    count = reader.varint("header_count")
    if not 0 <= count <= end - reader.at:
        raise IndexError
    for number in range(count):
        outer, reader.nodes = reader.nodes, []
        start = reader.at
        reader.blob("key", lambda raw: raw.decode("utf-8", "surrogateescape"))
        reader.blob("value")
        children, reader.nodes = reader.nodes, outer
        reader.add(f"header[{number}]", start, None)
        reader.nodes[-1].children = children
    if reader.at != end:
        raise IndexError
    return Node(f"record[{index}]", shift + at, shift + end, None, None, reader.nodes)


def _message_rest(
    data: bytes, batch: Batch, at: int, end: int, shift: int, depth: int
) -> Iterator[Node]:
    """Key and value of a message, as far as they fit."""
    for name in ("key", "value"):
        if at + 4 > end:
            return
        (length,) = struct.unpack_from(">i", data, at)
        stop = at + 4 + max(length, 0)
        if length < -1 or stop > end:
            return
        node = Node(name, shift + at, shift + stop, data[at + 4 : stop] if length >= 0 else None)
        node.children = [Node("length", shift + at, shift + at + 4, length)]
        if length > 0:
            node.children.append(Node("data", shift + at + 4, shift + stop, node.value))
        if name == "value" and batch.codec and length > 0:
            _open_value(data, batch, node, depth)
        yield node
        at = stop


def _open_value(data: bytes, batch: Batch, node: Node, depth: int) -> None:
    if depth >= MAX_DEPTH:
        return
    try:
        body = decompress(batch.codec, node.value)
    except DissectError as error:
        node.value = f"{batch.codec_name}: {error.reason}"
        return
    found = len(open_batch(data, batch).records)
    node.value = f"{batch.codec_name}, {found} messages in {len(body)} bytes"
    node.inside = Inside(body, record_nodes(body, 0, len(body), depth + 1))
