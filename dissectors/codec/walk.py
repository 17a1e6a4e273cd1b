"""Walks over the values of a body with their declarations.

Callers read the marks of fields (entity, subject, secret, volatile, endpoint) instead of keeping
lists of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.layout import ArrayWire, Layout, Slot, StructWire, Wire

UNKNOWN_TAGS: Final = "_tagged_fields"
"""Key of a struct's tagged fields that its layout lacks."""


class Leaf(NamedTuple):
    """A value without parts, or an element of an array of such values."""

    path: str
    """Dotted, with indexes: topics.0.partitions.3.error_code."""
    slot: Slot
    value: Any
    around: Mapping[str, Any]
    """The struct that it stands in."""


Change: TypeAlias = Callable[[Slot, Any, Mapping[str, Any]], Any]
"""Returns the replacement of a value, given its slot, the value and the struct around it."""


def leaves(layout: Layout, body: Body) -> Iterator[Leaf]:
    """Yield all leaves of a body, in wire order (tagged ones last in their struct); nulls too."""
    yield from _leaves(layout.body, body, "")


def _leaves(wire: StructWire, value: Mapping[str, Any], path: str) -> Iterator[Leaf]:
    for slot in (*wire.slots, *wire.tags):
        inner = value[slot.name]
        here = f"{path}{slot.name}"
        yield from _leaf(slot, slot.wire, inner, here, value)


def _leaf(
    slot: Slot, wire: Wire, value: Any, path: str, around: Mapping[str, Any]
) -> Iterator[Leaf]:
    if value is not None and isinstance(wire, StructWire):
        yield from _leaves(wire, value, f"{path}.")
    elif value is not None and isinstance(wire, ArrayWire):
        for index, each in enumerate(value):
            yield from _leaf(slot, wire.element, each, f"{path}.{index}", around)
    else:
        yield Leaf(path, slot, value, around)


def changed(layout: Layout, body: Body, change: Change) -> Body:
    """Return a copy of the body in which `change` has replaced each leaf that is not null."""
    copy: Body = _changed(layout.body, body, change)
    return copy


def _changed(wire: StructWire, value: Mapping[str, Any], change: Change) -> dict[str, Any]:
    out = dict(value)
    for slot in (*wire.slots, *wire.tags):
        out[slot.name] = _changed_leaf(slot, slot.wire, value[slot.name], value, change)
    return out


def _changed_leaf(
    slot: Slot, wire: Wire, value: Any, around: Mapping[str, Any], change: Change
) -> Any:
    if value is None:
        return None
    if isinstance(wire, StructWire):
        return _changed(wire, value, change)
    if isinstance(wire, ArrayWire):
        return [_changed_leaf(slot, wire.element, each, around, change) for each in value]
    return change(slot, value, around)
