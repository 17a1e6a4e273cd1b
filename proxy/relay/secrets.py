"""Secrets out of frames that are recorded, told from what the connection remembers of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.analyzer.transform import secrets
from kafkascope.analyzer.transform.secrets import HIDDEN, in_request, in_response

if TYPE_CHECKING:
    from kafkascope.proxy.relay.entries import Entry

__all__ = ["HIDDEN", "in_request", "in_response", "masked_request", "masked_response"]


def masked_request(entry: Entry, frame: bytes) -> bytes:
    """A whole request as it may be recorded."""
    if entry.token:
        return secrets.hidden_token(frame)
    return secrets.masked_request(frame, entry.key, entry.version)


def masked_response(entry: Entry, frame: bytes) -> bytes:
    """A whole response as it may be recorded."""
    if entry.token:
        return secrets.hidden_token(frame)
    return secrets.masked_response(frame, entry.key, entry.version)
