"""Which field holds which format, and the walk over a body that finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from kafkascope.dissectors.embedded import groups, nested, nodes, sasl, telemetry
from kafkascope.dissectors.embedded.model import Around, Embedded
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, StructWire, Wire

Format: TypeAlias = Literal[
    "subscription",
    "assignment",
    "allocation",
    "user data",
    "token of a client",
    "token of a broker",
    "request",
    "response",
    "principal",
    "address",
    "metrics",
    "node",
]
Decoder: TypeAlias = Callable[[bytes, Around], Embedded | None]


def _protocol_type(around: Around) -> str:
    return around.text("protocol_type") or around.protocol_type


def _subscription(value: bytes, around: Around) -> Embedded | None:
    assignor = around.text("name") or around.text("protocol_name") or around.text("protocol_data")
    return groups.subscription(value, _protocol_type(around), assignor or around.text("protocol"))


def _assignment(value: bytes, around: Around) -> Embedded | None:
    assignor = around.text("protocol_name") or around.text("protocol_data")
    return groups.assignment(value, _protocol_type(around), assignor or around.text("protocol"))


def _metrics(value: bytes, around: Around) -> Embedded | None:
    return telemetry.metrics(value, around.fields.get("compression_type", 0))


FORMATS: Final[dict[tuple[str, str], Format]] = {
    ("JoinGroupRequest", "metadata"): "subscription",
    ("JoinGroupResponse", "metadata"): "subscription",
    ("DescribeGroupsResponse", "member_metadata"): "subscription",
    ("GroupMetadataValue", "subscription"): "subscription",
    ("ConsumerGroupMemberMetadataValue", "metadata"): "subscription",
    ("SyncGroupRequest", "assignment"): "assignment",
    ("SyncGroupResponse", "assignment"): "assignment",
    ("DescribeGroupsResponse", "member_assignment"): "assignment",
    ("GroupMetadataValue", "assignment"): "assignment",
    ("ConnectSubscription", "allocation"): "allocation",
    ("ConsumerProtocolSubscription", "user_data"): "user data",
    ("ConsumerProtocolAssignment", "user_data"): "user data",
    ("SaslAuthenticateRequest", "auth_bytes"): "token of a client",
    ("SaslAuthenticateResponse", "auth_bytes"): "token of a broker",
    ("EnvelopeRequest", "request_data"): "request",
    ("EnvelopeRequest", "request_principal"): "principal",
    ("EnvelopeRequest", "client_host_address"): "address",
    ("EnvelopeResponse", "response_data"): "response",
    ("PushTelemetryRequest", "metrics"): "metrics",
    ("zk.CreateRequest", "data"): "node",
    ("zk.CreateTTLRequest", "data"): "node",
    ("zk.GetDataResponse", "data"): "node",
    ("zk.MultiRequest", "data"): "node",
    ("zk.MultiResponse", "data"): "node",
    ("zk.SetDataRequest", "data"): "node",
}
"""(message, field) -> what its bytes hold, for decoders and for those who write them anew."""

DECODERS: Final[dict[Format, Decoder]] = {
    "subscription": _subscription,
    "assignment": _assignment,
    "token of a client": lambda value, around: sasl.decode(
        value, around.mechanism, from_client=True
    ),
    "token of a broker": lambda value, around: sasl.decode(
        value, around.mechanism, from_client=False
    ),
    "request": lambda value, _: nested.request(value),
    "principal": lambda value, _: nested.principal(value),
    "address": lambda value, _: nested.address(value),
    "response": lambda value, around: nested.response(value, around.request),
    "metrics": _metrics,
    "node": lambda value, around: nodes.decode(value, around.text("path") or around.path),
}
"""Of formats that stand alone; those inside a subscription are opened with it."""


def decode(message: str, field: str, value: bytes, around: Around) -> Embedded | None:
    """Decode the bytes of a field; None for unknown formats, a remark when the bytes do not fit."""
    form = FORMATS.get((message, field))
    decoder = DECODERS.get(form) if form is not None else None
    if decoder is None or not value:
        return None
    try:
        return decoder(value, around)
    except DissectError as error:
        return Embedded("undecoded", {"bytes": len(value)}, str(error))


@cache
def has_embedded(message: str) -> bool:
    """Return whether any field of a message has a known format."""
    return any(name == message and form in DECODERS for (name, _), form in FORMATS.items())


def embedded_in(
    layout: Layout, body: dict[str, Any], around: Around | None = None
) -> Iterator[tuple[str, Embedded]]:
    """Yield the path and content of each bytes field of the body that has a known format."""
    if has_embedded(layout.message.name):
        yield from _walk(layout.message.name, layout.body, body, "", around or Around())


def _walk(
    message: str, wire: Wire, value: Any, path: str, around: Around
) -> Iterator[tuple[str, Embedded]]:
    if isinstance(wire, ArrayWire):
        if isinstance(wire.element, StructWire):
            for index, each in enumerate(value or ()):
                yield from _walk(message, wire.element, each, f"{path}[{index}]", around)
    elif isinstance(wire, StructWire) and value is not None:
        here = replace(around, fields={**around.fields, **value})
        for slot in (*wire.slots, *wire.tags):
            inner = f"{path}.{slot.name}" if path else slot.name
            if isinstance(slot.wire, BytesWire):
                found = decode(message, slot.name, value[slot.name] or b"", here)
                if found is not None:
                    yield inner, found
            else:
                yield from _walk(message, slot.wire, value[slot.name], inner, here)
