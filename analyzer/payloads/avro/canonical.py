"""Avro's canonical form of schemas, its fingerprint, and names of types and fields."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import orjson

from kafkascope.analyzer.payloads.avro.parsing import Parsed, parse
from kafkascope.analyzer.payloads.avro.types import AvroType
from kafkascope.analyzer.payloads.paths import Path, below

EMPTY: Final = 0xC15D213AA4D7A795
"""CRC-64-AVRO of nothing."""


def fingerprint(text: str) -> int:
    """Return the CRC-64-AVRO of a schema: what single objects begin with, behind c3 01, in little
    endian. `PayloadError` with reason `bad-schema`."""
    table = _table()
    crc = EMPTY
    for byte in canonical(text).encode():
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc


def canonical(text: str) -> str:
    """Return the Parsing Canonical Form of a schema."""
    parsed = parse(text)
    return "".join(_written(parsed.root, parsed))


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


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _written(node: AvroType, parsed: Parsed) -> Iterator[str]:
    name = f'{{"name":{_quoted(node.name)},"type":"{node.kind}"'
    match node.kind:
        case "name":
            linked = parsed.find(node) or node
            yield _quoted(linked.name)
        case "fixed":
            yield f'{name},"size":{node.size}}}'
        case "enum":
            yield f'{name},"symbols":[{",".join(map(_quoted, node.symbols))}]}}'
        case "record":
            yield f'{name},"fields":['
            for at, (field, part) in enumerate(zip(node.fields, node.parts, strict=True)):
                yield f'{"," if at else ""}{{"name":{_quoted(field.name)},"type":'
                yield from _written(part, parsed)
                yield "}"
            yield "]}"
        case "array" | "map":
            yield f'{{"type":"{node.kind}","{"items" if node.kind == "array" else "values"}":'
            yield from _written(node.parts[0], parsed)
            yield "}"
        case "union":
            yield "["
            for at, part in enumerate(node.parts):
                yield "," if at else ""
                yield from _written(part, parsed)
            yield "]"
        case _:
            yield _quoted(node.kind)
