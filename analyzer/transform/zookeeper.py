"""Payloads of ZooKeeper's messages without their secrets. Which these are stands in the
declarations, as Kafka's do."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.model import Side
from kafkascope.dissectors.embedded.masking import masked as without_secrets
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import Decoded, write_layout
from kafkascope.dissectors.zookeeper.frames import (
    HEAD,
    REPLY_HEAD,
    decode_request,
    decode_response,
    header_by,
)
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT

HIDDEN: Final = b"*"


def decoded(payload: bytes, key: int, side: Side) -> Decoded:
    """Return a payload of one side of a request of a key, decoded; `DissectError`."""
    if side == "response":
        return decode_response(payload, key)
    return decode_request(payload, header_by(key, payload))


def masked(payload: bytes, key: int, side: Side) -> bytes:
    """Return the payload with asterisks in place of secrets, and of all that cannot be read."""
    try:
        found = decoded(payload, key, side)
        body = without_secrets(found.layout, found.body)
        written = payload[: found.body_at] + write_layout(found.layout, body)
    except DissectError:
        return unread(payload, key, side)
    return written + HIDDEN * (len(payload) - found.end)


def unread(payload: bytes, key: int, side: Side) -> bytes:
    """Return the header of a payload, asterisks behind it."""
    head = REPLY_HEAD if side == "response" else HEAD
    kept = 0 if key == BASE + CONNECT else min(head, len(payload))
    return payload[:kept] + HIDDEN * (len(payload) - kept)
