"""Decoded values inside bytes fields and records as indented lines: dicts, lists, texts,
with labels: the value's own name, or the session's name for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.bodies.nodes import NodeAddresses
from kafkascope.analyzer.text import escaped
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.embedded import Embedded, embedded_in
from kafkascope.dissectors.embedded.internal import Internal, masked_content
from kafkascope.dissectors.layout import ArrayWire, Slot, StructWire, Wire
from kafkascope.dissectors.reference.names import name_of
from kafkascope.dissectors.schema import Field
from kafkascope.dissectors.values import Uuid


class Labels:
    """Names of error codes, enums and times; of topics by id; addresses of nodes by id."""

    def __init__(self, names: TopicNames | None = None, nodes: NodeAddresses | None = None) -> None:
        self._names, self._nodes = names, nodes

    def of(self, field: Field, value: Any, around: Mapping[str, Any]) -> str:
        """The label of a field's value, or of an element of it; empty when there is none.

        `around`: the struct that contains the field.
        """
        if isinstance(value, list | dict):
            return ""
        if name := name_of(field, value, around):
            return name
        if self._nodes is not None and (field.entity or field.subject) == "brokerId":
            return (self._nodes.get(value) or "") if isinstance(value, int) else ""
        if self._names is not None and isinstance(value, Uuid) and "topic_id" in field.name:
            return self._names.get(value) or ""
        return ""


PLAIN = Labels()
"""Knows nothing of any session."""


# Elements of a list that are shown before the others are counted.
LIST_SHOWN: Final = 100


def embedded_lines(found: Embedded, labels: Labels = PLAIN) -> Iterator[str]:
    title = found.kind + (f" ({found.note})" if found.note else "")
    lines = ValueLines(labels)
    if not (isinstance(found.body, dict) and found.layouts):
        yield from lines.of(title, found.body)
        return
    yield title
    for name, inner in found.body.items():
        layout = found.layouts.get(name)
        for line in lines.of(name, inner, None if layout is None else layout.body):
            yield f"  {line}"


def internal_lines(found: Internal) -> Iterator[str]:
    """Yield the decoded lines of one of Kafka's own records."""
    for content in (found.key, found.value):
        if content is not None:
            layout = content.layout
            inside = {} if layout is None else dict(embedded_in(layout, content.body))
            wire = None if layout is None else layout.body
            note = f" ({content.note})" if content.note else ""
            title = f"{content.message} v{content.version}{note}"
            yield from ValueLines(inside=inside).of(title, masked_content(content), wire)
    if found.error is not None:
        yield f"! {found.error}"


class ValueLines:
    """`name: value`, and the parts of a value that has parts below it."""

    def __init__(
        self, labels: Labels = PLAIN, inside: Mapping[str, Embedded] | None = None
    ) -> None:
        """`inside`: what bytes fields hold, by path."""
        self._labels = labels
        self._inside = inside or {}

    def of(self, name: str, value: Any, wire: Wire | None = None) -> Iterator[str]:
        """The lines of a value; its wire, where it has one, names its parts."""
        return self._lines(name, value, _Place(wire=wire))

    def _lines(self, name: str, value: Any, place: _Place) -> Iterator[str]:
        if isinstance(value, dict):
            yield name
            for key, inner in value.items():
                yield from self._below(str(key), inner, place.part(str(key), value))
        elif isinstance(value, list | tuple) and any(isinstance(v, dict | list) for v in value):
            yield f"{name}: {len(value)}"
            for index, inner in enumerate(value[:LIST_SHOWN]):
                yield from self._below(f"[{index}]", inner, place.element(index))
            if len(value) > LIST_SHOWN:
                yield f"  ... {len(value) - LIST_SHOWN} more"
        else:
            yield f"{name}: {self._with_labels(value, place)}"
            if place.path in self._inside:
                for line in embedded_lines(self._inside[place.path], self._labels):
                    yield f"  {line}"

    def _below(self, name: str, value: Any, place: _Place) -> Iterator[str]:
        for line in self._lines(name, value, place):
            yield f"  {line}"

    def _with_labels(self, value: Any, place: _Place) -> str:
        if place.slot is None:
            return plain_text(value)
        if isinstance(value, list):
            inner = (self._labelled(each, place.slot, place.around) for each in value)
            return f"[{', '.join(inner)}]"
        return self._labelled(value, place.slot, place.around)

    def _labelled(self, value: Any, slot: Slot, around: Mapping[str, Any]) -> str:
        label = self._labels.of(slot.field, value, around)
        return f"{plain_text(value)} {label}" if label else plain_text(value)


class _Place(NamedTuple):
    """Where a value stands."""

    path: str = ""
    slot: Slot | None = None
    wire: Wire | None = None
    around: Mapping[str, Any] = MappingProxyType({})

    def part(self, name: str, value: Mapping[str, Any]) -> _Place:
        path = f"{self.path}.{name}" if self.path else name
        wire = self.wire
        slots = (*wire.slots, *wire.tags) if isinstance(wire, StructWire) else ()
        slot = next((each for each in slots if each.name == name), None)
        return _Place(path, slot, None if slot is None else slot.wire, value)

    def element(self, index: int) -> _Place:
        wire = self.wire.element if isinstance(self.wire, ArrayWire) else None
        return _Place(f"{self.path}[{index}]", self.slot, wire, self.around)


def plain_text(value: Any) -> str:
    """Return a value on one line; of bytes the first 32."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{escaped(value)}"'
        case Uuid():
            return str(value)
        case bytes():
            return f"{len(value)} bytes {value[:32].hex(' ')}" + ("..." if len(value) > 32 else "")
        case list() | tuple():
            return "[" + ", ".join(map(plain_text, value)) + "]"
        case _:
            return str(value)
