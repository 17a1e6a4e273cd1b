"""The proxy: forwards, records, and on request alters live traffic between clients and brokers.

Five nouns. A **Stream** is one TCP connection. A **Connection** joins the streams of a client and a
broker, and finds the frames in them; it forwards bytes unchanged unless a rule intercepts a frame.
A **Rule** maps a frame to a **Verdict**; a fault is a rule that injects an error. The **Recorder**
writes the client's side as a capture file. `KafkaProxy` starts and stops everything; the
engine (TLS, transparent mode, SOCKS) is mitmproxy's. Programs may import these names
(docs/proxy.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.engine.tls import ClientTls, UpstreamTls
    from kafkascope.proxy.recording.recorder import Recorder

__all__ = ["ClientTls", "KafkaProxy", "Recorder", "UpstreamTls"]

_HOMES = {
    "ClientTls": "kafkascope.proxy.engine.tls",
    "KafkaProxy": "kafkascope.proxy.engine.server",
    "Recorder": "kafkascope.proxy.recording.recorder",
    "UpstreamTls": "kafkascope.proxy.engine.tls",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is used: help and listing must not load the engine."""
    if name not in _HOMES:
        raise AttributeError(name)
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
