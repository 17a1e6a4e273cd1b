"""Generates readers of layouts: `read(data, at) -> (body, end)`, the fast decoder.

Runs of fixed-size fields are one `struct` call, structs are dict displays, loops are inline. The
generated code checks every length and count against the bytes that are left, but it does not
explain: on anything wrong it raises one of `REFUSALS`, and the caller parses the same bytes with
the reference Struct to learn where and why. Good frames never pay for that. Only `TooLarge` is the
last word: to parse such a body again would take long.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias, assert_never

from kafkascope.dissectors.errors import DissectError, TooLarge
from kafkascope.dissectors.layout import (
    OPERATION_HEAD,
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
    minimum_size,
)
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.values import Uuid, finite, read_uvarint
from kafkascope.source import SourceLines, compile_function

# Bytes of a tagged field that the layout lacks: a dict with a number and bytes.
UNKNOWN_TAG_WEIGHT: Final = 340


def weight(wire: Wire) -> int:
    """Return the memory of a decoded value beside its content. Elements of an array come on top,
    each with its own weight. The reference Structs keep the same count."""
    match wire:
        case NumberWire():
            return 32
        case BoolWire():
            return 8
        case UuidWire():
            return 72
        case StringWire() | BytesWire() | ArrayWire():
            return 64
        case StructWire():
            slots = (*wire.slots, *wire.tags)
            return 64 + sum(32 + weight(slot.wire) for slot in slots)
        case _:
            assert_never(wire)


def memory_of(value: object) -> int:
    """Estimate the memory of a decoded value; without recursion, for bodies may be deep."""
    total = 0
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            total += 64 + 48 * len(each)
            left.extend(each.values())
        elif isinstance(each, list):
            total += 64 + 8 * len(each)
            left.extend(each)
        elif isinstance(each, str | bytes):
            total += 48 + len(each)
    return total


def too_large(at: int, path: str = "") -> TooLarge:
    """Return the error of a body beyond `body_bytes`."""
    reason = f"decoded it would take more than {LIMITS.body_bytes >> 20} MB of memory"
    return TooLarge(reason, offset=at, path=path)


Body: TypeAlias = dict[str, Any]
"""A decoded message: snake_case names to int, float, bool, str, bytes, Uuid, None, lists and
bodies."""

Reader: TypeAlias = Callable[[bytes, int], tuple[Body, int]]


class Refusal(Exception):
    """The generated reader does not take the bytes; it does not tell why."""


REFUSALS = (Refusal, struct.error, IndexError, DissectError)
"""Exceptions of generated readers."""


@cache
def reader(layout: Layout) -> Reader:
    """Return the reader of a layout, generated once."""
    names: dict[str, Any] = {
        "Uuid": Uuid,
        "Refusal": Refusal,
        "finite": finite,
        "too_large": too_large,
        "uvarint": read_uvarint,
        "unpack_from": struct.unpack_from,
    }
    source = reader_source(layout, names)
    origin = f"reader of {layout.message.name} {layout.version} {layout.message.releases}".strip()
    function: Reader = compile_function("read", source, names, origin)
    return function


def reader_source(layout: Layout, names: dict[str, Any] | None = None) -> str:
    """Return the source of a reader; adds the struct objects that it refers to to `names`."""
    writer = _ReaderSource({} if names is None else names)
    return writer.function(layout.body)


class _ReaderSource(SourceLines):
    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__()
        self.names = names
        self.run: list[tuple[str, str]] = []
        """Fixed-size values not read yet: (struct code, variable)."""

    def function(self, body: StructWire) -> str:
        with self.block("def read(data, at):"):
            self.add("size = len(data)", f"room = {LIMITS.body_bytes}")
            value = self.struct(body)
            self.add(f"return {value}, at")
        return self.text()

    def flush(self) -> None:
        """Read the pending run with one call."""
        if not self.run:
            return
        form = ">" + "".join(code for code, _ in self.run)
        name = "read_" + form[1:].replace("?", "o")
        packer = struct.Struct(form)
        variables = [variable for _, variable in self.run]
        self.names[name] = packer.unpack_from
        self.add(f"{', '.join(variables)}{',' * (len(variables) == 1)} = {name}(data, at)")
        self.add(f"at += {packer.size}")
        self.run = []

    def struct(self, wire: StructWire) -> str:
        """Emit a struct that is not null; return the expression of its value."""
        items = [f"{slot.name!r}: {self.value(slot.wire)}" for slot in wire.slots]
        if not wire.flexible:
            self.flush()
            return "{" + ", ".join(items) + "}"
        self.flush()
        count = self.fresh("n")
        self.add(f"{count} = data[at]", "at += 1")
        extra = self.fresh("extra")
        variables = {slot.name: self.fresh("t") for slot in wire.tags}
        for slot in wire.tags:
            self.add(f"{variables[slot.name]} = {literal(slot.default)}")
        items += [f"{name!r}: {variable}" for name, variable in variables.items()]
        with self.block(f"if {count}:"):
            self.section(wire, count, extra, variables)
            result = self.fresh("s")
            self.add(f"{result} = {{{', '.join(items)}}}")
            self.add(f"if {extra}:", f"    {result}['_tagged_fields'] = {extra}")
        self.add("else:", f"    {result} = {{{', '.join(items)}}}")
        return result

    def section(self, wire: StructWire, count: str, extra: str, known: dict[str, str]) -> None:
        """Emit the loop over a tagged section that is not empty. `extra`: variable for unknown
        tags."""
        tag, last, length, stop = (self.fresh(p) for p in ("tag", "last", "size", "stop"))
        self.add(f"if {count} > 127:", f"    {count}, at = uvarint(data, at - 1)")
        # A tagged field takes two bytes at least.
        self.add(f"if {count} > size - at:", "    raise Refusal")
        self.add(
            f"room -= {count} * {UNKNOWN_TAG_WEIGHT}", "if room < 0:", "    raise too_large(at)"
        )
        self.add(f"{extra} = []")
        self.add(f"{last} = -1", f"for _ in range({count}):")
        self.depth += 1
        self.add(f"{tag}, at = uvarint(data, at)", f"{length}, at = uvarint(data, at)")
        self.add(f"{stop} = at + {length}")
        self.add(f"if {tag} <= {last} or {stop} > size:", "    raise Refusal", f"{last} = {tag}")
        word = "if"
        for slot in wire.tags:
            with self.block(f"{word} {tag} == {slot.tag}:"):
                self.tagged(slot, known[slot.name])
                self.add(f"if at != {stop}:", "    raise Refusal")
            word = "elif"
        if wire.tags:
            self.add("else:")
            self.depth += 1
        self.add(f"{extra}.append({{'tag': {tag}, 'data': data[at:{stop}]}})")
        self.add(f"at = {stop}")
        self.depth -= 2 if wire.tags else 1

    def tagged(self, slot: Slot, target: str) -> None:
        """Emit the value of a tagged field into `target`."""
        if isinstance(slot.wire, StructWire) and slot.wire.nullable:
            self.add("marker, at = uvarint(data, at)", "if marker == 0:")
            with self.block(f"    {target} = None", "elif marker == 1:"):
                self.add(f"{target} = {self.struct(slot.wire)}")
            self.add("else:", "    raise Refusal")
            return
        value = self.value(slot.wire)
        self.flush()
        self.add(f"{target} = {value}")

    def value(self, wire: Wire) -> str:
        """Emit what reads a value, or add it to the run; return the expression of the value."""
        match wire:
            case NumberWire():
                variable = self.fresh()
                self.run.append((wire.code, variable))
                return f"finite({variable})" if wire.code == "d" else variable
            case BoolWire():
                variable = self.fresh()
                self.run.append(("?", variable))
                return variable
            case UuidWire():
                variable = self.fresh()
                self.run.append(("16s", variable))
                return f"Uuid({variable})"
            case StringWire():
                return self.blob(wire, wire.code, ".decode('utf-8', 'surrogateescape')")
            case BytesWire():
                return self.blob(wire, "i", "")
            case ArrayWire() if wire.operations:
                return self.operations(wire)
            case ArrayWire():
                return self.array(wire)
            case StructWire():
                return self.nullable_struct(wire) if wire.nullable else self.struct(wire)
            case _:
                assert_never(wire)

    def length(self, compact: bool, code: str) -> str:
        """Emit a length or count; when compact, the variable still holds the value + 1."""
        variable = self.fresh("n")
        if compact:
            self.flush()
            self.add(f"{variable} = data[at]", "at += 1", f"if {variable} > 127:")
            self.add(f"    {variable}, at = uvarint(data, at - 1)")
        else:
            self.run.append((code, variable))
            self.flush()
        return variable

    def blob(self, wire: StringWire | BytesWire, code: str, conversion: str) -> str:
        length, value, stop = self.length(wire.compact, code), self.fresh(), self.fresh("stop")
        there, null, taken = (
            (f"{length} > 0", f"{length} == 0", f"{length} - 1")
            if wire.compact
            else (f"{length} >= 0", f"{length} == -1", length)
        )
        self.add(f"if {there}:", f"    {stop} = at + {taken}")
        self.add(f"    if {stop} > size:", "        raise Refusal")
        self.add(f"    {value} = data[at:{stop}]{conversion}", f"    at = {stop}")
        self.null_or_refuse(value, null, wire.nullable)
        return value

    def null_or_refuse(self, value: str, null: str, nullable: bool) -> None:
        """Emit the other branches after `if it is there`."""
        if nullable:
            self.add(f"elif {null}:", f"    {value} = None")
        self.add("else:", "    raise Refusal")

    def array(self, wire: ArrayWire) -> str:
        count, value = self.length(wire.compact, "i"), self.fresh("a")
        if wire.compact:
            self.add(f"{count} -= 1")
        smallest = max(1, minimum_size(wire.element))
        with self.block(f"if {count} >= 0:"):
            # A hostile count is refused before anything is allocated for it.
            self.add(f"if {count} * {smallest} > size - at:", "    raise Refusal")
            self.add(f"room -= {count} * {8 + weight(wire.element)}", "if room < 0:")
            self.add("    raise too_large(at)")
            if isinstance(wire.element, NumberWire) and wire.element.code != "d":
                self.add(
                    f"{value} = list(unpack_from(f'>{{{count}}}{wire.element.code}', data, at))"
                )
                self.add(f"at += {count} * {wire.element.size}")
            else:
                with self.block(f"{value} = []", f"for _ in range({count}):"):
                    element = self.value(wire.element)
                    self.flush()
                    self.add(f"{value}.append({element})")
        self.null_or_refuse(value, f"{count} == -1", wire.nullable)
        return value

    def operations(self, wire: ArrayWire) -> str:
        """Emit a loop over operations, up to the head that says it is the last."""
        self.flush()
        value, kind, last = self.fresh("a"), self.fresh("kind"), self.fresh("last")
        err, element = self.fresh(), wire.element
        assert isinstance(element, StructWire)
        self.names["read_head"] = struct.Struct(">i?i").unpack_from
        self.names[known := self.fresh("known")] = frozenset().union(
            *(slot.only for slot in element.slots)
        )
        with self.block(f"{value} = []", "while True:"):
            self.add(f"{kind}, {last}, {err} = read_head(data, at)", f"at += {OPERATION_HEAD}")
            self.add(f"if {last}:", "    break", f"if {kind} not in {known}:", "    raise Refusal")
            self.add(f"room -= {8 + weight(element)}", "if room < 0:", "    raise too_large(at)")
            heads = zip(element.slots, (kind, err), strict=False)
            items = [f"{slot.name!r}: {each}" for slot, each in heads]
            for slot in element.slots[2:]:
                part = self.fresh()
                self.names[types := self.fresh("types")] = slot.only
                with self.block(f"{part} = None", f"if {kind} in {types}:"):
                    found = self.value(slot.wire)
                    self.flush()
                    self.add(f"{part} = {found}")
                    items.append(f"{slot.name!r}: {part}")
            self.add(f"{value}.append({{{', '.join(items)}}})")
        return value

    def nullable_struct(self, wire: StructWire) -> str:
        marker, value = self.fresh("n"), self.fresh("s")
        self.run.append(("b", marker))
        self.flush()
        with self.block(f"if {marker} == 1:"):
            self.add(f"{value} = {self.struct(wire)}")
        self.null_or_refuse(value, f"{marker} == -1", nullable=True)
        return value


def literal(value: Any) -> str:
    """Return a default as source: containers are made anew each time. Names: `Uuid`, `finite`."""
    if isinstance(value, bytes) and len(value) == 16:
        return f"Uuid({bytes(value)!r})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return f"finite({value!r})"
    return repr(value)
