"""Keys and values of records, as far as they tell what they are."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import orjson

JSON_LIMIT: Final = 1 << 20
"""Longer values are not parsed: they are shown as text all the same."""

MOST_IDS: Final = 1 << 24
"""Schema Registry counts its ids from 1; bigger numbers behind a zero byte are something else."""


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
    schema_id = schema_id_of(data)
    if schema_id is None:
        return _payload(data)
    return _payload(data[5:])._replace(schema_id=schema_id)


def schema_id_of(data: bytes) -> int | None:
    """The schema's id when the value has Schema Registry's framing: 0 | int32 id | payload."""
    # An int64 as key begins with zeros, too, and so do small doubles and counters.
    if len(data) < 6 or data[0] or len(data) == 8:
        return None
    (number,) = struct.unpack_from(">i", data, 1)
    return number if 0 < number < MOST_IDS else None


def _payload(data: bytes) -> Shown:
    if data[:1] in (b"{", b"[", b'"') and len(data) <= JSON_LIMIT:
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
    return text.isprintable() or all(c.isprintable() or c in "\t\r\n" for c in text)
