"""Chunks -> frames -> messages -> exchanges -> outputs. Knows nothing of screens and proxies.

`Conversation` is one connection, sans-I/O; `open_capture` joins capture files and conversations;
`Session` keeps what was seen as columns. Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation import Conversation
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.offline import open_capture
    from kafkascope.analyzer.session import Session

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
    return getattr(importlib.import_module(f"kafkascope.analyzer.{_HOMES[name]}"), name)
