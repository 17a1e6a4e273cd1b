"""Spans of journeys: a leg each, below the span that the record's header names."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.export.journey_spans import spans_of, trace_parent
from kafkascope.analyzer.statistics.journeys.model import Fetched, Journey, Produced

SENT = Produced("orders-1", "orders", 1_000, 3_000)
GOT = Fetched("billing-1", "billing", "billing", 5_000, 9_000, 1, (7_000,))
JOURNEY = Journey("orders", 3, 17, None, 1, SENT, None, None, (), (GOT,), (), None, None)
HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_each_leg_is_a_span_below_the_one_before() -> None:
    parent = trace_parent(HEADER)
    assert parent is not None
    send, receive, commit = spans_of(JOURNEY, parent)
    assert [each.name for each in (send, receive, commit)] == [
        "send orders",
        "receive orders",
        "commit orders",
    ]
    assert [(each.start_ns, each.end_ns) for each in (send, receive, commit)] == [
        *((1_000, 3_000), (1_000, 5_000), (5_000, 9_000))
    ]
    assert {each.trace_id.hex() for each in (send, receive, commit)} == {HEADER[3:35]}
    assert send.parent_id.hex() == HEADER[36:52]
    assert (receive.parent_id, commit.parent_id) == (send.span_id, receive.span_id)
    assert (send.service, receive.service) == ("orders", "billing")
    assert receive.attributes["messaging.consumer.group.name"] == "billing"
    assert send.attributes["kafka.create_time_ms"] == 1


def test_a_record_without_the_header_has_a_trace_of_its_own() -> None:
    first, again = list(spans_of(JOURNEY, None)), list(spans_of(JOURNEY, None))
    assert first == again
    assert len({each.trace_id for each in first}) == 1
    assert first[0].parent_id == b""
    other = list(spans_of(JOURNEY._replace(offset=18), None))
    assert other[0].trace_id != first[0].trace_id
    assert len({each.span_id for each in first + other}) == 6


def test_what_is_not_in_the_capture_has_no_span() -> None:
    (receive,) = spans_of(
        JOURNEY._replace(produced=None, fetched=(GOT._replace(committed_ns=None),)), None
    )
    assert (receive.start_ns, receive.end_ns) == (5_000, 5_000)


def test_clocks_that_disagree_are_said() -> None:
    late = JOURNEY._replace(produced=SENT._replace(sent_ns=8_000, acknowledged_ns=8_500))
    _, receive, _ = spans_of(late, None)
    assert (receive.start_ns, receive.end_ns) == (5_000, 5_000)
    assert receive.attributes["kafkascope.clock_skew_ns"] == 3_000


@pytest.mark.parametrize(
    "text",
    [
        *("", HEADER[:-1], HEADER.upper(), "ff" + HEADER[2:], HEADER + "x"),
        *(HEADER.replace(HEADER[3:35], "0" * 32), HEADER.replace(HEADER[36:52], "0" * 16)),
    ],
)
def test_other_headers_name_no_span(text: str) -> None:
    assert trace_parent(text) is None
