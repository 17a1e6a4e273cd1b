"""What of a new version of a schema does not fit to what the old one wrote, in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.payloads.known import module_of
from kafkascope.analyzer.payloads.model import PayloadError

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.model import Format, Schema

MODULES: Final[dict[Format, str]] = {
    "avro": "avro.changes",
    "protobuf": "protobuf",
    "json": "json_schema",
}
"""Modules with `breaking_changes`; loaded when they are first asked."""


def breaking(old: Schema, new: Schema) -> list[str]:
    """Return a sentence for each change; empty where there is none, or nothing can be told."""
    if old.format != new.format:
        return [f"{old.format} became {new.format}"]
    try:
        module = module_of(MODULES[new.format], new.format)
        found: list[str] = module.breaking_changes(old.text, new.text)
    except PayloadError:
        return []
    return found
