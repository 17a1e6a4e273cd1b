"""A frame with another body: edited JSON to bytes, header kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dissectors.errors import DissectError
from dissectors.jsonform import body_from_json
from dissectors.masking import masked
from dissectors.registry import write_layout

if TYPE_CHECKING:
    from proxy.message import Message


def edited(message: Message, body: dict[str, Any]) -> bytes:
    """The payload of a frame with that body (JSON form); `DissectError` when it does not fit."""
    decoded = message.decoded
    if decoded is None or message.payload is None:
        raise DissectError("the frame cannot be decoded, so it cannot be edited")
    new = body_from_json(decoded.layout, body)
    shown = masked(decoded.layout, decoded.body)
    for name, value in decoded.body.items():
        # Whoever edits saw asterisks in place of secrets: what they did not change stays.
        if new.get(name) == shown[name]:
            new[name] = value
    return (
        message.payload[: decoded.body_at]
        + write_layout(decoded.layout, new)
        + message.payload[decoded.end :]
    )
