"""Layout -> printed grammar, in the style of Kafka's protocol guide."""

from __future__ import annotations

from typing import assert_never

from dissectors.layout import (
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


def grammar(layout: Layout) -> str:
    """The layout as text: one line per field, children below their parent, docs after `#`."""
    message = layout.message
    title = message.name
    for word in ("Request", "Response"):
        if message.kind == word.lower():
            title = f"{title.removesuffix(word)} {word}"
    version = (
        f"{layout.version}, releases {message.releases}" if message.releases else layout.version
    )
    lines = [f"{title} (Version: {version}) =>{_names(layout.body)}"]
    _lines(layout.body, "  ", lines)
    width = min(48, max((len(line) for line, doc in map(_split, lines) if doc), default=0))
    return "\n".join(f"{a:<{width}}  # {doc}" if doc else a for a, doc in map(_split, lines)) + "\n"


def _split(line: str) -> tuple[str, str]:
    text, _, doc = line.partition("\t")
    return text, doc


def _names(wire: StructWire) -> str:
    names = [_shown(slot) for slot in wire.slots]
    if wire.flexible:
        names += ["_tagged_fields", *(_shown(slot) for slot in wire.tags)]
    return "".join(f" {name}" for name in names)


def _shown(slot: Slot) -> str:
    name = f"[{slot.name}]" if isinstance(slot.wire, ArrayWire) else slot.name
    return name if slot.tag is None else f"{name}<tag: {slot.tag}>"


def _lines(wire: StructWire, indent: str, lines: list[str]) -> None:
    for slot in (*wire.slots, *wire.tags):
        name = slot.name if slot.tag is None else f"{slot.name}<tag: {slot.tag}>"
        inner = _struct_in(slot.wire)
        text = f"{indent}{name} => {_names(inner).strip() if inner else word(slot.wire)}".rstrip()
        lines.append(f"{text}\t{slot.field.doc}")
        if inner:
            _lines(inner, indent + "  ", lines)


def _struct_in(wire: Wire) -> StructWire | None:
    if isinstance(wire, ArrayWire):
        wire = wire.element
    return wire if isinstance(wire, StructWire) else None


def word(wire: Wire) -> str:
    """The name of a wire kind as the guide has it: COMPACT_NULLABLE_STRING."""
    match wire:
        case NumberWire():
            return wire.name.upper()
        case BoolWire():
            return "BOOLEAN"
        case UuidWire():
            return "UUID"
        case StringWire():
            return f"{_prefix(wire)}STRING"
        case BytesWire():
            return f"{_prefix(wire)}{'RECORDS' if wire.records else 'BYTES'}"
        case ArrayWire():
            return (
                f"{_prefix(wire)}ARRAY({word(wire.element)})"
                if wire.nullable
                else word(wire.element)
            )
        case StructWire():
            return "NULLABLE_STRUCT" if wire.nullable else "STRUCT"
        case _:
            assert_never(wire)


def _prefix(wire: StringWire | BytesWire | ArrayWire) -> str:
    return ("COMPACT_" if wire.compact else "") + ("NULLABLE_" if wire.nullable else "")
