"""Puts a schema and all that it imports into a descriptor pool of its own."""

from __future__ import annotations

import base64
import binascii
import importlib
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Lookup, PayloadError
from kafkascope.schemas.protobuf.grammar import parse
from kafkascope.schemas.protobuf.kinds import ENUM, GROUP, MAP_KEYS, MESSAGE, NAMES

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")

WELL_KNOWN: Final = frozenset(
    f"google/protobuf/{name}.proto"
    for name in (
        "any",
        "api",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    )
)
"""Files that are part of protobuf: nobody registers them."""


class Loaded(NamedTuple):
    """A schema in its pool."""

    pool: Any
    file: Any
    """FileDescriptor of the schema itself."""
    protos: dict[str, Any]
    """FileDescriptorProto of each file, by its name."""


def proto_of(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a schema's text: source, or base64 of one."""
    from google.protobuf import descriptor_pb2, message

    if len(text) > LIMITS.schema_chars:
        raise PayloadError(
            "bad-schema", f"a schema of {len(text)} characters, more than {LIMITS.schema_chars}"
        )
    if is_source(text):
        return parse(text, name)
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        out = descriptor_pb2.FileDescriptorProto.FromString(data)
        # Positions and comments, and what is no message: of no use, and large.
        out.ClearField("source_code_info")
        out.ClearField("service")
        _check_text(out)
    except (binascii.Error, message.DecodeError, UnicodeDecodeError) as error:
        raise PayloadError("bad-schema", f"neither source text nor base64 of it: {error}") from None
    out.name = out.name or name
    return out


def is_source(text: str) -> bool:
    """Return whether a schema is source, not base64 of a FileDescriptorProto."""
    return not text.strip() or not _BASE64.fullmatch(text)


def _check_text(proto: Any) -> None:
    """Refuse names that are not UTF-8: protobuf has them as bytes, or raises when they are read."""
    stack = [proto]
    while stack:
        for field, value in stack.pop().ListFields():
            many = value if hasattr(value, "append") or hasattr(value, "add") else (value,)
            if field.type == field.TYPE_MESSAGE:
                stack.extend(many)
            elif field.type == field.TYPE_STRING:
                for each in many:
                    if isinstance(each, bytes):
                        each.decode("utf-8")


def load(text: str, dependencies: Mapping[str, str], lookup: Lookup) -> Loaded:
    """Return the pool of a schema; `PayloadError` with reason `bad-schema`."""
    return _Loading(text, dependencies, lookup).loaded()


class _Loading:
    def __init__(self, text: str, dependencies: Mapping[str, str], lookup: Lookup) -> None:
        self._dependencies = dependencies
        self._lookup = lookup
        self._protos: dict[str, Any] = {}
        self._same: dict[bytes, str] = {}
        """Name of the first file that has a content: one file may be imported by two paths."""
        self._paths: dict[str, str | None] = {}
        """Name of the file behind each path of an import; None where nobody has it."""
        self._missing: list[str] = []
        self._left = LIMITS.schema_chars
        self._shown: dict[str, str] = {}
        """The path by which a file was asked for."""
        self._main = self._add(text, "the schema")
        self._symbols: dict[str, int] = {}

    def loaded(self) -> Loaded:
        from google.protobuf import descriptor_pool

        self._follow(self._main)
        self._resolve()
        for proto in self._protos.values():
            for message, _ in messages_of(proto):
                _check_map(message)
        pool = descriptor_pool.DescriptorPool()
        for name in self._in_order():
            try:
                pool.AddSerializedFile(self._protos[name].SerializeToString())
            except (TypeError, ValueError, KeyError) as error:
                text = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
                raise PayloadError("bad-schema", text[:300]) from None
        return Loaded(pool, pool.FindFileByName(self._main), self._protos)

    def _add(self, text: str, path: str) -> str:
        """Take a text in; return the name under which it is there.

        Names are ours: those in schemas may be anything, and two files may have one.
        """
        self._left -= len(text)
        if self._left < 0 and self._protos:
            raise PayloadError(
                "bad-schema", f"more than {LIMITS.schema_chars} characters with imports"
            )
        proto = proto_of(text, path)
        proto.name = ""
        content = proto.SerializeToString(deterministic=True)
        if content in self._same:
            return self._same[content]
        # protobuf's own JSON form goes by the names of its own files.
        name = path if path in WELL_KNOWN else f"{len(self._protos)}.proto"
        proto.name = name
        self._same[content] = name
        self._protos[name] = proto
        self._shown[name] = path
        if len(self._protos) > LIMITS.references:
            raise PayloadError("bad-schema", f"more than {LIMITS.references} files")
        return name

    def _follow(self, first: str) -> None:
        names = [first]
        followed = set()
        while names:
            name = names.pop()
            if name in followed:
                continue
            followed.add(name)
            proto = self._protos[name]
            found = [self._import(path) for path in proto.dependency]
            known = [each for each in dict.fromkeys(found) if each is not None]
            del proto.dependency[:], proto.public_dependency[:], proto.weak_dependency[:]
            proto.dependency.extend(known)
            names.extend(known)

    def _import(self, path: str) -> str | None:
        """Return the name of the file behind a path; None where no source has it.

        That is an error only if something of it is needed: many imports bring options alone.
        """
        if path not in self._paths:
            text = self._dependencies.get(path)
            if text is None and path in WELL_KNOWN:
                name = f"{path.removesuffix('.proto').replace('/', '.')}_pb2"
                found = importlib.import_module(name).DESCRIPTOR.serialized_pb
                text = base64.b64encode(found).decode("ascii")
            elif text is None:
                text = self._lookup(path)
            if text is None:
                self._missing.append(path)
                self._paths[path] = None
            else:
                self._paths[path] = self._add(text, path)
        return self._paths[path]

    def _resolve(self) -> None:
        done: set[str] = set()
        while len(done) < len(self._protos):
            todo = [name for name in self._protos if name not in done]
            for name in todo:
                self._collect(self._protos[name])
            for name in todo:
                done.add(name)
                self._resolve_file(self._protos[name])

    def _collect(self, proto: Any) -> None:
        for message, full in messages_of(proto):
            self._symbols[full] = MESSAGE
            for enum in message.enum_type:
                self._symbols[f"{full}.{enum.name}"] = ENUM
        for enum in proto.enum_type:
            self._symbols[join(proto.package, enum.name)] = ENUM

    def _resolve_file(self, proto: Any) -> None:
        for field in proto.extension:
            self._resolve_field(proto, field, proto.package)
        for message, full in messages_of(proto):
            for field in message.field:
                self._resolve_field(proto, field, full)
            for field in message.extension:
                self._resolve_field(proto, field, full)

    def _resolve_field(self, proto: Any, field: Any, scope: str) -> None:
        if field.extendee:
            field.extendee = f".{self._full(proto, field, field.extendee, scope)}"
        if field.type_name:
            full = self._full(proto, field, field.type_name, scope)
            field.type_name = f".{full}"
            kind = self._symbols[full]
            if kind == ENUM or field.type != GROUP:
                field.type = kind

    def _full(self, proto: Any, field: Any, name: str, scope: str) -> str:
        """Return the full name of a type: the innermost scope that knows it counts."""
        for full in _candidates(name, scope):
            if full in self._symbols:
                return full
        # From outside to inside: packages are more often named from their root.
        for full in reversed(list(_candidates(name, scope))):
            text = self._lookup(full)
            if text is not None:
                added = self._add(text, f"{full}.proto")
                before = set(self._protos)
                self._follow(added)
                for each in (set(self._protos) - before) | {added}:
                    self._collect(self._protos[each])
                if full in self._symbols:
                    if added not in proto.dependency and added != proto.name:
                        proto.dependency.append(added)
                    return full
        missing = "".join(f"; {path} is missing" for path in self._missing[:3])
        text = f"{join(scope, field.name)}: the type {name[:100]} is not defined{missing}"
        raise PayloadError("bad-schema", text[:400])

    def _in_order(self) -> list[str]:
        try:
            imports = {name: proto.dependency for name, proto in self._protos.items()}
            return list(TopologicalSorter(imports).static_order())
        except CycleError as error:
            path = self._shown[error.args[1][0]]
            raise PayloadError("bad-schema", f"{path[:200]} imports itself") from None


def join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _candidates(name: str, scope: str) -> Iterator[str]:
    """Yield the full names that a name may resolve to, the innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name


def messages_of(proto: Any) -> Iterator[tuple[Any, str]]:
    """Yield each message of a file, those inside of others too, with its full name."""
    stack = [(each, join(proto.package, each.name)) for each in reversed(proto.message_type)]
    while stack:
        message, full = stack.pop()
        yield message, full
        stack.extend((each, f"{full}.{each.name}") for each in reversed(message.nested_type))


def _check_map(message: Any) -> None:
    """Refuse a map's entry that is none: protobuf's code takes its two fields for given."""
    if not message.options.map_entry:
        return
    fields = {each.number: each for each in message.field}
    if (
        len(message.field) != 2
        or fields.keys() != {1, 2}
        or fields[1].name != "key"
        or fields[2].name != "value"
        or NAMES[fields[1].type] not in MAP_KEYS
        or fields[2].type == GROUP
        or any(each.label != 1 for each in message.field)
        or message.nested_type
        or message.enum_type
        or message.extension_range
        or message.oneof_decl
    ):
        raise PayloadError("bad-schema", f"{message.name[:100]} is not a map entry")
