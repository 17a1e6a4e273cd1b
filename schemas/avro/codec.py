"""Compiles Avro schemas into codecs, for the rest of payloads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import orjson

from kafkascope.schemas.avro.linking import Linked, link
from kafkascope.schemas.avro.logical import shown
from kafkascope.schemas.avro.reader import LATIN, REFUSALS, AvroReader
from kafkascope.schemas.avro.types import AvroType, inside
from kafkascope.schemas.avro.walk import complaint, explain
from kafkascope.schemas.avro.writer import (
    EXACT,
    LOOSE,
    ValueWriter,
    json_kind,
    leaf_value,
    sized,
    whole_number,
    write,
    zigzag,
)
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Lookup, PayloadError, Piece, Selector, Value, misfit


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
        try:
            return self._reader.read(data)
        except REFUSALS:
            raise complaint(self._linked, data) from None

    def encode(self, value: Value) -> bytes:
        return write(self._linked.root, value)

    def explain(self, data: bytes) -> Piece:
        return explain(self._linked, data)

    def codec(self, which: Selector = None, data: bytes = b"") -> AvroCodec:
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
            raise misfit(str(error)) from None

    def encode(self, value: Value) -> bytes:
        try:
            return bytes(leaf_value(self._linked.root, value, LOOSE))
        except ValueError as error:
            raise misfit(str(error)) from None

    def explain(self, data: bytes) -> Piece:
        """Return one piece, which cannot be read where it has no value."""
        value = None
        with suppress(PayloadError):
            value = self.decode(data)
        return Piece("", self._linked.root.shown, value, 0, len(data))

    def codec(self, which: Selector = None, data: bytes = b"") -> AvroCodec:
        """Return the codec, or that of binary Avro."""
        return AvroCodec(self._linked).codec(which) if which is not None else self


class AvroJsonCodec(AvroCodec):
    """Decodes and encodes Avro's JSON form, by way of the binary one: unions are `{"type": value}`,
    bytes text of ISO-8859-1, and logical types what they are of."""

    def decode(self, data: bytes) -> Value:
        """Return the value, as that of the binary form."""
        try:
            spelled = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise misfit(f"not JSON: {error}") from None
        binary = _FromJson().written(self._linked.root, spelled)
        try:
            return self._reader.read(binary, LIMITS.json_values)
        except REFUSALS:
            why = complaint(self._linked, binary)
            raise PayloadError(why.reason, why.text, path=why.path) from None

    def encode(self, value: Value) -> bytes:
        binary = super().encode(value)
        return orjson.dumps(self._json_reader.read(binary, LIMITS.json_values))

    @cached_property
    def _json_reader(self) -> AvroReader:
        return AvroReader(self._linked, json=True)

    def explain(self, data: bytes) -> Piece:
        """Return one piece: JSON needs no map of its bytes."""
        return Piece("", self._linked.root.shown, self.decode(data), 0, len(data))


def compile(text: str, dependencies: Mapping[str, str], lookup: Lookup) -> AvroCodec:
    """Return a schema, ready for payloads; `PayloadError` with reason `bad-schema`. A dependency's
    name need not be a full name: what defines a type is found."""
    linked = link(text, dependencies, lookup)
    return RawCodec(linked) if linked.root.kind == "bytes" else AvroCodec(linked)


class _FromJson(ValueWriter):
    """Writes what is spelled in Avro's JSON form, whose unions name the branch."""

    def step(self) -> None:
        pass  # There is nothing to search.

    def union(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> bytes:
        name, inner = "null", None
        if value is not None or "null" not in node.index:
            if not isinstance(value, dict) or len(value) != 1:
                text = f"{json_kind(value)} for a union, which needs an object with the type as key"
                raise misfit(text, path=path)
            ((name, inner),) = value.items()
            if name not in node.index or name == "null":
                raise misfit(f"the union has no type {name[:80]}", path=path)
        at = node.index[name]
        return zigzag(at) + self.value(node.parts[at], inner, path, depth, exact)

    def record(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> bytes:
        parts: list[bytes] = []
        for field, part in zip(node.fields, node.parts, strict=True) if type(value) is dict else ():
            where = inside(path, field.name)
            if field.name not in value:
                raise misfit("the field is missing", path=where)
            parts.append(self.value(part, value[field.name], where, depth, exact))
        if type(value) is not dict or len(value) != len(parts):
            return super().record(node, value, path, depth, exact)  # says what is wrong
        return b"".join(parts)

    def leaf(self, node: AvroType, value: Any, exact: int) -> Any:
        match node.kind:
            case "int" | "long" if not isinstance(value, bool):
                return whole_number(node.kind, value, EXACT)
            case "bytes" | "fixed" if isinstance(value, str):
                data = value.encode(LATIN)
                return sized(node, data) if node.kind == "fixed" else data
            case "bytes" | "fixed" | "int" | "long":
                raise ValueError(f"{json_kind(value)} for {node.shown}")
            case _:
                return super().leaf(node, value, exact)
