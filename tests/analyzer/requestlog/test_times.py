"""Time stamps of lines, with and without zones."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kafkascope.analyzer.requestlog.times import LogClock, stamps_in


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000


@pytest.mark.parametrize(
    ("stamp", "instant", "source"),
    [
        ("2026-11-28 18:18:52,136", "2026-11-28T18:18:52.136+00:00", "option"),
        ("2026-11-28T18:18:52.136", "2026-11-28T18:18:52.136+00:00", "option"),
        ("2026-11-28T18:18:52.136Z", "2026-11-28T18:18:52.136+00:00", "line"),
        ("2026-11-28T18:18:52,136+0530", "2026-11-28T12:48:52.136+00:00", "line"),
        ("2026-11-28 18:18:52.136 -08:00", "2026-11-29T02:18:52.136+00:00", "line"),
        ("2026/11/28 18:18:52", "2026-11-28T18:18:52+00:00", "option"),
        ("28 Nov 2026 18:18:52,136", "2026-11-28T18:18:52.136+00:00", "option"),
        ("20261128T181852,136", "2026-11-28T18:18:52.136+00:00", "option"),
        ("20261128181852136", "2026-11-28T18:18:52.136+00:00", "option"),
        ("1795889932136", "2026-11-28T18:18:52.136+00:00", "line"),
    ],
)
def test_stamps(stamp: str, instant: str, source: str) -> None:
    clock = LogClock(UTC)
    (found,) = stamps_in(f"[{stamp}] INFO ")
    assert clock.at(found) == ns(instant)
    assert clock.source == source


@pytest.mark.parametrize(
    "stamp",
    ["", "now", "2026-13-28 18:18:52,136", "2026-11-28 25:18:52", "2026-11-28 18:18:52+99:00"],
)
def test_what_is_no_time(stamp: str) -> None:
    assert LogClock(UTC).at(stamp) is None


def test_nanoseconds_are_exact() -> None:
    moment = LogClock().at("2026-11-28T18:18:52.123456789Z")
    assert moment == ns("2026-11-28T18:18:52+00:00") + 123456789


def test_the_hour_that_comes_twice() -> None:
    clock = LogClock(ZoneInfo("Europe/Berlin"))
    stamps = [f"2026-10-25 0{h}:{m},000" for h, m in ((1, "59:00"), (2, "10:00"), (2, "59:59"))]
    stamps += ["2026-10-25 02:00:01,000", "2026-10-25 02:10:00,000", "2026-10-25 03:00:00,000"]
    moments = [clock.at(stamp) for stamp in stamps]
    utc = ["23:59", "00:10", "00:59:59", "01:00:01", "01:10", "02:00"]
    days = ["24"] + ["25"] * 5
    expected = [ns(f"2026-10-{d}T{t}+00:00") for d, t in zip(days, utc, strict=True)]
    assert moments == expected


def test_lines_out_of_order_by_milliseconds_are_not_an_hour_apart() -> None:
    clock = LogClock(ZoneInfo("Europe/Berlin"))
    later, earlier = clock.at("2026-10-25 02:30:00,005"), clock.at("2026-10-25 02:30:00,001")
    assert later is not None
    assert earlier is not None
    assert later - earlier == 4_000_000


def test_zones_that_change_at_half_hours() -> None:
    clock = LogClock(ZoneInfo("Australia/Lord_Howe"))
    moment = clock.at("2026-10-04 02:45:00,000")
    assert moment == ns("2026-10-03T15:45:00+00:00")
    assert clock.at("2026-10-04 01:45:00,000") == ns("2026-10-03T15:15:00+00:00")


@pytest.mark.parametrize(
    ("stamp", "instant"),
    [
        ("2026-11-28 18:18:52,136", "2026-11-28T18:18:52.136+00:00"),
        ("2026-11-28 23:48:52,136", "2026-11-28T18:18:52.136+00:00"),
        ("2026-11-28 10:18:52,136", "2026-11-28T18:18:52.136+00:00"),
        ("2026-11-29 00:03:52,136", "2026-11-28T18:18:52.136+00:00"),
    ],
)
def test_the_zone_follows_from_the_container(stamp: str, instant: str) -> None:
    clock = LogClock()
    assert clock.at(stamp, "2026-11-28T18:18:52.137215Z") == ns(instant)
    assert clock.source == "container"


def test_the_option_goes_before_the_container() -> None:
    clock = LogClock(ZoneInfo("Asia/Kolkata"))
    moment = clock.at("2026-11-28 18:18:52,136", "2026-11-28T18:18:52.137Z")
    assert moment == ns("2026-11-28T12:48:52.136+00:00")


def test_without_any_zone_it_is_the_machines() -> None:
    clock = LogClock()
    moment = clock.at("2026-11-28 18:18:52,136")
    assert moment == int(datetime(2026, 11, 28, 18, 18, 52).timestamp()) * 10**9 + 136 * 10**6
    assert clock.source == "machine"


@pytest.mark.parametrize(
    ("fractions", "expected"),
    [
        (("000007", "000980"), (7_000_000, 980_000_000)),
        (("000000049",), (49_000_000,)),
        (("123456", "000007"), (123_456_000, 7_000)),
        (("136", "007"), (136_000_000, 7_000_000)),
    ],
)
def test_log4j_1_writes_milliseconds_with_zeros_before_them(
    fractions: tuple[str, ...], expected: tuple[int, ...]
) -> None:
    clock = LogClock(UTC)
    found = [clock.at(f"2026-11-28 18:18:52.{each}") or 0 for each in fractions]
    assert tuple(each % 10**9 for each in found) == expected
