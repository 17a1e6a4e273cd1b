"""Generates readers of schemas: the fast decoder.

Each record has a function, written and compiled when a payload first needs it, so that a schema of
thousands of types costs what is used of it. Primitives, arrays, maps and small unions are inline.
The generated code refuses what does not fit, but it does not explain: it raises one of `REFUSALS`,
and the caller walks the same bytes again (`walk.py`) to learn where and why.

Slices past the end are short, not an error: the next read raises an IndexError, or the position
ends past the end, which the caller checks. So only negative lengths need a check of their own;
nothing is allocated by a count.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kafkascope.schemas.avro.linking import Linked
from kafkascope.schemas.avro.logical import conversion
from kafkascope.schemas.avro.types import AvroType
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import of_bytes, of_double
from kafkascope.source import SourceLines, compile_function

# Arrays and maps inside each other in one function: Python takes twenty loops.
MAX_INLINE: Final = 4

# Branches of a union asked in a row; more are looked up.
MAX_CHAIN: Final = 8

# What bytes are in Avro's JSON form.
LATIN: Final = "iso-8859-1"


class Refusal(Exception):
    """The generated reader rejects the bytes, without a reason."""


REFUSALS: Final = (Refusal, IndexError, KeyError, ValueError, struct.error)
"""Exceptions of generated readers. A UnicodeDecodeError is a ValueError."""

Read: TypeAlias = Callable[..., tuple[Any, int]]


def more(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """Read on after the first byte of a varint: the unsigned number and where it ends."""
    number = first & 127
    shift = 7
    while True:
        byte = data[pos]
        pos += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> 64:
                raise Refusal
            return number, pos
        shift += 7
        if shift > 63:
            raise Refusal


def more_int(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """As `more`, of 32 bits."""
    number, pos = more(data, pos, first)
    if number >> 32:
        raise Refusal
    return number, pos


def block(data: bytes, pos: int, count: int) -> tuple[int, int]:
    """Return the absolute count of a block with a negative count, and the position after its size
    in bytes; only code that skips the block trusts that size."""
    size = data[pos]
    pos += 1
    if size > 127:
        size, pos = more(data, pos, size)
    return count + 1, pos


def _latin(data: bytes) -> str:
    return data.decode(LATIN)


class AvroReader:
    """Reads payloads of one schema."""

    def __init__(self, linked: Linked, *, json: bool = False) -> None:
        """`json`: returns Avro's JSON form in place of values."""
        self.linked = linked
        self.json = json
        self._functions: list[Read] = []
        self._numbers: dict[int, int] = {}
        self.names: dict[str, Any] = {
            "more": more,
            "more_int": more_int,
            "block": block,
            "based": _latin if json else of_bytes,
            "finite": of_double,
            "double": struct.Struct("<d").unpack_from,
            "float_": struct.Struct("<f").unpack_from,
            "Refusal": Refusal,
            "f": self._functions,
        }
        self._root = self.number(linked.root)

    def read(self, data: bytes, room: int = LIMITS.empty_values) -> Any:
        """Return the value; one of `REFUSALS` where the bytes do not fit to the last one. `room`:
        for values without bytes, beside those that the payload pays for."""
        function = self._functions[self._root]
        if self.linked.empties:
            value, end = function(data, 0, 1, [room + LIMITS.empty_per_byte * len(data)])
        else:
            value, end = function(data, 0, 1)
        if end != len(data):
            raise Refusal
        return value

    def number(self, node: AvroType) -> int:
        """Return the number of the function that reads a type."""
        known = self._numbers.get(id(node))
        if known is not None:
            return known
        number = self._numbers[id(node)] = len(self._functions)

        def first(*args: Any) -> tuple[Any, int]:
            source = _Source(self)
            text = source.function(node)
            origin = f"reader of Avro {node.label}"
            names = dict(self.names)
            if "f[" not in text:
                del names["f"]  # it leads back to the function: a circle, which goes late
            function: Read = compile_function("read", text, names, origin)
            self._functions[number] = function
            return function(*args)

        self._functions.append(first)
        return number

    def constant(self, value: Any) -> str:
        """Return the name of a constant in generated code."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name


class _Source(SourceLines):
    """One function: `read(data, pos, depth) -> (value, pos)`. `depth` counts records, arrays and
    maps, this one included."""

    def __init__(self, reader: AvroReader) -> None:
        super().__init__()
        self.reader = reader
        self.rest = ", room" if reader.linked.empties else ""

    def function(self, node: AvroType) -> str:
        self.add(f"def read(data, pos, depth{self.rest}):")
        self.depth += 1
        if node.kind == "record":
            self.check(0)
            if self.reader.linked.empties and node.weight > LIMITS.empty_per_byte:
                self.spend(str(node.weight))
            values = [self.value(part, 1, 0) for part in node.parts]
            pairs = zip(node.fields, values, strict=True)
            shown = ", ".join(f"{field.name!r}: {value}" for field, value in pairs)
            self.add(f"return {{{shown}}}, pos")
        else:
            self.add(f"return {self.value(node, 0, 0)}, pos")
        return self.text()

    def check(self, level: int) -> None:
        if self.reader.linked.deep:
            self.add(f"if depth > {LIMITS.nesting - level}: raise Refusal")

    def spend(self, count: str) -> None:
        """Count values without bytes before they are made."""
        self.add(f"room[0] -= {count}", "if room[0] < 0: raise Refusal")

    def varint(self, name: str, more: str = "more") -> None:
        self.add(f"{name} = data[pos]; pos += 1")
        self.add(f"if {name} > 127: {name}, pos = {more}(data, pos, {name})")

    def slice(self) -> str:
        """Read a length; leaves `pos` before the bytes, their end in the variable `e`."""
        self.varint("n")
        self.add("if n & 1: raise Refusal", "e = pos + (n >> 1)")
        return "data[pos:e]"

    def value(self, node: AvroType, level: int, loops: int) -> str:
        """Read a value; return the variable or constant that has it."""
        match node.kind:
            case "null":
                return "None"
            case "union":
                return self.union(node, level, loops)
            case "array" | "map" if loops < MAX_INLINE:
                return self.blocks(node, level, loops)
            case "record" | "array" | "map":
                return self.call(node, level)
            case _:
                return self.leaf(node)

    def call(self, node: AvroType, level: int) -> str:
        target = self.fresh()
        depth = f"depth + {level}" if level else "depth"
        self.add(f"{target}, pos = f[{self.reader.number(node)}](data, pos, {depth}{self.rest})")
        return target

    def leaf(self, node: AvroType) -> str:
        target = self.fresh()
        converted = None if self.reader.json else conversion(node)
        show = self.reader.constant(converted[0]) if converted else "based"
        match node.kind:
            case "boolean":
                self.add(f"{target} = (False, True)[data[pos]]; pos += 1")
            case "int" | "long":
                self.varint("n", "more_int" if node.kind == "int" else "more")
                number = "(n >> 1) ^ -(n & 1)"
                self.add(f"{target} = {f'{show}({number})' if converted else number}")
            case "float" | "double":
                read = "double" if node.kind == "double" else "float_"
                self.add(f"{target}, = {read}(data, pos); pos += {8 if read == 'double' else 4}")
                self.add(f"if {target} - {target} != 0: {target} = finite({target})")
            case "string":
                self.add(f"{target} = {self.slice()}.decode(); pos = e")
            case "enum":
                table = {2 * at: symbol for symbol, at in node.index.items()}
                self.varint("n")
                self.add(f"{target} = {self.reader.constant(table)}[n]")
            case "fixed":
                self.add(f"e = pos + {node.size}")
                if node.size:
                    # A short slice must not reach what expects them all.
                    self.add("data[e - 1]")
                self.add(f"{target} = {show}(data[pos:e]); pos = e")
            case _:
                self.add(f"{target} = {show}({self.slice()}); pos = e")
        return target

    def union(self, node: AvroType, level: int, loops: int) -> str:
        target = self.fresh()
        self.varint("n")
        if len(node.parts) > MAX_CHAIN:
            numbers = (self.reader.number(branch) for branch in node.parts)
            table = self.reader.constant({2 * at: each for at, each in enumerate(numbers)})
            depth = f"depth + {level}"
            labels = {2 * at: branch.label for at, branch in enumerate(node.parts)}
            label = self.reader.constant(labels) if self.reader.json else ""
            self.add(*([f"label = {label}[n]"] if label else ()))
            self.add(f"{target}, pos = f[{table}[n]](data, pos, {depth}{self.rest})")
            if label:
                self.add(f"if label != 'null': {target} = {{label: {target}}}")
            return target
        for at, branch in enumerate(node.parts):
            with self.block(f"{'elif' if at else 'if'} n == {2 * at}:"):
                value = self.value(branch, level, loops)
                if self.reader.json and branch.kind != "null":
                    value = f"{{{branch.label!r}: {value}}}"
                self.add(f"{target} = {value}")
        self.add("else: raise Refusal" if node.parts else "raise Refusal")
        return target

    def blocks(self, node: AvroType, level: int, loops: int) -> str:
        target, count = self.fresh(), self.fresh("c")
        (inner,) = node.parts
        self.check(level)
        self.add(f"{target} = {'[]' if node.kind == 'array' else '{}'}")
        self.add("while True:")
        self.depth += 1
        self.varint(count)
        self.add(f"if not {count}: break")
        self.add(f"if {count} & 1: {count}, pos = block(data, pos, {count})")
        if node.kind == "array" and inner.empty:
            self.spend(f"({count} >> 1) * {inner.weight}")
        self.add(f"for _ in range({count} >> 1):")
        self.depth += 1
        if node.kind == "map":
            key = self.fresh()
            self.add(f"{key} = {self.slice()}.decode(); pos = e")
            self.add(f"{target}[{key}] = {self.value(inner, level + 1, loops + 1)}")
        else:
            self.add(f"{target}.append({self.value(inner, level + 1, loops + 1)})")
        self.depth -= 2
        return target
