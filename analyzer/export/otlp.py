"""Traces of OpenTelemetry (OTLP) as JSON or protobuf: `TracesData` of opentelemetry-proto 1.x.

Both encodings are made of one value, the JSON form. Its protobuf is written by a table of field
numbers: seven messages do not justify a dependency, and numbers of fields never change (OTLP 1.0 is
stable). `tests/analyzer/export/test_otlp.py` reads both with opentelemetry-proto's own classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.values import varint_of

FORMATS: Final = {"json": "json", "pb": "protobuf", "binpb": "protobuf", "protobuf": "protobuf"}
"""Suffix of a file's name -> encoding; `.pb` and `.binpb` are those of Protobuf's own tools."""
CLIENT, PRODUCER, CONSUMER = 3, 4, 5
"""Values of `Span.SpanKind`."""
SCOPE: Final = {"name": "kafkascope"}

Value: TypeAlias = str | int


class TraceSpan(NamedTuple):
    """A leg of a record's journey."""

    service: str
    """The application; a resource has the spans of one."""
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    """Empty for the root of a trace."""
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Value]


_FIELDS: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "TracesData": {"resourceSpans": (1, "ResourceSpans")},
    "ResourceSpans": {"resource": (1, "Resource"), "scopeSpans": (2, "ScopeSpans")},
    "Resource": {"attributes": (1, "KeyValue")},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span")},
    "Scope": {"name": (1, "string")},
    "Span": {
        "traceId": (1, "hex"),
        "spanId": (2, "hex"),
        "parentSpanId": (4, "hex"),
        "name": (5, "string"),
        "kind": (6, "varint"),
        "startTimeUnixNano": (7, "fixed64"),
        "endTimeUnixNano": (8, "fixed64"),
        "attributes": (9, "KeyValue"),
    },
    "KeyValue": {"key": (1, "string"), "value": (2, "AnyValue")},
    "AnyValue": {"stringValue": (1, "string"), "intValue": (3, "varint")},
}
"""Message -> its fields: number, and type."""
_FIXED64: Final = Struct("<Q")
_VARINT, _FIXED, _LENGTH = 0, 1, 2
"""Wire types."""


def encoded(spans: Iterable[TraceSpan], encoding: str) -> bytes:
    """Return the spans as one `TracesData`; `encoding` is a value of `FORMATS`."""
    data = _traces(spans)
    return dumps(data) + b"\n" if encoding == "json" else _message("TracesData", data)


def _traces(spans: Iterable[TraceSpan]) -> dict[str, Any]:
    """Return the JSON form: ids in hexadecimal, 64-bit numbers as text, enums as numbers."""
    services: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        services.setdefault(span.service, []).append(_span(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": service})},
                "scopeSpans": [{"scope": SCOPE, "spans": own}],
            }
            for service, own in services.items()
        ]
    }


def _span(span: TraceSpan) -> dict[str, Any]:
    parent = {"parentSpanId": span.parent_id.hex()} if span.parent_id else {}
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        **parent,
        "name": _text(span.name),
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
    }


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items()]


def _any_value(value: Value) -> dict[str, str]:
    return {"stringValue": _text(value)} if isinstance(value, str) else {"intValue": str(value)}


def _text(text: str) -> str:
    """Return a text that UTF-8 has: names from traffic may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _message(kind: str, value: dict[str, Any]) -> bytes:
    out = bytearray()
    for name, inner in value.items():
        number, type_ = _FIELDS[kind][name]
        for one in inner if isinstance(inner, list) else (inner,):
            wire, data = _field(type_, one)
            if wire == _LENGTH:
                data = varint_of(len(data)) + data
            out += varint_of(number << 3 | wire) + data
    return bytes(out)


def _field(type_: str, value: Any) -> tuple[int, bytes]:
    match type_:
        case "string":
            return _LENGTH, value.encode()
        case "hex":
            return _LENGTH, bytes.fromhex(value)
        case "varint":
            return _VARINT, varint_of(int(value) & 0xFFFFFFFFFFFFFFFF)
        case "fixed64":
            return _FIXED, _FIXED64.pack(int(value))
        case _:
            return _LENGTH, _message(type_, value)
