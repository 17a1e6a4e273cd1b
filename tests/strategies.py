"""Hypothesis strategies: complete bodies of any layout, with the corners that the protocol has."""

from typing import Any

from hypothesis import strategies as st

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
    default_of,
)
from kafkascope.dissectors.values import Uuid, finite

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64, "H": 16, "I": 32}


def _number(code: str) -> st.SearchStrategy[Any]:
    if code == "d":
        # NaN is not equal to itself, so it is left to a test of its own.
        return st.floats(allow_nan=False).map(finite)
    bits = _BITS[code]
    low, high = (0, 2**bits - 1) if code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    corners = st.sampled_from([low, high, max(low, -1), 0, 1])
    return corners | st.integers(low, high)


def _nullable(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nullable else values


def values(wire: Wire, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the wire kind can carry."""
    match wire:
        case NumberWire():
            return _number(wire.code)
        case BoolWire():
            return st.booleans()
        case UuidWire():
            return st.just(Uuid(16)) | st.binary(min_size=16, max_size=16).map(Uuid)
        case StringWire():
            # 127 and 128 bytes: where a compact length takes a second byte.
            text = st.text(max_size=8) | st.sampled_from(
                ["", "é€", "x" * 126, "x" * 127, "x" * 128]
            )
            return _nullable(text, wire.nullable)
        case BytesWire():
            return _nullable(st.binary(max_size=12) | st.just(b"\0" * 127), wire.nullable)
        case ArrayWire() if wire.operations:
            return st.lists(operations(wire), max_size=3)
        case ArrayWire():
            most = 3 if depth < 2 else 2
            elements = st.lists(values(wire.element, depth + 1), max_size=most)
            return _nullable(elements, wire.nullable)
        case StructWire():
            return _nullable(structs(wire, depth), wire.nullable)


@st.composite
def operations(draw: st.DrawFn, wire: ArrayWire) -> dict[str, Any]:
    """One operation of ZooKeeper's multi, with the fields that its type has."""
    assert isinstance(wire.element, StructWire)
    slots = wire.element.slots
    kind = draw(st.sampled_from(sorted(frozenset().union(*(slot.only for slot in slots)))))
    body = {"type": kind, "err": draw(_number("i"))}
    for slot in slots[2:]:
        body[slot.name] = draw(values(slot.wire, 2)) if kind in slot.only else None
    return body


def _tagged(slot: Slot, depth: int) -> st.SearchStrategy[Any]:
    default = default_of(slot)
    if isinstance(slot.wire, UuidWire):
        default = Uuid(default)
    return st.just(default) | values(slot.wire, depth + 1)


def _unknown_tags(wire: StructWire) -> st.SearchStrategy[list[dict[str, Any]]]:
    known = {slot.tag for slot in wire.tags}
    tags = st.integers(0, 200).filter(lambda tag: tag not in known) | st.just(2**31)
    fields = st.dictionaries(tags, st.binary(max_size=6), max_size=2)
    return fields.map(lambda found: [{"tag": t, "data": found[t]} for t in sorted(found)])


@st.composite
def structs(draw: st.DrawFn, wire: StructWire, depth: int = 0) -> dict[str, Any]:
    """Complete values of a struct, with unknown tags now and then where it is flexible."""
    body = {slot.name: draw(values(slot.wire, depth)) for slot in wire.slots}
    body |= {slot.name: draw(_tagged(slot, depth)) for slot in wire.tags}
    if wire.flexible and draw(st.integers(0, 5)) == 5 and (extra := draw(_unknown_tags(wire))):
        body["_tagged_fields"] = extra
    return body


def bodies(layout: Layout) -> st.SearchStrategy[dict[str, Any]]:
    """Complete bodies of a layout."""
    return structs(layout.body)
