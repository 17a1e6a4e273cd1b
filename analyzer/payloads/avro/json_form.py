"""Avro's JSON form: unions as `{"type": value}`, bytes as text of ISO-8859-1."""

from __future__ import annotations

import struct
from typing import Any, Final, NoReturn

import orjson

from kafkascope.analyzer.payloads.avro.linking import Linked
from kafkascope.analyzer.payloads.avro.logical import shows
from kafkascope.analyzer.payloads.avro.reader import based, finite, more
from kafkascope.analyzer.payloads.avro.types import (
    MAX_DEPTH,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    branch_name,
    inside,
    shown,
)
from kafkascope.analyzer.payloads.avro.writer import (
    EXACT,
    LOOSE,
    AvroWriter,
    real_number,
    said,
    whole_number,
)
from kafkascope.analyzer.payloads.model import PayloadError

LATIN: Final = "iso-8859-1"


class JsonForm:
    """Decodes and encodes the JSON form of one schema."""

    def __init__(self, linked: Linked) -> None:
        self._root = linked.root
        self._writer = AvroWriter(linked)
        self._branches: dict[int, dict[str, AvroType]] = {}

    def decode(self, data: bytes) -> Any:
        """Return the value, as that of the binary form."""
        try:
            spelled = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise PayloadError("does-not-fit", f"not JSON: {error}") from None
        return self._value(self._root, spelled, "", 1)

    def encode(self, value: Any) -> bytes:
        """Return the JSON text of a value. Its binary form has the branches of unions."""
        spelled, _ = _spelled(self._root, self._writer.write(value), 0)
        return orjson.dumps(spelled)

    def _value(self, node: AvroType, spelled: Any, path: str, depth: int) -> Any:
        if isinstance(node, AvroUnion):
            node, spelled = self._branch(node, spelled, path)
        if isinstance(node, AvroRecord | AvroArray | AvroMap) and depth > MAX_DEPTH:
            _refuse(f"nested deeper than {MAX_DEPTH} levels", path)
        match node:
            case AvroRecord():
                if not isinstance(spelled, dict):
                    _refuse(f"{said(spelled)} for the record {node.name}", path)
                found = {}
                for field in node.fields:
                    where = inside(path, field.name)
                    if field.name not in spelled:
                        _refuse("the field is missing", where)
                    inner = spelled[field.name]
                    found[field.name] = self._value(field.type, inner, where, depth + 1)
                if len(spelled) != len(found):
                    other = next(key for key in spelled if key not in found)
                    _refuse(f"{node.name} has no field {other[:80]}", path)
                return found
            case AvroArray():
                if not isinstance(spelled, list):
                    _refuse(f"{said(spelled)} for an array", path)
                return [
                    self._value(node.items, each, f"{path}[{at}]", depth + 1)
                    for at, each in enumerate(spelled)
                ]
            case AvroMap():
                if not isinstance(spelled, dict):
                    _refuse(f"{said(spelled)} for a map", path)
                return {
                    key: self._value(node.values, each, inside(path, key), depth + 1)
                    for key, each in spelled.items()
                }
            case _:
                try:
                    return _leaf(node, spelled)
                except ValueError as error:
                    _refuse(str(error), path)

    def _branch(self, node: AvroUnion, spelled: Any, path: str) -> tuple[AvroType, Any]:
        """Return the type and value of a branch. Null stands without a name."""
        branches = self._branches.get(id(node))
        if branches is None:
            branches = {branch_name(branch): branch for branch in node.branches}
            self._branches[id(node)] = branches
        if spelled is None and "null" in branches:
            return branches["null"], None
        if not isinstance(spelled, dict) or len(spelled) != 1:
            _refuse(
                f"{said(spelled)} for a union, which needs an object with the type as key", path
            )
        ((name, inner),) = spelled.items()
        if name not in branches or name == "null":
            _refuse(f"the union has no type {name[:80]}", path)
        return branches[name], inner


def _refuse(text: str, path: str) -> NoReturn:
    raise PayloadError("does-not-fit", text, path=path)


def _leaf(node: AvroType, spelled: Any) -> Any:
    """Return the decoded value; ValueError where the type does not take it."""
    match node:
        case AvroPrimitive(kind="null") if spelled is None:
            return None
        case AvroPrimitive(kind="boolean") if isinstance(spelled, bool):
            return spelled
        case AvroPrimitive(kind="int" | "long") if not isinstance(spelled, bool):
            number = whole_number(node.kind, spelled, EXACT)
            show = shows(node.logical, node.kind) if node.logical else None
            return show(number) if show else number
        case AvroPrimitive(kind="float" | "double") if not isinstance(spelled, bool):
            real = real_number(node.kind, spelled, LOOSE)
            if node.kind == "float":
                (real,) = struct.unpack("<f", struct.pack("<f", real))
            return finite(real)
        case AvroPrimitive(kind="string") if isinstance(spelled, str):
            return spelled
        case AvroPrimitive(kind="bytes") | AvroFixed() if isinstance(spelled, str):
            data = spelled.encode(LATIN)
            if isinstance(node, AvroFixed) and len(data) != node.size:
                raise ValueError(f"{len(data):,} bytes for {node.name}, which has {node.size:,}")
            kind = "fixed" if isinstance(node, AvroFixed) else node.kind
            show = shows(node.logical, kind) if node.logical else None
            return show(data) if show else based(data)
        case AvroEnum() if isinstance(spelled, str):
            if spelled in node.index:
                return spelled
            raise ValueError(f"{node.name} has no symbol {spelled[:80]!r}")
        case _:
            raise ValueError(f"{said(spelled)} for {shown(node)}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number, at = more(data, at + 1, data[at]) if data[at] > 127 else (data[at], at + 1)
    return (number >> 1) ^ -(number & 1), at


def _spelled(node: AvroType, data: bytes, at: int) -> tuple[Any, int]:
    """Return the JSON of a value in binary, which our own writer wrote, and where it ends."""
    match node:
        case AvroPrimitive(kind="null"):
            return None, at
        case AvroPrimitive(kind="boolean"):
            return data[at] == 1, at + 1
        case AvroPrimitive(kind="int" | "long"):
            return _varint(data, at)
        case AvroPrimitive(kind="float"):
            return finite(struct.unpack_from("<f", data, at)[0]), at + 4
        case AvroPrimitive(kind="double"):
            return finite(struct.unpack_from("<d", data, at)[0]), at + 8
        case AvroPrimitive():
            size, at = _varint(data, at)
            form = "utf-8" if node.kind == "string" else LATIN
            return data[at : at + size].decode(form), at + size
        case AvroFixed():
            return data[at : at + node.size].decode(LATIN), at + node.size
        case AvroEnum():
            index, at = _varint(data, at)
            return node.symbols[index], at
        case AvroRecord():
            record = {}
            for field in node.fields:
                record[field.name], at = _spelled(field.type, data, at)
            return record, at
        case AvroArray():
            items = []
            count, at = _varint(data, at)
            for _ in range(count):
                item, at = _spelled(node.items, data, at)
                items.append(item)
            return items, at + bool(count)
        case AvroMap():
            entries = {}
            count, at = _varint(data, at)
            for _ in range(count):
                size, at = _varint(data, at)
                key = data[at : at + size].decode()
                entries[key], at = _spelled(node.values, data, at + size)
            return entries, at + bool(count)
        case AvroUnion():
            index, at = _varint(data, at)
            branch = node.branches[index]
            inner, at = _spelled(branch, data, at)
            return (None if inner is None else {branch_name(branch): inner}), at
        case _:
            raise AssertionError(node)
