"""Protobuf: schemas as `.proto` text or as base64 of a FileDescriptorProto.

Knows how to find a message in a schema, decode, encode and explain it; the language of schemas is
read by `files`, the bytes by `reader` and `walk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final

from kafkascope.schemas.limits import LIMITS, Limits
from kafkascope.schemas.model import (
    Lookup,
    PayloadError,
    Piece,
    Selector,
    Value,
    has_unknown,
    misfit,
    of_bytes,
)
from kafkascope.schemas.protobuf import walk, writer
from kafkascope.schemas.protobuf.files import Loaded, join, load, messages_of
from kafkascope.schemas.protobuf.reader import HasUnknown, MessageReaders, Read
from kafkascope.schemas.protobuf.types import MessageType, Types


def compile(
    text: str, dependencies: Mapping[str, str], lookup: Lookup, limits: Limits = LIMITS
) -> CompiledProtobuf:
    """Compile a schema with all that it imports; `PayloadError` with reason `bad-schema`.

    `lookup` resolves paths of imports and full names of types that nothing else has, when a schema
    is compiled and when a google.protobuf.Any of another type comes.
    """
    return CompiledProtobuf(load(text, dependencies, lookup), lookup, limits)


_WALK: Final = (HasUnknown, PayloadError, UnicodeDecodeError)
"""What is raised for a message that has to be walked."""


class CompiledProtobuf:
    """A file with its messages."""

    def __init__(self, loaded: Loaded, lookup: Lookup, limits: Limits) -> None:
        self.limits: Final = limits
        self._loaded = loaded
        self._lookup = lookup
        self._types = Types(loaded)
        self._codecs: dict[str, MessageCodec] = {}
        self._others: dict[str, MessageCodec] = {}
        """Codecs of other schemas' types, which came in a google.protobuf.Any."""
        self._depth = 0

    def codec(self, which: Selector = None, data: bytes = b"") -> MessageCodec:
        """Return what decodes a message: by its indexes, position, full or simple name; None is the
        first. `data`: the message, which decides where serializers count indexes differently.

        `PayloadError` with reason `does-not-fit` where there is none such.
        """
        if isinstance(which, str):
            return self._codec(self._named(which))
        if isinstance(which, int):
            return self._codec(self._positioned(which))
        codecs = [self._codec(each) for each in self._indexed((0,) if which is None else which)]
        fitting = (each for each in codecs if each.knows(data)) if len(codecs) > 1 else iter(codecs)
        return next(fitting, codecs[0])

    def _codec(self, descriptor: Any) -> MessageCodec:
        codec = self._codecs.get(descriptor.full_name)
        if codec is None:
            codec = MessageCodec(self._types.of(descriptor), self)
            self._codecs[descriptor.full_name] = codec
        return codec

    @cached_property
    def readers(self) -> MessageReaders:
        return MessageReaders(partial(self.any_form, fast=True))

    def _indexed(self, indexes: tuple[int, ...]) -> list[Any]:
        # Serializers for Python and Go count the entries of maps, those for Java and JavaScript do
        # not. The registry's text is the same.
        names = dict.fromkeys(self._index_name(indexes, entries) for entries in (True, False))
        names.pop("", None)
        if not names:
            path = ", ".join(str(index) for index in indexes[:10])
            raise misfit(f"the schema has no message [{path}]")
        return [self._loaded.pool.FindMessageTypeByName(name) for name in names]

    def _index_name(self, indexes: tuple[int, ...], entries: bool) -> str:
        """Return the full name of a message; empty where there is none."""
        proto = self._loaded.protos[self._loaded.file.name]
        messages, name = proto.message_type, str(proto.package)
        for index in indexes:
            counted = [each for each in messages if entries or not each.options.map_entry]
            if not 0 <= index < len(counted) or counted[index].options.map_entry:
                return ""
            messages, name = counted[index].nested_type, join(name, str(counted[index].name))
        return name

    def _positioned(self, position: int) -> Any:
        names = sorted(full for _, full in messages_of(self._loaded.protos[self._loaded.file.name]))
        if position >= len(names):
            raise misfit(f"the schema has {len(names)} messages, none at position {position}")
        return self._loaded.pool.FindMessageTypeByName(names[position])

    def _named(self, name: str) -> Any:
        name = name.removeprefix(".")
        try:
            return self._loaded.pool.FindMessageTypeByName(name)
        except KeyError:
            pass
        proto = self._loaded.protos[self._loaded.file.name]
        found = [
            full
            for message, full in messages_of(proto)
            if not message.options.map_entry and f".{full}".endswith(f".{name}")
        ]
        if len(found) != 1:
            text = ", ".join(found[:3]) if found else "there is none"
            raise misfit(f"no one message {name[:100]}: {text}")
        return self._loaded.pool.FindMessageTypeByName(found[0])

    def _other(self, url: str) -> MessageCodec | None:
        """Return the codec of an Any's type; None where the type is unknown."""
        name = url.rpartition("/")[2]
        if not name:
            return None
        try:
            return self._codec(self._loaded.pool.FindMessageTypeByName(name))
        except KeyError:
            pass
        codec = self._others.get(name)
        if codec is None:
            text = self._lookup(name)
            if text is None:
                return None
            try:
                codec = compile(text, {}, self._lookup, self.limits).codec(name)
            except PayloadError:
                # That its schema has an error is no reason to refuse what is around it.
                return None
            self._others[name] = codec
        return codec

    def any_form(self, url: str, data: bytes, fast: bool) -> Value:
        """Return the value of an Any; None if its type is not known."""
        codec = self._other(url) if isinstance(url, str) else None
        if codec is None:
            return None
        self._depth += 1
        try:
            if self._depth > self.limits.any_nesting:
                text = f"more than {self.limits.any_nesting} nested Any messages"
                raise misfit(text)
            # Either way to its end: to try both at each depth would double the time there.
            value = codec.read(data) if fast else codec.walk(data)
        finally:
            self._depth -= 1
        if codec.has_own_form or not isinstance(value, dict):
            return {"@type": url, "value": value}
        return {"@type": url, **value}

    def any_bytes(self, value: Any) -> dict[str, Any] | None:
        """Return type and bytes of the form of an Any; None if it stands as it is."""
        if not isinstance(value, dict) or not isinstance(value.get("@type"), str):
            return None
        url = value["@type"]
        codec = self._other(url)
        if codec is None:
            raise misfit(f"no schema has the type {url[:100]}")
        inner: Any = {name: each for name, each in value.items() if name != "@type"}
        if codec.has_own_form:
            inner = inner.get("value")
        data = codec.encode(inner)
        return {"type_url": url, "value": of_bytes(data)}


class MessageCodec:
    """Decodes, encodes and explains messages of one type."""

    def __init__(self, message: MessageType, schema: CompiledProtobuf) -> None:
        self._message = message
        self._schema = schema
        self._any_form = partial(schema.any_form, fast=False)
        self._walked = 0
        self._read: Read | None = None

    @property
    def type_name(self) -> str:
        return self._message.full_name

    @property
    def has_own_form(self) -> bool:
        """Whether it is one of the well-known types that have a JSON form of their own."""
        return self._message.special != ""

    def decode(self, data: bytes) -> Value:
        """Return the value; `PayloadError` with path and offset where the bytes do not fit."""
        try:
            return self.read(data)
        except _WALK:
            return self.walk(data)

    def knows(self, data: bytes) -> bool:
        """Return whether the bytes are a message all fields of which the type knows."""
        try:
            value = self.decode(data)
        except PayloadError:
            return False
        return not has_unknown(value)

    def read(self, data: bytes) -> Value:
        """Return the value by the fast way, which raises one of `_WALK` for all that is special."""
        read = self._read or self._ready()
        if read is None:
            raise HasUnknown
        try:
            message = self._parse(data)
        except self._error:
            raise HasUnknown from None
        if self._required and not message.IsInitialized():
            raise HasUnknown
        # What protobuf drops of a map's entries shows in the size alone.
        if self._maps and message.ByteSize() != len(data):
            raise HasUnknown
        return read(message)

    def _ready(self) -> Read | None:
        self._walked += 1
        if self._walked == self._schema.limits.walked + 1:
            self._prepare()
        return self._read

    def _prepare(self) -> None:
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        message = self._message
        self._error = DecodeError
        reached = message.reached()
        self._required = any(each.required for one in reached for each in one.fields.values())
        self._maps = any(each.map for one in reached for each in one.fields.values())
        # protobuf makes the classes of all types inside by recursion, where a chain of some
        # hundred ends: those are walked.
        with suppress(RecursionError):
            self._parse = GetMessageClass(message.descriptor).FromString
            self._read = self._schema.readers.of(message)

    def walk(self, data: bytes) -> Value:
        return walk.decode(self._message, data, self._any_form)

    def encode(self, value: Value) -> bytes:
        return writer.encode(self._message, value, self._schema.any_bytes)

    def explain(self, data: bytes) -> Piece:
        return walk.explain(self._message, data, self._any_form)
