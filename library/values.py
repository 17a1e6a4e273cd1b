"""Times and durations as Python's own values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_ns: int) -> datetime:
    """Return nanoseconds since 1970 as a time in UTC, to the microsecond; times that Python cannot
    have become the nearest ones that it can."""
    try:
        return _EPOCH + timedelta(microseconds=time_ns // 1000)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if time_ns > 0 else datetime.min.replace(tzinfo=UTC)


def duration(nanoseconds: int | None) -> timedelta | None:
    """Return nanoseconds as a timedelta, to the microsecond."""
    return None if nanoseconds is None else timedelta(microseconds=nanoseconds / 1000)
