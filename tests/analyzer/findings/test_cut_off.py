"""Messages during which their receiver closes the connection: its limit is smaller."""

from __future__ import annotations

import struct

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings import judging
from tests.analyzer.findings.judging import states
from tests.analyzer.findings.sides_connections import working
from tests.analyzer.findings.sides_data import cut_off
from tests.kit.wire import Wire, request

REQUEST, RESPONSE = "request-too-large", "response-too-large"


def found(*wires: Wire) -> dict[str, Finding]:
    return judging.found(wires, REQUEST, RESPONSE, "unanswered")


@pytest.mark.parametrize("how", ["rst", "fin"])
@pytest.mark.parametrize("size", [70_000, 5_242_880])
def test_a_request_larger_than_the_broker_takes(size: int, how: str) -> None:
    finding = found(cut_off(0, "broker", size, how))[REQUEST]
    assert states(finding.text, "10.0.1.2:9092", "1 Produce request", "app", "1.0 KB")
    assert "socket.request.max.bytes" in finding.text
    assert f"{size:,} bytes" in finding.advice


def test_many_large_requests_are_one_finding() -> None:
    names = found(*(cut_off(number, "broker", 2_000_000 + number) for number in range(4)))
    assert states(names[REQUEST].text, "4 Produce requests", "up to 2.0 MB")


def test_a_broker_that_stops_has_no_limit() -> None:
    other = working(7, -5, 0.004)
    assert REQUEST not in found(cut_off(0, "broker", 2_000_000), other)


def test_a_response_after_the_end_is_none_of_it() -> None:
    wires = []
    for number in range(3):
        wire = Wire(number=number).client(request("Fetch", 4, 2)).close("client")
        wires.append(wire.broker(struct.pack(">ii", 500_000, 2) + bytes(900)).close("broker"))
    assert RESPONSE not in found(*wires)


def test_responses_larger_than_the_client_takes() -> None:
    names = found(*(cut_off(number, "client", 12_000_000, arrived=900) for number in range(3)))
    finding = names[RESPONSE]
    assert states(finding.text, "app", "3 Fetch responses", "up to 12 MB", "900 B")
    assert "receive.message.max.bytes" in finding.advice


def test_one_reset_during_a_large_response_is_a_note() -> None:
    """The client may have a lower limit, or was killed: the kernel resets what holds unread
    bytes. It says what was seen, and what to check."""
    finding = found(cut_off(0, "client", 12_000_000, arrived=900))[RESPONSE]
    assert (finding.severity, finding.count) == ("note", 1)
    assert states(finding.text, "app reset the connection", "1 Fetch response of 12 MB", "900 B")
    assert states(finding.advice, "killed", "connects again", "receive.message.max.bytes")


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_two_are_a_limit_however_the_client_ends_the_connection(how: str) -> None:
    finding = found(*(cut_off(number, "client", 12_000_000, how) for number in range(2)))[RESPONSE]
    assert (finding.severity, finding.count) == ("error", 2)


@pytest.mark.parametrize(
    "wires",
    [
        [cut_off(0, "client", 12_000_000, "fin")],
        [Wire().client(request("Fetch", 4, 2)).close("client") for _ in range(3)],
    ],
    ids=["closed once", "long polls"],
)
def test_what_is_no_limit_of_a_client(wires: list[Wire]) -> None:
    assert RESPONSE not in found(*wires)
