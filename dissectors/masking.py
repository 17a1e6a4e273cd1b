"""Secrets out of bodies: values of fields that are declared `secret=True` become asterisks of
the same length."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dissectors.layout import ArrayWire, Layout, StructWire, Wire
from dissectors.reader import Body


@cache
def has_secrets(layout: Layout) -> bool:
    """Whether any field of the layout is secret."""
    return _secret_in(layout.body)


def _secret_in(wire: Wire) -> bool:
    if isinstance(wire, ArrayWire):
        return _secret_in(wire.element)
    if isinstance(wire, StructWire):
        return any(s.field.secret or _secret_in(s.wire) for s in (*wire.slots, *wire.tags))
    return False


def masked(layout: Layout, body: Body) -> Body:
    """The body without its secrets; the very same body when the layout has none."""
    return _masked(layout.body, body) if has_secrets(layout) else body


def _masked(wire: Wire, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(wire, ArrayWire):
        return [_masked(wire.element, each) for each in value]
    if not isinstance(wire, StructWire):
        return value
    out = dict(value)
    for slot in (*wire.slots, *wire.tags):
        old = value[slot.name]
        if slot.field.secret and isinstance(old, str | bytes):
            out[slot.name] = "*" * len(old) if isinstance(old, str) else b"*" * len(old)
        else:
            out[slot.name] = _masked(slot.wire, old)
    return out


def secrets_of(layout: Layout, body: Body) -> Iterator[bytes]:
    """The secret values of a body, as the bytes that stand on the wire."""
    if has_secrets(layout):
        yield from _secrets(layout.body, body)


def _secrets(wire: Wire, value: Any) -> Iterator[bytes]:
    if value is None:
        return
    if isinstance(wire, ArrayWire):
        for each in value:
            yield from _secrets(wire.element, each)
    elif isinstance(wire, StructWire):
        for slot in (*wire.slots, *wire.tags):
            inner = value[slot.name]
            if slot.field.secret and inner:
                text = isinstance(inner, str)
                yield inner.encode("utf-8", "surrogateescape") if text else inner
            else:
                yield from _secrets(slot.wire, inner)
