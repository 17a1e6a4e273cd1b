"""Captures with a small snaplen, and of answers alone: what headers tell is told, and no more."""

import pytest

from kafkascope.analyzer.bodies.dissection import header_of_cut
from kafkascope.analyzer.conversation.plausible import cut_request
from kafkascope.analyzer.model import Exchange
from tests.kit.wire import Wire, beat, heartbeat, produce, request, response, told

SNAP = 30
"""What 96 bytes leave of a segment with Ethernet, IPv4 and TCP's time stamps."""
NAME = "payments-consumer-7"


def cut(wire: Wire, side: str, data: bytes) -> None:
    """A packet of which the capture holds the first bytes."""
    getattr(wire, side)(data[:SNAP])
    if len(data) > SNAP:
        wire.gap(side, len(data) - SNAP, "cut")


def talk(wire: Wire, name: str | None = NAME) -> list[Exchange]:
    for number in range(6):
        cut(wire, "client", heartbeat(number, name))
        cut(wire, "broker", beat(number))
    return told(wire.close("client").close("broker").events)


@pytest.mark.parametrize("port", [9092, 31337])
@pytest.mark.parametrize("handshake", [False, True])
def test_a_client_id_need_not_be_whole(port: int, handshake: bool) -> None:
    found = talk(Wire(port=port, handshake=handshake))
    assert [(e.state, e.correlation_id) for e in found] == [("answered", n) for n in range(6)]
    assert {(e.api, e.api_version, e.client_id) for e in found} == {
        ("Heartbeat", 3, NAME[:16] + "…")
    }
    assert all(e.undecoded for e in found)


def test_a_client_id_that_is_known_is_told_whole() -> None:
    wire = Wire()
    wire.client(heartbeat(1, NAME)).broker(beat(1))
    cut(wire, "client", heartbeat(2, NAME))
    cut(wire, "broker", beat(2))
    assert [e.client_id for e in told(wire.events)] == [NAME, NAME]


@pytest.mark.parametrize("side", ["client", "broker"])
@pytest.mark.parametrize("port", [9092, 31337])
def test_behind_a_loss_the_next_packet_is_found(side: str, port: int) -> None:
    wire = Wire(port=port)
    for number in range(3):
        cut(wire, "client", heartbeat(number, NAME))
        cut(wire, "broker", beat(number))
    wire.gap(side, 1000)
    for number in range(10, 13):
        cut(wire, "client", heartbeat(number, NAME))
        cut(wire, "broker", beat(number))
    found = [e.correlation_id for e in told(wire.events) if e.state == "answered"]
    assert found == [0, 1, 2, 10, 11, 12]


def test_other_protocols_cut_short_are_not_kafka() -> None:
    wire = Wire(port=31337)
    zookeeper = bytes.fromhex("0000002d 00000000 00000000 00000000 00007530 00000000 00000000")
    postgres = b"\x00\x00\x00\x54\x00\x03\x00\x00user\x00postgres\x00database\x00x"
    for number, data in enumerate((zookeeper, postgres, b"\x00\x00\x00\x30" + bytes(26))):
        wire = Wire(port=31337, number=number)
        wire.client(data).gap("client", 20, "cut").broker(b"\x00\x00\x00\x09abcdef")
        assert told(wire.close().events) == []


@pytest.mark.parametrize("answered", [False, True])
def test_a_produce_without_its_acks_is_not_called_unanswered(answered: bool) -> None:
    wire = Wire()
    for number in range(3):
        cut(wire, "client", request("Produce", 7, number, NAME, acks=-1))
        if answered and not number:
            cut(wire, "broker", response("Produce", 7, number))
    found = told(wire.close("client").close("broker").events)
    rest = "lost" if answered else "no-reply"
    assert [e.state for e in found] == ["answered" if answered else rest, rest, rest]


def answers() -> list[bytes]:
    """Answers that look like requests to produce: the correlation id is a version."""
    part = {"index": 0, "error_code": 0, "base_offset": 7, "log_append_time_ms": -1}
    topics = [{"name": "orders", "partition_responses": [part]}]
    return [response("Produce", 2, number, responses=topics) for number in range(1, 5)]


@pytest.mark.parametrize("handshake", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_answers_alone_are_never_taken_for_requests(handshake: bool, lost: bool) -> None:
    wire = Wire(port=31337, handshake=handshake)
    for each in answers():
        if lost:
            wire.gap("client", 100)
        wire.broker(each)
        cut(wire, "broker", each)
    assert told(wire.close().events) == []


def test_what_a_cut_header_tells() -> None:
    payload = heartbeat(5, NAME)[4:]
    for size in range(len(payload)):
        found = header_of_cut(payload[:size], None)
        assert (found is None) == (size < 10)
        if found is not None:
            shown = found.client_id or ""
            assert NAME.startswith(shown.rstrip("…"))
            assert (shown == NAME) == (size >= 10 + len(NAME))
            known = header_of_cut(payload[:size], NAME.encode())
            assert known.client_id == NAME
    other = header_of_cut(payload[:15], b"x" * len(NAME))
    assert other.client_id == NAME[:5] + "…"
    nobody = header_of_cut(heartbeat(5, None)[4:], None)
    assert nobody.client_id is None
    assert header_of_cut(b"\x03" + payload[1:], None) is None


def test_a_request_starts_with_a_header() -> None:
    data = produce(1)
    assert [cut_request(data[:size], 0) for size in (0, 13, 14, 16)] == [False, False, True, True]
    assert not cut_request(b"\x00\x00\x00\x30\x00\x00\x00\x07\x00\x00\x00\x01\x00\x05a\x00", 0)
