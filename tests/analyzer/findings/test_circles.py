"""Readers that get nothing though the log goes on, and readers that fetch everything again."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.analyzer.findings.judging import capture_of, ends, judged, states
from tests.analyzer.findings.sides_data import AGAIN, SMALL, STUCK, circling, fetch, reading
from tests.kit.batches import batch
from tests.kit.samples import CAPTURES
from tests.kit.wire import SECOND, Wire


def starving(count: int = 5, records: bytes = b"", **how: Any) -> Wire:
    wire = Wire()
    for number in range(count):
        fetch(wire, number, 3, records, **how)
    return wire


def test_a_real_reader_with_a_fetch_size_that_is_too_small() -> None:
    path = capture_of("fetch-too-small", CAPTURES)
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
    finding = circling(starving(records=blob, version=version))[SMALL]
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
    assert SMALL not in circling(wire)


def test_a_reader_that_went_on() -> None:
    wire = starving()
    fetch(wire, 9, 4, batch([(None, b"v")], base_offset=4))
    assert SMALL not in circling(wire)


# --- in circles ---------------------------------------------------------------------------------


def test_a_real_reader_that_fetches_all_four_times() -> None:
    path = capture_of("fetched-four-times", CAPTURES)
    names = {each.name: each for each in judged(path)[0]}
    finding = names[AGAIN]
    assert states(finding.text, "influx-sink", "240 of 320 records", "every offset", "4.0 times")
    assert STUCK not in names
    assert names["redelivered"].because == (finding.id,)
    assert ends(path)["influx-sink"].word == "open"


@pytest.mark.parametrize("times", [2, 3, 5, 12])
def test_each_offset_so_often(times: int) -> None:
    names = circling(
        reading(*(5 * at for at in range(10) for _ in range(times)), gap_ns=2 * SECOND)
    )
    again, records = 50 * (times - 1), 50 * times
    assert states(names[AGAIN].text, f"{again} of {records} records", f"{times}.0 times")
    assert STUCK not in names, "the last offset is read no more often than others"


def test_a_window_that_is_fetched_ahead_and_thrown_away() -> None:
    offsets = [5 * (at + ahead) for at in range(12) for ahead in range(3)]
    names = circling(reading(*offsets))
    assert states(names[AGAIN].text, "110 of 180 records", "12 of 14 offsets")


def test_one_offset_among_circles_is_stuck_all_the_same() -> None:
    offsets = [5 * at for at in range(6) for _ in range(2)] + [30] * 20
    assert STUCK in circling(reading(*offsets, gap_ns=SECOND))


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
    assert AGAIN not in circling(reading(*offsets))
