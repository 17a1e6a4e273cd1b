"""Producers whose clocks are wrong, captures whose clock is, and records of the past."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings.judging import found, states
from tests.kit.batches import batch
from tests.kit.wire import START, Wire

MINUTE_MS = 60_000


def producing(*offsets_ms: int, error: int = 0) -> dict[str, Finding]:
    """One client for each offset of its clock from the capture's."""
    wires = []
    for number, offset in enumerate(offsets_ms, 1):
        wire = Wire(number=number)
        records = batch([(None, b"v")], time_ms=START // 1_000_000 + offset)
        wires.append(wire.write(1, records, client=f"app-{number}", error_code=error))
    return found(wires)


def test_a_clock_that_is_ahead_of_those_of_others() -> None:
    finding = producing(0, 11 * MINUTE_MS)["clock-skew"]
    assert states(finding.text, "app-2", "660 s ahead of")
    assert finding.severity == "warning"


def test_refused_timestamps_are_an_error_that_explains_others() -> None:
    finding = producing(90 * MINUTE_MS, error=32)["clock-skew"]
    assert finding.severity == "error"
    assert "1 request for t was refused with INVALID_TIMESTAMP" in finding.text


DAY_MS = 24 * 60 * MINUTE_MS


@pytest.mark.parametrize("days", [2, 400])
def test_a_single_client_far_in_the_future(days: int) -> None:
    finding = producing(days * DAY_MS)["clock-skew"]
    assert states(finding.text, "app-1", f"{days} days ahead of", "retention.ms")


@pytest.mark.parametrize("others", [(), (0,)])
@pytest.mark.parametrize("days", [8, 400, 9_000])
def test_records_that_retention_deletes_at_once(days: int, others: tuple[int, ...]) -> None:
    finding = producing(-days * DAY_MS, *others)["clock-skew"]
    assert states(finding.text, "1 Produce request", "app-1", "t", f"{days:,} days old", "7 days")
    assert finding.severity == ("warning" if days > 5_000 else "note")


@pytest.mark.parametrize(
    ("factor", "unit"), [(0.001, "seconds"), (1_000, "microseconds"), (1_000_000, "nanoseconds")]
)
def test_timestamps_in_another_unit(factor: float, unit: str) -> None:
    now = START // 1_000_000
    assert f"as if they were {unit}" in producing(int(now * factor) - now)["clock-skew"].text


@pytest.mark.parametrize("offset_ms", [90 * MINUTE_MS, -400 * DAY_MS, 400 * DAY_MS])
def test_a_capture_whose_own_clock_is_wrong(offset_ms: int) -> None:
    assert "clock-skew" not in producing(offset_ms, offset_ms)
    assert "clock-skew" not in producing(0, -90 * MINUTE_MS), "records of the past are usual"
