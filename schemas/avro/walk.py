"""Walks a payload by its schema: pieces with their bytes, and where and why one does not fit.

As strict as the generated reader (`reader.py`), and slow: for what is on screen, and for payloads
that the reader refused. A length, count or index belongs to the leaf that it introduces. Before
something with pieces it is a leaf of its own, with an empty name and one of `MARKS` as its type.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NoReturn

from kafkascope.schemas.avro.linking import Linked
from kafkascope.schemas.avro.logical import shown
from kafkascope.schemas.avro.types import CONTAINERS, AvroType, inside
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import UNREAD, PayloadError, Piece, misfit, of_double

BRANCH: Final = "union branch"
KEY: Final = "map key"
BLOCK: Final = "block"
MARKS: Final = frozenset((BRANCH, KEY, BLOCK, UNREAD))
"""Types of pieces that are no values, all with an empty name."""


def explain(linked: Linked, data: bytes) -> Piece:
    """Return the pieces of a payload; the last one has what could not be read."""
    return _Walk(linked, data).pieces()


def complaint(linked: Linked, data: bytes) -> PayloadError:
    """Return where and why a payload does not fit."""
    walk = _Walk(linked, data)
    walk.pieces()
    # Without an error the reader and the walk do not agree: a defect, but no crash.
    return walk.error or misfit("the payload does not match the schema")


class _Walk:
    def __init__(self, linked: Linked, data: bytes) -> None:
        self.linked = linked
        self.data = data
        self.at = 0
        self.room = LIMITS.empty_values + LIMITS.empty_per_byte * len(data)
        self.error: PayloadError | None = None
        """Why the walk ended early."""

    def pieces(self) -> Piece:
        """Return all pieces; what does not fit is one at the end, and in `error`."""
        root, end = self.linked.root, len(self.data)
        try:
            piece = self.value(root, "", "", 1, ())
            if self.error is None and self.at != end:
                count = end - self.at
                text = f"{count} byte{'s' * (count != 1)} after the value"
                self.error = PayloadError("surplus", text, offset=self.at)
        except PayloadError as error:
            self.error = error.without_frames()
            piece = Piece("", root.shown, None, 0, 0)
        if self.error is None:
            return piece
        whole = piece.pieces or ((piece,) if piece.end else ())
        rest = Piece("", UNREAD, None, piece.end, end)
        return Piece("", piece.type, None, 0, end, (*whole, rest))

    def refuse(self, text: str, path: str, offset: int) -> NoReturn:
        raise misfit(text, offset, path)

    def varint(self, what: str, path: str, bits: int = 64) -> int:
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
        begin = self.at
        data = self.take(self.varint(f"the length of {what}", path), what, path, begin)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            where = self.at - len(data) + error.start
            self.refuse(f"{what} is not UTF-8: byte 0x{data[error.start]:02x}", path, where)

    def index(self, count: int, what: str, short: str, path: str) -> int:
        begin = self.at
        index = self.varint(what, path)
        if not 0 <= index < count:
            self.refuse(f"{short} {index} of {count}", path, begin)
        return index

    def spend(self, count: int, path: str) -> None:
        self.room -= count
        if self.room < 0:
            self.refuse(f"{count:,} values without bytes", path, self.at)

    def value(
        self, node: AvroType, name: str, path: str, depth: int, heads: tuple[Piece, ...]
    ) -> Piece:
        """Read a value. `heads`: marks that introduce it; they come first, or a leaf has them."""
        begin = heads[0].begin if heads else self.at
        if node.kind == "union":
            at = self.at
            index = self.index(len(node.parts), "the branch of a union", "branch", path)
            heads = (*heads, Piece("", BRANCH, index, at, self.at))
            node = node.parts[index]
        if node.kind not in CONTAINERS:
            return Piece(name, node.shown, self.leaf(node, path), begin, self.at)
        pieces = list(heads)
        values = 0
        try:
            if depth > LIMITS.nesting:
                self.refuse(f"nested deeper than {LIMITS.nesting} levels", path, self.at)
            values = (self.fields if node.kind == "record" else self.blocks)(
                node, path, depth + 1, pieces
            )
        except PayloadError as error:
            self.error = error.without_frames()
        if self.error is not None:
            end = pieces[-1].end if pieces else begin
            return Piece(name, node.label, None, begin, end, tuple(pieces))
        if values:
            return Piece(name, node.label, None, begin, self.at, tuple(pieces))
        empty: Any = [] if node.kind == "array" else {}
        return Piece(name, node.label, empty, begin, self.at)

    def fields(self, node: AvroType, path: str, depth: int, pieces: list[Piece]) -> int:
        if node.weight > LIMITS.empty_per_byte:
            self.spend(node.weight, path)
        for field, part in zip(node.fields, node.parts, strict=True):
            pieces.append(self.value(part, field.name, inside(path, field.name), depth, ()))
            if self.error is not None:
                break
        return len(node.fields)

    def blocks(self, node: AvroType, path: str, depth: int, pieces: list[Piece]) -> int:
        (inner,) = node.parts
        values = 0
        while True:
            begin = self.at
            count = self.varint("the count of a block", path)
            if count < 0:
                self.varint("the size of a block", path)
                count = -count
            if node.kind == "array" and inner.empty:
                self.spend(count * inner.weight, path)
            pieces.append(Piece("", BLOCK, count, begin, self.at))
            if not count:
                return values
            for _ in range(count):
                name, where = f"[{values}]", f"{path}[{values}]"
                heads: tuple[Piece, ...] = ()
                if node.kind == "map":
                    begin = self.at
                    name = self.text("the key of a map", path)
                    where, heads = inside(path, name), (Piece("", KEY, name, begin, self.at),)
                pieces.append(self.value(inner, name, where, depth, heads))
                values += 1
                if self.error is not None:
                    return values

    def leaf(self, node: AvroType, path: str) -> Any:
        begin = self.at
        match node.kind:
            case "null":
                return None
            case "boolean":
                byte = self.take(1, "a boolean", path, begin)[0]
                if byte > 1:
                    self.refuse(f"a boolean with the byte 0x{byte:02x}", path, begin)
                return byte == 1
            case "float":
                return of_double(struct.unpack("<f", self.take(4, "a float", path, begin))[0])
            case "double":
                return of_double(struct.unpack("<d", self.take(8, "a double", path, begin))[0])
            case "string":
                return self.text("a text", path)
            case "enum":
                what = "the symbol of an enum"
                return node.symbols[self.index(len(node.symbols), what, "symbol", path)]
            case "int" | "long":
                bits = 32 if node.kind == "int" else 64
                value: Any = self.varint(f"a number {node.shown}", path, bits)
            case "bytes":
                value = self.take(self.varint("a length", path), node.shown, path, begin)
            case _:
                value = self.take(node.size, node.shown, path, begin)
        try:
            return shown(node, value)
        except ValueError as error:
            self.refuse(str(error), path, begin)
