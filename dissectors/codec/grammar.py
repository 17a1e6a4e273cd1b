"""Prints layouts as grammar, in the style of Kafka's protocol guide.

    Heartbeat Request (Version: 4) => group_id generation_id member_id _tagged_fields
      group_id => COMPACT_STRING
      generation_id => INT32
      member_id => COMPACT_STRING

One line per field, children below their parent, an array in brackets where it stands. After `#` is
what the types do not say: the default of a tagged field, null, named values, units.
"""

from __future__ import annotations

from typing import Final, assert_never

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
    implied_default,
)
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.reference.codes import ENUMS
from kafkascope.dissectors.reference.releases import late_tags

# Column of comments; they follow longer lines directly.
MARGIN: Final = 56


FRAME: Final = "# on a connection: int32 size of what follows, header, body"


def grammar(layout: Layout) -> str:
    return _Text(layout).text()


def call_grammar(key: int, version: int) -> str:
    """Return request and response of an API at a version, each with its header, and the layouts
    that other releases had for that version."""
    from kafkascope.dissectors import registry
    from kafkascope.dissectors.reference.releases import span

    api = registry.api_of(key)
    found = span(api.name, version) if version in api.versions else None
    head = f"# {api.name}, api key {key}, version {version} of {api.versions}"
    if found:
        head += f": Kafka {found.since}" + (
            f" to before {found.removed}" if found.removed else " and later"
        )
        if found.stable != found.since:
            head += f", finished in {found.stable}" if found.stable != "never" else ", unfinished"
    texts = [f"{head}\n{FRAME}\n"]
    for side in ("Request", "Response"):
        name = f"{api.name}{side}"
        choose = registry.request_header_version if side == "Request" else None
        header = (choose or registry.response_header_version)(key, version)
        layout = registry.layout_of(name, version)
        known = {"request_api_key": str(key), "request_api_version": str(version)}
        texts.append(_Text(registry.layout_of(f"{side}Header", header), known).text())
        texts.append(grammar(layout))
        texts += [grammar(other) for other in registry.variants_of(name, version)]
    return "\n".join(texts)


def zookeeper_grammar(key: int) -> str:
    """Return request and answer of a type of ZooKeeper's requests, each with its header."""
    from kafkascope.dissectors.registry import layout_of, message
    from kafkascope.dissectors.zookeeper.types import BASE, CONNECT, EVENT, TYPES

    found = TYPES[key - BASE]
    head = f"# {found.name}" + ("" if key - BASE in (CONNECT, EVENT) else f", type {key - BASE}")
    texts = [f"{head}, of ZooKeeper's protocol\n{FRAME}\n"]
    for name, header in ((found.request, "zk.RequestHeader"), (found.response, "zk.ReplyHeader")):
        if key - BASE == EVENT and name == found.request:
            continue
        parts = (name,) if key - BASE == CONNECT else (header, name)
        texts += [grammar(layout_of(each, message(each).versions.high)) for each in parts]
    return "\n".join(texts)


def title(layout: Layout) -> str:
    """Return the title of a layout: `Fetch Request (Version: 12)`."""
    message = layout.message
    name = message.name
    if message.kind == "zookeeper":
        return f"{name} (since 3.4)" if layout.version else name
    if message.kind == "header":
        return f"{name.removesuffix('Header')} Header v{layout.version}"
    for side in ("Request", "Response"):
        if message.kind == side.lower():
            name = f"{name.removesuffix(side)} {side}"
    releases = f", Kafka {message.releases}" if message.releases else ""
    return f"{name} (Version: {layout.version}{releases})"


class _Text:
    """Writes the lines of one layout; `known` are values that fields have at this place."""

    def __init__(self, layout: Layout, known: dict[str, str] | None = None) -> None:
        self.layout = layout
        self.known = known or {}
        self.late = late_tags(layout.message.name)
        self.lines: list[tuple[str, str]] = []

    def text(self) -> str:
        body = self.layout.body
        self.lines = [(f"{title(self.layout)} => {_row(body)}".rstrip(), "")]
        self.fields(body, "  ", "")
        width = min(MARGIN, max((len(line) for line, note in self.lines if note), default=0))
        return "".join(
            f"{line:<{width}}  # {note}\n" if note else f"{line}\n" for line, note in self.lines
        )

    def fields(self, wire: StructWire, indent: str, path: str) -> None:
        for slot in wire.slots:
            self.field(slot, indent, path)
        if wire.tags:
            row = " ".join(_in_row(slot) for slot in wire.tags)
            self.lines.append((f"{indent}_tagged_fields => {row}", ""))
            for slot in wire.tags:
                self.field(slot, indent + "  ", path)

    def field(self, slot: Slot, indent: str, path: str) -> None:
        inner = slot.wire.element if isinstance(slot.wire, ArrayWire) else slot.wire
        struct = inner if isinstance(inner, StructWire) else None
        name = slot.name if slot.tag is None else f"{slot.name}<tag: {slot.tag}>"
        meaning = _row(struct) if struct else word(inner)
        self.lines.append((f"{indent}{name} => {meaning}".rstrip(), self.note(slot, path)))
        if struct:
            array = "[]" if isinstance(slot.wire, ArrayWire) else ""
            self.fields(struct, indent + "  ", f"{path}{slot.name}{array}.")

    def note(self, slot: Slot, path: str) -> str:
        """Return the comment of a line: what the types do not say."""
        words = [self.known.get(slot.name, ""), slot.field.doc]
        if isinstance(slot.wire, ArrayWire | StructWire) and slot.wire.nullable:
            words.append("may be null")
        if isinstance(slot.wire, StructWire) and slot.wire.nullable:
            words.append(
                "after UNSIGNED_VARINT 0 (null) or 1"
                if slot.tag is not None
                else "after INT8 -1 (null) or 1"
            )
        if isinstance(slot.wire, ArrayWire) and slot.wire.operations:
            words.append("each after type, BOOLEAN false, err; then INT32 -1, true, INT32 -1")
        if slot.only and slot.name != "type":
            words.append(f"of types {', '.join(map(str, sorted(slot.only)))} only")
        words.append(_named_values(slot))
        words.append("secret" if slot.field.secret else "")
        if slot.tag is not None:
            words.append(f"default {_default(slot)}")
            release = self.late.get(path + slot.name)
            words.append(f"since Kafka {release}" if release else "")
        return "; ".join(each for each in words if each)


def _row(wire: StructWire) -> str:
    names = [_in_row(slot) for slot in wire.slots]
    return " ".join([*names, "_tagged_fields"] if wire.flexible else names)


def _in_row(slot: Slot) -> str:
    name = f"[{slot.name}]" if isinstance(slot.wire, ArrayWire) else slot.name
    return name if slot.tag is None else f"{name}<tag: {slot.tag}>"


def _named_values(slot: Slot) -> str:
    values = ENUMS.get(slot.field.enum)
    if not values:
        return ""
    if len(values) > LIMITS.listed_values or slot.field.enum.endswith("Bits"):
        return f"a value of {slot.field.enum}"
    if all(isinstance(value, str) for value in values):
        return ", ".join(f'"{value}"' for value in values)
    return ", ".join(f"{value} {name}" for value, name in values.items())


def _default(slot: Slot) -> str:
    value = slot.default
    if isinstance(slot.wire, StructWire) and value == implied_default(slot.wire):
        return "a struct of defaults"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(slot.wire, UuidWire):
        return "zero" if not any(value) else str(value)
    if value in ("", b"", []):
        return "empty"
    return str(value)


def word(wire: Wire) -> str:
    """Return the name of a wire kind as the guide has it: COMPACT_NULLABLE_STRING."""
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
        case ArrayWire() if wire.operations:
            return f"OPERATIONS of {word(wire.element)}"
        case ArrayWire():
            return f"{_prefix(wire)}ARRAY of {word(wire.element)}"
        case StructWire():
            return "NULLABLE_STRUCT" if wire.nullable else "STRUCT"
        case _:
            assert_never(wire)


def _prefix(wire: StringWire | BytesWire | ArrayWire) -> str:
    long = isinstance(wire, StringWire) and wire.long
    return (
        ("COMPACT_" if wire.compact else "")
        + ("NULLABLE_" if wire.nullable else "")
        + ("LONG_" if long else "")
    )
