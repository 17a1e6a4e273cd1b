"""The strict test that finds Kafka frames by content."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation import plausible
from kafkascope.analyzer.conversation.detect import describe, look
from kafkascope.analyzer.conversation.plausible import Plausibility, judge_request
from kafkascope.dissectors.registry import APIS, CONTROLLED_SHUTDOWN
from tests.kit.wire import beat, heartbeat, request


@pytest.mark.parametrize("key", sorted(APIS))
def test_requests_of_every_api_pass(key: int) -> None:
    api = APIS[key]
    for version in (api.versions.low, api.versions.high):
        data = request(api.name, version, 5, "app")
        assert judge_request(data, 0) is Plausibility.MAYBE
        assert plausible.find_request(b"\xff\xfe" + data, 0) == 2
        assert look(data, kafka_port=False) == "kafka" or key == CONTROLLED_SHUTDOWN


@given(st.integers(1, 28))
def test_the_first_bytes_of_a_request_ask_for_more(size: int) -> None:
    data = heartbeat(1)[:size]
    assert judge_request(data, 0) is (Plausibility.MORE if size < 17 else Plausibility.MAYBE)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">ihhih", 5, 12, 3, 1, 0),
        struct.pack(">ihhih", 20, 12, 99, 1, 0) + bytes(9),
        struct.pack(">ihhih", 20, 200, 0, 1, 0) + bytes(9),
        struct.pack(">ihhih", 20, 12, 3, -2, 0) + bytes(9),
        struct.pack(">ihhih", 20, 12, 3, 1, 2000) + bytes(9),
        struct.pack(">ihhih", 20, 12, 3, 1, 3) + b"\x01\x02\x03" + bytes(9),
        b"GET / HTTP/1.1\r\nHost: x\r\n",
    ],
)
def test_what_is_no_request(data: bytes) -> None:
    assert judge_request(data, 0) is Plausibility.NO


def test_a_client_is_known_by_its_id() -> None:
    assert plausible.same_client(heartbeat(1), 0, b"app")
    assert not plausible.same_client(heartbeat(1), 0, b"ap")
    assert not plausible.same_client(heartbeat(1), 0, b"")


def test_responses_are_known_by_the_ids_in_flight() -> None:
    data = b"\xff" + beat(7)
    assert plausible.response_finder([6, 7])(data, 0) == 1
    assert plausible.response_finder([8])(data, 0) == -1
    assert plausible.response_finder([])(data, 0) == -1
    assert plausible.judge_response(data, 1, [7]) is Plausibility.MAYBE
    assert plausible.judge_response(data, 1, [8]) is Plausibility.NO


@given(st.binary(max_size=100), st.booleans())
def test_any_bytes_are_judged(data: bytes, kafka_port: bool) -> None:
    assert look(data, kafka_port) in ("kafka", "token", "other", "short")
    assert describe(data)


@given(st.sampled_from(sorted(APIS)), st.data())
def test_damaged_requests_are_judged_on_any_port(key: int, data: st.DataObject) -> None:
    api = APIS[key]
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    client_id = data.draw(st.sampled_from(["app", "", None]))
    damaged = bytearray(request(api.name, version, 5, client_id))
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    for kafka_port in (True, False):
        assert look(bytes(damaged), kafka_port) in ("kafka", "token", "other", "short")
