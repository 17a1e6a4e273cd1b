"""Makes the nodes of a records field: batch headers, records and their fields, each with its bytes.

The nodes tile the field. Those of compressed records refer to the expanded bytes and hang on
`Node.inside`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kafkascope.dissectors.codec.tree import Inside, Node
from kafkascope.dissectors.errors import DissectError, TooLarge
from kafkascope.dissectors.layout import NumberWire, Slot, resolve
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.messages.record_batch import MESSAGE_SET_ENTRY, RECORD_BATCH
from kafkascope.dissectors.records.batches import (
    HEADER_SIZE,
    Batch,
    Partial,
    aligned,
    batches,
    crc_ok,
)
from kafkascope.dissectors.records.compression import decompress


class NodeBudget:
    """What nodes of records, and the expanded bytes that they refer to, may still take: of one
    field, or of all fields of a message whose nodes are kept together."""

    def __init__(self) -> None:
        self.bytes = LIMITS.tree_bytes
        self.nodes = LIMITS.record_nodes

    def expand(self, codec: int, data: bytes) -> bytes:
        """Expand bytes, which are counted."""
        try:
            body = decompress(codec, data, self.bytes)
        except TooLarge:
            if self.bytes == LIMITS.tree_bytes:
                raise
            taken = (LIMITS.tree_bytes - self.bytes) >> 20
            why = f"not opened: the batches opened before take {taken} MB"
            raise TooLarge(f"{why} of {LIMITS.tree_bytes >> 20} MB") from None
        self.bytes -= len(body)
        return body


def record_nodes(
    data: bytes, start: int, end: int, *, unaligned: bool = False, budget: NodeBudget | None = None
) -> list[Node]:
    """Return one node per batch or entry of the field `data[start:end]`; what cannot be read is a
    node that says why. `unaligned`: the field may begin inside a batch (FetchSnapshot)."""
    return list(_Field(unaligned, budget or NodeBudget()).nodes(data[start:end], start, 0))


@cache
def _header(magic: int) -> tuple[Slot, ...]:
    slots = resolve(RECORD_BATCH if magic == 2 else MESSAGE_SET_ENTRY, magic).body.slots
    return tuple(slot for slot in slots if isinstance(slot.wire, NumberWire))


class _Field:
    """Makes the nodes of one records field within its limits."""

    def __init__(self, unaligned: bool, budget: NodeBudget) -> None:
        self.unaligned = unaligned
        self.budget = budget

    def nodes(self, data: bytes, shift: int, depth: int) -> Iterator[Node]:
        """Yield the nodes of `data`, whose first byte has the offset `shift`."""
        at = 0
        try:
            for each in aligned(data) if self.unaligned and not depth else batches(data):
                if self.budget.nodes <= 0:
                    yield _rest(data, at, shift, "not shown")
                    return
                self.budget.nodes -= 1
                yield self.batch(data, each, shift, depth)
                at = each.at + each.size
        except DissectError as error:
            yield Node("undecoded", shift + at, shift + len(data), error.reason)

    def batch(self, data: bytes, batch: Batch | Partial, shift: int, depth: int) -> Node:
        start, end = shift + batch.at, shift + batch.at + batch.size
        if isinstance(batch, Partial):
            side = "beginning" if batch.at == 0 and self.unaligned else "end"
            text = f"{batch.size} bytes, cut by the {side} of the field"
            return Node("partial_batch", start, end, text)
        node = Node("record_batch" if batch.magic == 2 else "message", start, end)
        at = batch.at
        for slot in _header(batch.magic):
            assert isinstance(slot.wire, NumberWire)
            stop = at + slot.wire.size
            (value,) = struct.unpack_from(f">{slot.wire.code}", data, at)
            node.children.append(Node(slot.name, shift + at, shift + stop, value, slot))
            at = stop
        self.explain(node, data, batch)
        if batch.magic == 2:
            node.children.append(self.records(data, batch, shift))
        else:
            node.children += self.message(data, batch, at, shift, depth)
        return node

    def explain(self, node: Node, data: bytes, batch: Batch) -> None:
        """Add to the header's values what they mean."""
        fields = {child.name: child for child in node.children}
        right = "right" if crc_ok(data, batch) else "wrong"
        fields["crc"].value = f"0x{batch.crc:08x} ({right})"
        words = [batch.codec_name] if batch.codec else []
        for name in ("log_append_time", "transactional", "control", "delete_horizon"):
            if getattr(batch, name):
                words.append(name.replace("_", " "))
        if words:
            fields["attributes"].value = f"{fields['attributes'].value} ({', '.join(words)})"

    def records(self, data: bytes, batch: Batch, shift: int) -> Node:
        """Return the nodes after the header of a magic 2 batch."""
        at, end = batch.at + HEADER_SIZE, batch.at + batch.size
        node = Node("records", shift + at, shift + end)
        count = batch.record_count or 0
        if not batch.codec:
            node.children = list(self.each_record(data[at:end], count, shift + at))
            return node
        try:
            body = self.budget.expand(batch.codec, data[at:end])
        except DissectError as error:
            node.value = f"{batch.codec_name}, {end - at} bytes: {error.reason}"
        else:
            node.value = f"{batch.codec_name}, {end - at} bytes hold {len(body)}"
            node.inside = Inside(body, list(self.each_record(body, count, 0)))
        return node

    def each_record(self, data: bytes, count: int, shift: int) -> Iterator[Node]:
        """Yield the records of an expanded body, and what is left of it."""
        at = 0
        for index in range(count):
            if self.budget.nodes <= 0:
                yield _rest(data, at, shift, f"{count - index} records are not shown")
                return
            self.budget.nodes -= 1
            try:
                node, headers = _record(data, at, index, shift, self.budget.nodes)
                self.budget.nodes -= headers
            except IndexError:
                yield _rest(data, at, shift, f"record {index} does not fit")
                return
            yield node
            at = node.end - shift
        if at < len(data):
            yield _rest(data, at, shift, "bytes after the last record")

    def message(self, data: bytes, batch: Batch, at: int, shift: int, depth: int) -> Iterator[Node]:
        """Key and value of a message, as far as they fit, and what is left of it."""
        end = batch.at + batch.size
        for name in ("key", "value"):
            if at + 4 > end:
                break
            (length,) = struct.unpack_from(">i", data, at)
            stop = at + 4 + max(length, 0)
            if length < -1 or stop > end:
                break
            value = data[at + 4 : stop] if length >= 0 else None
            node = Node(name, shift + at, shift + stop, value)
            node.children = [Node("length", shift + at, shift + at + 4, length)]
            if value:
                node.children.append(Node("data", shift + at + 4, shift + stop, value))
                if name == "value" and batch.codec and depth < LIMITS.message_set_depth:
                    self.open_value(node, batch, value, depth)
            yield node
            at = stop
        if at < end:
            yield Node("undecoded", shift + at, shift + end, "no key and value")

    def open_value(self, node: Node, batch: Batch, value: bytes, depth: int) -> None:
        """Hang the message set that a compressed message holds on the node of its value."""
        try:
            body = self.budget.expand(batch.codec, value)
        except DissectError as error:
            node.value = f"{batch.codec_name}, {len(value)} bytes: {error.reason}"
            return
        node.value = f"{batch.codec_name}, {len(value)} bytes hold {len(body)}"
        node.inside = Inside(body, list(self.nodes(body, 0, depth + 1)))


def _rest(data: bytes, at: int, shift: int, why: str) -> Node:
    return Node("undecoded", shift + at, shift + len(data), why)


class _Reader:
    """Reads varints and blobs of one record, each a node; `IndexError` when they do not fit."""

    def __init__(self, data: bytes, at: int, shift: int) -> None:
        self.data, self.at, self.shift = data, at, shift
        self.nodes: list[Node] = []

    def add(self, name: str, start: int, value: Any) -> None:
        """Add a node from `start` to where the reader is."""
        self.nodes.append(Node(name, self.shift + start, self.shift + self.at, value))

    def varint(self, name: str, most: int = 5) -> int:
        """Read a zigzag varint of at most `most` bytes."""
        start = self.at
        value = 0
        for index in range(most):
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                break
        else:
            raise IndexError
        value &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF
        value = value >> 1 ^ -(value & 1)
        self.add(name, start, value)
        return value

    def blob(self, name: str, convert: Callable[[bytes], Any] = bytes) -> None:
        """Read a length and its content as children of one node."""
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
        self.close(name, start, value, outer)

    def close(self, name: str, start: int, value: Any, outer: list[Node]) -> None:
        """Make the nodes since `start` the children of one node of `outer`."""
        children, self.nodes = self.nodes, outer
        self.add(name, start, value)
        self.nodes[-1].children = children


def _record(data: bytes, at: int, index: int, shift: int, most: int) -> tuple[Node, int]:
    """Return the node of a record, and how many headers have one in it: `most` of them."""
    reader = _Reader(data, at, shift)
    length = reader.varint("length")
    end = reader.at + length
    if length < 0 or end > len(data):
        raise IndexError
    reader.at += 1
    reader.add("attributes", reader.at - 1, data[reader.at - 1])
    reader.varint("timestamp_delta", 10)
    reader.varint("offset_delta")
    reader.blob("key")
    reader.blob("value")
    count = reader.varint("header_count")
    if not 0 <= count <= end - reader.at:
        raise IndexError
    for number in range(min(count, most)):
        outer, reader.nodes = reader.nodes, []
        start = reader.at
        reader.blob("key", lambda raw: raw.decode("utf-8", "surrogateescape"))
        reader.blob("value")
        reader.close(f"header[{number}]", start, None, outer)
    if count > most:
        start, reader.at = reader.at, end
        reader.add("undecoded", start, f"{count - most} headers are not shown")
    if reader.at != end:
        raise IndexError
    node = Node(f"record[{index}]", shift + at, shift + end, None, None, reader.nodes)
    return node, min(count, most)
