"""Producers whose clocks are wrong, captures whose clock is, and records of the past."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings.judging import found, states
from tests.kit.batches import batch
from tests.kit.wire import START, Wire, request, response

MINUTE_MS = 60_000


def producing(*offsets_ms: int, error: int = 0) -> dict[str, Finding]:
    """One client for each offset of its clock from the capture's."""
    wires = []
    for number, offset in enumerate(offsets_ms, 1):
        wire = Wire(number=number)
        records = batch([(None, b"v")], time_ms=START // 1_000_000 + offset)
        data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
        wire.client(request("Produce", 7, 1, f"app-{number}", acks=-1, topic_data=data))
        result = {"index": 0, "error_code": error, "base_offset": 7}
        result |= {"log_append_time_ms": -1, "log_start_offset": 0}
        responses = [{"name": "t", "partition_responses": [result]}]
        wire.broker(response("Produce", 7, 1, responses=responses))
        wires.append(wire)
    return found(wires)


def test_a_clock_that_is_ahead_of_those_of_others() -> None:
    finding = producing(0, 11 * MINUTE_MS)["clock-skew"]
    assert states(finding.text, "app-2", "660 s ahead of")
    assert finding.severity == "warning"
    assert "clock-skew" not in producing(0, 9 * MINUTE_MS)


def test_a_capture_whose_own_clock_is_wrong() -> None:
    assert "clock-skew" not in producing(90 * MINUTE_MS, 90 * MINUTE_MS)


def test_records_of_the_past_are_usual() -> None:
    assert "clock-skew" not in producing(0, -90 * MINUTE_MS)


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


def test_a_capture_that_was_moved_by_years() -> None:
    assert "clock-skew" not in producing(-400 * DAY_MS, -400 * DAY_MS)
    assert "clock-skew" not in producing(400 * DAY_MS, 400 * DAY_MS)
