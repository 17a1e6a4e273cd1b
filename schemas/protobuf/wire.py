"""Reads single values of protobuf's encoding from bytes, each length checked before it is used."""

from __future__ import annotations

from typing import Any, Final

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import misfit, of_bytes
from kafkascope.schemas.protobuf.kinds import FIXED32, FIXED64, KINDS, LENGTH, STOP, VARINT, WIRES
from kafkascope.schemas.protobuf.types import MessageField

_MOST_LENGTH: Final = 0x7FFFFFFF
_MOST_TAG: Final = 0xFFFFFFFF


def tag(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return number and wire type of a field, and where its value begins."""
    value, behind = varint(data, at, end, "a field's number")
    number, wire = value >> 3, value & 7
    if value > _MOST_TAG or not number or wire > FIXED32:
        raise misfit(f"{value} is not a field number and type", at)
    return number, wire, behind


def scalar(field: MessageField, data: bytes, at: int, end: int) -> tuple[Any, int]:
    """Return the value of a field that is no message, and where it ends."""
    kind, fixed = KINDS[field.kind], KINDS[field.kind].fixed
    if fixed is not None:
        if end - at < fixed.size:
            raise misfit(f"{end - at} of {fixed.size} bytes of {field.kind}", at)
        return fixed.unpack_from(data, at)[0], at + fixed.size
    if kind.wire == LENGTH:
        size, at = length(data, at, end)
        raw = data[at : at + size]
        if field.kind == "bytes":
            return raw, at + size
        try:
            return raw.decode("utf-8"), at + size
        except UnicodeDecodeError as error:
            if field.utf8:
                raise misfit("text that is not UTF-8", at + error.start) from None
            return raw, at + size
    value, at = varint(data, at, end, field.kind)
    if not kind.bits:
        return value != 0, at
    value &= (1 << kind.bits) - 1
    if kind.zigzag:
        value = (value >> 1) ^ -(value & 1)
    elif kind.signed:
        value -= value >> (kind.bits - 1) << kind.bits
    return value, at


def varint(data: bytes, at: int, end: int, what: str) -> tuple[int, int]:
    """Return the next 64 bits of a varint, and where it ends."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    begin, value, shift = at, 0, 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift >= 70:
            raise misfit(f"{what} of more than 10 bytes", begin)
    raise misfit(f"the end in {what}", begin)


def length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a length, checked against the bytes that are left, and where those begin."""
    begin = at
    size, at = varint(data, at, end, "a length")
    if size > _MOST_LENGTH or size > end - at:
        raise misfit(f"length {size}, {end - at} bytes are left", begin)
    return size, at


def raw(
    data: bytes, number: int, wire: int, at: int, end: int, depth: int
) -> tuple[dict[str, Any], int]:
    """Return a field that no schema knows, and where the next one begins."""
    value: Any
    if wire == VARINT:
        value, at = varint(data, at, end, "an unknown field")
    elif wire == LENGTH:
        size, at = length(data, at, end)
        value, at = of_bytes(data[at : at + size]), at + size
    elif wire in (FIXED32, FIXED64):
        size = 4 if wire == FIXED32 else 8
        if end - at < size:
            raise misfit(f"{end - at} of {size} bytes of an unknown field", at)
        value = int.from_bytes(data[at : at + size], "little")
        at += size
    else:
        if depth > LIMITS.nesting:
            raise misfit(f"groups nested deeper than {LIMITS.nesting}", at)
        value = []
        while True:
            begin = at
            inner, kind, at = tag(data, at, end)
            if kind == STOP:
                if inner != number:
                    raise misfit(f"end of group {inner}, which did not start", begin)
                break
            entry, at = raw(data, inner, kind, at, end, depth + 1)
            value.append(entry)
    return {"field": number, "type": WIRES[wire], "value": value}, at
