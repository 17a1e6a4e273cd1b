"""Names of the fields that values of a JSON Schema may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.payloads.json import text as json_text
from kafkascope.analyzer.payloads.paths import Path, below

MAX_PARTS: Final = 1000
"""Parts of a schema that one object may consist of."""
_BESIDE: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items", "then", "else")


def field_paths(text: str) -> Iterator[Path]:
    """Yield the paths of properties, as far as the text alone defines them; `PayloadError`."""
    schema, _ = json_text.parse(text.encode("utf-8", "replace"))
    return below([schema], lambda node: _properties(schema, node))


def _properties(root: Any, node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the properties of an object, of its alternatives and of what it refers to: each part of
    the schema once, for references may go in circles."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen or len(seen) >= MAX_PARTS:
            continue
        seen.add(id(part))
        properties = part.get("properties")
        if isinstance(properties, dict):
            yield from properties.items()
        for name in _BESIDE:
            inner = part.get(name)
            waiting += inner if isinstance(inner, list) else [inner]
        if isinstance(ref := part.get("$ref"), str):
            waiting.append(_referred(root, ref))


def _referred(root: Any, ref: str) -> Any:
    """Return what a reference within the text leads to; None for others."""
    if ref == "#":
        return root
    if not ref.startswith("#/"):
        return None
    found = root
    for step in ref[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found
