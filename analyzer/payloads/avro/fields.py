"""Names of the fields that values of an Avro schema may have."""

from __future__ import annotations

from collections.abc import Iterator

from kafkascope.analyzer.payloads.avro.parsing import Parsed, parse
from kafkascope.analyzer.payloads.avro.types import (
    AvroArray,
    AvroName,
    AvroRecord,
    AvroType,
    AvroUnion,
)
from kafkascope.analyzer.payloads.paths import Path, below


def field_paths(text: str) -> Iterator[Path]:
    """Yield the paths of fields, as far as the text alone defines them; `PayloadError`."""
    parsed = parse(text)
    return below([parsed.root], lambda node: _fields(parsed, node, 0))


def _fields(parsed: Parsed, node: AvroType, depth: int) -> Iterator[tuple[str, AvroType]]:
    match node:
        case AvroRecord():
            yield from ((each.name, each.type) for each in node.fields)
        case AvroArray():
            yield from _fields(parsed, node.items, depth)
        case AvroUnion():
            for branch in node.branches:
                yield from _fields(parsed, branch, depth)
        case AvroName() if not depth:  # a name means a type, never another name
            defined = (parsed.defined.get(name) for name in node.names)
            found = next((each for each in defined if each is not None), None)
            if found is not None:
                yield from _fields(parsed, found, 1)
        case _:
            pass  # the names in a map are the values' own
