"""Journeys of records as traces of OpenTelemetry (OTLP), a span for each leg, as JSON or protobuf:
`TracesData` of opentelemetry-proto 1.x.

Both encodings are made of one value, the JSON form. Its protobuf is written by a table of field
numbers: seven messages do not justify a dependency, and numbers of fields never change (OTLP 1.0 is
stable). `tests/analyzer/export/test_otlp.py` reads both with opentelemetry-proto's own classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.journeys.model import Fetched, Journey, Produced
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.values import varint_of

FORMATS: Final = {"json": "json", "pb": "protobuf", "binpb": "protobuf", "protobuf": "protobuf"}
"""Suffix of a file's name -> encoding; `.pb` and `.binpb` are those of Protobuf's own tools."""
KINDS: Final = {"send": 4, "receive": 5, "commit": 3}
"""Values of `Span.SpanKind`: PRODUCER, CONSUMER, CLIENT."""
Span: TypeAlias = tuple[str, dict[str, Any]]
"""The application, of whose spans a resource is made, and the JSON form."""

# W3C Trace Context, level 1: version 00 has these four parts; later versions may append others.
_TRACE_PARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?"
)


def trace_parent(text: str | None) -> tuple[str, str] | None:
    """Return the ids of the trace and the span that a header names; None where it is none."""
    found = _TRACE_PARENT.fullmatch(text or "")
    return None if found is None else (found[1], found[2])


def spans_of(journey: Journey) -> Iterator[Span]:
    """Yield the legs, in the trace that the record's `traceparent` names or one of its own: sent to
    acknowledged; sent to fetched by each client; that to committed. Ids are hashes of the record,
    so that two exports of a capture have the same ones."""
    record = f"{journey.topic}-{journey.partition}@{journey.offset}"
    trace_id, root = trace_parent(journey.traceparent) or (_id(record, 16), "")

    def span(
        who: Fetched | Produced, verb: str, begin_ns: int, end_ns: int, parent: str, **more: Any
    ) -> Span:
        group = who.group if isinstance(who, Fetched) else None
        values = {
            "messaging.system": "kafka",
            "messaging.destination.name": journey.topic,
            "messaging.destination.partition.id": str(journey.partition),
            "messaging.kafka.offset": journey.offset,
            "kafka.transaction": journey.transaction,
            "messaging.operation.name": verb,
            "messaging.client.id": who.client_id,
            "messaging.consumer.group.name": group,
            **{f"kafka.{name}": value for name, value in more.items()},
            # Clocks of two capturing hosts may disagree: no span ends before it begins.
            "kafkascope.clock_skew_ns": begin_ns - end_ns if end_ns < begin_ns else None,
        }
        return who.application, {
            "traceId": trace_id,
            "spanId": _id(f"{record} {verb} {who.application} {who.client_id} {group}", 8),
            **({"parentSpanId": parent} if parent else {}),
            "name": _text(f"{verb} {journey.topic}"),
            "kind": KINDS[verb],
            "startTimeUnixNano": str(min(begin_ns, end_ns)),
            "endTimeUnixNano": str(end_ns),
            "attributes": [_attribute(*each) for each in values.items() if each[1] is not None],
        }

    produced = journey.produced
    if produced is not None:
        end_ns = produced.acknowledged_ns or produced.sent_ns
        created_ms = journey.created_ms
        sent = span(produced, "send", produced.sent_ns, end_ns, root, create_time_ms=created_ms)
        yield sent
        root = sent[1]["spanId"]
    for each in journey.fetched:
        begin_ns = each.time_ns if produced is None else produced.sent_ns
        got = span(each, "receive", begin_ns, each.time_ns, root, fetched_again=each.again or None)
        yield got
        if each.committed_ns is not None:
            yield span(each, "commit", each.time_ns, each.committed_ns, got[1]["spanId"])


def _id(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _attribute(key: str, value: str | int) -> dict[str, Any]:
    text = isinstance(value, str)
    form = {"stringValue": _text(str(value))} if text else {"intValue": str(value)}
    return {"key": key, "value": form}


def _text(text: str) -> str:
    """Return a text that UTF-8 has: names from traffic may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def encoded(spans: Iterable[Span], encoding: str) -> bytes:
    """Return the spans as one `TracesData`; `encoding` is a value of `FORMATS`."""
    resources = [
        {
            "resource": {"attributes": [_attribute("service.name", service)]},
            "scopeSpans": [{"scope": {"name": "kafkascope"}, "spans": own}],
        }
        for service, own in by_key(spans).items()
    ]
    data = {"resourceSpans": resources}
    return dumps(data) + b"\n" if encoding == "json" else _message("TracesData", data)


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
_LENGTH: Final = 2
_SCALARS: Final[dict[str, tuple[int, Callable[[Any], bytes]]]] = {
    "string": (_LENGTH, str.encode),
    "hex": (_LENGTH, bytes.fromhex),
    "varint": (0, lambda value: varint_of(int(value) & 0xFFFFFFFFFFFFFFFF)),
    "fixed64": (1, lambda value: int(value).to_bytes(8, "little")),
}
"""Type -> its wire type, and what writes a value."""


def _message(kind: str, value: dict[str, Any]) -> bytes:
    out = bytearray()
    for name, inner in value.items():
        number, type_ = _FIELDS[kind][name]
        for one in inner if isinstance(inner, list) else (inner,):
            wire, write = _SCALARS.get(type_, (_LENGTH, None))
            data = _message(type_, one) if write is None else write(one)
            size = varint_of(len(data)) if wire == _LENGTH else b""
            out += varint_of(number << 3 | wire) + size + data
    return bytes(out)
