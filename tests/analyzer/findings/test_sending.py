"""Requests in small pieces, which is the client's time; and what only looks like it."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.statistics.feed import Feed
from tests.analyzer.findings import lines
from tests.analyzer.findings.judging import capture_of, judged, states
from tests.analyzer.findings.lines import Line, answer
from tests.analyzer.findings.sides_requests import RULE, sent, sent_in_pieces
from tests.kit.batches import batch
from tests.kit.samples import CAPTURES
from tests.kit.wire import MS, Wire, produce, response, told


def test_a_real_client_with_nagle() -> None:
    names = {each.name: each for each in judged(capture_of("nagle", CAPTURES))[0]}
    finding = names[RULE]
    assert states(finding.text, "nodeclient", "45 ms", "39 of 40 Produce requests", "small pieces")
    assert "TCP_NODELAY" in finding.advice
    assert "slow-answers" not in names


@pytest.mark.parametrize("api", ["Produce", "Heartbeat"])
@pytest.mark.parametrize(
    ("cuts", "gap_ns"), [((4,), 40 * MS), ((4, 20), 80 * MS), ((10, 10), 199 * MS)]
)
def test_pieces_of_any_size_and_number(cuts: tuple[int, ...], gap_ns: int, api: str) -> None:
    wire = Wire()
    for number in range(20):
        sent(wire, number, gap_ns, cuts=cuts, api=api)
    finding = sent_in_pieces(wire)
    assert finding is not None
    assert states(finding.text, f"{gap_ns // MS} ms", f"20 of 20 {api} requests", "1.0 ms after")


def test_large_requests_take_their_time() -> None:
    wire = Wire()
    for number in range(20):
        data = produce(number, records=bytes(20_000))
        wire.client(data[:9_000])
        wire.time_ns += 40 * MS
        wire.client(data[9_000:]).broker(response("Produce", 7, number))
    assert sent_in_pieces(wire) is None


@pytest.mark.parametrize(("first", "told"), [(1460, False), (4, True)])
def test_full_segments_are_paced_by_the_link(first: int, told: bool) -> None:
    wire = Wire()
    for number in range(20):
        data = produce(number, records=bytes(9_000))
        wire.client(data[:first])
        for at in range(first, len(data), 1460):
            wire.time_ns += 12 * MS
            wire.client(data[at : at + 1460])
        wire.broker(response("Produce", 7, number))
    assert (sent_in_pieces(wire) is not None) is told


@pytest.mark.parametrize("paced", [0, 9])
def test_a_request_that_the_link_paces_is_left_out_alone(paced: int) -> None:
    """Wherever it stands among others of the same client, which are counted together."""
    wire = Wire()
    for number in range(10):
        size, piece, gap = (9_000, 1460, 12 * MS) if number == paced else (200, 150, 40 * MS)
        data = produce(number, records=batch([(None, bytes(size))]))
        for at in range(0, len(data), piece):
            wire.time_ns += gap if at else 0
            wire.client(data[at : at + piece])
        wire.broker(response("Produce", 7, number))
    findings, context = Findings(only=(RULE,)), Context()
    feed = Feed([findings])
    for exchange in told(wire.close("client").events, context):
        feed.add(row_of(exchange, context.names), exchange)
    feed.settle()
    (finding,) = findings.reported(context.names)
    assert states(finding.text, "9 of 10 Produce requests")


def test_a_slow_response_is_none_of_it() -> None:
    wire = Wire()
    for number in range(20):
        wire.client(produce(number))
        wire.time_ns += 40 * MS
        wire.broker(response("Produce", 7, number))
    assert sent_in_pieces(wire) is None


def in_pieces(
    gap_ns: int, count: int = 10, *, nagle: bool = False, trip_ns: int = MS // 10, size: int = 4
) -> Line:
    """Requests in two pieces whose packets tell why: the second one comes with the acknowledgement
    of the first, or when the client has it."""
    line = Line(trip_ns=trip_ns)
    for number in range(count):
        data = line.asking(number, "Produce", 20_000)
        line.send(0, data[:size], MS).ack(1, gap_ns - 1000 if nagle else 1000)
        line.send(0, data[size : size + 1460], 1000 if nagle else gap_ns - 1000)
        line.stream(0, data[size + 1460 :], 0).send(1, answer(number, "Produce"), trip_ns + MS)
    return line


def found_on(line: Line) -> Finding | None:
    return lines.found([line], RULE).get(RULE)


@pytest.mark.parametrize("nagle", [True, False])
@pytest.mark.parametrize("trip_ns", [MS // 10, 30 * MS])
def test_packets_tell_that_the_client_waits(nagle: bool, trip_ns: int) -> None:
    """In requests of any size, and whatever the way to the broker."""
    finding = found_on(in_pieces(80 * MS, nagle=nagle, trip_ns=trip_ns))
    assert finding is not None
    assert states(finding.text, "80 ms", "10 of 10 Produce requests")
    assert found_on(in_pieces(80 * MS, 4, nagle=nagle, trip_ns=trip_ns)) is None


@pytest.mark.parametrize("gap_ns", [30 * MS - 1, 30 * MS])
def test_packets_tell_how_long_it_waits(gap_ns: int) -> None:
    assert (found_on(in_pieces(gap_ns)) is not None) == (gap_ns == 30 * MS)


def test_packets_tell_that_the_path_waits() -> None:
    """A segment that is lost before the capture point, and a window of the broker that is
    closed."""
    lost, closed = Line(), Line()
    for number in range(10):
        data = lost.asking(number, "Produce", 4_000)
        lost.send(0, data[:1460], MS).ack(1).send(0, data[1460:2920], seen=False)
        lost.send(0, data[2920:]).ack(1).again(0, data[1460:2920], 80 * MS, newer=len(data) - 2920)
        closed.send(0, data[:1460], MS).ack(1, window=0).ack(1, 80 * MS).send(0, data[1460:])
        for line in (lost, closed):
            line.send(1, answer(number, "Produce"), MS)
    assert found_on(lost) is None
    assert found_on(closed) is None
