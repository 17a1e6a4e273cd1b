"""A client that opens connection after connection: both sides of each limit."""

from __future__ import annotations

import pytest

from analyzer.context import Context
from analyzer.findings import Finding, Findings
from analyzer.rows import row_of
from captures.model import Closed, Opened
from tests.analyzer.wire import START, Wire, produce, request, response, told

SECOND = 1_000_000_000


def use(number: int, at: float, *, life: float = 0.02, work: bool = True, more: int = 0) -> Wire:
    """A connection of a client for one use; times in seconds."""
    wire = Wire(number=number, start_ns=START + int(at * SECOND))
    wire.connection.handshake_ns = 1_000
    wire.client(request("ApiVersions", 3, 1)).broker(response("ApiVersions", 3, 1))
    for turn in range(2, 2 + work + more):
        wire.client(produce(turn)).broker(response("Produce", 7, turn, responses=[]))
    wire.connection.bytes = [100, 100]
    wire.time_ns = wire.connection.last_ns = START + int((at + life) * SECOND)
    return wire.close("client")


def found(wires: list[Wire]) -> dict[str, Finding]:
    findings = Findings(only={"connection-churn", "apiversions-loop"})
    context = Context()
    for wire in wires:
        for exchange in told(wire.events, context):
            findings.add(row_of(exchange, context.names), exchange)
        for event in wire.events:
            if isinstance(event, Opened | Closed):
                findings.saw(event)
    return {each.name: each for each in findings.told()}


@pytest.mark.parametrize(
    ("count", "every", "life", "more", "churns"),
    [
        (25, 0.3, 0.02, 0, True),
        (19, 0.3, 0.02, 0, False),
        (25, 0.15, 0.02, 0, False),
        (25, 0.3, 1.1, 0, False),
        (25, 0.3, 0.02, 4, False),
        (25, 2.1, 0.02, 4, False),
        (25, 1.3, 0.02, 4, True),
    ],
    ids=["churn", "few", "at the start", "longer", "used well", "seldom", "for long"],
)
def test_a_client_for_each_use(
    count: int, every: float, life: float, more: int, churns: bool
) -> None:
    wires = [use(at, at * every, life=life, more=more) for at in range(count)]
    assert ("connection-churn" in found(wires)) == churns


@pytest.mark.parametrize(("working", "probes"), [(2, True), (4, False)])
def test_who_asks_for_nothing_but_api_versions(working: int, probes: bool) -> None:
    wires = [use(at, at * 0.3, work=at < working) for at in range(30)]
    assert ("apiversions-loop" in found(wires)) == probes
