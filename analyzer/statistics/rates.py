"""How much went through over time, in slices whose width grows when the time gets long."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, total
from kafkascope.analyzer.statistics.model import (
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
    checked,
    stated,
)

SECOND: Final = 1_000_000_000
MAX_SLICES: Final = 3_600


@measured
class Slice(Measures):
    """Sums over a slice; an exchange belongs to that of its first byte."""

    count: int = total()
    request_bytes: int = total()
    response_bytes: int = total()
    records: int = total()
    failed: int = total()
    """With errors that are not expected."""
    unanswered: int = total()
    latency_beyond_wait_ns: int = total()


class Rates:
    """Traffic over time. The width is `every_ns` times a power of two, the smallest that needs no
    more than `limit` slices."""

    NAME: ClassVar[str] = "rates"
    VERSION: ClassVar[int] = 1
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("time", "time"),
        Column("requests", "count"),
        Column("per_second", "rate"),
        Column("request_bytes", "size"),
        Column("response_bytes", "size"),
        Column("records", "count"),
        Column("failed", "count"),
        Column("unanswered", "count"),
        Column("excess", "duration"),
        Column("width", "duration", wide=True),
    )

    def __init__(self, every_ns: int = SECOND, limit: int = MAX_SLICES) -> None:
        self.every_ns = every_ns
        self.width_ns = every_ns
        self.limit = limit
        self._slices: dict[int, Slice] = {}
        """By number of the slice since 1970."""
        self._least = self._most = 0

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count an exchange."""
        answered = row.state in ("answered", "no-reply")
        self._take(
            row.time_ns // self.width_ns,
            Slice(
                1,
                row.request_bytes or 0,
                row.response_bytes or 0,
                row.records or 0,
                int(bool(row.errors) and not row.expected),
                int(not answered),
                row.latency_beyond_wait_ns or 0,
            ),
        )

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        slices: dict[int, Slice] = {}
        columns = (alike.begins, alike.asked, alike.answered, alike.records)
        times = alike.latencies, alike.waits
        for begin, asked, answered, records, latency, wait in zip(*columns, *times, strict=True):
            number = begin // self.every_ns
            found = slices.get(number)
            if found is None:
                found = slices[number] = Slice()
            found.count += 1
            found.request_bytes += asked
            found.response_bytes += answered
            found.records += records or 0
            found.latency_beyond_wait_ns += max(0, latency - wait)
        for number, found in slices.items():
            # The width may grow on the way.
            self._take(number * self.every_ns // self.width_ns, found)

    def _take(self, number: int, found: Slice) -> None:
        slices = self._slices
        known = slices.get(number)
        if known is not None:
            known.merge(found)
            return
        self._least = min(self._least, number) if slices else number
        self._most = max(self._most, number) if slices else number
        slices[number] = found
        while self._most - self._least >= self.limit:
            self._widen()

    def _widen(self) -> None:
        """Double the width: two slices become one."""
        old, self._slices = self._slices, {}
        self.width_ns *= 2
        self._least //= 2
        self._most //= 2
        for number, found in old.items():
            known = self._slices.get(number // 2)
            if known is None:
                self._slices[number // 2] = found
            else:
                known.merge(found)

    def merge(self, other: Self) -> None:
        """Count what the other one has counted; of the same width to begin with."""
        if other.every_ns != self.every_ns:
            raise ValueError("rates of different widths do not add up")
        while self.width_ns < other.width_ns:
            self._widen()
        for number, found in other._slices.items():
            # The width may grow on the way.
            self._take(number * other.width_ns // self.width_ns, Slice().load(found.dump()))

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per slice, empty ones between the first and the last included."""
        if not self._slices:
            return []
        width, nothing = self.width_ns, Slice()
        return [
            _line(number * width, width, self._slices.get(number, nothing))
            for number in range(self._least, self._most + 1)
        ]

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON, with its version."""
        slices = [[number, found.dump()] for number, found in sorted(self._slices.items())]
        return stated(self, [self.every_ns, self.width_ns, slices])

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`."""
        self.every_ns, self.width_ns, slices = checked(self, state)
        self._slices = {number: Slice().load(found) for number, found in slices}
        if slices:
            self._least, self._most = min(self._slices), max(self._slices)
        return self


def _line(time_ns: int, width_ns: int, found: Slice) -> Line:
    return {
        "time": time_ns,
        "requests": found.count,
        "per_second": found.count * SECOND / width_ns,
        "request_bytes": found.request_bytes,
        "response_bytes": found.response_bytes,
        "records": found.records,
        "failed": found.failed,
        "unanswered": found.unanswered,
        "excess": found.latency_beyond_wait_ns // found.count if found.count else None,
        "width": width_ns,
    }
