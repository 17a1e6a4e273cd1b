"""Messages without what must not leave the house. Which fields that are stands in the declarations
(`secret`, `entity`, `subject`); there is no list of fields here.

    none     only secrets are hidden: passwords, tokens, SASL
    values   also values of records and of their headers
    keys     also keys of records
    all      also names (topics, groups, clients, users, hosts), free texts and bytes of unknown
             format; names get pseudonyms, the rest asterisks
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from analyzer.pseudonyms import WORDS, Pseudonyms
from dissectors.errors import DissectError
from dissectors.layout import ArrayWire, BytesWire, Layout, Slot, Wire
from dissectors.masking import asterisks, is_secret
from dissectors.reader import Body
from dissectors.record_redaction import redacted_records
from dissectors.registry import (
    Decoded,
    decode_request,
    decode_response,
    layout_of,
    read_layout,
    write_layout,
)
from dissectors.values import Uuid
from dissectors.walk import UNKNOWN_TAGS, changed

Level: TypeAlias = Literal["none", "values", "keys", "all"]

LEVELS: Final[tuple[Level, ...]] = ("none", "values", "keys", "all")

_GROUP_BYTES: Final = {
    "metadata": "ConsumerProtocolSubscription",
    "member_metadata": "ConsumerProtocolSubscription",
    "assignment": "ConsumerProtocolAssignment",
    "member_assignment": "ConsumerProtocolAssignment",
}
"""Bytes fields that hold topics of consumers -> the message in them."""


@dataclass(slots=True)
class Redaction:
    """One level for all messages of a run; the names it gives are the same in all of them."""

    level: Level = "values"
    names: Pseudonyms = field(default_factory=Pseudonyms)

    def body(self, layout: Layout, body: Body) -> Body:
        """The body as it may leave."""
        out = changed(layout, body, self._leaf)
        return _without_unknown_tags(out) if self.level == "all" else out

    def request(self, payload: bytes) -> bytes | None:
        """A request's payload as it may leave; None when it cannot be read, for then nobody knows
        what it holds."""
        try:
            return self._payload(decode_request(payload), payload)
        except DissectError:
            return None

    def response(self, payload: bytes, key: int, version: int) -> bytes | None:
        """The same of a response to a request of that key and version."""
        try:
            return self._payload(decode_response(payload, key, version), payload)
        except DissectError:
            return None

    def _payload(self, decoded: Decoded, payload: bytes) -> bytes | None:
        rest = payload[decoded.end :]
        if rest and self.level != "none":
            return None
        header = self.body(decoded.header_layout, decoded.header)
        body = self.body(decoded.layout, decoded.body)
        if header == decoded.header and body == decoded.body:
            return payload  # not written anew: odd encodings stay as they were
        written = write_layout(decoded.header_layout, header)
        return written + write_layout(decoded.layout, body) + rest

    def _leaf(self, slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
        if not isinstance(value, str | bytes) or isinstance(value, Uuid):
            return value
        if is_secret(slot.field, around):
            return asterisks(value)
        wire = _leaf_wire(slot.wire)
        if isinstance(value, bytes) and isinstance(wire, BytesWire) and wire.records:
            return self._records(value)
        if self.level != "all":
            return value
        if isinstance(value, str):
            return self._text(slot, value, around)
        return self._bytes(slot, value)

    def _records(self, value: bytes) -> bytes:
        if self.level == "none":
            return value
        return redacted_records(value, keys=self.level != "values", names=self.level == "all")

    def _text(self, slot: Slot, value: str, around: Mapping[str, Any]) -> str:
        kind = slot.field.entity or slot.field.subject
        if kind == "address":
            return self.names.host(value)
        if kind == "coordinatorKey":
            key_type = around.get("key_type", 0)
            return self.names.coordinator_key(value, key_type if isinstance(key_type, int) else 0)
        if kind == "configValue":
            plain = value in ("", "true", "false") or value.lstrip("-").isdigit()
            return value if plain else str(asterisks(value))
        if kind == "freeText":
            return str(asterisks(value))
        return self.names.name(value, kind) if kind in WORDS else value

    def _bytes(self, slot: Slot, value: bytes) -> bytes:
        name = _GROUP_BYTES.get(slot.name)
        if name is not None and len(value) >= 2:
            try:
                return self._embedded(name, value)
            except DissectError:
                pass
        return bytes(asterisks(value))  # type: ignore[arg-type]

    def _embedded(self, name: str, value: bytes) -> bytes:
        """A consumer's subscription or assignment, with topics of other names; its user data, of
        whatever format, become asterisks."""
        version = int.from_bytes(value[:2], "big", signed=True)
        layout = layout_of(name, version)
        body, end = read_layout(layout, value, 2)
        return value[:2] + write_layout(layout, self.body(layout, body)) + b"*" * (len(value) - end)


def _leaf_wire(wire: Wire) -> Wire:
    while isinstance(wire, ArrayWire):
        wire = wire.element
    return wire


def _without_unknown_tags(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_unknown_tags(each)
            for name, each in value.items()
            if name != UNKNOWN_TAGS
        }
    if isinstance(value, list):
        return [_without_unknown_tags(each) for each in value]
    return value
