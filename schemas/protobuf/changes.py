"""Finds what of a new version of a schema does not fit to messages of the old one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.schemas.protobuf.files import messages_of, proto_of
from kafkascope.schemas.protobuf.kinds import GROUP, KINDS, NAMES

_SAME_BYTES: Final = (
    {"int32", "uint32", "int64", "uint64", "bool", "enum"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
"""Types whose values are read as one another, as protobuf's documentation has them."""

_REQUIRED: Final = 2
_REPEATED: Final = 3


def breaking_changes(old: str, new: str) -> list[str]:
    """Return a sentence for each change; empty where they cannot be compared.

    Names of types are compared as the schemas spell them, by their last word: imports are not read.
    """
    before, after = proto_of(old, ""), proto_of(new, "")
    out = []
    if before.package != after.package:
        out.append(f"package {before.package or 'none'} is {after.package or 'none'}")
    now = {_short(full, after): message for message, full in messages_of(after)}
    for message, full in messages_of(before):
        if message.options.map_entry:
            continue
        name = _short(full, before)
        if name not in now:
            out.append(f"message {name} removed")
        else:
            out += [f"{name}.{said}" for said in _of_message(message, now[name])]
    enums = dict(_enums(after))
    for name, enum in _enums(before):
        if name in enums:
            out += [f"{name}.{said}" for said in _of_enum(enum, enums[name])]
        else:
            out.append(f"enum {name} removed")
    return out


def _short(full: str, proto: Any) -> str:
    return full.removeprefix(f"{proto.package}.") if proto.package else full


def _enums(proto: Any) -> Iterator[tuple[str, Any]]:
    for each in proto.enum_type:
        yield each.name, each
    for message, full in messages_of(proto):
        for each in message.enum_type:
            yield f"{_short(full, proto)}.{each.name}", each


def _of_message(old: Any, new: Any) -> Iterator[str]:
    before = {each.number: each for each in old.field}
    after = {each.number: each for each in new.field}
    places = {each.name: each.number for each in new.field}
    for number, field in before.items():
        other = after.get(number)
        if places.get(field.name, number) != number:
            yield f"{field.name}: number {number} is now {places[field.name]}"
        if other is None:
            if field.label == _REQUIRED:
                yield f"{field.name}: required field removed"
            continue
        was, now = _type(field, old), _type(other, new)
        if not _compatible(was, now):
            renamed = f", used by {other.name}" if other.name != field.name else ""
            yield f"{field.name}: number {number} was {was}, is {now}{renamed}"
        elif other.name != field.name and was != now:
            yield f"{field.name}: number {number} ({was}) is used by {other.name} ({now})"
        if _many_numbers(field, other):
            yield f"{field.name}: {'is' if other.label == _REPEATED else 'is not'} repeated now"
        if other.label == _REQUIRED and field.label != _REQUIRED:
            yield f"{field.name}: required now"
    for number, field in after.items():
        if field.label == _REQUIRED and number not in before:
            yield f"{field.name}: required field added"
    yield from _of_oneofs(new, before, after)


def _of_oneofs(new: Any, before: dict[int, Any], after: dict[int, Any]) -> Iterator[str]:
    """Two fields that could both be there, and now exclude each other."""
    for index, oneof in enumerate(new.oneof_decl):
        members = [
            number
            for number, field in after.items()
            if field.HasField("oneof_index") and field.oneof_index == index and number in before
        ]
        homes = {
            before[number].oneof_index if before[number].HasField("oneof_index") else -number
            for number in members
        }
        if len(members) > 1 and len(homes) > 1:
            yield f"{oneof.name}: now contains fields that were outside this oneof"


def _of_enum(old: Any, new: Any) -> Iterator[str]:
    names = {each.name: each.number for each in new.value}
    numbers = {each.number for each in new.value}
    for value in old.value:
        number = names.get(value.name)
        if number is not None and number != value.number:
            yield f"{value.name}: number {value.number} is now {number}"
        elif number is None and value.number in numbers:
            other = next(each.name for each in new.value if each.number == value.number)
            yield f"{value.name}: number {value.number} is now {other}"
        elif number is None:
            yield f"{value.name}: value {value.number} removed"


def _type(field: Any, owner: Any) -> str:
    """Return the type of a field: its kind, or the last word of its name with the kind if known."""
    if not field.type_name:
        return NAMES.get(field.type, "?")
    last = str(field.type_name.rpartition(".")[2])
    for each in owner.nested_type:
        if each.name == last and each.options.map_entry:
            key, value = each.field
            return f"map<{_type(key, each)}, {_type(value, each)}>"
    return f"group {last}" if field.type == GROUP else last


def _compatible(was: str, now: str) -> bool:
    if was == now:
        return True
    if any({was, now} <= group for group in _SAME_BYTES):
        return True
    # An enum has a name of its own: whether a name is one, imports would say.
    scalars = KINDS.keys()
    return (was in _SAME_BYTES[0] and now not in scalars and now[:4] != "map<") or (
        now in _SAME_BYTES[0] and was not in scalars and was[:4] != "map<"
    )


def _many_numbers(field: Any, other: Any) -> bool:
    """Return whether numbers became repeated, or the other way: packed they are read as none."""
    if (field.label == _REPEATED) == (other.label == _REPEATED):
        return False
    return field.type not in (9, 10, 11, 12) and not field.type_name
