"""How much went through over time, in slices whose width grows when the time gets long."""

from __future__ import annotations

from typing import Any, Final, Self

from kafkascope.analyzer.merging.measures import Measures, least, most, total
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Accumulator, Line, TopicNames, columns, filled
from kafkascope.times import SECOND

STAGES: Final = ("request_transfer", "server", "response_transfer", "rtt")
"""Stages of an exchange, by the names of their columns (docs/latency.md)."""


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
    staged: int = total()
    """With all stages known, whose sums follow."""
    request_transfer_ns: int = total()
    server_ns: int = total()
    """Without the wait."""
    response_transfer_ns: int = total()
    rtt_ns: int = total()


class Rates(Accumulator):
    """Traffic over time. The width is `every_ns` times a power of two, the smallest that needs no
    more than `limit` slices."""

    NAME = "rates"
    VERSION = 3
    COLUMNS = columns(
        "time requests per_second request_bytes response_bytes records failed unanswered excess",
        *(f"({stage})" for stage in STAGES),
        "(width)",
        kinds=dict.fromkeys(STAGES, "duration"),
    )

    every_ns: int = most()
    width_ns: int = most()
    _first: int | None = least()
    _last: int | None = most()
    """Numbers of slices since 1970."""
    _slices: Keyed[Slice] = table(Slice)
    """By number."""

    def __init__(self, every_ns: int = SECOND, limit: int = LIMITS.slices) -> None:
        super().__init__()
        self.every_ns = self.width_ns = every_ns
        self.limit = limit

    def add(self, batch: ExchangeBatch) -> None:
        row = batch.row
        failed = int(bool(row.errors) and not row.expected)
        unanswered = int(row.state not in ("answered", "no-reply"))
        slices: dict[int, Slice] = {}
        columns = (batch.begins, batch.request_bytes, batch.response_bytes, batch.records)
        times = batch.latencies, batch.waits
        transfers, rtt_ns = (batch.request_transfers, batch.response_transfers), row.rtt_ns or 0
        stages = zip(*transfers, batch.servings, strict=True)
        for (begin, sent, answered, records, latency, wait), (sending, receiving, serving) in zip(
            zip(*columns, *times, strict=True), stages, strict=True
        ):
            number = begin // self.every_ns
            found = slices.get(number)
            if found is None:
                found = slices[number] = Slice()
            found.count += 1
            found.request_bytes += sent
            found.response_bytes += answered
            found.records += records or 0
            found.failed += failed
            found.unanswered += unanswered
            found.latency_beyond_wait_ns += max(0, latency - wait)
            if serving is not None:
                found.staged += 1
                found.request_transfer_ns += sending or 0
                found.server_ns += max(0, serving - wait)
                found.response_transfer_ns += receiving or 0
                found.rtt_ns += rtt_ns
        for number, found in slices.items():
            # The width may grow on the way.
            self._take(number * self.every_ns // self.width_ns, found)

    def _take(self, number: int, found: Slice) -> None:
        self._put(number, found)
        while (
            self._last is not None
            and self._first is not None
            and self._last - self._first >= self.limit
        ):
            self._widen()

    def _put(self, number: int, found: Slice) -> None:
        self._slices[(number,)].merge(found)
        self._combine({"_first": number, "_last": number})

    def _widen(self) -> None:
        """Double the width: two slices become one."""
        self.width_ns *= 2
        old, self._slices = self._slices, Keyed(Slice)
        self._first = self._last = None
        for (number,), found in old.items():
            self._put(number // 2, found)

    def merge(self, other: Self) -> None:
        """Count what the other one has counted; of the same width to begin with."""
        if other.every_ns != self.every_ns:
            raise ValueError("rates of different widths do not add up")
        while self.width_ns < other.width_ns:
            self._widen()
        for (number,), found in other._slices.items():
            # The width may grow on the way.
            self._take(number * other.width_ns // self.width_ns, found)

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per slice, empty ones between the first and the last included."""
        if self._first is None or self._last is None:
            return []
        width, nothing = self.width_ns, Slice()
        return [
            _line(number * width, width, self._slices.get((number,), nothing))
            for number in range(self._first, self._last + 1)
        ]


def _line(time_ns: int, width_ns: int, found: Slice) -> Line:
    return filled(
        Rates.COLUMNS,
        found,
        time=time_ns,
        requests=found.count,
        per_second=found.count * SECOND / width_ns,
        excess=found.latency_beyond_wait_ns // found.count if found.count else None,
        **{
            stage: getattr(found, f"{stage}_ns") // found.staged if found.staged else None
            for stage in STAGES
        },
        width=width_ns,
        **known_sizes(found, "records"),
    )


def known_sizes(measures: Any, *more: str) -> Line:
    """Return the bytes of both sides of some exchanges, and more sums over their messages; None
    where all are lines of request logs, which have no sizes."""
    unread = measures.count and not (measures.request_bytes or measures.response_bytes)
    names = ("request_bytes", "response_bytes", *more)
    return {name: None if unread else getattr(measures, name) for name in names}
