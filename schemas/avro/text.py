"""Texts of Avro schemas: their canonical form, its fingerprint, the names that they define, and the
text without what does not say how bytes are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import orjson

from kafkascope.schemas.avro.parsing import Parsed, parse
from kafkascope.schemas.avro.types import AvroType
from kafkascope.schemas.model import PayloadError
from kafkascope.schemas.paths import Path, below

# CRC-64-AVRO of nothing.
EMPTY: Final = 0xC15D213AA4D7A795


def fingerprint(text: str) -> int:
    """Return the CRC-64-AVRO of a schema: what single objects begin with, after c3 01, in little
    endian. `PayloadError` with reason `bad-schema`."""
    table = _table()
    crc = EMPTY
    for byte in canonical(text).encode():
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc


def canonical(text: str) -> str:
    """Return the Parsing Canonical Form of a schema."""
    parsed = parse(text)
    return json.dumps(_written(parsed.root, parsed), ensure_ascii=False, separators=(",", ":"))


def defined_names(text: str) -> list[str]:
    """Return the full names of the types that a schema defines."""
    return list(parse(text).defined)


def field_paths(text: str) -> Iterator[Path]:
    """Yield the paths of fields, as far as the text alone defines them; `PayloadError`."""
    parsed = parse(text)
    return below([parsed.root], lambda node: _fields(parsed, node))


def _fields(parsed: Parsed, node: AvroType) -> Iterator[tuple[str, AvroType]]:
    """Yield the fields of a record, also inside of arrays and unions; names in a map are those of
    the values."""
    linked = parsed.find(node) if node.kind == "name" else node
    if linked is None:
        return
    for field, part in zip(linked.fields, linked.parts, strict=False):
        yield field.name, part
    if linked.kind in ("array", "union"):
        for part in linked.parts:
            yield from _fields(parsed, part)


@cache
def _table() -> tuple[int, ...]:
    rows = []
    for row in range(256):
        for _ in range(8):
            row = (row >> 1) ^ (EMPTY & -(row & 1))
        rows.append(row)
    return tuple(rows)


def _written(node: AvroType, parsed: Parsed) -> Any:
    """Return the canonical JSON value of a type."""
    match node.kind:
        case "name":
            return (parsed.find(node) or node).name
        case "fixed":
            return {"name": node.name, "type": "fixed", "size": node.size}
        case "enum":
            return {"name": node.name, "type": "enum", "symbols": node.symbols}
        case "record":
            fields = [
                {"name": field.name, "type": _written(part, parsed)}
                for field, part in zip(node.fields, node.parts, strict=True)
            ]
            return {"name": node.name, "type": "record", "fields": fields}
        case "array" | "map":
            inner = _written(node.parts[0], parsed)
            return {"type": node.kind, "items" if node.kind == "array" else "values": inner}
        case "union":
            return [_written(part, parsed) for part in node.parts]
        case _:
            return node.kind


_OF_TYPES: Final = ("name", "namespace", "symbols", "size", "logicalType", "precision", "scale")


def bare(text: str) -> str:
    """Return the schema without what does not say how bytes are read: docs, defaults, aliases and
    attributes of others; `PayloadError` where it is none."""
    parse(text)
    try:
        return orjson.dumps(_bare(orjson.loads(text))).decode()
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise PayloadError("bad-schema", "it cannot be rewritten") from error


def _bare(spelled: Any) -> Any:
    if isinstance(spelled, list):
        return list(map(_bare, spelled))
    if not isinstance(spelled, dict):
        return spelled
    out: dict[str, Any] = {"type": _bare(spelled["type"])} if "type" in spelled else {}
    out |= {name: spelled[name] for name in _OF_TYPES if name in spelled}
    if isinstance(fields := spelled.get("fields"), list):
        out["fields"] = [
            {"name": field.get("name"), "type": _bare(field.get("type"))}
            for field in fields
            if isinstance(field, dict)
        ]
    return out | {name: _bare(spelled[name]) for name in ("items", "values") if name in spelled}
