"""The proxy: live bytes between clients and brokers, watched, recorded, tampered with when asked.

Five nouns. A **Stream** is one TCP connection. A **Connection** stands between the streams of a
client and a broker and knows where frames begin; it passes bytes on untouched unless somebody has
to see them. A **Rule** looks at a frame and gives a **Verdict**; a fault is a rule that does harm
on purpose. The **Recorder** writes what the client saw as a capture file. `KafkaProxy` starts and
stops it all; the engine underneath (TLS, transparent mode, SOCKS) is mitmproxy's.
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
