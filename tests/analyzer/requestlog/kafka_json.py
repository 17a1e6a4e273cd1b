"""Prints lines with what a test gives."""

import json
from typing import Any

from kafkascope.analyzer.requestlog.printing import printed
from kafkascope.dissectors.layout import Layout

STAMP = "[2026-11-28 18:18:52,136]"


def line(
    layout: Layout, body: Any, *, response: Any = "", stamp: str = STAMP, **more: Any
) -> bytes:
    """Return a line of Kafka's own pattern whose request has that body. `more`: other fields of the
    document; those of objects in it are added."""
    document: dict[str, Any] = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": layout.message.key,
            "requestApiVersion": layout.version,
            "correlationId": 7,
            "clientId": "shop",
            "requestApiKeyName": "ANY",
        },
        "request": printed(layout, body),
        "response": response,
        "connection": "127.0.0.1:9092-127.0.0.1:53650-0-3",
        "totalTimeMs": 52.443,
        "requestQueueTimeMs": 2.263,
        "localTimeMs": 35.264,
        "remoteTimeMs": 0.0,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 14.591,
        "sendTimeMs": 0.323,
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"},
    }
    for name, value in more.items():
        document[name] = document[name] | value if isinstance(value, dict) else value
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    text = f"{stamp} DEBUG Completed request:{text} (kafka.request.logger)\n"
    return text.encode("utf-8", "surrogatepass")
