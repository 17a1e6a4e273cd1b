"""Recognises formats of keys and values of records."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import orjson

from kafkascope.dissectors.limits import LIMITS


class Shown(NamedTuple):
    """A key or value in its format."""

    kind: str
    """json, text, bytes, empty or null."""
    value: Any
    """The parsed JSON, the text, or the bytes."""
    schema_id: int | None = None
    """Schema id of Schema Registry's framing: a zero byte and an int32 before the payload."""


def describe(data: bytes | None) -> Shown:
    """Recognise JSON, text or bytes, behind Schema Registry's framing where there is one."""
    if data is None:
        return Shown("null", None)
    if not data:
        return Shown("empty", "")
    schema_id = schema_id_of(data)
    if schema_id is None:
        return _payload(data)
    return _payload(data[5:])._replace(schema_id=schema_id)


def schema_id_of(data: bytes) -> int | None:
    """Return the schema's id when the value has Schema Registry's framing: 0 | int32 id |
    payload."""
    # An int64 as key begins with zeros, too, and so do small doubles and counters.
    if len(data) < 6 or data[0] or len(data) == 8:
        return None
    (number,) = struct.unpack_from(">i", data, 1)
    return number if 0 < number < LIMITS.schema_id else None


def _payload(data: bytes) -> Shown:
    if data[:1] in (b"{", b"[", b'"') and len(data) <= LIMITS.json_bytes:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            value = None
        if value is not None and not _too_deep(value):
            return Shown("json", value)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Shown("bytes", data)
    printable = text.isprintable() or all(c.isprintable() or c in "\t\r\n" for c in text)
    return Shown("text", text) if printable else Shown("bytes", data)


def _too_deep(value: Any) -> bool:
    """Whether recursive writers would fail on it."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(LIMITS.json_nesting):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for some in inner for each in some if isinstance(each, dict | list)]
        if not level:
            return False
    return True
