"""Chunks -> frames -> messages -> exchanges -> outputs. Knows nothing of screens and proxies.

`Conversation` is one connection, sans-I/O; `open_capture` joins capture files and conversations;
`Session` keeps what was seen as columns. Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.conversation import Conversation
    from analyzer.model import Exchange
    from analyzer.offline import open_capture
    from analyzer.session import Session

__all__ = ["Conversation", "Exchange", "Session", "open_capture"]

_HOMES = {
    "Conversation": "conversation",
    "Exchange": "model",
    "Session": "session",
    "open_capture": "offline",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"analyzer.{_HOMES[name]}"), name)
