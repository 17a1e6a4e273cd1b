"""Times and durations as Python's own values, and attributes of an object behind another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")
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


class Attribute(Generic[T]):
    """A read-only attribute: the one of the same name of an object that its owner holds."""

    def __init__(self, holder: str, text: str, name: str = "") -> None:
        """`holder`: attribute of the owner. `name`: of the other attribute, where it differs."""
        self.__doc__ = text
        self._holder, self._name = holder, name

    def __set_name__(self, owner: type, name: str) -> None:
        self._get = attrgetter(f"{self._holder}.{self._name or name}")

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: Any, kind: type) -> T | Self:
        if owner is None:
            return self
        found: T = self._get(owner)
        return found
