"""Types of embedded formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from kafkascope.dissectors.layout import Layout


class Embedded(NamedTuple):
    """Decoded content of a bytes field."""

    kind: str
    """Name of the format or message: ConsumerProtocolSubscription, SCRAM, OTLP metrics."""
    body: Any
    """JSON-like: dicts, lists, text, numbers, bytes, uuids."""
    note: str = ""
    """A remark: a newer version than we know, bytes left over, why it could not be read."""
    layouts: Mapping[str, Layout] = MappingProxyType({})
    """Layouts of parts of the body that are messages, by their names in it (header, body)."""


@dataclass(frozen=True, slots=True)
class Around:
    """Context of the bytes: fields of the structs around them, and facts of the connection."""

    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of all enclosing structs, the innermost last."""
    mechanism: str = ""
    """SASL mechanism of the connection."""
    protocol_type: str = ""
    """Protocol type of the group, where the message does not carry it."""
    request: tuple[int, int] | None = None
    """Api key and version of the request inside the Envelope that a response answers."""
    path: str = ""
    """Node of ZooKeeper that the request asks for."""

    def text(self, name: str) -> str:
        """Return a text field around the bytes; empty when it is not there or null."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""
