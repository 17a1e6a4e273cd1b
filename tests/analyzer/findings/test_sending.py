"""Requests in small pieces, which is the client's time; and what only looks like it."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.statistics.feed import Feed
from tests.analyzer.batches import batch
from tests.analyzer.findings import sides
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_captures import HERE, capture_of, judged
from tests.analyzer.wire import MS, Wire, beat, heartbeat, produce, response, told

RULE = "sent-in-pieces"


def sent(
    wire: Wire, number: int, gap_ns: int, *, cuts: tuple[int, ...] = (4,), api: str = "Produce"
) -> None:
    """A request in pieces of some sizes and a rest, the last one so long after the first."""
    data = heartbeat(number) if api == "Heartbeat" else produce(number, records=bytes(200))
    begin, at = wire.time_ns, 0
    for place, size in enumerate(cuts):
        wire.time_ns = begin + gap_ns * place // len(cuts)
        wire.client(data[at : at + size])
        at += size
    wire.time_ns = begin + gap_ns
    wire.client(data[at:])
    wire.broker(beat(number) if api == "Heartbeat" else response("Produce", 7, number))


def found(wire: Wire) -> Finding | None:
    return sides.found([wire.close("client")], RULE).get(RULE)


def pieces(gap_ns: int, count: int = 10, whole: int = 0) -> bool:
    """Whether so many requests in two pieces are told, among others in one."""
    wire = Wire()
    for number in range(count + whole):
        sent(wire, number, gap_ns if number < count else 0)
    return found(wire) is not None


def test_a_real_client_with_nagle() -> None:
    names = {each.name: each for each in judged(capture_of("nagle", HERE))[0]}
    finding = names[RULE]
    assert states(finding.text, "nodeclient", "39 of 40 Produce requests", "small pieces", "45 ms")
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
    finding = found(wire)
    assert finding is not None
    assert states(finding.text, f"20 of 20 {api} requests", f"{gap_ns // MS} ms", "1.0 ms after")


def test_large_requests_take_their_time() -> None:
    wire = Wire()
    for number in range(20):
        data = produce(number, records=bytes(20_000))
        wire.client(data[:9_000])
        wire.time_ns += 40 * MS
        wire.client(data[9_000:]).broker(response("Produce", 7, number))
    assert found(wire) is None


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
    assert (found(wire) is not None) is told


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
    (finding,) = findings.told(context.names)
    assert states(finding.text, "9 of 10 Produce requests")


def test_a_slow_response_is_none_of_it() -> None:
    wire = Wire()
    for number in range(20):
        wire.client(produce(number))
        wire.time_ns += 40 * MS
        wire.broker(response("Produce", 7, number))
    assert found(wire) is None
