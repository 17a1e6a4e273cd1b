"""Walks a payload by its schema: pieces with their bytes, and where and why one does not fit.

As strict as the generated reader (`reader.py`), and slow: for what is on screen, and for payloads
that the reader refused. A length, count or index belongs to the leaf that it introduces. Before
something with pieces it is a leaf of its own, with an empty name and one of `MARKS` as its type.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NoReturn

from kafkascope.analyzer.payloads.avro.linking import FREE, Linked
from kafkascope.analyzer.payloads.avro.logical import shows
from kafkascope.analyzer.payloads.avro.reader import based, finite
from kafkascope.analyzer.payloads.avro.types import (
    MAX_DEPTH,
    MAX_EMPTY,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    branch_name,
    inside,
    is_empty,
    shown,
    weight,
)
from kafkascope.analyzer.payloads.model import UNREAD, PayloadError, Piece

BRANCH: Final = "union branch"
KEY: Final = "map key"
BLOCK: Final = "block"
MARKS: Final = frozenset((BRANCH, KEY, BLOCK, UNREAD))
"""Types of pieces that are no values, all with an empty name."""


class AvroWalk:
    """One walk over one payload."""

    def __init__(self, linked: Linked, data: bytes) -> None:
        self.linked = linked
        self.data = data
        self.at = 0
        self.room = MAX_EMPTY + FREE * len(data)
        self.error: PayloadError | None = None
        """Why the walk ended early."""

    def pieces(self) -> Piece:
        """Return all pieces; what does not fit is one at the end, and in `error`."""
        root = self.linked.root
        try:
            piece = self.value(root, "", "", 1, ())
            if self.error is None and self.at != len(self.data):
                self.error = self.surplus()
        except PayloadError as error:
            self.error = error.without_frames()
            piece = Piece("", shown(root), None, 0, 0)
        if self.error is None:
            return piece
        end = len(self.data)
        whole = piece.pieces or ((piece,) if piece.end else ())
        rest = Piece("", UNREAD, None, piece.end, end)
        return Piece("", piece.type, None, 0, end, (*whole, rest))

    def surplus(self) -> PayloadError:
        """Return the error of bytes after the value."""
        count = len(self.data) - self.at
        text = f"{count} byte{'s' * (count != 1)} after the value"
        return PayloadError("surplus", text, offset=self.at)

    def refuse(self, text: str, path: str, offset: int) -> NoReturn:
        """End the walk."""
        raise PayloadError("does-not-fit", text, path=path, offset=offset)

    def varint(self, what: str, path: str, bits: int = 64) -> int:
        """Read a signed number."""
        begin = self.at
        number = shift = 0
        while True:
            if self.at >= len(self.data):
                self.refuse(f"the payload ends inside {what}", path, begin)
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                self.refuse(f"{what} of more than 10 bytes", path, begin)
        if number >> bits:
            self.refuse(f"{what} of more than {bits} bits", path, begin)
        return (number >> 1) ^ -(number & 1)

    def take(self, count: int, what: str, path: str, begin: int) -> bytes:
        """Read bytes; `begin` is where the value began."""
        left = len(self.data) - self.at
        if count < 0:
            self.refuse(f"{what} with the length {count}", path, begin)
        if count > left:
            self.refuse(f"{what} of {count:,} bytes, {left:,} are left", path, begin)
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self, what: str, path: str) -> str:
        """Read text of UTF-8 with its length."""
        begin = self.at
        data = self.take(self.varint(f"the length of {what}", path), what, path, begin)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            where = self.at - len(data) + error.start
            self.refuse(f"{what} is not UTF-8: byte 0x{data[error.start]:02x}", path, where)

    def spend(self, count: int, path: str) -> None:
        """Count values without bytes before they are made."""
        self.room -= count
        if self.room < 0:
            self.refuse(f"{count:,} values without bytes", path, self.at)

    def value(
        self, node: AvroType, name: str, path: str, depth: int, heads: tuple[Piece, ...]
    ) -> Piece:
        """Read a value. `heads`: marks that introduce it; they come first, or a leaf has them."""
        if isinstance(node, AvroUnion):
            begin = self.at
            index = self.varint("the branch of a union", path)
            if not 0 <= index < len(node.branches):
                self.refuse(f"branch {index} of {len(node.branches)}", path, begin)
            heads = (*heads, Piece("", BRANCH, index, begin, self.at))
            node = node.branches[index]
        if isinstance(node, AvroRecord | AvroArray | AvroMap):
            return self.container(node, name, path, depth, heads)
        begin = heads[0].begin if heads else self.at
        return Piece(name, shown(node), self.leaf(node, path), begin, self.at)

    def container(
        self,
        node: AvroRecord | AvroArray | AvroMap,
        name: str,
        path: str,
        depth: int,
        heads: tuple[Piece, ...],
    ) -> Piece:
        """Read a record, array or map; what does not fit ends it, and the walk."""
        begin = heads[0].begin if heads else self.at
        found = list(heads)
        try:
            if depth > MAX_DEPTH:
                self.refuse(f"nested deeper than {MAX_DEPTH} levels", path, self.at)
            if isinstance(node, AvroRecord):
                values = self.fields(node, path, depth, found)
            else:
                values = self.blocks(node, path, depth, found)
        except PayloadError as error:
            self.error = error.without_frames()
        if self.error is not None:
            end = found[-1].end if found else begin
            return Piece(name, branch_name(node), None, begin, end, tuple(found))
        if values:
            return Piece(name, branch_name(node), None, begin, self.at, tuple(found))
        empty: Any = [] if isinstance(node, AvroArray) else {}
        return Piece(name, branch_name(node), empty, begin, self.at)

    def fields(self, node: AvroRecord, path: str, depth: int, found: list[Piece]) -> int:
        """Read the fields of a record; return how many it has."""
        if node.weight > FREE:
            self.spend(node.weight, path)
        for field in node.fields:
            where = inside(path, field.name)
            found.append(self.value(field.type, field.name, where, depth + 1, ()))
            if self.error is not None:
                break
        return len(node.fields)

    def blocks(self, node: AvroArray | AvroMap, path: str, depth: int, found: list[Piece]) -> int:
        """Read blocks of items or entries; return how many there were."""
        values = 0
        while self.error is None:
            begin = self.at
            count = self.varint("the count of a block", path)
            if count < 0:
                self.varint("the size of a block", path)
                count = -count
            if isinstance(node, AvroArray) and is_empty(node.items):
                self.spend(count * max(1, weight(node.items)), path)
            found.append(Piece("", BLOCK, count, begin, self.at))
            if not count:
                break
            for _ in range(count):
                found.append(self.entry(node, path, depth, values))
                values += 1
                if self.error is not None:
                    break
        return values

    def entry(self, node: AvroArray | AvroMap, path: str, depth: int, at: int) -> Piece:
        """Read an item of an array, or a key of a map with its value."""
        if isinstance(node, AvroArray):
            return self.value(node.items, f"[{at}]", f"{path}[{at}]", depth + 1, ())
        begin = self.at
        key = self.text("the key of a map", path)
        head = Piece("", KEY, key, begin, self.at)
        return self.value(node.values, key, inside(path, key), depth + 1, (head,))

    def leaf(self, node: AvroType, path: str) -> Any:
        """Read a value without parts."""
        begin = self.at
        match node:
            case AvroPrimitive(kind="null"):
                return None
            case AvroPrimitive(kind="boolean"):
                byte = self.take(1, "a boolean", path, begin)[0]
                if byte > 1:
                    self.refuse(f"a boolean with the byte 0x{byte:02x}", path, begin)
                return byte == 1
            case AvroPrimitive(kind="int" | "long"):
                bits = 32 if node.kind == "int" else 64
                value: Any = self.varint(f"a number {shown(node)}", path, bits)
            case AvroPrimitive(kind="float"):
                return finite(struct.unpack("<f", self.take(4, "a float", path, begin))[0])
            case AvroPrimitive(kind="double"):
                return finite(struct.unpack("<d", self.take(8, "a double", path, begin))[0])
            case AvroPrimitive(kind="string"):
                return self.text("a text", path)
            case AvroPrimitive():
                value = self.take(self.varint("a length", path), shown(node), path, begin)
            case AvroFixed():
                value = self.take(node.size, shown(node), path, begin)
            case AvroEnum():
                index = self.varint("the symbol of an enum", path)
                if not 0 <= index < len(node.symbols):
                    self.refuse(f"symbol {index} of {len(node.symbols)}", path, begin)
                return node.symbols[index]
            case _:
                raise AssertionError(node)
        show = shows(node.logical, getattr(node, "kind", "fixed")) if node.logical else None
        if show is None:
            return based(value) if isinstance(value, bytes) else value
        try:
            return show(value)
        except ValueError as error:
            self.refuse(str(error), path, begin)


def explain(linked: Linked, data: bytes) -> Piece:
    """Return the pieces of a payload; the last one has what could not be read."""
    return AvroWalk(linked, data).pieces()


def complaint(linked: Linked, data: bytes) -> PayloadError:
    """Return where and why a payload does not fit."""
    walk = AvroWalk(linked, data)
    walk.pieces()
    if walk.error is None:  # the reader and the walk do not agree: a defect, but no crash
        return PayloadError("does-not-fit", "the payload does not match the schema")
    return walk.error
