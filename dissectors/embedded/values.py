"""Keys and values of records, as far as they tell what they are."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import orjson

JSON_LIMIT: Final = 1 << 20
"""Longer values are not parsed: they are shown as text all the same."""


class Shown(NamedTuple):
    """What a key or value is."""

    kind: str
    """json, text, bytes, empty or null."""
    value: Any
    """The parsed JSON, the text, or the bytes."""
    schema_id: int | None = None
    """Of Schema Registry's framing: a zero byte and an int32 before the payload."""


def describe(data: bytes | None) -> Shown:
    """JSON, text or bytes; behind Schema Registry's framing where there is one."""
    if data is None:
        return Shown("null", None)
    if not data:
        return Shown("empty", "")
    if data[0] == 0 and len(data) > 5:
        (schema_id,) = struct.unpack_from(">i", data, 1)
        # Ids count from 1 and stay small; an int64 0 or 1 as key begins with zeros too.
        if 0 < schema_id < 1 << 24 and len(data) != 8:
            inner = describe(data[5:])
            return inner._replace(schema_id=schema_id)
    if data[:1] in b'{["' and len(data) <= JSON_LIMIT:
        try:
            return Shown("json", orjson.loads(data))
        except orjson.JSONDecodeError:
            pass
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Shown("bytes", data)
    return Shown("text", text) if _printable(text) else Shown("bytes", data)


def _printable(text: str) -> bool:
    return all(char.isprintable() or char in "\t\r\n" for char in text)
