"""Walks over the few fields of a body that matter. Which they are is found once for each layout,
and what holds none of them is not looked into: a replay does this for every message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import Change
from kafkascope.dissectors.layout import ArrayWire, Layout, Slot, StructWire, Wire

Wanted: TypeAlias = Callable[[Slot], bool]


class _Pick(NamedTuple):
    """A field that is wanted, or that contains some."""

    slot: Slot
    depth: int
    """Of arrays around what it holds."""
    inside: tuple[_Pick, ...] | None
    """Of its struct; None for a leaf."""


class Picks:
    """The fields of any layout that `wanted` accepts."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._known: dict[Layout, tuple[_Pick, ...]] = {}

    def of(self, layout: Layout) -> tuple[_Pick, ...]:
        """The picks of a layout; empty where it has none."""
        found = self._known.get(layout)
        if found is None:
            found = self._known[layout] = self._struct(layout.body)
        return found

    def _struct(self, wire: StructWire) -> tuple[_Pick, ...]:
        found = []
        for slot in (*wire.slots, *wire.tags):
            depth, inner = _inner(slot.wire)
            if isinstance(inner, StructWire):
                inside = self._struct(inner)
                if inside:
                    found.append(_Pick(slot, depth, inside))
            elif self._wanted(slot):
                found.append(_Pick(slot, depth, None))
        return tuple(found)

    def changed(self, layout: Layout, body: Body, change: Change) -> Body:
        """The body with each wanted leaf that is not null replaced by what `change` says; the same
        object when nothing is different."""
        found: Body = _changed(self.of(layout), body, change)
        return found

    def values(self, layout: Layout, body: Body) -> Iterator[Any]:
        """All wanted leaves that are not null, in wire order."""
        return _values(self.of(layout), body)


def _inner(wire: Wire) -> tuple[int, Wire]:
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


def _values(picks: tuple[_Pick, ...], body: Mapping[str, Any]) -> Iterator[Any]:
    for pick in picks:
        value = body[pick.slot.name]
        if value is not None:
            yield from _values_in(pick, pick.depth, value)


def _values_in(pick: _Pick, depth: int, value: Any) -> Iterator[Any]:
    if value is None:
        return
    if depth:
        for each in value:
            yield from _values_in(pick, depth - 1, each)
    elif pick.inside is not None:
        yield from _values(pick.inside, value)
    else:
        yield value
