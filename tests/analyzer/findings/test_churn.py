"""A client that opens connection after connection: both sides of each limit."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings import judging
from tests.analyzer.findings.sides_connections import use
from tests.kit.wire import Wire


def found(wires: list[Wire]) -> dict[str, Finding]:
    return judging.found(wires, "connection-churn", "apiversions-loop")


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
