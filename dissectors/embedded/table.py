"""Which field holds which format, and the walk over a body that finds them; those that are requests
and responses inside Envelope (KIP-590), principals, addresses and metrics."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, Literal, TypeAlias

from kafkascope.dissectors.embedded import groups, nodes, sasl
from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.embedded.model import Around, Embedded
from kafkascope.dissectors.errors import DissectError, Truncated
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, StructWire, Wire, resolve
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.compression import decompress
from kafkascope.dissectors.registry import (
    Decoded,
    decode_request,
    decode_response,
    message,
    read_layout,
)
from kafkascope.extras import missing

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


def _member(
    read: Callable[[bytes, str, str], Embedded | None], value: bytes, around: Around
) -> Embedded | None:
    """Decode what a member of a group sent or got, by the group's protocol and assignor."""
    names: tuple[str, ...] = ("name", "protocol_name", "protocol_data", "protocol")
    if read is groups.assignment:
        names = names[1:]
    assignor = next(filter(None, map(around.text, names)), "")
    return read(value, around.text("protocol_type") or around.protocol_type, assignor)


def _metrics(value: bytes, around: Around) -> Embedded:
    """Decode metrics that clients push (KIP-714), OpenTelemetry's MetricsData, to the JSON form of
    their protobuf message; needs the extra `telemetry`."""
    data = decompress(around.fields.get("compression_type", 0), value, LIMITS.metrics_bytes)
    if note := missing("decoding the metrics of PushTelemetry"):
        return Embedded("OTLP metrics", {"bytes": len(data)}, note)
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    try:
        body: Any = MessageToDict(MetricsData.FromString(data))
    except (DecodeError, ValueError, RecursionError) as error:
        return Embedded("OTLP metrics", {"bytes": len(data)}, f"no MetricsData: {error}")
    return Embedded("OTLP metrics", body)


def _request(value: bytes, around: Around) -> Embedded:
    """Decode header and body of the nested request; its versions follow from its own header."""
    return _embedded(decode_request(value), value)


def _response(value: bytes, around: Around) -> Embedded:
    """Decode header and body of the nested response; only the request has its API."""
    if around.request is None:
        return Embedded("response", {"bytes": len(value)}, "the request inside is not known")
    return _embedded(decode_response(value, *around.request), value)


def _embedded(found: Decoded, value: bytes) -> Embedded:
    left = len(value) - found.end
    note = f"{left} bytes left over" if left > 0 else found.note
    body = {"header": found.header, "body": masked(found.layout, found.body)}
    layouts = {"header": found.header_layout, "body": found.layout}
    return Embedded(f"{found.message} v{found.version}", body, note, layouts)


def _principal(value: bytes, around: Around) -> Embedded:
    if len(value) < 2:
        raise Truncated("the version is missing")
    (stated,) = struct.unpack_from(">h", value)
    declared = message("DefaultPrincipalData")
    version = min(max(stated, declared.versions.low), declared.versions.high)
    body, _ = read_layout(resolve(declared, version), value, 2)
    note = "" if stated == version else f"version {stated}, read as {version}"
    return Embedded("DefaultPrincipalData", body, note)


def _address(value: bytes, around: Around) -> Embedded | None:
    if len(value) not in (4, 16):
        return None
    return Embedded("address", str(ipaddress.ip_address(value)))


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
    "subscription": partial(_member, groups.subscription),
    "assignment": partial(_member, groups.assignment),
    "token of a client": lambda value, around: sasl.decode(
        value, around.mechanism, from_client=True
    ),
    "token of a broker": lambda value, around: sasl.decode(
        value, around.mechanism, from_client=False
    ),
    "request": _request,
    "principal": _principal,
    "address": _address,
    "response": _response,
    "metrics": _metrics,
    "node": lambda value, around: nodes.decode(value, around.text("path") or around.path),
}
"""Decoders of formats that stand alone; those inside a subscription are opened with it."""


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
