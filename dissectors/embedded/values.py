"""Recognizes JSON and text in keys, values and user data, and Schema Registry's framing."""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any

import orjson

from kafkascope.dissectors.limits import LIMITS


def json_or_text(data: bytes) -> Any:
    """Return the parsed JSON, or else the printable text, of bytes that may have Schema Registry's
    framing; None for other bytes, and for none."""
    if schema_id_of(data) is not None:
        data = data[5:]
    if data[:1] in (b"{", b"[", b'"') and len(data) <= LIMITS.json_bytes:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            value = None
        if value is not None and not _too_deep(value):
            return value
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    printable = text.isprintable() or all(c.isprintable() or c in "\t\r\n" for c in text)
    return text if text and printable else None


def schema_id_of(data: bytes) -> int | None:
    """Return the schema ID of Schema Registry's framing, 0 | int32 ID | payload; None without
    framing."""
    # 8 bytes are an int64 or a double, which often begin with zeros, too.
    if len(data) < 6 or data[0] or len(data) == 8:
        return None
    (schema_id,) = struct.unpack_from(">i", data, 1)
    return schema_id if 0 < schema_id < LIMITS.schema_id else None


def _too_deep(value: Any) -> bool:
    """Return whether JSON is nested deeper than recursive writers can follow."""
    level = [value]
    for _ in range(LIMITS.json_nesting + 1):
        containers = [each for each in level if isinstance(each, dict | list)]
        if not containers:
            return False
        members = (each.values() if isinstance(each, dict) else each for each in containers)
        level = list(chain.from_iterable(members))
    return True
