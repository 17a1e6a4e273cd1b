"""Responses in another order than requests, requests that are skipped, versions that end the
connection."""

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.pool.captured_sides import CapturedSides
from tests.analyzer.findings.judging import capture_of, judged, states
from tests.analyzer.findings.sides_requests import ORDER, REFUSED, SKIPPED, first, ordered
from tests.kit.samples import CAPTURES
from tests.kit.wire import Wire, beat, heartbeat, produce, told


def captured(name: str) -> dict[str, Finding]:
    return {each.name: each for each in judged(capture_of(name, CAPTURES))[0]}


def test_real_answers_in_the_wrong_order() -> None:
    finding = captured("answers-out-of-order")[ORDER]
    assert (finding.severity, finding.count) == ("error", 2)
    assert states(finding.text, "2 requests", "39240", "before", "39239", "reset 2 connections")


def test_a_real_broker_before_api_versions() -> None:
    names = captured("broker-0.9-apiversions")
    assert states(names[SKIPPED].text, "ApiVersions v0", "aiokafka-0.1.4", "Metadata", "0.10.0")
    assert "broker.version.fallback" in names[SKIPPED].advice
    assert "unanswered" not in names


def beats(*order: int, sent: int = 3, each: bool = False) -> Wire:
    """Requests 1 to `sent`, answered in an order; `each` of them in a packet of its own."""
    wire = Wire()
    wire.client(heartbeat(9)).broker(beat(9))
    for number in range(1, sent + 1):
        wire.client(heartbeat(number))
    if each:
        for number in order:
            wire.broker(beat(number))
    else:
        wire.broker(b"".join(map(beat, order)))
    return wire


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize(
    ("order", "late"), [((1, 2, 3), 0), ((2, 1, 3), 1), ((3, 2, 1), 2), ((3, 1, 2), 2)]
)
def test_how_many_are_out_of_order(order: tuple[int, ...], late: int, each: bool) -> None:
    wire = beats(*order, each=each)
    finding = ordered(wire).get(ORDER)
    assert (0 if finding is None else finding.count) == late
    notes = [note.text for each in told(wire.events) for note in each.notes]
    assert len(notes) == late


def test_a_request_that_is_skipped_for_ever() -> None:
    wire = beats(1, 3)
    for number in range(4, 40):
        wire.client(heartbeat(number)).broker(beat(number))
    finding = ordered(wire.close("client"))[SKIPPED]
    assert (finding.severity, finding.count) == ("warning", 1)
    assert states(finding.text, "1 Heartbeat v3 request", "2", "then", "39")
    assert "the broker answers others of this version" in finding.advice
    assert SKIPPED in ordered(beats(1, 3)), "also where the connection is still open"


def test_a_client_that_resets_at_the_first_wrong_answer() -> None:
    """The earlier response never came, and nobody knows whether it would have come."""
    wire = beats(2, sent=2).close("client", "rst")
    names = ordered(wire)
    assert SKIPPED not in names
    assert states(names[ORDER].text, "2 before 1", "Heartbeat") or states(
        names[ORDER].text, "correlation id 2", "before 1", "reset 1 connection"
    )


def lacking() -> Wire:
    wire = beats(1, 3)
    wire.connection.gap_bytes = (0, 14)
    return wire


def begun() -> Wire:
    return Wire().client(heartbeat(1)).broker(beat(1))


@pytest.mark.parametrize(
    "wire",
    [
        begun().client(heartbeat(2), heartbeat(3)).gap("broker", len(beat(2))).broker(beat(3)),
        # Clients count upwards: a capture that begins among lost packets may show 4 before 3.
        begun().client(heartbeat(4)).client(heartbeat(3)).broker(beat(3)).broker(beat(4)),
        lacking(),
        begun().client(produce(2, acks=0)).client(heartbeat(3)).broker(beat(3)),
    ],
    ids=["missing bytes", "captured in another order", "missing responses", "acks=0"],
)
def test_what_is_no_order(wire: Wire) -> None:
    assert not {ORDER, SKIPPED} & ordered(wire.close("client")).keys()


def test_a_real_client_whose_version_is_reset() -> None:
    names = captured("eventhubs-apiversions4")
    finding = names[REFUSED]
    assert states(finding.text, "127.0.0.1:9097", "6 connections", "otel-exporter")
    assert states(finding.text, "ApiVersions v4", "does not support")
    assert "kgo.MaxVersions" in finding.advice
    assert names["unanswered"].because == (finding.id,)


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_however_the_broker_ends_it(how: str) -> None:
    finding = ordered(*(first(number, 3, how) for number in range(3)))[REFUSED]
    assert states(finding.text, "reset" if how == "rst" else "closed", "3 connections", "v3")
    assert states(finding.text, "probably does not support")
    assert "before 0.10" in finding.advice  # or it is no Kafka at all


def test_a_client_that_falls_back() -> None:
    finding = ordered(first(0, 4), first(1, 3, answered=True))[REFUSED]
    assert states(finding.text, "1 connection", "v4", "answered v3")


def test_connections_that_end_before_a_request_show_another_reason() -> None:
    """A broker at its max.connections.per.ip ends some before the first request arrives."""
    bare = Wire(number=9)
    bare.connection.handshake_ns = 1_000
    found = ordered(*(first(number, 3) for number in range(3)), bare.close("broker"))
    assert REFUSED not in found
    assert "it ended 1 connection before any request" in found["unanswered"].text
    assert "max.connections.per.ip" in found["unanswered"].advice


@pytest.mark.parametrize(
    "wires",
    [
        [*(first(number, 4) for number in range(5)), first(6, 4, answered=True)],
        [first(number, 0) for number in range(5)],
    ],
    ids=["answered once", "there is no older version"],
)
def test_what_is_no_version(wires: list[Wire]) -> None:
    assert REFUSED not in ordered(*wires)


def test_packets_without_bytes_are_a_direction() -> None:
    """A broker that resets each connection has sent SYN, ACK and RST."""
    heard = CapturedSides()
    for exchange in told(first(0, 4).events):
        heard.note(exchange)
    assert heard.sides == {"client", "broker"}
