"""Spans of journeys: a leg each, below the span that the record's header names; OTLP as
opentelemetry-proto's own classes read it."""

import base64
import json
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from kafkascope.analyzer.export.otlp import encoded, spans_of, trace_parent
from kafkascope.analyzer.statistics.journeys.model import Fetched, Journey, Produced

SENT = Produced("orders-1", "orders", 1_000, 3_000)
GOT = Fetched("billing-1", "billing", "billing", 5_000, 9_000, 1, (7_000,))
JOURNEY = Journey("orders", 3, 17, None, 1, SENT, None, None, (), (GOT,), (), None, None)
HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACED = JOURNEY._replace(traceparent=HEADER)


def read(journeys: list[Journey], encoding: str) -> Any:
    data = encoded((span for one in journeys for span in spans_of(one)), encoding)
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


def legs(journey: Journey) -> tuple[list[Any], list[str]]:
    """Return the spans and their applications."""
    resources = read([journey], "protobuf").resource_spans
    names = [each.resource.attributes[0].value.string_value for each in resources]
    return [span for each in resources for span in each.scope_spans[0].spans], names


def attributes(span: Any) -> dict[str, str | int]:
    values = {each.key: each.value for each in span.attributes}
    return {key: value.string_value or value.int_value for key, value in values.items()}


def test_each_leg_is_a_span_below_the_one_before() -> None:
    spans, names = legs(TRACED)
    send, receive, commit = spans
    assert names == ["orders", "billing"]
    assert [(each.name, each.kind) for each in spans] == [
        *(("send orders", 4), ("receive orders", 5), ("commit orders", 3))
    ]
    assert [(each.start_time_unix_nano, each.end_time_unix_nano) for each in spans] == [
        *((1_000, 3_000), (1_000, 5_000), (5_000, 9_000))
    ]
    assert {each.trace_id.hex() for each in spans} == {HEADER[3:35]}
    assert send.parent_span_id.hex() == HEADER[36:52]
    assert (receive.parent_span_id, commit.parent_span_id) == (send.span_id, receive.span_id)
    assert attributes(receive)["messaging.consumer.group.name"] == "billing"
    assert attributes(send)["kafka.create_time_ms"] == 1
    assert attributes(send)["messaging.kafka.offset"] == 17


def test_a_record_without_the_header_has_a_trace_of_its_own() -> None:
    first, _ = legs(JOURNEY)
    assert legs(JOURNEY)[0] == first
    assert len({each.trace_id for each in first}) == 1
    assert first[0].parent_span_id == b""
    other, _ = legs(JOURNEY._replace(offset=18))
    assert other[0].trace_id != first[0].trace_id
    assert len({each.span_id for each in first + other}) == 6


def test_what_is_not_in_the_capture_has_no_span() -> None:
    (receive,), _ = legs(
        JOURNEY._replace(produced=None, fetched=(GOT._replace(committed_ns=None),))
    )
    assert (receive.start_time_unix_nano, receive.end_time_unix_nano) == (5_000, 5_000)


def test_clocks_that_disagree_are_said() -> None:
    late = JOURNEY._replace(produced=SENT._replace(sent_ns=8_000, acknowledged_ns=8_500))
    receive = next(span for span in legs(late)[0] if span.kind == 5)
    assert (receive.start_time_unix_nano, receive.end_time_unix_nano) == (5_000, 5_000)
    assert attributes(receive)["kafkascope.clock_skew_ns"] == 3_000


@pytest.mark.parametrize(
    "text",
    [
        *("", HEADER[:-1], HEADER.upper(), "ff" + HEADER[2:], HEADER + "x"),
        *(HEADER.replace(HEADER[3:35], "0" * 32), HEADER.replace(HEADER[36:52], "0" * 16)),
    ],
)
def test_other_headers_name_no_span(text: str) -> None:
    assert trace_parent(text) is None


@given(
    st.text(st.characters(codec=None)),
    st.integers(0, (1 << 63) - 1),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
def test_json_and_protobuf_are_the_same_traces(text: str, offset: int, created_ms: int) -> None:
    sent, got = SENT._replace(application=text), GOT._replace(client_id=text)
    odd = Journey(
        text, 3, offset, None, created_ms, sent, *(None,) * 2, (), (got,), (), *(None,) * 2
    )
    found = read([TRACED, odd, TRACED], "json")
    assert found == read([TRACED, odd, TRACED], "protobuf")
    assert len(found.resource_spans) == len({"orders", "billing", text})
