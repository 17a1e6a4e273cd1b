"""Producers whose clocks are wrong, captures whose clock is, and records of the past."""

from __future__ import annotations

from kafkascope.analyzer.findings import Finding
from tests.analyzer.batches import batch
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.wire import START, Wire, request, response

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
