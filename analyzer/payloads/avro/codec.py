"""Compiles schemas into codecs: what the rest of payloads asks of Avro."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from kafkascope.analyzer.payloads.avro.json_form import JsonForm
from kafkascope.analyzer.payloads.avro.linking import Linked, link
from kafkascope.analyzer.payloads.avro.logical import shows
from kafkascope.analyzer.payloads.avro.reader import REFUSALS, AvroReader, based
from kafkascope.analyzer.payloads.avro.types import AvroPrimitive, branch_name, shown
from kafkascope.analyzer.payloads.avro.walk import complaint, explain
from kafkascope.analyzer.payloads.avro.writer import AvroWriter, encode_raw
from kafkascope.analyzer.payloads.model import Lookup, PayloadError, Piece, Selector, Value


class AvroCodec:
    """Decodes and encodes Avro's binary form."""

    def __init__(self, linked: Linked) -> None:
        self.type_name: Final = branch_name(linked.root)
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
        return AvroWriter(self._linked).write(value)

    def explain(self, data: bytes) -> Piece:
        """Return the pieces of a payload with their bytes, as far as it can be read."""
        return explain(self._linked, data)


class RawCodec:
    """Takes the payload as it is: Confluent's serializers write bytes of a schema whose type is
    `"bytes"` without Avro's length, and their deserializers read no length, also of a decimal.

    Not guessed: a raw payload whose first byte happens to be twice the length of the rest is still
    raw. What knows that another serializer wrote it asks for `AvroSchema.codec("avro")`.
    """

    type_name: Final = "bytes"

    def __init__(self, root: AvroPrimitive) -> None:
        self._root = root
        self._show: Final = (shows(root.logical, "bytes") if root.logical else None) or based

    def decode(self, data: bytes) -> Value:
        """Return `{"base64": TEXT}`, or the decimal."""
        try:
            return self._show(data)
        except ValueError as error:
            raise PayloadError("does-not-fit", str(error)) from None

    def encode(self, value: Value) -> bytes:
        """Return the bytes of a value; `PayloadError` where it does not fit."""
        return encode_raw(self._root, value)

    def explain(self, data: bytes) -> Piece:
        """Return one piece, which cannot be read where it has no value."""
        try:
            value = self.decode(data)
        except PayloadError:
            value = None
        return Piece("", shown(self._root), value, 0, len(data))


class AvroJsonCodec:
    """Decodes and encodes Avro's JSON form."""

    def __init__(self, linked: Linked) -> None:
        self.type_name: Final = branch_name(linked.root)
        self._form = JsonForm(linked)
        self._type = shown(linked.root)

    def decode(self, data: bytes) -> Value:
        """Return the value, as that of the binary form."""
        return self._form.decode(data)

    def encode(self, value: Value) -> bytes:
        """Return the JSON text of a value."""
        return self._form.encode(value)

    def explain(self, data: bytes) -> Piece:
        """Return one piece: JSON needs no map of its bytes."""
        return Piece("", self._type, self.decode(data), 0, len(data))


class AvroSchema:
    """A schema with all that it refers to."""

    def __init__(self, linked: Linked) -> None:
        root = linked.root
        self._avro = AvroCodec(linked)
        self._first: AvroCodec | RawCodec = self._avro
        if isinstance(root, AvroPrimitive) and root.kind == "bytes":
            self._first = RawCodec(root)
        self._linked = linked

    def codec(self, which: Selector = None) -> AvroCodec | RawCodec:
        """Return the codec of payloads as Confluent's serializers write them; with "avro" that of
        all others. They differ for schemas of the type `"bytes"` alone."""
        if which is None:
            return self._first
        if which == "avro":
            return self._avro
        raise PayloadError("bad-schema", f"an Avro schema has one type, not {which!r}")

    def json_codec(self) -> AvroJsonCodec:
        """Return the codec of Avro's JSON form (Apicurio's encoding JSON)."""
        return self._json

    @cached_property
    def _json(self) -> AvroJsonCodec:
        return AvroJsonCodec(self._linked)


def compile(text: str, dependencies: Mapping[str, str], lookup: Lookup) -> AvroSchema:
    """Return a schema, ready for payloads; `PayloadError` with reason `bad-schema`. A dependency's
    name need not be a full name: what defines a type is found."""
    return AvroSchema(link(text, dependencies, lookup))
