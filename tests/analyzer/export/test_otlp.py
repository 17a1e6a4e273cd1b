"""OTLP as opentelemetry-proto's own classes read it."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf.json_format import Parse
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from kafkascope.analyzer.export.otlp import CONSUMER, PRODUCER, TraceSpan, encoded

SEND = TraceSpan(
    "orders", b"\x11" * 16, b"\x22" * 8, b"", "send orders", PRODUCER, 1_700_000_000_000_000_001,
    1_700_000_000_005_000_002, {"messaging.system": "kafka", "messaging.kafka.offset": 17},
)  # fmt: skip
POLL = TraceSpan(
    "billing", b"\x11" * 16, b"\x33" * 8, b"\x22" * 8, "poll orders", CONSUMER,
    1_700_000_000_005_000_002, 1_700_000_000_009_000_003, {},
)  # fmt: skip


def read(spans: list[TraceSpan], encoding: str) -> Any:
    data = encoded(spans, encoding)
    if encoding == "protobuf":
        return TracesData.FromString(data)
    # OTLP's JSON has ids in hexadecimal, where the mapping of Protobuf has base64.
    told = json.loads(data)
    for resource in told["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return Parse(json.dumps(told), TracesData())


def test_its_own_classes_read_what_was_written() -> None:
    found = read([SEND, POLL], "protobuf")
    first, second = found.resource_spans
    assert first.resource.attributes[0].key == "service.name"
    assert first.resource.attributes[0].value.string_value == "orders"
    (send,) = first.scope_spans[0].spans
    assert (send.trace_id, send.span_id, send.parent_span_id) == (b"\x11" * 16, b"\x22" * 8, b"")
    assert (send.name, send.kind) == ("send orders", 4)
    assert send.end_time_unix_nano - send.start_time_unix_nano == 5_000_001
    assert {each.key: each.value.int_value for each in send.attributes}[
        "messaging.kafka.offset"
    ] == 17
    assert second.scope_spans[0].spans[0].parent_span_id == send.span_id


def test_json_and_protobuf_are_the_same_traces() -> None:
    assert read([SEND, POLL, SEND], "json") == read([SEND, POLL, SEND], "protobuf")
    assert len(read([SEND, POLL, SEND], "json").resource_spans) == 2


@given(st.text(st.characters(codec=None)), st.integers(-(1 << 63), (1 << 63) - 1))
def test_any_name_and_number_can_be_read(text: str, number: int) -> None:
    span = SEND._replace(service=text, name=text, attributes={"number": number, "name": text})
    assert read([span], "json") == read([span], "protobuf")
