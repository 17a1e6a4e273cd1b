"""Who speaks what in place of Kafka, from exact bytes of either side."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.remarks import nothing_found
from tests.analyzer.findings.judging import reported, states
from tests.kit.captures import capture_file
from tests.kit.wire import Wire, request, response, told

HELLO = b"\x16\x03\x01\x00\x05\1\0\0\1\0"
HTTP = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
MYSQL = b"J\0\0\0\x0a8.0.36\0\x08\0\0\0abcdefgh\0"
POSTGRES = b"E\0\0\0\x8cSFATAL\0VFATAL\0C0A000\0Munsupported frontend protocol 18.3\0\0"


def events_told(wire: Wire) -> list[Exchange]:
    return told(wire.events, Context())


def named(wires: Iterable[Wire]) -> dict[str, Finding]:
    return {each.name: each for each in reported(wires)}


def asking(**options: int) -> Wire:
    return Wire(**options).client(request("ApiVersions", 0, 1, "shipping"))


ANSWERS = [
    (HTTP, "HTTP"),
    (MYSQL, "MySQL"),
    (POSTGRES, "PostgreSQL"),
    (b"-ERR unknown command\r\n", "Redis"),
    (b"220 mail.example ESMTP\r\n", "SMTP"),
    (b"AMQP\0\0\x09\x01", "AMQP"),
    (b"Too many connections\n", "plain text"),
]


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [*ANSWERS, (b"\0\0\x06\x04\0\0\0\0\0\0\3\0\0\0\x80", "HTTP/2")],
)
@pytest.mark.parametrize("port", [9092, 31337])
def test_a_server_that_answers_in_its_own_protocol(answer: bytes, protocol: str, port: int) -> None:
    (finding,) = reported([asking(port=port).broker(answer).close("broker").close("client")])
    assert finding.name == "server-not-kafka"
    assert finding.severity == "error"
    assert states(finding.text, f"10.0.1.2:{port}", protocol, "shipping", "1 connection")
    assert "SSL" not in finding.advice


@pytest.mark.parametrize("greeting", [MYSQL, b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail ESMTP\r\n"])
@pytest.mark.parametrize("port", [9092, 31337])
def test_a_greeting_is_the_servers(greeting: bytes, port: int) -> None:
    wire = Wire(port=port).broker(greeting).client(request("ApiVersions", 0, 1, "shipping"))
    (finding,) = reported([wire.close("client")])
    assert finding.name == "server-not-kafka"
    assert "shipping" in finding.text


def test_a_greeting_that_nobody_replied_to_says_nothing_of_a_client() -> None:
    wire = Wire(number=1).broker(MYSQL).close("client")
    assert reported([wire]) == []
    (finding,) = reported([asking().broker(MYSQL).close("client"), Wire(number=1).broker(MYSQL)])
    assert finding.count == 2


def test_bytes_without_a_signature_are_no_advice_to_use_tls() -> None:
    (finding,) = reported([asking().broker(b"\xfe\xdc\xba\x98\1\2\3\4").close("broker")])
    assert finding.name == "server-not-kafka"
    assert states(finding.text, "shipping", "8 bytes")
    assert "SSL" not in finding.advice + finding.text


@pytest.mark.parametrize(
    "alert", [b"\x15\3\3\0\2\2\x0a", b"\x15\3\0\0\2\2\x46", b"\x15\3\1\0\2\2\x28" * 2]
)
def test_an_alert_is_tls(alert: bytes) -> None:
    (finding,) = reported([asking().broker(alert).close("broker").close("client")])
    assert finding.name == "plain-to-tls"
    assert "security.protocol=SSL" in finding.advice


def test_an_alert_in_two_packets() -> None:
    wire = asking().broker(b"\x15\3").broker(b"\3\0\2\2\x0a").close("broker").close("client")
    assert [each.name for each in reported([wire])] == ["plain-to-tls"]


def test_tls_that_is_answered_with_http() -> None:
    wire = Wire().client(HELLO).broker(HTTP).close("broker").close("client")
    (finding,) = reported([wire])
    assert finding.name == "tls-failed"
    assert states(finding.text, "10.0.0.4", "HTTP")


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [
        *ANSWERS,
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (b"RTSP/1.0 400 Bad Request\r\n", "RTSP"),
        (b"\x15\3\3\0\2\2\x0a", "TLS"),
    ],
)
@pytest.mark.parametrize("port", [9092, 31337])
def test_a_server_of_a_capture_that_begins_late(
    answer: bytes, protocol: str, port: int, tmp_path: Path
) -> None:
    wire = asking(handshake=False, port=port).broker(answer).close("broker").close("client")
    finding = named([wire])["plain-to-tls" if protocol == "TLS" else "server-not-kafka"]
    assert states(finding.text, f"10.0.1.2:{port}", "shipping")
    assert protocol in finding.text
    path = tmp_path / "late.pcap"
    frames = [("client", request("Metadata", 8, 1, "shipping")), ("broker", answer)]
    capture_file(path, frames, port=port, handshake=False)
    with open_capture([path]) as capture:
        assert [each.connection.server.partition(":")[0] for each in capture.exchanges()] == [
            protocol
        ]


def test_a_server_behind_a_hole() -> None:
    wire = asking().gap("broker", 40).broker(HTTP).close("broker")
    assert states(named([wire])["server-not-kafka"].text, "HTTP", "shipping")


@pytest.mark.parametrize(
    "start",
    [
        (b'{"order": 1, "status": "paid", "lines": [1, 2, 3]}' * 20)[:1000],
        b"+OK\r\n" + b"x" * 500,
        b"HTTP/1.1 200 OK\r\n" + b"x" * 500,
    ],
)
def test_a_response_seen_from_its_middle_is_kafkas(start: bytes) -> None:
    wire = Wire(handshake=False).client(request("Metadata", 8, 1)).broker(start)
    wire.broker(response("Metadata", 8, 1)).exchange("Metadata", 8, 2)
    assert "server-not-kafka" not in named([wire])
    assert wire.connection.server == ""


def test_text_in_the_middle_of_a_response_says_nothing() -> None:
    wire = Wire(handshake=False).client(request("Metadata", 8, 1))
    wire.broker((b'{"order": 1, "status": "paid"}\n' * 40)[:1000]).close("broker")
    assert "server-not-kafka" not in named([wire])


@pytest.mark.parametrize(
    ("sent", "protocol"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"SSH-2.0-x\r\n", "SSH"),
        (b"AMQP\0\0\x09\x01", "AMQP"),
        (b"*1\r\n$4\r\nPING\r\n", "Redis"),
        (b"EHLO scanner.example\r\n", "SMTP"),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", "PostgreSQL"),
        (b"0\x0c\2\1\1\x60\7\2\1\3\4\0\x80\0", "LDAP"),
        (b"JRMI\0\2K", "JRMI"),
        (b"OPTIONS / RTSP/1.0\r\n\r\n", "RTSP"),
        (b"ruok", "ZooKeeper"),
        (b"help\r\n", "plain text"),
    ],
)
@pytest.mark.parametrize("client_first", [True, False])
def test_a_client_of_a_capture_that_begins_late(
    sent: bytes, protocol: str, client_first: bool
) -> None:
    wire = Wire(handshake=False, client_first=client_first).client(sent)
    findings = reported([wire.close("broker").close("client")])
    assert any(states(each.text, "10.0.0.4", protocol, "10.0.1.2:9092") for each in findings)


def test_text_that_a_request_goes_on_with_is_kafkas() -> None:
    wire = Wire(handshake=False).client(b"the end of a value\n").client(request("Metadata", 8, 1))
    wire.broker(response("Metadata", 8, 1)).close("client")
    assert [each.state for each in events_told(wire)] == ["answered"]


def test_a_greeting_of_a_capture_that_begins_late() -> None:
    wire = Wire(handshake=False, client_first=False).broker(MYSQL)
    assert reported([wire.close("client")]) == []
    wire = Wire(handshake=False, client_first=False).broker(MYSQL)
    wire.client(request("Metadata", 8, 1, "shipping")).close("client")
    assert states(named([wire])["server-not-kafka"].text, "MySQL", "shipping")


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
    kafka = Wire(port=31337, number=0).exchange("Metadata", 8, 1).client(request("Metadata", 8, 2))
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


CLOSED = [("client", HELLO), ("broker", b"\x16\3\3\0\x2a\2\0\0\x26\3\3" + bytes(36))]
CLOSED += [(side, b"\x17\3\3\0\x30" + bytes(range(48))) for side in ("client", "broker")]
SHELL = [("broker", b"SSH-2.0-OpenSSH_9.6\r\n"), ("client", b"SSH-2.0-x\r\n")]


@pytest.mark.parametrize(
    ("connections", "expected"),
    [
        ([(19093, CLOSED)], "only 1 TLS connection:"),
        ([(19093, CLOSED), (443, CLOSED)], "only 2 TLS connections:"),
        ([(19093, CLOSED), (22, [])], "only 1 TLS connection and 1 without data:"),
        ([(19093, CLOSED), (22, SHELL)], "no Kafka in 2 connections, but SSH (1), TLS (1)"),
        (
            [(19093, CLOSED), (443, CLOSED), (22, SHELL), (23, [("client", b"\xfe" * 9)])],
            "no Kafka in 4 connections, but TLS (2), SSH (1), an unknown protocol (1)",
        ),
    ],
)
def test_tls_beside_other_protocols_is_counted_with_them(
    connections: list[tuple[int, list[tuple[str, bytes]]]], expected: str, tmp_path: Path
) -> None:
    paths = [
        capture_file(tmp_path / f"{port}.pcapng", frames, port=port) for port, frames in connections
    ]
    with open_capture(paths) as capture:
        assert list(capture.exchanges()) == []
        assert expected in nothing_found(capture)


@pytest.mark.parametrize("size", [28, 200_000])
def test_a_foreign_answer_is_no_gap(size: int) -> None:
    context = Context()
    wire = asking(port=31337)
    wire.broker((HTTP + b"x" * size)[:size]).close("broker").close("client")
    (one,) = told(wire.events, context)
    assert (one.state, one.reason) == ("lost", "the server sent HTTP, not Kafka")
    assert context.skipped_bytes == 0
