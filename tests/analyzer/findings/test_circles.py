"""Readers that get nothing though the log goes on, and readers that fetch everything again."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.findings.rules import SECOND
from tests.analyzer.batches import batch
from tests.analyzer.findings import sides
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_captures import HERE, capture_of, judged
from tests.analyzer.findings.test_outcomes import ends
from tests.analyzer.wire import MS, Wire, request, response

SMALL, AGAIN, STUCK = "fetch-too-small", "fetched-repeatedly", "reader-stuck"


def found(*wires: Wire) -> dict[str, Finding]:
    return sides.found(wires, SMALL, AGAIN, STUCK)


def fetch(
    wire: Wire,
    number: int,
    offset: int,
    records: bytes,
    *,
    version: int = 1,
    high: int = 90,
    gap_ns: int = SECOND,
    **more: Any,
) -> None:
    """A Fetch of one partition, so long after the one before."""
    part: dict[str, Any] = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1000}
    told: dict[str, Any] = {"partition_index": 0, "error_code": 0, "high_watermark": high}
    told["records"] = records
    if version >= 4:
        told |= {"last_stable_offset": high, "aborted_transactions": None}
    if version >= 5:
        told["log_start_offset"] = part["log_start_offset"] = 0
    wire.time_ns += gap_ns - 2 * MS
    asked = [{"topic": "photos", "partitions": [part]}]
    wire.client(request("Fetch", version, number, "index", topics=asked))
    answer = [{"topic": "photos", "partitions": [told]}]
    wire.broker(response("Fetch", version, number, responses=answer, **more))


def starving(count: int = 5, records: bytes = b"", **how: Any) -> Wire:
    wire = Wire()
    for number in range(count):
        fetch(wire, number, 3, records, **how)
    return wire


def starves(count: int, gap_ns: int, *, odd_ns: int = 0, more: int = 0) -> bool:
    """Whether so many responses without a record are told."""
    wire = Wire()
    for number in range(count + more):
        fetch(wire, number, 3, b"", gap_ns=gap_ns + (odd_ns if number == count else 0))
    return SMALL in found(wire)


def test_a_real_reader_with_a_fetch_size_that_is_too_small() -> None:
    path = capture_of("fetch-too-small", HERE)
    names = {each.name: each for each in judged(path)[0]}
    finding = names[SMALL]
    assert states(finding.text, "photo-index", "offset 3 of photos-0", "99 Fetch responses")
    assert states(finding.text, "offset 9", "larger than the fetch size", "100,000 bytes")
    assert "max.partition.fetch.bytes" in finding.advice
    assert ends(path)["photo-index"].word == "stuck"


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 500, 5], ids=["nothing", "a part", "less than a head"])
def test_nothing_or_a_part_of_a_batch(version: int, size: int) -> None:
    blob = (struct.pack(">qi", 3, 299_988) + bytes(500))[:size]
    finding = found(starving(records=blob, version=version))[SMALL]
    assert states(finding.text, "5 Fetch responses within", f"Fetch v{version}")
    assert ("300,000 bytes" in finding.text) == (size == 500)


@pytest.mark.parametrize(
    "wire",
    [
        starving(high=3),
        starving(version=4),
        starving(throttle_time_ms=500),
        starving(records=batch([(None, b"v")], base_offset=3)),
    ],
    ids=["the end of the log", "a version that gives one batch", "throttled", "records"],
)
def test_what_is_no_small_fetch(wire: Wire) -> None:
    assert SMALL not in found(wire)


def test_a_reader_that_went_on() -> None:
    wire = starving()
    fetch(wire, 9, 4, batch([(None, b"v")], base_offset=4))
    assert SMALL not in found(wire)


# --- in circles ---------------------------------------------------------------------------------


def reading(*offsets: int, gap_ns: int = SECOND // 4) -> Wire:
    """Fetches that bring five records each."""
    wire = Wire()
    for number, offset in enumerate(offsets):
        records = batch([(None, b"v")] * 5, base_offset=offset)
        fetch(wire, number, offset, records, version=5, gap_ns=gap_ns)
    return wire


def circles(offsets: int, times: int, once: int = 0) -> bool:
    """Whether a reader that fetches so many offsets several times, and others once, is told."""
    every = [5 * at for at in range(offsets + once) for _ in range(times if at < offsets else 1)]
    return AGAIN in found(reading(*every))


def test_a_real_reader_that_fetches_all_four_times() -> None:
    path = capture_of("fetched-four-times", HERE)
    names = {each.name: each for each in judged(path)[0]}
    finding = names[AGAIN]
    assert states(finding.text, "influx-sink", "240 of 320 records", "every offset", "4.0 times")
    assert STUCK not in names
    assert names["redelivered"].because == (finding.id,)
    assert ends(path)["influx-sink"].word == "open"


@pytest.mark.parametrize("times", [2, 3, 5, 12])
def test_each_offset_so_often(times: int) -> None:
    names = found(reading(*(5 * at for at in range(10) for _ in range(times)), gap_ns=2 * SECOND))
    again, records = 50 * (times - 1), 50 * times
    assert states(names[AGAIN].text, f"{again} of {records} records", f"{times}.0 times")
    assert STUCK not in names, "the last offset is read no more often than others"


def test_a_window_that_is_fetched_ahead_and_thrown_away() -> None:
    offsets = [5 * (at + ahead) for at in range(12) for ahead in range(3)]
    names = found(reading(*offsets))
    assert states(names[AGAIN].text, "110 of 180 records", "12 of 14 offsets")


def test_one_offset_among_circles_is_stuck_all_the_same() -> None:
    offsets = [5 * at for at in range(6) for _ in range(2)] + [30] * 20
    assert STUCK in found(reading(*offsets, gap_ns=SECOND))


@pytest.mark.parametrize(
    "offsets",
    [
        range(0, 100, 5),
        [*range(0, 100, 5), *range(0, 100, 5), *range(0, 100, 5)],
        [0, 5, 10, 15] + [20] * 30,
    ],
    ids=["straight", "read again from the beginning", "one offset"],
)
def test_what_is_no_circle(offsets: list[int]) -> None:
    assert AGAIN not in found(reading(*offsets))
