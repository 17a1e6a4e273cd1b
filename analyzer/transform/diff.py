"""Compares two bodies: by field, arrays by the names of their elements, records by content. Reads
the marks of the declarations, and keeps no list of fields of its own.

Used by `kafkascope diff`, by replay (is the answer the same?) and by fixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import UNKNOWN_TAGS
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, Slot, StructWire, Wire
from kafkascope.dissectors.records.records import CONTROL, Partial, Record, batches, open_batch

DifferenceKind: TypeAlias = Literal["changed", "left only", "right only"]

ValuePath: TypeAlias = tuple[str | int, ...]
"""Names of fields and indexes of elements, from the outermost in."""


Decode: TypeAlias = (
    "Callable[[str | None, str, tuple[Record, Record]], Iterable[tuple[str, Any, Any]] | None]"
)
"""(topic, "key" or "value", two records) -> path, left and right of each field that differs; None
where not both can be decoded, or where nothing but their bytes differs."""


class Difference(NamedTuple):
    """One place where two bodies differ."""

    path: str
    """Elements of arrays are named by their keys: topics[orders].partitions[3].error_code."""
    kind: DifferenceKind
    left: Any
    """None when there is none."""
    right: Any
    volatile: bool = False
    """The declaration says that it differs from run to run."""
    endpoint: bool = False
    """Part of an address that clients connect to."""
    left_place: ValuePath = ()
    """Where it stands in the left body, or where it would."""
    right_place: ValuePath = ()


class _At(NamedTuple):
    path: str = ""
    left: ValuePath = ()
    right: ValuePath = ()
    decode: Decode | None = None
    """Decodes keys and values of records."""
    topic: str | None = None
    """That the walk is inside of."""

    def field(self, name: str) -> _At:
        path = f"{self.path}.{name}" if self.path else name
        return self._replace(path=path, left=(*self.left, name), right=(*self.right, name))

    def element(self, label: object, left: int, right: int) -> _At:
        path = f"{self.path}[{label}]"
        return self._replace(path=path, left=(*self.left, left), right=(*self.right, right))

    def found(
        self,
        kind: DifferenceKind,
        left: Any,
        right: Any,
        slot: Slot | None = None,
        where: str = "",
        volatile: bool = False,
    ) -> Difference:
        changes = volatile or (slot is not None and slot.field.volatile)
        endpoint = slot is not None and slot.field.endpoint
        path = self.path + where
        return Difference(path, kind, left, right, changes, endpoint, self.left, self.right)


def differences(
    left: Layout,
    left_body: Body,
    right: Layout,
    right_body: Body,
    *,
    strict: bool = False,
    decode: Decode | None = None,
) -> list[Difference]:
    """Where two bodies differ, in the order of the left one.

    The layouts may be two versions of one message: a field that one of them lacks counts when it
    holds something else than its default. Volatile values (times, throttle, session and member
    ids) count with `strict` only. Keys and values of records that `decode` reads on both sides are
    compared field by field.
    """
    found = _structs(left.body, left_body, right.body, right_body, _At(decode=decode))
    return [each for each in found if strict or not each.volatile]


def _structs(
    left: StructWire, a: Mapping[str, Any], right: StructWire, b: Mapping[str, Any], at: _At
) -> Iterator[Difference]:
    rights = {slot.name: slot for slot in (*right.slots, *right.tags)}
    for slot in (*left.slots, *left.tags):
        if slot.field.entity == "topicName" and isinstance(name := a[slot.name], str):
            at = at._replace(topic=name)
        here = at.field(slot.name)
        other = rights.pop(slot.name, None)
        if other is not None:
            yield from _values(slot, slot.wire, a[slot.name], other.wire, b[other.name], here)
        elif a[slot.name] != slot.default:
            yield here.found("left only", a[slot.name], None, slot)
    for name, slot in rights.items():
        if b[name] != slot.default:
            yield at.field(name).found("right only", None, b[name], slot)
    tags, others = a.get(UNKNOWN_TAGS, []), b.get(UNKNOWN_TAGS, [])
    if tags != others:
        yield at.field(UNKNOWN_TAGS).found("changed", tags, others)


def _values(slot: Slot, left: Wire, a: Any, right: Wire, b: Any, at: _At) -> Iterator[Difference]:
    if a is None or b is None:
        if a is not b:
            yield at.found("changed", a, b, slot)
    elif isinstance(left, StructWire) and isinstance(right, StructWire):
        yield from _structs(left, a, right, b, at)
    elif isinstance(left, ArrayWire) and isinstance(right, ArrayWire):
        yield from _arrays(slot, left.element, a, right.element, b, at)
    elif a != b:
        if isinstance(left, BytesWire) and left.records:
            yield from _record_differences(at, a, b)
        else:
            yield at.found("changed", a, b, slot)


def _kind(left: Any, right: Any) -> DifferenceKind:
    if left is None:
        return "right only"
    return "left only" if right is None else "changed"


def _arrays(
    slot: Slot, left: Wire, a: Sequence[Any], right: Wire, b: Sequence[Any], at: _At
) -> Iterator[Difference]:
    if not (isinstance(left, StructWire) and isinstance(right, StructWire)):
        # A list of plain values is a set in nearly all of Kafka's messages; brokers and clients
        # make them from hash maps.
        if sorted(map(repr, a)) != sorted(map(repr, b)):
            yield at.found("changed", a, b, slot)
        return
    keys = _keys(left, right, a, b)
    if keys:
        labels: list[object] = [_named(_key(each, keys)) for each in a]
        places = {_key(each, keys): index for index, each in enumerate(b)}
        pairs = [places.pop(_key(each, keys), None) for each in a]
        rest = [(_named(key), index) for key, index in places.items()]
    else:
        labels = list(range(len(a)))
        pairs = [index if index < len(b) else None for index in range(len(a))]
        rest = [(str(index), index) for index in range(len(a), len(b))]
    for index, (label, pair) in enumerate(zip(labels, pairs, strict=True)):
        if pair is None:
            yield at.element(label, index, len(b)).found("left only", a[index], None, slot)
        else:
            here = at.element(label, index, pair)
            yield from _structs(left, a[index], right, b[pair], here)
    for label, index in rest:
        yield at.element(label, len(a), index).found("right only", None, b[index], slot)


def _keys(
    left: StructWire, right: StructWire, a: Sequence[Any], b: Sequence[Any]
) -> tuple[str, ...]:
    """Names of the key fields, unique among the elements of both arrays; none without any."""
    names = {slot.name for slot in right.slots}
    slots = [slot for slot in left.slots if slot.name in names and _may_name(slot)]
    marked = tuple(slot.name for slot in slots if slot.field.map_key)
    if marked and _apart(a, marked) and _apart(b, marked):
        return marked
    for slot in sorted(slots, key=_rank):
        if _apart(a, (slot.name,)) and _apart(b, (slot.name,)):
            return (slot.name,)
    return ()


def _rank(slot: Slot) -> int:
    """Partitions are called by their numbers, even where each has another leader."""
    if slot.name in ("partition", "partition_index", "index"):
        return 0
    return 1 if slot.field.entity or slot.field.subject else 2


def _may_name(slot: Slot) -> bool:
    """Errors, flags and what changes from run to run name nothing."""
    kind = type(slot.field).__name__
    if slot.field.enum == "ErrorCode" or slot.field.subject in ("freeText", "configValue"):
        return False
    return kind in _NAMING and not (slot.field.volatile and kind != "String")


_NAMING: Final = frozenset({"String", "Uuid", "Int8", "Int16", "Int32", "Int64"})


def _apart(elements: Sequence[Mapping[str, Any]], names: tuple[str, ...]) -> bool:
    return len({_key(each, names) for each in elements}) == len(elements)


def _key(element: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(element[name] for name in names)


def _named(key: tuple[Any, ...]) -> str:
    return ",".join(str(part) for part in key)


# Bytes of a key or value that a difference shows.
SHOWN: Final = 64
# Records of a side that are compared.
LIMIT: Final = 100_000


def _record_differences(at: _At, left: bytes, right: bytes) -> Iterator[Difference]:
    """Record by record; when one side cannot be read, that and nothing more. Offsets and times are
    volatile: two logs of the same records differ in them."""

    def found(where: str, one: Any, other: Any, volatile: bool = False) -> Difference:
        return at.found(_kind(one, other), one, other, None, where, volatile)

    one, bad = _records(left)
    two, worse = _records(right)
    if bad or worse:
        yield found("", bad or f"{len(one)} records", worse or f"{len(two)} records")
        return
    if len(one) != len(two):
        yield found(".count", len(one), len(two))
    for index, (a, b) in enumerate(zip(one, two, strict=False)):
        if a == b:
            continue
        here = f"[{index}]"
        for name in ("key", "value", "headers"):
            was, now = getattr(a, name), getattr(b, name)
            if was == now:
                continue
            inner = None
            if at.decode is not None and name != "headers":
                inner = at.decode(at.topic, name, (a, b))
            if inner is None:
                inner = [("", _short(was), _short(now))]
            for path, before, after in inner:
                yield found(f"{here}.{name}{path}", before, after)
        for name in ("offset", "timestamp"):
            if (was := getattr(a, name)) != (now := getattr(b, name)):
                yield found(f"{here}.{name}", was, now, True)


def _records(data: bytes) -> tuple[list[Record], str]:
    found: list[Record] = []
    try:
        for batch in batches(data):
            if isinstance(batch, Partial):
                continue  # the cut batch at the end of a fetch: brokers send it, clients drop it
            if batch.attributes & CONTROL and batch.magic == 2:
                continue
            opened = open_batch(data, batch)
            found += opened.records
            if opened.error is not None:
                return found, str(opened.error)
            if len(found) > LIMIT:
                return found, f"more than {LIMIT} records"
    except DissectError as error:
        return found, str(error)
    return found, ""


def _short(value: Any) -> Any:
    if isinstance(value, bytes) and len(value) > SHOWN:
        return value[:SHOWN] + b"..."
    return value
