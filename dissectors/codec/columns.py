"""Columns of a message over all its versions, in plain types, for Arrow, Spark and DDL.

A column is there when any version (or any release's own layout of one) has the field; a row of
another version has null in it. Numbers take the widest type of any version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias, assert_never

from kafkascope.dissectors.errors import SchemaError
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    resolve,
)
from kafkascope.dissectors.schema import Message

ScalarName = Literal[
    "int8", "int16", "int32", "int64", "double", "bool", "string", "binary", "uuid"
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A plain value; `uuid` is 16 bytes that are shown as 22 characters."""

    name: ScalarName


@dataclass(frozen=True, slots=True)
class ListOf:
    """Any number of elements, none of them null."""

    element: Type


@dataclass(frozen=True, slots=True)
class StructOf:
    """Named columns in the order in which versions brought them."""

    columns: tuple[Column, ...]


Type: TypeAlias = Scalar | ListOf | StructOf


@dataclass(frozen=True, slots=True)
class Column:
    """A field over all versions."""

    name: str
    type: Type
    nullable: bool
    """Whether it may be null on the wire, or is missing in some version."""


BITS: Final[dict[str, int]] = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

# There are no unsigned types in Spark and few elsewhere: the next wider signed one holds them.
_NUMBERS: Final[dict[str, ScalarName]] = {
    "b": "int8",
    "h": "int16",
    "i": "int32",
    "q": "int64",
    "H": "int32",
    "I": "int64",
    "d": "double",
}

UNKNOWN_TAGS: Final = Column(
    "_tagged_fields",
    ListOf(
        StructOf((Column("tag", Scalar("int64"), False), Column("data", Scalar("binary"), False)))
    ),
    True,
)
"""Tagged fields that no declaration knows, where there are any."""


@cache
def columns(message: Message) -> StructOf:
    """Return the columns of a message; `SchemaError` when two versions cannot share one."""
    layouts = [
        resolve(message, version)
        for version in range(message.versions.low, message.versions.high + 1)
    ]
    layouts += [resolve(variant, variant.versions.low) for variant in message.variants]
    return _merged_structs([_struct(layout.body) for layout in layouts], message.name)


def _struct(wire: StructWire) -> StructOf:
    found = [_column(slot) for slot in (*wire.slots, *wire.tags)]
    return StructOf((*found, UNKNOWN_TAGS) if wire.flexible else tuple(found))


def _column(slot: Slot) -> Column:
    nullable = bool(slot.only) or getattr(slot.wire, "nullable", False)
    return Column(slot.name, _type(slot.wire), nullable)


def _type(wire: Wire) -> Type:
    match wire:
        case NumberWire():
            return Scalar(_NUMBERS[wire.code])
        case BoolWire():
            return Scalar("bool")
        case UuidWire():
            return Scalar("uuid")
        case StringWire():
            return Scalar("string")
        case BytesWire():
            return Scalar("binary")
        case ArrayWire():
            return ListOf(_type(wire.element))
        case StructWire():
            return _struct(wire)
        case _:
            assert_never(wire)


def _merged_structs(structs: list[StructOf], where: str) -> StructOf:
    by_name: dict[str, list[Column]] = {}
    for struct in structs:
        for column in struct.columns:
            by_name.setdefault(column.name, []).append(column)
    # What no release named is last, wherever versions became flexible.
    names = sorted(by_name, key=lambda name: name == UNKNOWN_TAGS.name)
    merged = []
    for name in names:
        found = by_name[name]
        nullable = len(found) < len(structs) or any(column.nullable for column in found)
        type_ = _merged([column.type for column in found], f"{where}.{name}")
        merged.append(Column(name, type_, nullable))
    return StructOf(tuple(merged))


def _merged(types: list[Type], where: str) -> Type:
    structs = [each for each in types if isinstance(each, StructOf)]
    if len(structs) == len(types):
        return _merged_structs(structs, where)
    lists = [each for each in types if isinstance(each, ListOf)]
    if len(lists) == len(types):
        return ListOf(_merged([each.element for each in lists], where))
    scalars = {each.name for each in types if isinstance(each, Scalar)}
    if len(scalars) == 1 and not structs and not lists:
        return types[0]
    if scalars <= BITS.keys() and not structs and not lists:
        return Scalar(max(scalars, key=lambda name: BITS[name]))
    raise SchemaError(f"{where}: versions cannot share a column: {types}")


def misfits(type_: Type, value: Any, path: str = "") -> Iterable[str]:
    """Yield the paths of values that do not fit the columns."""
    match type_:
        case Scalar():
            if not _fits(type_.name, value):
                yield f"{path}: {value!r:.60} is no {type_.name}"
        case ListOf():
            if not isinstance(value, list):
                yield f"{path}: {value!r:.60} is no list"
                return
            for at, each in enumerate(value):
                yield from misfits(type_.element, each, f"{path}[{at}]")
        case StructOf():
            if not isinstance(value, dict):
                yield f"{path}: {value!r:.60} is no struct"
                return
            known = {column.name: column for column in type_.columns}
            yield from (f"{path}.{name}: no such column" for name in value.keys() - known.keys())
            for name, column in known.items():
                inner = value.get(name)
                if inner is not None:
                    yield from misfits(column.type, inner, f"{path}.{name}")
                elif not column.nullable:
                    yield f"{path}.{name}: null in a column that has none"
        case _:
            assert_never(type_)


def _fits(name: str, value: Any) -> bool:
    if name in BITS:
        limit = 1 << BITS[name] - 1
        return type(value) is int and -limit <= value < limit
    if name == "uuid":
        return isinstance(value, bytes) and len(value) == 16
    kinds = {"double": float, "bool": bool, "string": str, "binary": bytes}
    return isinstance(value, kinds[name])


def ddl(type_: Type) -> str:
    """Return the type as SQL engines spell it: `STRUCT<name: STRING, ids: ARRAY<INT>>`."""
    match type_:
        case Scalar():
            return _DDL[type_.name]
        case ListOf():
            return f"ARRAY<{ddl(type_.element)}>"
        case StructOf():
            inner = ", ".join(f"{column.name}: {ddl(column.type)}" for column in type_.columns)
            return f"STRUCT<{inner}>"
        case _:
            assert_never(type_)


_DDL: Final[dict[str, str]] = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "STRING",
    "binary": "BINARY",
    "uuid": "BINARY",
}
