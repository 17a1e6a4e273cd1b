"""Who speaks what in place of Kafka, from exact bytes of either side."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.reading.remarks import nothing_found
from kafkascope.captures.model import Closed, Opened, StreamEvent
from tests.analyzer.capture_files import capture_file
from tests.analyzer.findings.stating import states
from tests.analyzer.wire import Wire, request, response, told

HELLO = b"\x16\x03\x01\x00\x05\1\0\0\1\0"
HTTP = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
MYSQL = b"J\0\0\0\x0a8.0.36\0\x08\0\0\0abcdefgh\0"
POSTGRES = b"E\0\0\0\x8cSFATAL\0VFATAL\0C0A000\0Munsupported frontend protocol 18.3\0\0"


def found(wires: Iterable[Wire]) -> list[Finding]:
    events: list[StreamEvent] = [event for wire in wires for event in wire.events]
    for wire in wires:
        for event in wire.events:
            if not isinstance(event, Opened | Closed) and hasattr(event, "data"):
                wire.connection.bytes[event.direction] += len(event.data)
    findings, context = Findings(), Context()
    pairs = [(row_of(each, context.names), each) for each in told(events, context)]
    for event in events:
        if isinstance(event, Opened | Closed):
            findings.saw(event)
    for row, exchange in pairs:
        findings.add(row, exchange)
    return findings.told(context.names)


def named(wires: Iterable[Wire]) -> dict[str, Finding]:
    return {each.name: each for each in found(wires)}


def asking(**options: int) -> Wire:
    return Wire(**options).client(request("ApiVersions", 0, 1, "shipping"))


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [
        (HTTP, "HTTP"),
        (b"\0\0\x06\x04\0\0\0\0\0\0\3\0\0\0\x80", "HTTP/2"),
        (MYSQL, "MySQL"),
        (POSTGRES, "PostgreSQL"),
        (b"-ERR unknown command\r\n", "Redis"),
        (b"220 mail.example ESMTP\r\n", "SMTP"),
        (b"AMQP\0\0\x09\x01", "AMQP"),
        (b"Too many connections\n", "plain text"),
    ],
)
@pytest.mark.parametrize("port", [9092, 31337])
def test_a_server_that_answers_in_its_own_protocol(answer: bytes, protocol: str, port: int) -> None:
    (finding,) = found([asking(port=port).broker(answer).close("broker").close("client")])
    assert finding.name == "server-not-kafka"
    assert finding.severity == "error"
    assert states(finding.text, f"10.0.1.2:{port}", protocol, "shipping", "1 connection")
    assert "SSL" not in finding.advice


@pytest.mark.parametrize("greeting", [MYSQL, b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail ESMTP\r\n"])
@pytest.mark.parametrize("port", [9092, 31337])
def test_a_greeting_is_the_servers(greeting: bytes, port: int) -> None:
    wire = Wire(port=port).broker(greeting).client(request("ApiVersions", 0, 1, "shipping"))
    (finding,) = found([wire.close("client")])
    assert finding.name == "server-not-kafka"
    assert "shipping" in finding.text


def test_a_greeting_that_nobody_replied_to_says_nothing_of_a_client() -> None:
    wire = Wire(number=1).broker(MYSQL).close("client")
    assert found([wire]) == []
    (finding,) = found([asking().broker(MYSQL).close("client"), Wire(number=1).broker(MYSQL)])
    assert finding.count == 2


def test_bytes_without_a_signature_are_no_advice_to_use_tls() -> None:
    (finding,) = found([asking().broker(b"\xfe\xdc\xba\x98\1\2\3\4").close("broker")])
    assert finding.name == "server-not-kafka"
    assert states(finding.text, "shipping", "8 bytes")
    assert "SSL" not in finding.advice + finding.text


@pytest.mark.parametrize(
    "alert", [b"\x15\3\3\0\2\2\x0a", b"\x15\3\0\0\2\2\x46", b"\x15\3\1\0\2\2\x28" * 2]
)
def test_an_alert_is_tls(alert: bytes) -> None:
    (finding,) = found([asking().broker(alert).close("broker").close("client")])
    assert finding.name == "plain-to-tls"
    assert "security.protocol=SSL" in finding.advice


def test_an_alert_in_two_packets() -> None:
    wire = asking().broker(b"\x15\3").broker(b"\3\0\2\2\x0a").close("broker").close("client")
    assert [each.name for each in found([wire])] == ["plain-to-tls"]


def test_tls_that_is_answered_with_http() -> None:
    wire = Wire().client(HELLO).broker(HTTP).close("broker").close("client")
    (finding,) = found([wire])
    assert finding.name == "tls-failed"
    assert states(finding.text, "10.0.0.4", "HTTP")


def test_a_response_that_came_first_in_the_file_is_one() -> None:
    wire = Wire().broker(response("Metadata", 8, 1)).client(request("Metadata", 8, 1)).close()
    assert "server-not-kafka" not in named([wire])


def test_http_between_two_that_speak_it_is_no_error() -> None:
    wire = Wire().client(b"GET / HTTP/1.1\r\n\r\n").broker(HTTP).close("broker")
    finding = named([wire])["not-kafka"]
    assert finding.severity == "note"
    assert "No action" in finding.advice


@pytest.mark.parametrize("kafka_first", [True, False])
def test_scanners_of_a_port_that_turns_out_to_be_kafkas(kafka_first: bool) -> None:
    kafka = Wire(port=31337, number=0).client(request("Metadata", 8, 1))
    kafka.broker(response("Metadata", 8, 1)).client(request("Metadata", 8, 2))
    scans = [b"\r\n\r\n", b"JRMI\0\2K", b"SSH-2.0-x\r\n", b"0\x0c\2\1\1\x60\x07", b"\xfe" * 30]
    wires = [
        Wire(port=31337, number=1 + n).client(scan).close("broker").close("client")
        for n, scan in enumerate(scans)
    ]
    wires = [kafka, *wires] if kafka_first else [*wires, kafka]
    finding = named(wires)["not-kafka"]
    assert states(finding.text, "JRMI", "LDAP", "SSH", "plain text", "31337")


def test_what_a_capture_holds_in_place_of_kafka(tmp_path: Path) -> None:
    path = tmp_path / "one.pcap"
    capture_file(path, [("client", b"*1\r\n$4\r\nPING\r\n"), ("broker", b"+PONG\r\n")], port=6379)
    with open_capture([path]) as capture:
        assert list(capture.exchanges()) == []
        said = nothing_found(capture)
    assert "Redis (1)" in said
    assert "key log" not in said


@pytest.mark.parametrize("size", [28, 200_000])
def test_a_foreign_answer_is_no_gap(size: int) -> None:
    context = Context()
    wire = asking(port=31337)
    wire.broker((HTTP + b"x" * size)[:size]).close("broker").close("client")
    (one,) = told(wire.events, context)
    assert (one.state, one.reason) == ("lost", "the server sent HTTP, not Kafka")
    assert context.skipped_bytes == 0
