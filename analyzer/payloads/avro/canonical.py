"""Avro's canonical form of schemas, its fingerprint, and names that a text defines and uses."""

from __future__ import annotations

from functools import cache
from typing import Final

import orjson

from kafkascope.analyzer.payloads.avro.parsing import Parsed, parse
from kafkascope.analyzer.payloads.avro.types import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroName,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    parts,
)

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
    out: list[str] = []
    _write(parsed.root, parsed, out)
    return "".join(out)


def defined_names(text: str) -> list[str]:
    """Return the full names of the types that a schema defines."""
    return list(parse(text).defined)


def referred_names(text: str) -> list[str]:
    """Return the full names that a schema uses and does not define."""
    parsed = parse(text)
    found: dict[str, None] = {}
    nodes = [parsed.root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, AvroName):
            if not any(each in parsed.defined for each in node.names):
                found[node.names[0]] = None
        else:
            nodes.extend(reversed([*parts(node)]))
    return list(found)


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


def _write(node: AvroType, parsed: Parsed, out: list[str]) -> None:
    match node:
        case AvroPrimitive():
            out.append(_quoted(node.kind))
        case AvroName():
            known = (each for each in node.names if each in parsed.defined)
            out.append(_quoted(next(known, node.names[0])))
        case AvroFixed():
            out.append(f'{{"name":{_quoted(node.name)},"type":"fixed","size":{node.size}}}')
        case AvroEnum():
            symbols = ",".join(map(_quoted, node.symbols))
            out.append(f'{{"name":{_quoted(node.name)},"type":"enum","symbols":[{symbols}]}}')
        case AvroRecord():
            out.append(f'{{"name":{_quoted(node.name)},"type":"record","fields":[')
            for at, field in enumerate(node.fields):
                out.append(f'{"," if at else ""}{{"name":{_quoted(field.name)},"type":')
                _write(field.type, parsed, out)
                out.append("}")
            out.append("]}")
        case AvroArray():
            out.append('{"type":"array","items":')
            _write(node.items, parsed, out)
            out.append("}")
        case AvroMap():
            out.append('{"type":"map","values":')
            _write(node.values, parsed, out)
            out.append("}")
        case AvroUnion():
            out.append("[")
            for at, branch in enumerate(node.branches):
                if at:
                    out.append(",")
                _write(branch, parsed, out)
            out.append("]")
