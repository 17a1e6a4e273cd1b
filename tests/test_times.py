"""Instants as text."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.times import FIRST_SECOND, LAST_SECOND, iso_ms, iso_ns


@given(st.integers(FIRST_SECOND * 1000, LAST_SECOND * 1000 + 999).filter(lambda ms: ms != -1))
def test_milliseconds_read_back(time_ms: int) -> None:
    text = iso_ms(time_ms)
    assert text is not None
    assert text.endswith("Z")
    seconds, millis = divmod(time_ms, 1000)
    when = datetime.fromisoformat(text)
    assert when.microsecond == millis * 1000
    assert when.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC) == _delta(seconds)


def _delta(seconds: int) -> object:
    from datetime import timedelta

    return timedelta(seconds=seconds)


@pytest.mark.parametrize("time_ms", [None, -1, 2**62, -(2**62)])
def test_what_is_no_time_is_none(time_ms: int | None) -> None:
    assert iso_ms(time_ms) is None


def test_nanoseconds_show_where_they_say_more() -> None:
    assert iso_ns(1_700_000_000_000_001_000) == "2023-11-14T22:13:20.000001Z"
    assert iso_ns(1_700_000_000_000_001_002) == "2023-11-14T22:13:20.000001002Z"
    assert iso_ns(2**70) == ""
