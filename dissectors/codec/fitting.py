"""Fits bodies to another version: fields that it lacks are left out, new ones get their
defaults."""

from __future__ import annotations

from typing import Any

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.layout import (
    ArrayWire,
    Layout,
    StructWire,
    UuidWire,
    Wire,
    default_of,
    implied_default,
)
from kafkascope.dissectors.values import Uuid


def fitted(layout: Layout, body: Body) -> Body:
    """Return the body as a complete body of a layout."""
    made: Body = _fitted(layout.body, body)
    return made


def _fitted(wire: Wire, value: Any) -> Any:
    if isinstance(wire, StructWire) and isinstance(value, dict):
        out = {}
        for slot in (*wire.slots, *wire.tags):
            if slot.name in value:
                out[slot.name] = _fitted(slot.wire, value[slot.name])
            else:
                out[slot.name] = _default(slot.wire, default_of(slot))
        return out
    if isinstance(wire, ArrayWire) and isinstance(value, list):
        return [_fitted(wire.element, each) for each in value]
    if value is None and not getattr(wire, "nullable", False):
        return _default(wire, implied_default(wire))
    if isinstance(wire, UuidWire):
        return Uuid(value)
    return value


def _default(wire: Wire, value: Any) -> Any:
    if isinstance(wire, UuidWire):
        return Uuid(value)
    return (
        implied_default(wire) if value is None and not getattr(wire, "nullable", False) else value
    )
