"""Compiles Avro schemas into codecs, for the rest of payloads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import orjson

from kafkascope.schemas.avro.linking import Linked, link
from kafkascope.schemas.avro.logical import shown
from kafkascope.schemas.avro.reader import REFUSALS, AvroReader
from kafkascope.schemas.avro.types import AvroType, inside
from kafkascope.schemas.avro.walk import complaint, explain
from kafkascope.schemas.avro.writer import (
    EXACT,
    LATIN,
    LOOSE,
    JsonForm,
    Misfit,
    ValueWriter,
    json_kind,
    leaf_value,
    real_number,
    single,
    sized,
    whole_number,
    write,
)
from kafkascope.schemas.model import (
    Lookup,
    PayloadError,
    Piece,
    Selector,
    Value,
    of_double,
)


class AvroCodec:
    """Decodes and encodes Avro's binary form."""

    def __init__(self, linked: Linked) -> None:
        self.type_name: Final = linked.root.label
        self._linked = linked

    @cached_property
    def _reader(self) -> AvroReader:
        # Of many schemas only the name is asked for; and a reader is in circles, which go late.
        return AvroReader(self._linked)

    def decode(self, data: bytes) -> Value:
        """Return the value; `PayloadError` where the bytes do not fit to the last one."""
        try:
            return self._reader.read(data)
        except REFUSALS:
            raise complaint(self._linked, data) from None

    def encode(self, value: Value) -> bytes:
        """Return the bytes of a value; `PayloadError` where it does not fit."""
        encoded: bytes = write(self._linked.root, value)
        return encoded

    def explain(self, data: bytes) -> Piece:
        """Return the pieces of a payload with their bytes, as far as it can be read."""
        return explain(self._linked, data)

    def codec(self, which: Selector = None) -> AvroCodec:
        """Return the codec of payloads as Confluent's serializers write them; with "avro" that of
        all others. They differ for schemas of the type `"bytes"` alone."""
        if which not in (None, "avro"):
            raise PayloadError("bad-schema", f"an Avro schema has one type, not {which!r}")
        return self

    def json_codec(self) -> AvroJsonCodec:
        """Return the codec of Avro's JSON form (Apicurio's encoding JSON)."""
        return AvroJsonCodec(self._linked)


class RawCodec(AvroCodec):
    """Takes the payload as it is: Confluent's serializers write bytes of a schema whose type is
    `"bytes"` without Avro's length, and their deserializers read no length, also of a decimal.

    Not guessed: a raw payload whose first byte happens to be twice the length of the rest is still
    raw. What knows that another serializer wrote it asks for `codec("avro")`.
    """

    def decode(self, data: bytes) -> Value:
        """Return `{"base64": TEXT}`, or the decimal."""
        try:
            return shown(self._linked.root, data)
        except ValueError as error:
            raise PayloadError("does-not-fit", str(error)) from None

    def encode(self, value: Value) -> bytes:
        """Return the bytes of a value; `PayloadError` where it does not fit."""
        try:
            return bytes(leaf_value(self._linked.root, value, LOOSE))
        except ValueError as error:
            raise PayloadError("does-not-fit", str(error)) from None

    def explain(self, data: bytes) -> Piece:
        """Return one piece, which cannot be read where it has no value."""
        value = None
        with suppress(PayloadError):
            value = self.decode(data)
        return Piece("", self._linked.root.shown, value, 0, len(data))

    def codec(self, which: Selector = None) -> AvroCodec:
        """Return the codec, or that of binary Avro."""
        return AvroCodec(self._linked).codec(which) if which is not None else self


class AvroJsonCodec(AvroCodec):
    """Decodes and encodes Avro's JSON form."""

    def decode(self, data: bytes) -> Value:
        """Return the value, as that of the binary form."""
        try:
            spelled = orjson.loads(data)
            return _JsonReading(JsonForm()).value(self._linked.root, spelled, "", 1, EXACT)
        except orjson.JSONDecodeError as error:
            raise PayloadError("does-not-fit", f"not JSON: {error}") from None
        except Misfit as error:
            raise PayloadError("does-not-fit", error.text, path=error.path) from None

    def encode(self, value: Value) -> bytes:
        """Return the JSON text of a value."""
        return orjson.dumps(write(self._linked.root, value, json=True))

    def explain(self, data: bytes) -> Piece:
        """Return one piece: JSON needs no map of its bytes."""
        return Piece("", self._linked.root.shown, self.decode(data), 0, len(data))


def compile(text: str, dependencies: Mapping[str, str], lookup: Lookup) -> AvroCodec:
    """Return a schema, ready for payloads; `PayloadError` with reason `bad-schema`. A dependency's
    name need not be a full name: what defines a type is found."""
    linked = link(text, dependencies, lookup)
    return RawCodec(linked) if linked.root.kind == "bytes" else AvroCodec(linked)


class _JsonReading(ValueWriter):
    """Takes values apart as who writes them does, but that their unions name a branch."""

    def step(self) -> None:
        pass  # There is nothing to search.

    def union(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> Any:
        branch, inner = _branch(node, value, path)
        return self.value(branch, inner, path, depth, exact)

    def record(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> Any:
        values: dict[str, Any] = {}
        for field, part in zip(node.fields, node.parts, strict=True) if type(value) is dict else ():
            where = inside(path, field.name)
            if field.name not in value:
                raise Misfit("the field is missing", where)
            values[field.name] = self.value(part, value[field.name], where, depth, exact)
        if type(value) is not dict or len(value) != len(values):
            super().record(node, value, path, depth, exact)  # says what is wrong
        return values

    def leaf(self, node: AvroType, value: Any, exact: int) -> Any:
        return _leaf(node, value)


def _branch(node: AvroType, spelled: Any, path: str) -> tuple[AvroType, Any]:
    """Return the type and value of a branch. Null stands without a name."""
    name, inner = "null", None
    if spelled is not None or "null" not in node.index:
        if not isinstance(spelled, dict) or len(spelled) != 1:
            text = f"{json_kind(spelled)} for a union, which needs an object with the type as key"
            raise Misfit(text, path)
        ((name, inner),) = spelled.items()
        if name not in node.index or name == "null":
            raise Misfit(f"the union has no type {name[:80]}", path)
    return node.parts[node.index[name]], inner


def _leaf(node: AvroType, spelled: Any) -> Any:
    match node.kind:
        case "null" if spelled is None:
            return None
        case "boolean" if isinstance(spelled, bool):
            return spelled
        case "int" | "long" if not isinstance(spelled, bool):
            return shown(node, whole_number(node.kind, spelled, EXACT))
        case "float" | "double" if not isinstance(spelled, bool):
            real = real_number(node.kind, spelled, LOOSE)
            return of_double(single(real) if node.kind == "float" else real)
        case "string" if isinstance(spelled, str):
            return spelled
        case "bytes" | "fixed" if isinstance(spelled, str):
            data = spelled.encode(LATIN)
            return shown(node, sized(node, data) if node.kind == "fixed" else data)
        case "enum" if isinstance(spelled, str):
            if spelled in node.index:
                return spelled
            raise ValueError(f"{node.name} has no symbol {spelled[:80]!r}")
        case _:
            raise ValueError(f"{json_kind(spelled)} for {node.shown}")
