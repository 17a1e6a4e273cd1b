"""Secrets out of frames that are recorded, told from what the connection remembers of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.analyzer.transform import secrets
from kafkascope.analyzer.transform.secrets import HIDDEN, in_request, in_response

if TYPE_CHECKING:
    from kafkascope.proxy.relay.pairing import PendingRequest

__all__ = ["HIDDEN", "in_request", "in_response", "masked_request", "masked_response"]


def masked_request(request: PendingRequest, frame: bytes) -> bytes:
    """A whole request as it may be recorded."""
    if request.token:
        return secrets.hidden_token(frame)
    return secrets.masked_request(frame, request.key, request.version)


def masked_response(request: PendingRequest, frame: bytes) -> bytes:
    """A whole response as it may be recorded."""
    if request.token:
        return secrets.hidden_token(frame)
    return secrets.masked_response(frame, request.key, request.version)
