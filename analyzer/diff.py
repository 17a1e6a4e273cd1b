"""What two bodies say differently: by field, arrays by what their elements are called, records by
content. Reads the marks of the declarations, and keeps no list of fields of its own.

Used by `kafkascope diff`, by replay (is the answer the same?) and by fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from analyzer.diff_records import record_differences
from dissectors.layout import ArrayWire, BytesWire, Layout, Slot, StructWire, Wire
from dissectors.reader import Body
from dissectors.walk import UNKNOWN_TAGS

Kind: TypeAlias = Literal["changed", "left only", "right only"]

MISSING: Final = object()


class Difference(NamedTuple):
    """One place where two bodies differ."""

    path: str
    """Elements of arrays are named by their keys: topics[orders].partitions[3].error_code."""
    kind: Kind
    left: Any
    """None when there is none."""
    right: Any
    volatile: bool = False
    """The declaration says that it differs from run to run."""


def differences(
    left: Layout, left_body: Body, right: Layout, right_body: Body, *, strict: bool = False
) -> list[Difference]:
    """Where two bodies differ, in the order of the left one.

    The layouts may be two versions of one message: a field that one of them lacks counts when it
    holds something else than its default. Volatile values (times, throttle, session and member
    ids) count with `strict` only.
    """
    found = _structs(left.body, left_body, right.body, right_body, "")
    return [each for each in found if strict or not each.volatile]


def _structs(
    left: StructWire, a: Mapping[str, Any], right: StructWire, b: Mapping[str, Any], path: str
) -> Iterator[Difference]:
    rights = {slot.name: slot for slot in (*right.slots, *right.tags)}
    for slot in (*left.slots, *left.tags):
        here = f"{path}.{slot.name}" if path else slot.name
        other = rights.pop(slot.name, None)
        if other is not None:
            yield from _values(slot, slot.wire, a[slot.name], other.wire, b[other.name], here)
        elif a[slot.name] != slot.default:
            yield Difference(here, "left only", a[slot.name], None, slot.field.volatile)
    for name, slot in rights.items():
        if b[name] != slot.default:
            here = f"{path}.{name}" if path else name
            yield Difference(here, "right only", None, b[name], slot.field.volatile)
    tags, others = a.get(UNKNOWN_TAGS, []), b.get(UNKNOWN_TAGS, [])
    if tags != others:
        yield Difference(f"{path}.{UNKNOWN_TAGS}".lstrip("."), "changed", tags, others)


def _values(slot: Slot, left: Wire, a: Any, right: Wire, b: Any, path: str) -> Iterator[Difference]:
    volatile = slot.field.volatile
    if a is None or b is None:
        if a is not b:
            yield Difference(path, "changed", a, b, volatile)
    elif isinstance(left, StructWire) and isinstance(right, StructWire):
        yield from _structs(left, a, right, b, path)
    elif isinstance(left, ArrayWire) and isinstance(right, ArrayWire):
        yield from _arrays(slot, left.element, a, right.element, b, path)
    elif a != b:
        if isinstance(left, BytesWire) and left.records:
            for where, one, other, changes in record_differences(a, b):
                yield Difference(f"{path}{where}", _kind(one, other), one, other, changes)
        else:
            yield Difference(path, "changed", a, b, volatile)


def _kind(left: Any, right: Any) -> Kind:
    if left is None:
        return "right only"
    return "left only" if right is None else "changed"


def _arrays(
    slot: Slot, left: Wire, a: Sequence[Any], right: Wire, b: Sequence[Any], path: str
) -> Iterator[Difference]:
    if not (isinstance(left, StructWire) and isinstance(right, StructWire)):
        if a != b:
            # A list of plain values is a set in nearly all of Kafka's messages; brokers and
            # clients make them from hash maps.
            same = sorted(map(repr, a)) == sorted(map(repr, b))
            if not same:
                yield Difference(path, "changed", a, b, slot.field.volatile)
        return
    keys = _keys(left, right, a, b)
    if not keys:
        yield from _by_index(left, a, right, b, path)
        return
    rest = {_key(each, keys): each for each in b}
    for each in a:
        key = _key(each, keys)
        here = f"{path}[{_named(key)}]"
        other = rest.pop(key, MISSING)
        if other is MISSING:
            yield Difference(here, "left only", each, None, slot.field.volatile)
        else:
            yield from _structs(left, each, right, other, here)
    for key, each in rest.items():
        yield Difference(f"{path}[{_named(key)}]", "right only", None, each, slot.field.volatile)


def _by_index(
    left: StructWire, a: Sequence[Any], right: StructWire, b: Sequence[Any], path: str
) -> Iterator[Difference]:
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        yield from _structs(left, one, right, other, f"{path}[{index}]")
    for index in range(len(b), len(a)):
        yield Difference(f"{path}[{index}]", "left only", a[index], None)
    for index in range(len(a), len(b)):
        yield Difference(f"{path}[{index}]", "right only", None, b[index])


def _keys(
    left: StructWire, right: StructWire, a: Sequence[Any], b: Sequence[Any]
) -> tuple[str, ...]:
    """Names of the fields that tell the elements of both arrays apart; none when nothing does."""
    names = {slot.name for slot in right.slots}
    slots = [slot for slot in left.slots if slot.name in names and _may_name(slot)]
    marked = tuple(slot.name for slot in slots if slot.field.map_key)
    if marked and _apart(a, marked) and _apart(b, marked):
        return marked
    first = sorted(slots, key=lambda slot: not (slot.field.entity or slot.field.subject))
    for slot in first:
        if _apart(a, (slot.name,)) and _apart(b, (slot.name,)):
            return (slot.name,)
    return ()


def _may_name(slot: Slot) -> bool:
    """Errors, flags and what changes from run to run name nothing."""
    kind = type(slot.field).__name__
    if slot.field.enum == "ErrorCode" or slot.name == "error_code":
        return False
    return kind in _NAMING and not (slot.field.volatile and kind != "String")


_NAMING: Final = frozenset({"String", "Uuid", "Int8", "Int16", "Int32", "Int64"})


def _apart(elements: Sequence[Mapping[str, Any]], names: tuple[str, ...]) -> bool:
    return len({_key(each, names) for each in elements}) == len(elements)


def _key(element: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(element[name] for name in names)


def _named(key: tuple[Any, ...]) -> str:
    return ",".join(str(part) for part in key)
