"""Reads the bytes of a message step by step: values, pieces with their bytes, and where it ends.

The reader generated for each type is faster and returns neither offsets nor reasons; bytes that it
refuses, and fields that the schema lacks, are read here. `read` takes each field with its place;
`form` and `pieces` make the value and what is on screen of as many as there are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, Final, NamedTuple

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import UNFIT, PayloadError, Piece, Value, misfit, of_bytes, of_double
from kafkascope.schemas.protobuf import forms
from kafkascope.schemas.protobuf.kinds import FIXED32, FIXED64, KINDS, LENGTH, STOP, VARINT, WIRES
from kafkascope.schemas.protobuf.types import MessageField, MessageType
from kafkascope.schemas.protobuf.wire import length, raw, scalar, tag

AnyForm = Callable[[str, bytes], Value]
"""Returns the value of a google.protobuf.Any's type and bytes; None if its type is not known."""


class WireField(NamedTuple):
    """A field as it is in the payload."""

    field: MessageField | None
    """None for one that the schema does not know."""
    nth: int | None
    """Index of an element; None of what is not repeated, and of a packed field."""
    value: Any
    """For a message its `Held`, for a packed field its `Packed`; else what the bytes say."""
    begin: int
    end: int


class Packed(NamedTuple):
    """The elements of a packed field: where each ends, if pieces will be made of them."""

    first: int
    values: list[Any]
    begin: int
    ends: list[int]


class Held:
    """What was read of a message."""

    __slots__ = ("begin", "counts", "end", "form", "parts", "type")

    def __init__(self, message: MessageType, begin: int) -> None:
        self.type = message
        self.begin = begin
        self.parts: list[WireField] = []
        self.counts: dict[int, Any] = {}
        """Elements so far of each repeated field, and the counts of messages inside: one that
        comes again goes on with what came before."""
        self.end: int | None = None
        """None where it could not be read to its end."""
        self.form: Value = None
        """JSON form of a type with a JSON form of its own, where it is to be shown."""


def decode(message: MessageType, data: bytes, any_form: AnyForm) -> Value:
    """Return the value of a message; `PayloadError` with path and offset."""
    walk, held = WireWalk(data, any_form), Held(message, 0)
    walk.read(held, 0, len(data), 0)
    return walk.form(held)


def explain(message: MessageType, data: bytes, any_form: AnyForm) -> Piece:
    """Return the pieces of a message; where it does not fit the last one has the rest."""
    walk, held, end = WireWalk(data, any_form, shown=True), Held(message, 0), len(data)
    try:
        walk.read(held, 0, end, 0)
        form = walk.form(held)
    except PayloadError as error:
        place = f"{error.path}: " if error.path else ""
        out = pieces(held)
        begin = out[-1].end if out else 0
        rest = of_bytes(data[begin:])
        out += (Piece("", f"{UNFIT}: {place}{error.text}", rest, begin, end),)
    else:
        if message.special:
            return Piece("", message.full_name, form, 0, end)
        out = pieces(held)
    return Piece("", message.full_name, None if out else {}, 0, end, out)


def pieces(held: Held) -> tuple[Piece, ...]:
    """Return the pieces of a message, with adjacent elements of a field merged into one."""
    out: list[Piece] = []
    for field, many in groupby(held.parts, lambda part: part if part.nth is None else part.field):
        shown = tuple(piece for part in many if (piece := _piece(part)) is not None)
        if isinstance(field, MessageField) and shown:
            out.append(Piece(field.name, field.type, None, shown[0].begin, shown[-1].end, shown))
        else:
            out += shown
    return tuple(out)


def _piece(part: WireField) -> Piece | None:
    """Return the piece of a field; None where nothing of it could be read."""
    field, nth, value, begin, end = part
    if field is None:
        return Piece(str(value["field"]), f"unknown {value['type']}", value["value"], begin, end)
    name = field.name if nth is None else f"[{nth}]"
    if isinstance(value, Packed):
        begins = [value.begin, *value.ends]
        packed = tuple(
            Piece(f"[{at}]", field.type, _scalar_form(field, one), begins[at - value.first], stop)
            for at, (one, stop) in enumerate(
                zip(value.values, value.ends, strict=True), value.first
            )
        )
        return Piece(name, field.type, None if packed else [], begin, end, packed)
    if not isinstance(value, Held):
        return Piece(name, field.type, _scalar_form(field, value), begin, end)
    inner = pieces(value)
    if value.end is None:
        return Piece(name, field.type, None, begin, inner[-1].end, inner) if inner else None
    kind = "entry" if field.map else field.type
    if value.type.special:
        return Piece(name, kind, value.form, begin, value.end)
    return Piece(name, kind, None if inner else {}, begin, value.end, inner)


class WireWalk:
    """Reads one payload."""

    def __init__(self, data: bytes, any_form: AnyForm, *, shown: bool = False) -> None:
        """`shown`: whether pieces will be made of what is read."""
        self._data = data
        self._any_form = any_form
        self._shown = shown

    def read(self, held: Held, at: int, end: int, depth: int, group: int = 0) -> int:
        """Read fields up to the end, or to the one of a group; return where it stopped."""
        if depth > LIMITS.nesting:
            raise misfit(f"messages nested deeper than {LIMITS.nesting}", at)
        fields = held.type.fields
        while at < end:
            begin = at
            number, wire, at = tag(self._data, at, end)
            if wire == STOP:
                if number != group:
                    raise misfit(f"end of group {number}, which did not start", begin)
                held.end = at
                return at
            field = fields.get(number)
            if field is None:
                entry, at = raw(self._data, number, wire, at, end, depth + 1)
                held.parts.append(WireField(None, None, entry, begin, at))
                continue
            try:
                at = self._field(held, field, wire, begin, at, end, depth)
            except PayloadError as error:
                error.within(field.name)
                raise
        if group:
            raise misfit(f"group {group} does not end", end)
        held.end = at
        return at

    def _field(
        self, held: Held, field: MessageField, wire: int, begin: int, at: int, end: int, depth: int
    ) -> int:
        if wire == LENGTH and field.repeated and field.wire in (VARINT, FIXED32, FIXED64):
            size, at = length(self._data, at, end)
            packed = Packed(held.counts.get(field.number, 0), [], at, [])
            stop = at + size
            while at < stop:
                one, at = self._scalar(held, field, at, stop)
                packed.values.append(one)
                if self._shown:
                    packed.ends.append(at)
            held.parts.append(WireField(field, None, packed, begin, stop))
            return stop
        if wire != field.wire:
            raise misfit(f"{WIRES[wire]}, expected {WIRES[field.wire]} of {field.kind}", begin)
        nth = held.counts.get(field.number, 0) if field.repeated else None
        if field.message is None:
            one, at = self._scalar(held, field, at, end)
            held.parts.append(WireField(field, nth, one, begin, at))
            return at
        value = Held(field.message, begin)
        if nth is not None:
            held.counts[field.number] = nth + 1
        else:
            value.counts = held.counts.setdefault(field.number, value.counts)
        held.parts.append(WireField(field, nth, value, begin, begin))
        try:
            if field.kind == "group":
                at = self.read(value, at, end, depth + 1, field.number)
            else:
                size, at = length(self._data, at, end)
                at = self.read(value, at, at + size, depth + 1)
            if self._shown and field.message.special:
                value.end = None  # without its form, what was read of it is shown
                value.form = self.form(value)
                value.end = at
        except PayloadError as error:
            if field.repeated and not field.map:
                error.within(f"[{nth}]")
            raise
        return at

    def _scalar(self, held: Held, field: MessageField, at: int, end: int) -> tuple[Any, int]:
        if not field.repeated:
            return scalar(field, self._data, at, end)
        count = held.counts.get(field.number, 0)
        try:
            found = scalar(field, self._data, at, end)
        except PayloadError as error:
            error.within(f"[{count}]")
            raise
        held.counts[field.number] = count + 1
        return found

    def form(self, held: Held) -> Value:
        """Return the JSON form of what was read of a message."""
        message, got = held.type, _merged(held)
        out: dict[str, Any] = {}
        for number, field in message.fields.items():
            value = got.get(number)
            try:
                if value is None:
                    if field.required:
                        raise misfit("is required, but missing", held.begin)
                elif field.map:
                    out[field.name] = self._map(field, value)
                elif field.repeated:
                    if value:
                        out[field.name] = self._list(field, value)
                elif isinstance(value, Held):
                    out[field.name] = self.form(value)
                elif field.presence or value or forms.is_negative_zero(value):
                    out[field.name] = _scalar_form(field, value)
            except PayloadError as error:
                error.within(field.name)
                raise
        unknown = [part.value for part in held.parts if part.field is None]
        if unknown:
            out[message.unknown] = unknown
        elif message.special == "google.protobuf.Any":
            return self._any(held, got, out)
        return forms.special(message.special, out) if message.special else out

    def _list(self, field: MessageField, values: list[Any]) -> list[Any]:
        if field.message is None:
            return [_scalar_form(field, value) for value in values]
        out: list[Any] = []
        try:
            for value in values:
                out.append(self.form(value))
        except PayloadError as error:
            error.within(f"[{len(out)}]")
            raise
        return out

    def _map(self, field: MessageField, entries: list[Held]) -> dict[str, Any]:
        assert field.message is not None
        key, value = (field.message.fields[number] for number in (1, 2))
        out: dict[Any, Any] = {}
        for entry in entries:
            got = _merged(entry)
            name = got.get(1, KINDS[key.kind].empty)
            if isinstance(name, bytes):
                raise misfit("a key that is not UTF-8", entry.begin)
            if value.message is None:
                out[name] = _scalar_form(value, got.get(2, KINDS[value.kind].empty))
                continue
            try:
                out[name] = self.form(got.get(2) or Held(value.message, entry.begin))
            except PayloadError as error:
                error.within(key_name(name))
                raise
        return {key_name(name): out[name] for name in sorted(out)}

    def _any(self, held: Held, got: dict[int, Any], out: dict[str, Any]) -> Value:
        url = got.get(1, "")
        try:
            value = self._any_form(url, got.get(2, b"")) if isinstance(url, str) else None
        except PayloadError as error:
            # Where its bytes stand is not kept: the place is that of the whole.
            raise misfit(error.text, held.begin, error.path) from None
        return out if value is None else value


def _merged(held: Held) -> dict[int, Any]:
    """Return what counts of each field, by its number: a field that comes again replaces, adds or
    goes on."""
    got: dict[int, Any] = {}
    chosen: dict[str, int] = {}
    for field, _, value, begin, _ in held.parts:
        if field is None:
            continue
        if field.repeated:
            values = value.values if isinstance(value, Packed) else [value]
            got.setdefault(field.number, []).extend(values)
            continue
        # Of a oneof the last one counts.
        other = chosen.get(field.oneof, field.number)
        if field.oneof and other != field.number:
            got.pop(other, None)
        chosen[field.oneof] = field.number
        if isinstance(value, Held):
            before = got.setdefault(field.number, Held(value.type, begin))
            before.parts += value.parts
        else:
            got[field.number] = value
    return got


_FORMS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": forms.of_text,
    "bytes": of_bytes,
    "float": forms.of_float,
    "double": of_double,
}


def _scalar_form(field: MessageField, raw: Any) -> Any:
    if field.kind == "enum":
        return field.values.get(raw, raw)
    form = _FORMS.get(field.kind)
    return raw if form is None else form(raw)


def key_name(key: str | int | bool) -> str:
    """Return the key of a map as a name of JSON."""
    return key if isinstance(key, str) else str(key).lower()
