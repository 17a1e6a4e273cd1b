"""Walks over the values of a body with their declarations.

Callers read the marks of fields (entity, subject, secret, volatile, endpoint) instead of keeping
lists of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.layout import (
    ArrayWire,
    Layout,
    Slot,
    StructWire,
    UuidWire,
    Wire,
    default_of,
    implied_default,
)
from kafkascope.dissectors.values import Uuid

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


def fitted(layout: Layout, body: Body) -> Body:
    """Return a body of another version as a complete body of a layout: fields that it lacks are
    left out, new ones get their defaults."""
    made: Body = _fitted(layout.body, body)
    return made


def _fitted(wire: Wire, value: Any) -> Any:
    if value is None and not getattr(wire, "nullable", False):
        value = implied_default(wire)
    if isinstance(wire, StructWire) and isinstance(value, dict):
        return {
            slot.name: _fitted(slot.wire, value.get(slot.name, default_of(slot)))
            for slot in (*wire.slots, *wire.tags)
        }
    if isinstance(wire, ArrayWire) and isinstance(value, list):
        return [_fitted(wire.element, each) for each in value]
    return Uuid(value) if isinstance(wire, UuidWire) else value


_T = TypeVar("_T")


class Visit(NamedTuple):
    """The parts of a struct to visit."""

    found: Any
    """What is sought in the struct itself; None where it is not there."""
    inside: tuple[tuple[str, bool, Visit], ...]
    """For each field: its name, whether it is an array, and the parts of its structs to visit."""


def struct_of(wire: Wire) -> StructWire | None:
    """Return the struct that a field or the elements of its array are."""
    wire = wire.element if isinstance(wire, ArrayWire) else wire
    return wire if isinstance(wire, StructWire) else None


@cache
def visits(layout: Layout, find: Callable[[StructWire], object | None]) -> Visit | None:
    """Return where in a body the structs are in which `find` finds something; None without any."""
    return _visits(layout.body, find)


def _visits(wire: StructWire, find: Callable[[StructWire], object | None]) -> Visit | None:
    inside = []
    for slot in (*wire.slots, *wire.tags):
        inner = struct_of(slot.wire)
        if inner is not None and (visit := _visits(inner, find)) is not None:
            inside.append((slot.name, isinstance(slot.wire, ArrayWire), visit))
    found = find(wire)
    return Visit(found, tuple(inside)) if found or inside else None


def structs(
    layout: Layout, body: Body, find: Callable[[StructWire], _T | None]
) -> Iterator[tuple[_T, Mapping[str, Any]]]:
    """Yield what `find` finds in each struct of a body, with the struct's values."""
    visit = visits(layout, find)
    if visit is not None:
        yield from _structs(visit, body)


def _structs(visit: Visit, value: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    if visit.found is not None:
        yield visit.found, value
    for name, many, inner in visit.inside:
        found = value[name]
        if found:
            for each in found if many else (found,):
                yield from _structs(inner, each)
