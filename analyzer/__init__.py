"""Chunks -> frames -> messages -> exchanges -> outputs. Knows nothing of screens and proxies.

`Conversation` is one connection, sans-I/O; `open_capture` joins capture files and conversations;
`Session` keeps what was seen as columns. Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.conversation import Conversation
    from kafkascope.analyzer.exchanges.offline import open_capture
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session

__all__ = ["Conversation", "Exchange", "Session", "open_capture"]

_HOMES = {
    "Conversation": "conversation.conversation",
    "Exchange": "model",
    "Session": "session.session",
    "open_capture": "exchanges.offline",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"kafkascope.analyzer.{_HOMES[name]}"), name)
