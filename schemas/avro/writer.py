"""Encodes values in the form of `decode`: as Avro's binary form, or as its JSON form."""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from decimal import Decimal
from typing import Any, Final

from kafkascope.schemas.avro.logical import conversion, decimal_bytes, take_uuid
from kafkascope.schemas.avro.types import CONTAINERS, AvroType, inside
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import NON_FINITE, PayloadError, misfit, varint

# How a value has to fit. Exactly: it decodes to the very same value. Properly: and it is what its
# type is for; a text that is no uuid decodes as one all the same. Loosely: it can stand for a
# value, as a whole number for a double, or a time in other words.
PROPER: Final = 2
EXACT: Final = 1
LOOSE: Final = 0

_JSON_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    str: "a text",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "an array",
    tuple: "an array",
}
"""A boolean is an int of Python, and comes first."""
_TAKEN: Final[dict[str, Any]] = {
    "null": type(None),
    "boolean": bool,
    "record": dict,
    "map": dict,
    "array": (list, tuple),
}
"""What branches of a kind take; others take what is not null, a boolean or a list."""
_FLOAT: Final = struct.Struct("<f")


class TooLong(Exception):
    """The search for branches of unions takes too long."""


def write(root: AvroType, value: Any) -> bytes:
    """Return the bytes of a value; `PayloadError` where it does not fit."""
    return ValueWriter().written(root, value)


class ValueWriter:
    """One value on its way. In a union the branch is taken that it fits best."""

    def __init__(self) -> None:
        self.steps = 0
        self.choices: dict[tuple[int, int, int], tuple[int, int, str, str]] = {}
        """Branches taken for an object or array, or why none was: unions inside unions would try
        the inside again for each branch of the outside, twice as often with each level."""

    def written(self, root: AvroType, value: Any) -> bytes:
        """Return the bytes of a value; `PayloadError` where it does not fit."""
        try:
            return self.value(root, value, "", 1, LOOSE)
        except TooLong:
            raise misfit("too many nested unions to choose their branches") from None

    def value(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> bytes:
        self.step()
        if node.kind == "union":
            return self.union(node, value, path, depth, exact)
        if node.kind not in CONTAINERS:
            try:
                return encoded(node, self.leaf(node, value, exact))
            except ValueError as error:
                raise misfit(str(error), path=path) from None
        if depth > LIMITS.nesting:
            raise misfit(f"nested deeper than {LIMITS.nesting} levels", path=path)
        if node.kind == "record":
            return self.record(node, value, path, depth + 1, exact)
        (inner,) = node.parts
        parts: list[bytes] = []
        if node.kind == "array":
            if not isinstance(value, list | tuple):
                raise misfit(f"{json_kind(value)} for an array", path=path)
            for at, each in enumerate(value):
                parts.append(self.value(inner, each, f"{path}[{at}]", depth + 1, exact))
        elif not isinstance(value, dict):
            raise misfit(f"{json_kind(value)} for a map", path=path)
        else:
            for key, each in value.items():
                if not isinstance(key, str):
                    raise misfit("a key that is not text", path=path)
                try:
                    name = utf8(key)
                except ValueError as error:
                    raise misfit(str(error), path=path) from None
                part = self.value(inner, each, inside(path, key), depth + 1, exact)
                parts.append(zigzag(len(name)) + name + part)
        return (zigzag(len(parts)) + b"".join(parts) if parts else b"") + b"\0"

    def leaf(self, node: AvroType, value: Any, exact: int) -> Any:
        return leaf_value(node, value, exact)

    def step(self) -> None:
        self.steps += 1
        if self.steps > LIMITS.union_steps:
            raise TooLong

    def record(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> bytes:
        if not isinstance(value, dict):
            raise misfit(f"{json_kind(value)} for the record {node.name}", path=path)
        names = dict.fromkeys(field.name for field in node.fields)
        for name in names:
            if name not in value:
                raise misfit(f"{node.name} without its field {name}", path=path)
        if len(value) != len(names):
            other = next(key for key in value if key not in names)
            raise misfit(f"{node.name} has no field {str(other)[:80]}", path=path)
        return b"".join(
            self.value(part, value[name], inside(path, name), depth, exact)
            for name, part in zip(names, node.parts, strict=True)
        )

    def union(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> bytes:
        key = (id(node), id(value), exact)
        choice = self.choices.get(key)
        if choice is not None:
            at, strict, why, where = choice
            if why:
                raise misfit(why, path=where)
            return zigzag(at) + self.value(node.parts[at], value, path, depth, strict)
        names = ", ".join(branch.shown for branch in node.parts[:20])
        why, where, tried = f"{json_kind(value)} for one of {names}", path, False
        for strict in range(PROPER, exact - 1, -1):
            for at, branch in enumerate(node.parts):
                self.step()
                if not _may_fit(branch, value):
                    continue
                try:
                    part = self.value(branch, value, path, depth, strict)
                except PayloadError as error:
                    # The one that went furthest says most.
                    if not tried or len(error.path) > len(where):
                        why, where, tried = error.text, error.path, True
                    continue
                if isinstance(value, dict | list):
                    self.choices[key] = at, strict, "", ""
                return zigzag(at) + part
        if isinstance(value, dict | list):
            self.choices[key] = -1, exact, why, where
        raise misfit(why, path=where)


def _may_fit(branch: AvroType, value: Any) -> bool:
    """Return whether a branch is worth a try: unions have thousands."""
    if branch.kind == "enum":
        return isinstance(value, str) and value in branch.index
    if branch.kind == "record" and isinstance(value, dict):
        return len(value) == len(branch.fields)
    taken = _TAKEN.get(branch.kind)
    if taken is None:
        return value is not None and not isinstance(value, bool | list)
    return isinstance(value, taken)


def zigzag(number: int) -> bytes:
    """Return an int or long, or the count, length or index before something."""
    return varint(number << 1 ^ number >> 63)


def encoded(node: AvroType, raw: Any) -> bytes:
    match node.kind:
        case "null":
            return b""
        case "boolean":
            return b"\1" if raw else b"\0"
        case "int" | "long" | "enum":
            return zigzag(raw)
        case "float" | "double":
            return struct.pack("<f" if node.kind == "float" else "<d", raw)
        case "fixed":
            return bytes(raw)
        case _:
            return zigzag(len(raw)) + bytes(raw)


def json_kind(value: Any) -> str:
    names = (name for kind, name in _JSON_KINDS.items() if isinstance(value, kind))
    return next(names, type(value).__name__)


def utf8(text: str) -> bytes:
    """Return the bytes of a text; ValueError for half a surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text that cannot be encoded as UTF-8") from None


def leaf_value(node: AvroType, value: Any, exact: int) -> Any:
    """Return what Avro has for a value: int, float, bytes (of strings, too), index of a symbol;
    ValueError where the type does not take it, or not as well as asked."""
    if node.logical:
        encoded = _logical_value(node, value, exact)
        if encoded is not None:
            return encoded
    match node.kind:
        case "null" if value is None:
            return None
        case "boolean" if isinstance(value, bool):
            return value
        case "int" | "long" if not isinstance(value, bool):
            return whole_number(node.kind, value, exact)
        case "float" | "double" if not isinstance(value, bool):
            return real_number(node.kind, value, exact)
        case "string" if isinstance(value, str):
            if node.logical and exact == PROPER:
                take_uuid(value)
            return utf8(value)
        case "bytes":
            return _from_base64(value, exact)
        case "fixed":
            return sized(node, _from_base64(value, exact))
        case "enum" if isinstance(value, str):
            if value in node.index:
                return node.index[value]
            raise ValueError(f"{node.name} has no symbol {value[:80]!r}")
        case _:
            raise ValueError(f"{json_kind(value)} for {node.shown}")


def sized(node: AvroType, data: bytes) -> bytes:
    """Return the bytes of a fixed, which are as many as its type has."""
    if len(data) != node.size:
        raise ValueError(f"{len(data):,} bytes for {node.name}, which has {node.size:,}")
    return data


def _logical_value(node: AvroType, value: Any, exact: int) -> Any:
    """Return what Avro has for a value of a logical type; None where its base type decides."""
    converted = conversion(node)
    if converted is None or node.logical is None:
        return None
    show, take = converted
    decimal = node.logical.name == "decimal"
    if decimal and not exact and type(value) in (int, float):
        value = format(Decimal(repr(value)), "f")
    if isinstance(value, str):
        encoded = take(value)
        if decimal:
            encoded = decimal_bytes(encoded)
            if node.kind == "fixed":
                encoded = _fitted(encoded, node)
        if exact and show(encoded) != value:
            raise ValueError(f"{value[:80]!r} is not a valid {node.logical}")
        return whole_number(node.kind, encoded, exact) if isinstance(encoded, int) else encoded
    if node.kind in ("int", "long") and exact and type(value) is int and show(value) != value:
        raise ValueError(f"a number for {node.logical}")
    if exact and node.kind in ("bytes", "fixed"):
        raise ValueError(f"{json_kind(value)} for {node.logical}")
    return None


def _fitted(data: bytes, node: AvroType) -> bytes:
    """Return a number in as many bytes as a fixed has."""
    if len(data) > node.size:
        raise ValueError(f"a number of {len(data)} bytes for {node.name}, which has {node.size}")
    sign = b"\xff" if data[0] & 128 else b"\0"
    return data.rjust(node.size, sign)


def whole_number(kind: str, value: Any, exact: int) -> int:
    if isinstance(value, float) and not exact and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise ValueError(f"{json_kind(value)} for {kind}")
    bits = 31 if kind == "int" else 63
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f"the number is too large for {kind}")
    return int(value)


def real_number(kind: str, value: Any, exact: int) -> float:
    if isinstance(value, str) and value in NON_FINITE:
        return NON_FINITE[value]
    if not isinstance(value, int | float) or (exact and isinstance(value, int)):
        raise ValueError(f"{json_kind(value)} for {kind}")
    try:
        number = float(value)
        # OverflowError, where 32 bits have no such number.
        if kind == "float" and _FLOAT.unpack(_FLOAT.pack(number))[0] != number and exact:
            raise ValueError("the number has more digits than a float")
    except OverflowError:
        raise ValueError(f"the number is too large for {kind}") from None
    if exact and number - number != 0:
        raise ValueError(f"{json_kind(value)} for {kind}")
    return number


def _from_base64(value: Any, exact: int) -> bytes:
    if not isinstance(value, dict) or value.keys() != {"base64"}:
        raise ValueError(f'{json_kind(value)} for bytes, which are {{"base64": TEXT}}')
    text = value["base64"]
    if not isinstance(text, str):
        raise ValueError(f"{json_kind(text)} for base64")
    try:
        data = a2b_base64(text, strict_mode=True) if text else b""
    except ValueError as error:
        raise ValueError(f"not base64: {error}") from None
    if exact and b2a_base64(data, newline=False).decode() != text:
        raise ValueError("base64 with bits after its end")
    return data
