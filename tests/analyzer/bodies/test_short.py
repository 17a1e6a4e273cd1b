"""Short bodies and whole ones, read by plan, give what the general way gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies.facts import NO_FACTS
from kafkascope.analyzer.bodies.short import plan_of
from kafkascope.analyzer.conversation import conversation
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row, row_of, to_json
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import StreamEvent
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.registry import APIS, layout_of
from tests.analyzer.wire import Wire, request, response, told
from tests.matrix import each_nth
from tests.strategies import bodies

ROOT = Path(__file__).parents[3]
CAPTURES = [
    *sorted((ROOT / "captures" / "samples").glob("*.pcap*")),
    *sorted((ROOT / "tests" / "analyzer" / "captures").glob("*.pcap*")),
]
KEYS = sorted(APIS)
HEADS = ("number", "id", "time_ns", "client_address", "broker_address", "client_id", "api")
HEADS += ("api_version", "correlation_id", "request_bytes", "response_bytes", "latency_ns")
HEADS += ("server_ns", "state", "frames")

Found = list[tuple[Exchange, Row]]


def all_ways(read: Callable[[bool], Found], monkeypatch: pytest.MonkeyPatch) -> None:
    """Read with short bodies, with whole ones, and the general way; assert that all are equal."""
    short, whole = read(False), read(True)
    with monkeypatch.context() as patch:
        patch.setattr(conversation, "_plan", lambda *_: None)
        general = read(True)
    rows = [row for _, row in general]
    for found in (short, whole):
        assert [row for _, row in found] == rows
        assert [json_of_row(row) for _, row in found] == [dumps(to_json(row)) for row in rows]
        # Reads what was left out until now.
        assert [exchange for exchange, _ in found] == [exchange for exchange, _ in general]
        for (one, _), (other, _) in zip(found, general, strict=True):
            assert one.request_body == other.request_body
            assert one.response_body == other.response_body


@pytest.mark.parametrize("path", each_nth(CAPTURES, 4), ids=lambda path: path.name)
def test_of_every_sample(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(whole: bool) -> Found:
        with open_capture([path]) as capture:
            capture.context.whole = whole
            names = capture.context.names
            found = [(exchange, row_of(exchange, names)) for exchange in capture.exchanges()]
        for exchange, _ in found:
            exchange.connection = None  # type: ignore[assignment]  # equal only to itself
        return found

    all_ways(read, monkeypatch)


def of_events(events: list[StreamEvent], whole: bool) -> Found:
    context = Context()
    context.whole = whole
    return [(exchange, row_of(exchange, context.names)) for exchange in told(events, context)]


@settings(deadline=None)
@given(st.data())
def test_of_every_message(data: st.DataObject) -> None:
    """Also broken ones, and several of a connection that wait for each other."""
    wire = Wire()
    dice = data.draw(st.randoms(use_true_random=False))
    key = data.draw(st.sampled_from([0, 1, *KEYS]))
    api = APIS[key]
    versions = data.draw(st.lists(st.integers(api.versions.low, api.versions.high), max_size=3))
    answers = []
    for number, version in enumerate([api.versions.high, *versions], 1):
        asked = data.draw(bodies(layout_of(f"{api.name}Request", version)))
        answer = data.draw(bodies(layout_of(f"{api.name}Response", version)))
        frames = [request(api.name, version, number, **asked)]
        frames.append(response(api.name, version, number, **answer))
        for side, frame in enumerate(frames):
            if dice.random() < 0.2:
                broken = bytearray(frame)
                at = dice.randrange(12, len(frame)) if len(frame) > 12 else len(frame) - 1
                broken[at] = dice.choice((0, 1, 127, 128, 255))
                frames[side] = bytes(broken)
        wire.client(frames[0])
        answers.append(frames[1])
        if dice.random() < 0.5:
            wire.broker(*answers)
            answers = []
    wire.broker(*answers)
    with pytest.MonkeyPatch.context() as patch:
        all_ways(lambda whole: of_events(wire.events, whole), patch)


@pytest.mark.parametrize("path", each_nth(CAPTURES, 4), ids=lambda path: path.name)
def test_headers_and_waits_are_the_same_without_other_bodies(path: Path) -> None:
    def read(*, only_waits: bool) -> list[tuple[object, ...]]:
        with open_capture([path]) as capture:
            facts = None
            if only_waits:
                capture.context.only_waits()
                facts = NO_FACTS
            names = capture.context.names
            rows = [row_of(exchange, names, facts) for exchange in capture.exchanges()]
        return [(*(getattr(row, name) for name in HEADS), row.wait_ns) for row in rows]

    assert read(only_waits=True) == read(only_waits=False)


@pytest.mark.parametrize("acks", [0, -1])
def test_a_plan_for_the_state_reads_acks(acks: int) -> None:
    # `records` ended with a KeyError at the first Produce.
    data = request("Produce", 7, 1, acks=acks, topic_data=[])
    plan = plan_of(0, 7, "state")
    assert plan is not None
    assert plan.request is not None
    start = data.index(b"\xff\xff", 14)  # of the transactional id, which is null
    body, end = plan.request(data, start)
    assert (body["acks"], end) == (acks, len(data))
