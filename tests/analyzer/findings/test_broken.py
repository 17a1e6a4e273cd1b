"""Messages that are broken on the wire: headers, layouts of other versions, first requests."""

from __future__ import annotations

import struct

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.detect import look
from kafkascope.analyzer.exchanges.rows import result, row_of
from kafkascope.dissectors.misfits import lacks_client_id, misfit_of
from kafkascope.dissectors.registry import APIS, encode_body, example
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.wire import Wire, beat, framed, heartbeat, request, response, told

PORT = 10092
"""Not one of Kafka's own."""


def without_client_id(api: str, version: int, correlation_id: int) -> bytes:
    whole = request(api, version, correlation_id, None)[4:]
    return framed(whole[:8] + whole[10:])


def result_of(wire: Wire) -> str:
    names = Context().names
    return result(row_of(told(wire.events)[-1], names))


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "version"),
    [("ApiVersions", 0), ("Metadata", 1), ("Metadata", 12), ("ListGroups", 3), ("Fetch", 4)],
)
def test_a_client_id_that_is_missing(api: str, version: int) -> None:
    wire = (
        Wire(port=PORT).client(request("ApiVersions", 3, 1)).broker(response("ApiVersions", 3, 1))
    )
    finding = found([wire.client(without_client_id(api, version, 2)).close("broker")])
    told = finding["request-header"]
    parts = ("1 request", "app", f"10.0.1.2:{PORT}", f"{api} v{version}", "client_id", "missing")
    assert states(told.text, *parts)
    assert told.severity == "error"
    assert "client_id" in told.advice


@pytest.mark.parametrize(
    ("length", "rest"), [(-2, b""), (300, b"app"), (-32768, b"app")], ids=["-2", "300", "low"]
)
def test_a_client_id_of_an_impossible_length(length: int, rest: bytes) -> None:
    bad = framed(struct.pack(">hhih", 12, 3, 2, length) + rest)
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(bad).close("broker")
    assert states(found([wire])["request-header"].text, "Heartbeat v3", "client_id")


def test_what_is_nothing_like_a_header_names_no_field() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(framed(b"\x7f\xff" * 9))
    assert "request-header" not in found([wire.close("broker")])


# --- the first request on a port of which nothing is known --------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        framed(struct.pack(">hhih", 18, 3, 0, -1) + bytes(4)),  # client_software_name is null
        framed(struct.pack(">hhih3s", 3, 1, 1, 3, b"app") + b"\x7f\xff\xff\xff"),
        framed(struct.pack(">hhih", 18, 3, 0, 0) + b"\0\xff"),
        without_client_id("Metadata", 1, 0),
        without_client_id("ApiVersions", 0, 7),
    ],
    ids=["null name", "many topics", "open name", "no client id", "ApiVersions"],
)
def test_a_malformed_first_request_is_kafka(first: bytes) -> None:
    assert look(first, kafka_port=False) == "kafka"
    assert look(first, kafka_port=True) == "kafka"
    wire = Wire(port=PORT).client(first).close("broker")
    wire.connection.bytes = [len(first), 0]
    assert {"undecodable", "request-header"} & found([wire]).keys()


@pytest.mark.parametrize(
    "first",
    [
        b"\0\0\0\x25\0\3\0\0user\0postgres\0database\0postgres\0\0",
        b"\0\0\0\x2c" + bytes(10) + b"\0\0\x75\x30" + bytes(8) + b"\0\0\0\x10" + bytes(17),
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        beat(3),
        response("Metadata", 1, 5),
    ],
    ids=["PostgreSQL", "ZooKeeper", "SSLRequest", "Heartbeat", "Metadata"],
)
def test_what_is_no_first_request(first: bytes) -> None:
    assert look(first, kafka_port=False) in ("other", "short")


# --- layouts of other versions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "version", "other"),
    [
        ("ApiVersions", 3, 0),
        ("Metadata", 9, 8),
        ("Heartbeat", 0, 1),
        ("Heartbeat", 3, 0),
        ("FindCoordinator", 4, 0),
        ("OffsetFetch", 7, 5),
        ("InitProducerId", 1, 4),
    ],
)
def test_an_answer_in_another_layout(api: str, version: int, other: int) -> None:
    whole = response(api, other, 1)
    wire = Wire().client(request(api, version, 1)).broker(whole).close("client")
    finding = found([wire])["other-layout"]
    parts = ("10.0.1.2:9092", f"{api} v{version}", "app", f"v{other}")
    assert states(finding.text, *parts)
    assert finding.severity == "error"
    words = result_of(wire)
    assert words.startswith("?")
    assert f"v{other}" in words
    assert "ok" not in words.split()


def test_a_request_in_another_layout() -> None:
    old = request("Heartbeat", 0, 1, group_id="g", member_id="m")
    sent = framed(old[4:6] + struct.pack(">h", 3) + old[8:])
    wire = Wire().client(sent).close("broker")
    finding = found([wire])["other-layout"]
    assert states(finding.text, "app", "Heartbeat v3", "10.0.1.2:9092", "v0")
    assert "client" in finding.advice


@pytest.mark.parametrize(("version", "tags"), [(9, True), (8, False)])
def test_a_header_of_the_other_form(version: int, tags: bool) -> None:
    body = encode_body("MetadataResponse", version, example("MetadataResponse", version))
    payload = struct.pack(">i", 1) + (b"" if tags else b"\0") + body
    misfit = misfit_of(payload, 3, version, "response")
    assert misfit is not None
    assert version in misfit.versions
    assert misfit.header_tags is not tags


@pytest.mark.parametrize("key", sorted(APIS))
def test_good_messages_are_never_asked_what_else_they_are(key: int) -> None:
    """Their own layout fits, and they have a client id."""
    api = APIS[key]
    for version in (api.versions.low, api.versions.high):
        sent, answer = request(api.name, version, 1), response(api.name, version, 1)
        exchange = told(Wire().client(sent).broker(answer).events)[0]
        assert exchange.undecoded == ()


def test_a_refused_version_is_answered_in_v0() -> None:
    wire = Wire().client(request("ApiVersions", 3, 1))
    wire.broker(response("ApiVersions", 0, 1, error_code=35)).close("client")
    assert "other-layout" not in found([wire])


def test_a_response_that_cannot_be_read_is_not_ok() -> None:
    answer = framed(struct.pack(">i", 1) + b"\0\0\0\0\0\x1b\7")
    wire = Wire().client(heartbeat(1)).broker(framed(struct.pack(">i", 1) + b"\0\0\0"))
    assert "ok" not in result_of(wire).split()
    assert "truncated" not in result_of(wire)
    wire = Wire().client(heartbeat(1)).broker(answer)
    assert "surplus" in result_of(wire)  # what it says is read all the same


@pytest.mark.parametrize("payload", [b"", b"\0\3", struct.pack(">hhi", 999, 0, 1)])
def test_what_has_no_other_form(payload: bytes) -> None:
    assert not lacks_client_id(payload)
    assert misfit_of(payload, 3, 1, "request") is None
    assert misfit_of(payload, 999, 1, "response") is None
    assert misfit_of(payload, 3, 999, "response") is None
