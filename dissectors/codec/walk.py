"""Walks over the values of a body with their declarations.

Callers read the marks of fields (entity, subject, secret, volatile, endpoint) instead of keeping
lists of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

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


class _Pick(NamedTuple):
    """A field that is picked, or that contains some."""

    slot: Slot
    depth: int
    """Number of arrays around what it holds."""
    inside: tuple[_Pick, ...] | None
    """Picks of its struct; None for a leaf."""


class Picks:
    """The fields of any layout that `accepts` returns True for, found once for each. What holds
    none of them is not looked into: a replay does this for every message."""

    def __init__(self, accepts: Callable[[Slot], bool]) -> None:
        self._accepts = accepts
        self._known: dict[Layout, tuple[_Pick, ...]] = {}

    def of(self, layout: Layout) -> tuple[_Pick, ...]:
        found = self._known.get(layout)
        if found is None:
            found = self._known[layout] = self._struct(layout.body)
        return found

    def _struct(self, wire: StructWire) -> tuple[_Pick, ...]:
        found = []
        for slot in (*wire.slots, *wire.tags):
            depth, inner = innermost(slot.wire)
            if isinstance(inner, StructWire):
                inside = self._struct(inner)
                if inside:
                    found.append(_Pick(slot, depth, inside))
            elif self._accepts(slot):
                found.append(_Pick(slot, depth, None))
        return tuple(found)

    def changed(self, layout: Layout, body: Body, change: Change) -> Body:
        """Return the body in which `change` has replaced each picked leaf that is not null; the
        same object when nothing is different."""
        return cast(Body, _changed(self.of(layout), body, change))

    def values(self, layout: Layout, body: Body) -> list[Any]:
        """Return all picked leaves that are not null, in wire order."""
        found: list[Any] = []

        def note(slot: Slot, value: Any, around: Any) -> Any:
            found.append(value)
            return value

        self.changed(layout, body, note)
        return found


def innermost(wire: Wire) -> tuple[int, Wire]:
    """Return how many arrays a wire is, one in the other, and what they hold."""
    depth = 0
    while isinstance(wire, ArrayWire):
        depth, wire = depth + 1, wire.element
    return depth, wire


def _changed(picks: tuple[_Pick, ...], body: Mapping[str, Any], change: Change) -> Any:
    out: Any = body
    for pick in picks:
        name = pick.slot.name
        old = body[name]
        if old is None:
            continue
        new = _changed_value(pick, pick.depth, old, body, change)
        if new is not old:
            if out is body:
                out = dict(body)
            out[name] = new
    return out


def _changed_value(
    pick: _Pick, depth: int, old: Any, around: Mapping[str, Any], change: Change
) -> Any:
    if old is None:
        return None
    if depth:
        made = [_changed_value(pick, depth - 1, each, around, change) for each in old]
        same = all(new is each for new, each in zip(made, old, strict=True))
        return old if same else made
    if pick.inside is not None:
        return _changed(pick.inside, old, change)
    new = change(pick.slot, old, around)
    return old if new == old else new


changed: Final = Picks(lambda slot: True).changed
"""Returns the body in which `change` has replaced each leaf that is not null; the same object when
nothing is different."""


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
