"""Kafka behind headers of the PROXY protocol: skipped, and the client is the one that they name."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of, to_json
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import Endpoint, StreamEvent
from kafkascope.captures.proxy_protocol import V2, header_of
from tests.analyzer.findings.judging import reported, states
from tests.kit.wire import (
    BROKER,
    CLIENT,
    Wire,
    beat,
    heartbeat,
    metadata,
    rechunked,
    request,
    response,
    told,
)

ORIGIN = Endpoint("203.0.113.77", 55130)
SIX = Endpoint("2001:db8::7", 55130)
HELLO = b"\x16\x03\x01\x00\x05\1\0\0\1\0"
V1 = header_of(1, ORIGIN, BROKER)
VPCE = b"\xea\0\x0c\1vpce-012345"
HEADERS = {
    "v1": V1,
    "v2": header_of(2, ORIGIN, BROKER),
    "tlv": V2 + b"\x21\x11\x00\x1b" + header_of(2, ORIGIN, BROKER)[16:] + VPCE,
    "two": header_of(2, Endpoint("10.9.9.9", 7), BROKER) + V1,
}


def serving(header: bytes, *, port: int = 9092, apart: bool = True) -> Wire:
    wire = Wire(port=port)
    if apart:
        wire.client(header).client(heartbeat(1))
    else:
        wire.client(header + heartbeat(1))
    return wire.broker(beat(1)).client(heartbeat(2)).broker(beat(2)).close()


def places(exchanges: Sequence[Exchange]) -> list[tuple[str, str, str, str]]:
    rows = [row_of(each, Context().names) for each in exchanges]
    return [(row.state, row.client_address, row.broker_address, row.via) for row in rows]


@pytest.mark.parametrize("kind", HEADERS)
@pytest.mark.parametrize("port", [9092, 31337])
@pytest.mark.parametrize("apart", [True, False])
def test_a_header_is_skipped_and_names_the_client(kind: str, port: int, apart: bool) -> None:
    exchanges = told(serving(HEADERS[kind], port=port, apart=apart).events)
    here = ("answered", str(ORIGIN), f"10.0.1.2:{port}", str(CLIENT))
    assert places(exchanges) == [here] * 2
    assert [each.number for each in exchanges] == [1, 2]
    assert to_json(row_of(exchanges[0], Context().names))["via"] == str(CLIENT)


def test_a_client_of_ipv6() -> None:
    exchanges = told(serving(header_of(2, SIX, Endpoint("fd00::5", 9092))).events)
    assert places(exchanges)[0][1:] == (f"[{SIX.host}]:{SIX.port}", str(BROKER), str(CLIENT))


@pytest.mark.parametrize(
    "header", [b"PROXY UNKNOWN\r\n", V2 + b"\x20\0\0\0", V2 + b"\x20\0\0\3\4\0\0"]
)
def test_a_balancer_that_speaks_for_itself_is_the_client(header: bytes) -> None:
    exchanges = told(serving(header).events)
    assert places(exchanges) == [("answered", str(CLIENT), str(BROKER), "")] * 2


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from(sorted(HEADERS)))
def test_packets_may_end_anywhere(cuts: list[int], kind: str) -> None:
    events: list[StreamEvent] = rechunked(serving(HEADERS[kind], apart=False).events, cuts)
    assert places(told(events)) == [("answered", str(ORIGIN), str(BROKER), str(CLIENT))] * 2


def test_a_request_begins_where_its_header_ends() -> None:
    (first, _) = told(serving(V1, apart=False).events)
    part = first.request.frame.parts[0]
    assert (first.request.frame.offset, part.at) == (len(V1), 100 + len(V1))


def test_without_a_handshake_in_the_capture() -> None:
    wire = Wire(handshake=False).client(V1 + heartbeat(1)).broker(beat(1)).close()
    assert places(told(wire.events)) == [("answered", str(ORIGIN), str(BROKER), str(CLIENT))]


def test_tls_behind_a_header_is_tls() -> None:
    wire = Wire().client(V1).client(HELLO).broker(b"\x16\3\3\0\x05hello").close()
    (one,) = told(wire.events)
    assert one.reason.startswith("TLS")
    assert (one.client, one.connection.via) == (ORIGIN, str(CLIENT))


def test_http_behind_a_header_is_http() -> None:
    (one,) = told(Wire().client(V1 + b"GET / HTTP/1.1\r\n\r\n").close().events)
    assert one.reason == "HTTP, not Kafka"
    assert one.client == ORIGIN


def test_addresses_for_a_client_behind_a_balancer_are_not_judged() -> None:
    wire = Wire().client(V1).client(request("Metadata", 12, 1))
    wire.broker(response("Metadata", 12, 1, **metadata((1, "127.0.0.1", 9097)))).close("client")
    assert not any(each.name.startswith("address") for each in reported([wire]))


def test_a_chain_of_headers_has_an_end() -> None:
    (one,) = told(Wire().client(b"PROXY UNKNOWN\r\n" * 4_000).close().events)
    assert one.reason == "PROXY protocol v1, not Kafka"


# --- brokers that do not accept it ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["v1", "v2"])
@pytest.mark.parametrize("port", [9092, 31337])
def test_a_broker_that_closes_the_connection(kind: str, port: int) -> None:
    wires = [Wire(number=n, port=port).client(HEADERS[kind]) for n in range(3)]
    for wire in wires[1:]:
        wire.client(request("ApiVersions", 0, 1))
    findings = reported([wire.close("broker", "rst") for wire in wires])
    finding = findings[0]
    assert (finding.name, finding.severity, finding.count) == ("proxy-protocol", "error", 3)
    assert states(finding.text, f"10.0.1.2:{port}", "3 connections", "10.0.0.4", kind)
    assert [each.name for each in findings if not each.because] == ["proxy-protocol"]


def test_tls_behind_a_header_that_is_refused() -> None:
    (finding,) = reported([Wire().client(V1 + HELLO).close("broker")])
    assert finding.name == "proxy-protocol"


def test_a_health_check_that_the_balancer_ends_says_nothing() -> None:
    assert reported([Wire().client(V2 + b"\x20\0\0\0").close("client")]) == []


@pytest.mark.parametrize("answered", [False, True])
def test_a_broker_that_requires_a_header(answered: bool) -> None:
    wires = [serving(V1), Wire(number=1).client(heartbeat(1)).close("broker")]
    if answered:  # one without a header: it is no matter of the header
        wires.append(Wire(number=2).client(heartbeat(1)).broker(beat(1)).close())
    findings = [each for each in reported(wires) if each.name == "proxy-protocol"]
    assert len(findings) == (not answered)
    assert answered or states(findings[0].text, "10.0.1.2:9092", "1 connection", "app", "requires")


def test_a_broker_that_accepts_it_on_others() -> None:
    wires = [serving(V1), Wire(number=1).client(V1).client(heartbeat(1)).close("broker")]
    assert "proxy-protocol" not in {each.name for each in reported(wires)}
