"""Generates writers of layouts: `write(body) -> bytes`, the fast encoder.

Takes complete bodies only (`jsonform.body_from_json` completes and checks). On anything wrong it
raises one of `REFUSALS` and the caller builds with the reference Struct to learn where and why. A
tagged field is left out when it has its default.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, assert_never

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
)
from kafkascope.dissectors.values import write_uvarint
from kafkascope.source import SourceLines, compile_function

Writer: TypeAlias = Callable[[Body], bytes]

REFUSALS = (DissectError, struct.error, KeyError, TypeError, AttributeError, ValueError)
"""Exceptions of generated writers."""

_ONE_BYTE = tuple(bytes([n]) for n in range(128))


def uvarint(value: int) -> bytes:
    """Return the shortest varint, from a table for the usual small values."""
    return _ONE_BYTE[value] if 0 <= value < 128 else write_uvarint(value)


def uuid_bytes(value: bytes) -> bytes:
    """16 bytes, or `ValueError`: `struct` would pad or cut silently."""
    if len(value) != 16:
        raise ValueError("a uuid has 16 bytes")
    return value


def tagged_section(known: list[tuple[int, bytes]], extra: list[Body] | None) -> bytes:
    """Write a tagged section of fields by tag, `ValueError` when a tag stands twice."""
    fields = known + [(field["tag"], field["data"]) for field in extra or ()]
    fields.sort()
    if len(dict(fields)) != len(fields):
        raise ValueError("a tag stands twice")
    out = uvarint(len(fields))
    for tag, data in fields:
        out += uvarint(tag) + uvarint(len(data)) + data
    return out


@cache
def writer(layout: Layout) -> Writer:
    """Return the writer of a layout, generated once."""
    names: dict[str, Any] = {
        "uvarint": uvarint,
        "uuid_bytes": uuid_bytes,
        "tagged_section": tagged_section,
        "pack": struct.pack,
        "pack_h": struct.Struct(">h").pack,
        "pack_i": struct.Struct(">i").pack,
    }
    source = _WriterSource(names).function(layout.body)
    origin = f"writer of {layout.message.name} {layout.version} {layout.message.releases}".strip()
    function: Writer = compile_function("write", source, names, origin)
    return function


class _WriterSource(SourceLines):
    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__()
        self.names = names
        self.run: list[tuple[str, str]] = []
        """Fixed-size values not written yet: (struct letter, expression)."""

    def function(self, body: StructWire) -> str:
        with self.block("def write(body):"):
            self.add("out = bytearray()")
            self.struct(body, "body", "out")
            self.add("return bytes(out)")
        return self.text()

    def flush(self, out: str) -> None:
        if not self.run:
            return
        form = ">" + "".join(code for code, _ in self.run)
        name = "write_" + form[1:].replace("?", "o")
        self.names[name] = struct.Struct(form).pack
        self.add(f"{out} += {name}({', '.join(expression for _, expression in self.run)})")
        self.run = []

    def struct(self, wire: StructWire, body: str, out: str) -> None:
        """Emit what appends the struct in the variable `body`."""
        for slot in wire.slots:
            self.value(slot.wire, f"{body}[{slot.name!r}]", out)
        self.flush(out)
        if wire.flexible:
            self.section(wire, body, out)

    def section(self, wire: StructWire, body: str, out: str) -> None:
        fields, extra = self.fresh("fields"), self.fresh("extra")
        self.add(f"{fields} = []")
        for slot in wire.tags:
            self.tagged(slot, body, fields)
        self.add(f"{extra} = {body}.get('_tagged_fields')")
        self.add(f"if {fields} or {extra}:", f"    {out} += tagged_section({fields}, {extra})")
        self.add("else:", f"    {out} += b'\\x00'")

    def tagged(self, slot: Slot, body: str, fields: str) -> None:
        value, default, part = self.fresh(), self.fresh("default"), self.fresh("part")
        self.names[default] = slot.default
        with self.block(f"{value} = {body}[{slot.name!r}]", f"if {value} != {default}:"):
            self.add(f"{part} = bytearray()")
            if isinstance(slot.wire, StructWire) and slot.wire.nullable:
                with self.block(f"if {value} is None:", f"    {part} += b'\\x00'", "else:"):
                    self.add(f"{part} += b'\\x01'")
                    self.struct(slot.wire, value, part)
            else:
                self.value(slot.wire, value, part)
                self.flush(part)
            self.add(f"{fields}.append(({slot.tag}, bytes({part})))")

    def value(self, wire: Wire, expression: str, out: str) -> None:
        """Emit what appends a value, or add it to the run."""
        match wire:
            case NumberWire():
                self.run.append((wire.code, expression))
            case BoolWire():
                self.run.append(("?", expression))
            case UuidWire():
                self.run.append(("16s", f"uuid_bytes({expression})"))
            case StringWire():
                text = self.begin(wire, expression, out)
                self.add(f"{text} = {text}.encode('utf-8', 'surrogateescape')")
                self.length(wire.compact, f"len({text})", wire.code, out)
                self.add(f"{out} += {text}")
                self.null(wire, wire.code, out)
            case BytesWire():
                data = self.begin(wire, expression, out)
                self.length(wire.compact, f"len({data})", "i", out)
                self.add(f"{out} += {data}")
                self.null(wire, "i", out)
            case ArrayWire() if wire.operations:
                self.operations(wire, expression, out)
            case ArrayWire():
                self.array(wire, expression, out)
            case StructWire():
                body = self.fresh("s")
                self.flush(out)
                self.add(f"{body} = {expression}")
                if not wire.nullable:
                    self.struct(wire, body, out)
                    return
                with self.block(f"if {body} is None:", f"    {out} += b'\\xff'", "else:"):
                    self.add(f"{out} += b'\\x01'")
                    self.struct(wire, body, out)
            case _:
                assert_never(wire)

    def begin(
        self, wire: StringWire | BytesWire | ArrayWire, expression: str, out: str, prefix: str = "v"
    ) -> str:
        """Emit the start of a value that may be null; return its variable."""
        value = self.fresh(prefix)
        self.flush(out)
        self.add(f"{value} = {expression}")
        if wire.nullable:
            self.add(f"if {value} is not None:")
            self.depth += 1
        return value

    def length(self, compact: bool, length: str, code: str, out: str) -> None:
        self.add(
            f"{out} += uvarint({length} + 1)" if compact else f"{out} += pack_{code}({length})"
        )

    def null(self, wire: StringWire | BytesWire | ArrayWire, code: str, out: str) -> None:
        """Emit the other branch of a nullable value."""
        if wire.nullable:
            self.depth -= 1
            null = b"\x00" if wire.compact else b"\xff" * struct.calcsize(code)
            self.add("else:", f"    {out} += {null!r}")

    def operations(self, wire: ArrayWire, expression: str, out: str) -> None:
        item, kind, element = self.fresh("e"), self.fresh("kind"), wire.element
        assert isinstance(element, StructWire)
        self.flush(out)
        self.names["write_head"] = struct.Struct(">i?i").pack
        self.names[known := self.fresh("known")] = frozenset().union(
            *(slot.only for slot in element.slots)
        )
        with self.block(f"for {item} in {expression}:"):
            self.add(f"{kind} = {item}['type']", f"if {kind} not in {known}:")
            self.add("    raise ValueError('no such operation')")
            self.add(f"{out} += write_head({kind}, False, {item}['err'])")
            for slot in element.slots[2:]:
                self.names[types := self.fresh("types")] = slot.only
                with self.block(f"if {kind} in {types}:"):
                    self.value(slot.wire, f"{item}[{slot.name!r}]", out)
                    self.flush(out)
        self.add(f"{out} += write_head(-1, True, -1)")

    def array(self, wire: ArrayWire, expression: str, out: str) -> None:
        items, item = self.begin(wire, expression, out, "a"), self.fresh("e")
        self.length(wire.compact, f"len({items})", "i", out)
        if isinstance(wire.element, NumberWire):
            self.add(f"{out} += pack(f'>{{len({items})}}{wire.element.code}', *{items})")
        else:
            with self.block(f"for {item} in {items}:"):
                self.value(wire.element, item, out)
                self.flush(out)
        self.null(wire, "i", out)
