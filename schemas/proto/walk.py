"""Reads the bytes of a message step by step: values, pieces with their bytes, and where it ends.

The reader generated for each type is faster and returns neither offsets nor reasons; bytes that it
refuses, and fields that the schema lacks, are read here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import (
    UNFIT,
    PayloadError,
    Piece,
    Value,
    of_bytes,
    of_double,
)
from kafkascope.schemas.proto import forms
from kafkascope.schemas.proto.kinds import (
    FIXED32,
    FIXED64,
    KINDS,
    LENGTH,
    STOP,
    VARINT,
    WIRES,
)
from kafkascope.schemas.proto.types import MessageField, MessageType
from kafkascope.schemas.proto.wire import (
    Fault,
    length,
    raw,
    scalar,
    tag,
)

AnyForm = Callable[[str, bytes], Value]
"""Returns the value of a google.protobuf.Any's type and bytes; None if its type is not known."""


class Held:
    """What was read of a message: a field that comes again replaces, adds or goes on."""

    __slots__ = ("begin", "chosen", "fields", "type", "unknown")

    def __init__(self, message: MessageType, begin: int) -> None:
        self.type = message
        self.begin = begin
        self.fields: dict[int, Any] = {}
        self.chosen: dict[str, int] = {}
        """Number of the field that counts of each oneof."""
        self.unknown: list[dict[str, Any]] = []


def decode(message: MessageType, data: bytes, any_form: AnyForm) -> Value:
    """Return the value of a message; `PayloadError` with path and offset."""
    walk = WireWalk(data, any_form)
    held = Held(message, 0)
    try:
        walk.read(held, 0, len(data), 0)
        return walk.form(held)
    except Fault as fault:
        raise fault.error() from None


def explain(message: MessageType, data: bytes, any_form: AnyForm) -> Piece:
    """Return the pieces of a message; where it does not fit the last one has the rest."""
    walk = WireWalk(data, any_form)
    held = Held(message, 0)
    found: Pieces = []
    end = len(data)
    try:
        walk.read(held, 0, end, 0, found)
        form = walk.form(held)
        if message.special:
            return Piece("", message.full_name, form, 0, end)
        out = grouped(found)
    except Fault as fault:
        error = fault.error()
        place = f"{error.path}: " if error.path else ""
        out = grouped(found)
        begin = out[-1].end if out else 0
        rest = of_bytes(data[begin:])
        out += (Piece("", f"{UNFIT}: {place}{error.text}", rest, begin, end),)
    return Piece("", message.full_name, None if out else {}, 0, end, out)


Pieces: TypeAlias = list[tuple[MessageField | None, Piece]]
"""Pieces as they are read; those that are elements of a repeated field have it beside them."""


def grouped(found: Pieces) -> tuple[Piece, ...]:
    """Return the pieces of a message, with adjacent elements of a field merged into one."""
    out: list[Piece] = []
    at = 0
    while at < len(found):
        field, piece = found[at]
        at += 1
        if field is None:
            out.append(piece)
            continue
        parts = [piece]
        while at < len(found) and found[at][0] is field:
            parts.append(found[at][1])
            at += 1
        out.append(Piece(field.name, field.type, None, piece.begin, parts[-1].end, tuple(parts)))
    return tuple(out)


class WireWalk:
    """Reads one payload."""

    def __init__(self, data: bytes, any_form: AnyForm) -> None:
        self._data = data
        self._any_form = any_form

    def read(
        self, held: Held, at: int, end: int, depth: int, out: Pieces | None = None, group: int = 0
    ) -> int:
        """Read fields up to the end, or to the one of a group; return where it stopped."""
        if depth > LIMITS.nesting:
            raise Fault(f"messages nested deeper than {LIMITS.nesting}", at)
        fields = held.type.fields
        while at < end:
            begin = at
            number, wire, at = tag(self._data, at, end)
            if wire == STOP:
                if number != group:
                    raise Fault(f"end of group {number}, which did not start", begin)
                return at
            field = fields.get(number)
            if field is None:
                entry, at = raw(self._data, number, wire, at, end, depth + 1)
                held.unknown.append(entry)
                if out is not None:
                    kind = f"unknown {WIRES[wire]}"
                    out.append((None, Piece(str(number), kind, entry["value"], begin, at)))
                continue
            try:
                at = self._field(held, field, wire, begin, at, end, depth, out)
            except Fault as fault:
                fault.path.append(field.name)
                raise
        if group:
            raise Fault(f"group {group} does not end", end)
        return at

    def _field(
        self,
        held: Held,
        field: MessageField,
        wire: int,
        begin: int,
        at: int,
        end: int,
        depth: int,
        out: Pieces | None,
    ) -> int:
        value: Any
        wanted = field.wire
        if wire == LENGTH and field.repeated and wanted in (VARINT, FIXED32, FIXED64):
            return self._packed(held, field, begin, at, end, out)
        if wire != wanted:
            raise Fault(f"{WIRES[wire]}, expected {WIRES[wanted]} of {field.kind}", begin)
        pieces: Pieces | None = [] if out is not None else None
        values = held.fields.setdefault(field.number, []) if field.repeated else None
        name = field.name if values is None else f"[{len(values)}]"
        element = None if values is None else field
        try:
            if field.message is None:
                value, at = scalar(field, self._data, at, end)
            else:
                # A message that comes again goes on with what came before.
                before = None if field.repeated else held.fields.get(field.number)
                value = before or Held(field.message, begin)
                if field.kind == "group":
                    at = self.read(value, at, end, depth + 1, pieces, field.number)
                else:
                    size, at = length(self._data, at, end)
                    at = self.read(value, at, at + size, depth + 1, pieces)
            if values is not None:
                values.append(value)
            else:
                if field.oneof:
                    # Of a oneof the last one counts.
                    chosen = held.chosen.get(field.oneof, field.number)
                    if chosen != field.number:
                        held.fields.pop(chosen, None)
                    held.chosen[field.oneof] = field.number
                held.fields[field.number] = value
            if out is not None:
                out.append((element, self._piece(name, field, value, begin, at, pieces)))
        except Fault as fault:
            if values is not None and not field.map:
                fault.path.append(name)
            if out is not None and pieces:
                parts = grouped(pieces)
                piece = Piece(name, field.type, None, begin, parts[-1].end, parts)
                out.append((element, piece))
            raise
        return at

    def _packed(
        self, held: Held, field: MessageField, begin: int, at: int, end: int, out: Pieces | None
    ) -> int:
        size, at = length(self._data, at, end)
        stop = at + size
        values = held.fields.setdefault(field.number, [])
        first = len(values)
        pieces = []
        while at < stop:
            start = at
            try:
                raw, at = scalar(field, self._data, at, stop)
            except Fault as fault:
                fault.path.append(f"[{len(values)}]")
                raise
            if out is not None:
                name, value = f"[{len(values)}]", _scalar_form(field, raw)
                pieces.append(Piece(name, field.type, value, start, at))
            values.append(raw)
        if out is not None:
            value = None if len(values) > first else []
            out.append((None, Piece(field.name, field.type, value, begin, stop, tuple(pieces))))
        return stop

    def _piece(
        self,
        name: str,
        field: MessageField,
        value: Any,
        begin: int,
        end: int,
        pieces: Pieces | None,
    ) -> Piece:
        if not isinstance(value, Held):
            return Piece(name, field.type, _scalar_form(field, value), begin, end)
        kind = field.type if not field.map else "entry"
        if value.type.special:
            return Piece(name, kind, self.form(value), begin, end)
        return Piece(name, kind, None if pieces else {}, begin, end, grouped(pieces or []))

    def form(self, held: Held) -> Value:
        """Return the JSON form of what was read of a message."""
        message, got = held.type, held.fields
        out: dict[str, Any] = {}
        for number, field in message.fields.items():
            value = got.get(number)
            if value is None:
                if field.required:
                    fault = Fault("is required, but missing", held.begin)
                    fault.path.append(field.name)
                    raise fault
                continue
            try:
                if field.map:
                    out[field.name] = self._map(field, value)
                elif field.repeated:
                    if value:
                        out[field.name] = self._list(field, value)
                elif isinstance(value, Held):
                    out[field.name] = self.form(value)
                elif field.presence or value or forms.is_negative_zero(value):
                    out[field.name] = _scalar_form(field, value)
            except Fault as fault:
                fault.path.append(field.name)
                raise
        if held.unknown:
            out[message.unknown] = held.unknown
        if not message.special:
            return out
        if message.special == "google.protobuf.Any":
            return self._any(held, out)
        return forms.special(message.special, out)

    def _list(self, field: MessageField, values: list[Any]) -> list[Any]:
        if field.message is None:
            return [_scalar_form(field, value) for value in values]
        out: list[Any] = []
        try:
            for value in values:
                out.append(self.form(value))
        except Fault as fault:
            fault.path.append(f"[{len(out)}]")
            raise
        return out

    def _map(self, field: MessageField, entries: list[Held]) -> dict[str, Any]:
        assert field.message is not None
        key, value = (field.message.fields[number] for number in (1, 2))
        out: dict[Any, Any] = {}
        for entry in entries:
            name = entry.fields.get(1, KINDS[key.kind].empty)
            if isinstance(name, bytes):
                raise Fault("a key that is not UTF-8", entry.begin)
            got = entry.fields.get(2)
            if value.message is not None:
                if got is None:
                    got = Held(value.message, entry.begin)
                try:
                    out[name] = self.form(got)
                except Fault as fault:
                    fault.path.append(key_name(name))
                    raise
            else:
                if got is None:
                    got = KINDS[value.kind].empty
                out[name] = _scalar_form(value, got)
        return {key_name(name): out[name] for name in sorted(out)}

    def _any(self, held: Held, out: dict[str, Any]) -> Value:
        url, data = held.fields.get(1, ""), held.fields.get(2, b"")
        if held.unknown or not isinstance(url, str):
            return out
        try:
            value = self._any_form(url, data)
        except PayloadError as error:
            # Where its bytes stand is not kept: the place is that of the whole.
            fault = Fault(error.text, held.begin)
            if error.path:
                fault.path.append(error.path)
            raise fault from None
        return out if value is None else value


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
