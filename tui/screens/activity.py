"""The exchanges behind a line over time: how many, how long, which failed. They are collected in
slices, so that keys never wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import plural
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View
from kafkascope.tui.screens.charts import (
    MARGIN,
    USUAL,
    WAITED,
    WRONG,
    columns_chart,
    edge,
    heat,
    slices,
)
from kafkascope.tui.screens.sheet import Spans

if TYPE_CHECKING:
    from kafkascope.tui.screens.charts import IntArray

REFUSED: Final = "refused"
UNREACHABLE: Final = "unreachable"
LOOKS: Final = {UNREACHABLE: ("○", "?", "not answered"), REFUSED: ("●", "!", "refused")}
"""State of an attempt -> sign, role, word; of several at one place the last one shows."""


class FailedConnects(NamedTuple):
    """Attempts to connect that failed."""

    whom: str
    """The other side: `to 10.0.1.3:9092`."""
    times: dict[str, list[int]]
    """State -> when each attempt began."""
    reach: tuple[int, int] | None
    """First and last time of all attempts that failed in the capture, whoever they were from, so
    that charts of two lines compare."""

    def lane(self, span: tuple[int, int], width: int) -> Spans:
        """Return a line with a dot wherever an attempt began."""
        first, last = span
        step = max(1, -(-(last - first + 1) // max(1, width)))
        cells = [(" ", "")] * width
        for state, (sign, role, _) in LOOKS.items():
            for time_ns in self.times.get(state, ()):
                cells[max(0, min(width - 1, (time_ns - first) // step))] = sign, role
        line: Spans = [edge("failed", "│")]
        for look, run in groupby(cells):
            line.append((look[0] * len(list(run)), look[1]))
        return line

    def legend(self) -> Spans:
        out: Spans = [(" " * MARGIN, "")]
        for state, (sign, role, text) in LOOKS.items():
            if count := len(self.times.get(state, ())):
                noun = plural(count, "connect")
                out += [(sign, role), (f" {noun} {self.whom} {text}   ", "dim")]
        return out


def failed(rows: Sequence[Line]) -> list[Line]:
    """Return the lines of attempts that came to no connection."""
    return [line for line in rows if line["state"] in LOOKS and line["opened"] is not None]


def to_broker(connects: Sequence[Line], line: Line) -> FailedConnects:
    """Return the attempts to reach the broker of a connection, from anybody."""
    broker = line["broker_address"]
    mine = [each for each in connects if each["broker_address"] == broker]
    return _of(f"to {broker}", mine, connects)


def of_client(connects: Sequence[Line], rows: Sequence[Line], client: Any) -> FailedConnects:
    """Return the attempts from the hosts of a client, to anybody: they tell no client id."""
    hosts = {_host(each) for each in rows if client in (each["client_id"], _host(each))}
    mine = [each for each in connects if _host(each) in hosts]
    return _of(f"of {client}", mine, connects)


def _of(whom: str, mine: Sequence[Line], connects: Sequence[Line]) -> FailedConnects:
    times: dict[str, list[int]] = {}
    for each in mine:
        times.setdefault(each["state"], []).append(each["opened"])
    every = [each["opened"] for each in connects]
    return FailedConnects(whom, times, (min(every), max(every)) if every else None)


def _host(line: Line) -> str:
    return host_of(line["client_address"])


# Shortest stretch of time that a chart shows.
LEAST_NS: Final = 1_000_000


class Activity:
    """Collects the exchanges that a filter selects, and draws them over time."""

    def __init__(self, store: Store, text: str, known: Known = NOTHING) -> None:
        self.store, self.text, self.problem = store, text, ""
        self.view: View | None = None
        try:
            self.view = View(store, text, known)
        except FilterError as error:
            self.problem = error.reason
        self._seen = 0, 0, 0
        """What the last call of `advance` came to."""
        self.connects: FailedConnects | None = None
        """Failed attempts to connect that are drawn below."""

    def advance(self, seconds: float) -> bool:
        """Filter more, for `seconds` at most; return whether there are others than before."""
        if (view := self.view) is None:
            return False
        view.advance(seconds)
        before, self._seen = self._seen, (view.arrived, view.revision, self.store.session.dropped)
        return self._seen != before

    def close(self) -> None:
        if self.view is not None:
            self.view.close()

    @property
    def behind(self) -> bool:
        """Whether there are more to filter."""
        return self.view is not None and self.view.behind

    def _rows(self) -> IntArray:
        import numpy as np

        if self.view is None:
            return np.zeros(0, np.int64)
        self.advance(0)  # the oldest ones may have gone meanwhile
        return self.view.indexes()

    @property
    def times(self) -> IntArray:
        from kafkascope.tui.data.columns import column

        return column(self.store.session, "time_ns")[self._rows()]

    def _span(self, times: IntArray) -> tuple[int, int]:
        """Return the first and last time of the whole capture: charts of two lines have the same
        axis."""
        every = self.store.session.columns["time_ns"]
        # In the order of numbers, or of completion: both ends are near the ends.
        near = 1_000
        ends = [*every[:near], *every[-near:], *times[:near].tolist(), *times[-near:].tolist()]
        if self.connects is not None and self.connects.reach is not None:
            ends += self.connects.reach
        first, last = min(ends, default=0), max(ends, default=0)
        return first, max(last, first + LEAST_NS)

    def chart(self, width: int, height: int, clock: Callable[[int], str]) -> list[Spans]:
        """Draw bars of how many there were, with those that failed below."""
        from kafkascope.tui.data.columns import bad

        inner = max(10, width - MARGIN)
        if self.problem:
            return [[(f"No chart: {self.problem}", "dim")]]
        dots = self.connects if self.connects is not None and self.connects.times else None
        times = self.times
        span = self._span(times)
        below = clock_axis(span, inner, clock)
        if dots is not None:
            below = [dots.lane(span, inner), *below, dots.legend()]
        if not len(times):
            none = [("Nothing yet" if self.behind else "No exchanges", "dim")]
            return [none] if dots is None else [none, *below]
        counts = slices(times, span, inner)
        step = (span[1] - span[0]) / inner
        out = columns_chart(counts, max(1, height - (3 if dots is None else 5)))
        for row, line in enumerate(out):
            line.insert(0, edge("" if row else f"{max(counts):,}", "│"))
        wrong = slices(times[bad(self.store)[self._rows()]], span, inner)
        if any(wrong):
            marks = "".join("!" if count else " " for count in wrong)
            out.append([edge("errors", "│"), (marks, "!")])
        out += below
        more = "" if self.store.progress.done and not self.behind else " so far"
        text = f"{len(times):,} exchanges{more}, {duration(int(step))} a column"
        out.append([(" " * MARGIN, ""), (text, "dim")])
        return out

    def heat(
        self, width: int, height: int, clock: Callable[[int], str], *, waits: bool
    ) -> list[Spans]:
        """Draw durations over time: latency with `waits`, else excess."""
        import numpy as np

        from kafkascope.tui.data.columns import bad, column

        session, rows = self.store.session, self._rows()
        latencies = column(session, "latency_ns")
        rows = rows[latencies[rows] >= 0]
        latencies, waited = latencies[rows], column(session, "wait_ns")[rows]
        marks = np.where(waits & (waited > 0), WAITED, USUAL)
        marks[bad(self.store)[rows]] = WRONG
        values = latencies if waits else np.maximum(0, latencies - waited)
        span = self._span(self.times)
        times = column(session, "time_ns")[rows]
        out = heat(times, values, marks, span, (width, max(2, height - 1)))
        if len(times):
            out += clock_axis(span, max(10, width - MARGIN), clock)
        return out


def clock_axis(span: tuple[int, int], inner: int, clock: Callable[[int], str]) -> list[Spans]:
    """Draw an axis with times, as many as there is room for."""
    first, last = span
    text, column = "", 0
    while column < inner:
        mark = clock(first + (last - first) * column // inner)
        if column + len(mark) + 1 > inner:
            break
        text = f"{text:<{column}}╵{mark}"
        column = len(text) + max(4, 22 - len(mark))
    return [[(" " * (MARGIN - 1) + "└", "dim"), (f"{text:<{inner}}", "dim")]]
