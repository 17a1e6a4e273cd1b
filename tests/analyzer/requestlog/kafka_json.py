"""Prints bodies as Kafka's JSON converters do, and wholes of lines around them."""

from __future__ import annotations

import base64
import json
from typing import Any

from kafkascope.dissectors.layout import (
    ArrayWire,
    BytesWire,
    Layout,
    StructWire,
    UuidWire,
    Wire,
    default_of,
)


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def printed(wire: Wire, value: Any) -> Any:
    if value is None:
        return None
    match wire:
        case StructWire():
            fields = {}
            for slot in wire.slots:
                name = camel_case(slot.name).replace("isKraft", "isKRaft")
                name = name.replace("kraftVersion", "kRaftVersion")
                if isinstance(slot.wire, BytesWire) and slot.wire.records:
                    fields[f"{name}SizeInBytes"] = len(value[slot.name] or b"")
                else:
                    fields[name] = printed(slot.wire, value[slot.name])
            for slot in wire.tags:
                if value[slot.name] != default_of(slot):
                    name = camel_case(slot.name).replace("kraftVersion", "kRaftVersion")
                    fields[name] = printed(slot.wire, value[slot.name])
            return fields
        case ArrayWire():
            return [printed(wire.element, element) for element in value]
        case BytesWire():
            return base64.b64encode(value).decode()
        case UuidWire():
            return str(value)
        case _:
            return str(value) if type(value).__name__ == "NonFinite" else value


def line(
    layout: Layout, body: Any, *, response: Any = "", stamp: str = "[2026-11-28 18:18:52,136]"
) -> bytes:
    """Return a line of Kafka's own pattern whose request has that body."""
    document = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": layout.message.key,
            "requestApiVersion": layout.version,
            "correlationId": 7,
            "clientId": "shop",
            "requestApiKeyName": "ANY",
        },
        "request": printed(layout.body, body),
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
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return f"{stamp} DEBUG Completed request:{text} (kafka.request.logger)\n".encode(
        "utf-8", "surrogatepass"
    )
