"""Encodes values in the form of `decode`."""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

from kafkascope.analyzer.payloads.avro.linking import Linked
from kafkascope.analyzer.payloads.avro.logical import decimal_bytes, shows, take_uuid, takes
from kafkascope.analyzer.payloads.avro.reader import finite
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
    inside,
    shown,
)
from kafkascope.analyzer.payloads.model import PayloadError

MAX_STEPS: Final = 2_000_000
"""Values tried for one value: unions of records that differ far inside try all of them."""

PROPER: Final = 2
EXACT: Final = 1
LOOSE: Final = 0
"""How a value has to fit. Exactly: it decodes to the very same value. Properly: and it is what its
type is for; a text that is no uuid decodes as one all the same. Loosely: it can stand for a value,
as a whole number for a double, or a time in other words."""

FLOATS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class Misfit(Exception):
    """A value that a type does not take."""

    def __init__(self, text: str, path: str) -> None:
        super().__init__(text)
        self.text = text
        self.path = path


class TooLong(Exception):
    """The search for branches of unions takes too long."""


class AvroWriter:
    """Encodes values of one schema."""

    def __init__(self, linked: Linked) -> None:
        self._linked = linked

    def write(self, value: Any) -> bytes:
        """Return the bytes of a value; `PayloadError` where it does not fit."""
        job = _Job()
        with refused():
            job.value(self._linked.root, value, "", 1, LOOSE)
        return bytes(job.out)


def encode_raw(node: AvroPrimitive, value: Any) -> bytes:
    """Return the bytes of a value of a type of bytes, without length."""
    try:
        data: bytes = leaf_value(node, value, LOOSE)
    except ValueError as error:
        raise PayloadError("does-not-fit", str(error)) from None
    return data


@contextmanager
def refused() -> Iterator[None]:
    """Turn what does not fit into `PayloadError`."""
    try:
        yield
    except Misfit as error:
        raise PayloadError("does-not-fit", error.text, path=error.path) from None
    except TooLong:
        text = "too many nested unions to choose their branches"
        raise PayloadError("does-not-fit", text) from None


class _Job:
    """One value on its way. In a union the branch is taken that it fits best."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.steps = 0
        self.choices: dict[tuple[int, int, int], tuple[int, int, str, str]] = {}
        """Branches taken for an object or array, or why none was: unions inside unions would try
        the inside again for each branch of the outside, twice as often with each level."""

    def value(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> None:
        self.step()
        match node:
            case AvroUnion():
                self.union(node, value, path, depth, exact)
            case AvroRecord():
                self.record(node, value, path, depth, exact)
            case AvroArray():
                self.enter(depth, path)
                if not isinstance(value, list | tuple):
                    raise Misfit(f"{said(value)} for an array", path)
                if value:
                    self.number(len(value))
                for at, each in enumerate(value):
                    self.value(node.items, each, f"{path}[{at}]", depth + 1, exact)
                self.out.append(0)
            case AvroMap():
                self.enter(depth, path)
                if not isinstance(value, dict):
                    raise Misfit(f"{said(value)} for a map", path)
                if value:
                    self.number(len(value))
                for key, each in value.items():
                    if not isinstance(key, str):
                        raise Misfit("a key that is not text", path)
                    self.bytes(utf8(key, path))
                    self.value(node.values, each, inside(path, key), depth + 1, exact)
                self.out.append(0)
            case _:
                self.leaf(node, value, path, exact)

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLong

    def enter(self, depth: int, path: str) -> None:
        if depth > MAX_DEPTH:
            raise Misfit(f"nested deeper than {MAX_DEPTH} levels", path)

    def record(self, node: AvroRecord, value: Any, path: str, depth: int, exact: int) -> None:
        self.enter(depth, path)
        if not isinstance(value, dict):
            raise Misfit(f"{said(value)} for the record {node.name}", path)
        for field in node.fields:
            if field.name not in value:
                raise Misfit(f"{node.name} without its field {field.name}", path)
        if len(value) != len(node.fields):
            known = {field.name for field in node.fields}
            other = next(key for key in value if key not in known)
            raise Misfit(f"{node.name} has no field {str(other)[:80]}", path)
        for field in node.fields:
            where = inside(path, field.name)
            self.value(field.type, value[field.name], where, depth + 1, exact)

    def union(self, node: AvroUnion, value: Any, path: str, depth: int, exact: int) -> None:
        begin = len(self.out)
        key = (id(node), id(value), exact)
        known = self.choices.get(key)
        if known is not None:
            at, strict, why, where = known
            if why:
                raise Misfit(why, where)
            self.number(at)
            self.value(node.branches[at], value, path, depth, strict)
            return
        names = ", ".join(shown(branch) for branch in node.branches[:20])
        why, where, tried = f"{said(value)} for one of {names}", path, False
        for strict in range(PROPER, exact - 1, -1):
            for at, branch in enumerate(node.branches):
                self.step()
                if not may_fit(branch, value):
                    continue
                self.number(at)
                try:
                    self.value(branch, value, path, depth, strict)
                except Misfit as error:
                    del self.out[begin:]
                    # The one that went furthest says most.
                    if not tried or len(error.path) > len(where):
                        why, where, tried = error.text, error.path, True
                    continue
                if isinstance(value, dict | list):
                    self.choices[key] = at, strict, "", ""
                return
        if isinstance(value, dict | list):
            self.choices[key] = -1, exact, why, where
        raise Misfit(why, where)

    def number(self, number: int) -> None:
        """Write a zigzag varint."""
        rest = (number << 1) ^ (number >> 63)
        while rest > 127:
            self.out.append(rest & 127 | 128)
            rest >>= 7
        self.out.append(rest)

    def bytes(self, data: bytes) -> None:
        self.number(len(data))
        self.out += data

    def leaf(self, node: AvroType, value: Any, path: str, exact: int) -> None:
        try:
            known = leaf_value(node, value, exact)
        except ValueError as error:
            raise Misfit(str(error), path) from None
        match node:
            case AvroPrimitive(kind="null"):
                pass
            case AvroPrimitive(kind="boolean"):
                self.out.append(known)
            case AvroPrimitive(kind="int" | "long") | AvroEnum():
                self.number(known)
            case AvroPrimitive(kind="float"):
                self.out += struct.pack("<f", known)
            case AvroPrimitive(kind="double"):
                self.out += struct.pack("<d", known)
            case AvroFixed():
                self.out += known
            case _:
                self.bytes(known)


def may_fit(branch: AvroType, value: Any) -> bool:
    """Return whether it is worth to try a branch."""
    match branch:
        case AvroRecord():
            return isinstance(value, dict) and len(value) == len(branch.fields)
        case AvroMap():
            return isinstance(value, dict)
        case AvroArray():
            return isinstance(value, list | tuple)
        case AvroEnum():
            return isinstance(value, str) and value in branch.index
        case AvroPrimitive(kind="null"):
            return value is None
        case AvroPrimitive(kind="boolean"):
            return isinstance(value, bool)
        case _:
            return value is not None and not isinstance(value, bool | list)


def said(value: Any) -> str:
    """Return what kind of JSON a value is."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case dict():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            return type(value).__name__


def utf8(text: str, path: str = "") -> bytes:
    """Return the bytes of a text; `Misfit` for half a surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Misfit("a text that cannot be encoded as UTF-8", path) from None


def leaf_value(node: AvroType, value: Any, exact: int) -> Any:
    """Return what Avro has for a value: int, float, bytes (of strings, too), index of a symbol;
    ValueError where the type does not take it, or not as well as asked."""
    if isinstance(node, AvroPrimitive | AvroFixed):
        kind = node.kind if isinstance(node, AvroPrimitive) else "fixed"
        if node.logical:
            known = logical_value(node, kind, value, exact)
            if known is not None:
                return known
    match node:
        case AvroPrimitive(kind="null") if value is None:
            return None
        case AvroPrimitive(kind="boolean") if isinstance(value, bool):
            return value
        case AvroPrimitive(kind="int" | "long") if not isinstance(value, bool):
            return whole_number(node.kind, value, exact)
        case AvroPrimitive(kind="float" | "double") if not isinstance(value, bool):
            return real_number(node.kind, value, exact)
        case AvroPrimitive(kind="string") if isinstance(value, str):
            if node.logical and exact == PROPER:
                take_uuid(value)
            try:
                return value.encode()
            except UnicodeEncodeError:
                raise ValueError("a text that cannot be encoded as UTF-8") from None
        case AvroPrimitive(kind="bytes"):
            return from_base64(value, exact)
        case AvroFixed():
            data = from_base64(value, exact)
            if len(data) != node.size:
                raise ValueError(f"{len(data):,} bytes for {node.name}, which has {node.size:,}")
            return data
        case AvroEnum() if isinstance(value, str):
            if value in node.index:
                return node.index[value]
            raise ValueError(f"{node.name} has no symbol {value[:80]!r}")
        case _:
            pass
    raise ValueError(f"{said(value)} for {shown(node)}")


def logical_value(node: AvroPrimitive | AvroFixed, kind: str, value: Any, exact: int) -> Any:
    """Return what Avro has for a value of a logical type; None where its base type decides."""
    assert node.logical is not None
    take, show = takes(node.logical, kind), shows(node.logical, kind)
    if take is None or show is None:
        return None
    decimal = node.logical.name == "decimal"
    if decimal and not exact and type(value) in (int, float):
        value = format(Decimal(repr(value)), "f")
    if isinstance(value, str):
        known = take(value)
        if decimal:
            known = decimal_bytes(known)
            if isinstance(node, AvroFixed):
                known = fitted(known, node)
        if exact and show(known) != value:
            raise ValueError(f"{value[:80]!r} is not a valid {node.logical}")
        return whole_number(kind, known, exact) if isinstance(known, int) else known
    if kind in ("int", "long") and exact and type(value) is int and show(value) != value:
        raise ValueError(f"a number for {node.logical}")
    if exact and kind in ("bytes", "fixed"):
        raise ValueError(f"{said(value)} for {node.logical}")
    return None


def fitted(data: bytes, node: AvroFixed) -> bytes:
    """Return a number in as many bytes as a fixed has."""
    if len(data) > node.size:
        raise ValueError(f"a number of {len(data)} bytes for {node.name}, which has {node.size}")
    sign = b"\xff" if data[0] & 128 else b"\0"
    return data.rjust(node.size, sign)


def whole_number(kind: str, value: Any, exact: int) -> int:
    """Return an int of 32 or 64 bits."""
    if isinstance(value, float) and not exact and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise ValueError(f"{said(value)} for {kind}")
    bits = 31 if kind == "int" else 63
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f"the number is too large for {kind}")
    return int(value)


def real_number(kind: str, value: Any, exact: int) -> float:
    """Return a float."""
    if isinstance(value, str) and value in FLOATS:
        return FLOATS[value]
    if not isinstance(value, int | float) or (exact and isinstance(value, int)):
        raise ValueError(f"{said(value)} for {kind}")
    try:
        number = float(value)
        if kind == "float":
            (single,) = struct.unpack("<f", struct.pack("<f", number))
            if exact and finite(single) != number:
                raise ValueError("the number has more digits than a float")
    except OverflowError:
        raise ValueError(f"the number is too large for {kind}") from None
    if exact and number - number != 0:
        raise ValueError(f"{said(value)} for {kind}")
    return number


def from_base64(value: Any, exact: int) -> bytes:
    """Return the bytes of `{"base64": TEXT}`."""
    if not isinstance(value, dict) or value.keys() != {"base64"}:
        raise ValueError(f'{said(value)} for bytes, which are {{"base64": TEXT}}')
    text = value["base64"]
    if not isinstance(text, str):
        raise ValueError(f"{said(text)} for base64")
    try:
        data = a2b_base64(text, strict_mode=True) if text else b""
    except ValueError as error:
        raise ValueError(f"not base64: {error}") from None
    if exact and b2a_base64(data, newline=False).decode() != text:
        raise ValueError("base64 with bits after its end")
    return data
