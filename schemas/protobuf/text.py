"""Texts of Protobuf schemas: the names that they define, and the text without what does not say how
bytes are read."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from kafkascope.schemas.paths import Path, below
from kafkascope.schemas.protobuf.files import is_source, join, messages_of, proto_of
from kafkascope.schemas.protobuf.grammar import without_options
from kafkascope.schemas.protobuf.options import KEPT


def defined_names(text: str) -> list[str]:
    """Return the full names of the messages and enums that a schema defines."""
    proto = proto_of(text, "")
    out = [join(proto.package, each.name) for each in proto.enum_type]
    for message, full in messages_of(proto):
        if not message.options.map_entry:
            out.append(full)
            out += [f"{full}.{each.name}" for each in message.enum_type]
    return out


def field_paths(text: str) -> Iterator[Path]:
    """Yield the paths of fields in any message of the file, as far as the text alone defines them;
    `PayloadError`."""
    file = proto_of(text, "")
    messages: dict[str, Any] = {}
    for message, _ in messages_of(file):
        messages.setdefault(message.name, message)

    def fields(message: Any) -> Iterator[tuple[str, Any]]:
        for each in message.field if message is not None else ():
            # What a name means depends on where it stands; for a suggestion its end will do.
            inner = messages.get(each.type_name.rpartition(".")[2])
            # The names in a map are the values' own.
            yield each.name, None if inner is None or inner.options.map_entry else inner

    return below(list(file.message_type), fields)


def bare(text: str) -> str:
    """Return a schema without comments, defaults and options that say nothing about bytes; as
    source or base64, as it came. `PayloadError` where it is none."""
    proto = proto_of(text, "")
    if is_source(text):
        made = without_options(text)
        # What is read of both has to be the same: nothing that matters was left out.
        if proto_of(made, "") == proto:
            return made
    _strip(proto)
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def _strip(proto: Any) -> None:
    """Take defaults and options of others out of a descriptor, and all that is inside."""
    proto.DiscardUnknownFields()
    stack = [proto]
    while stack:
        one = stack.pop()
        for field, value in one.ListFields():
            if field.name in ("default_value", "json_name"):
                one.ClearField(field.name)
            elif field.name == "options":
                for option, _ in value.ListFields():
                    if option.name not in (*KEPT, "features"):
                        value.ClearField(option.name)
            elif field.type == field.TYPE_MESSAGE:
                many = hasattr(value, "append") or hasattr(value, "add")
                stack.extend(value if many else (value,))
