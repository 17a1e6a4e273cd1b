"""The exchanges behind a line over time: how many, how long, which failed. They are collected in
slices, so that keys never wait."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.render.cells import duration
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View
from kafkascope.tui.screens.charts import MARGIN, USUAL, WAITED, WRONG, columns_chart, heat, slices
from kafkascope.tui.screens.sheet import Spans

if TYPE_CHECKING:
    from kafkascope.tui.screens.dots import FailedConnects

LEAST_NS: Final = 1_000_000
"""Shortest stretch of time that a chart shows."""


class Activity:
    """Collects the exchanges that a filter selects, and draws them over time."""

    def __init__(self, store: Store, text: str, known: Known = NOTHING) -> None:
        self.store = store
        self.text = text
        self.problem = ""
        try:
            self.view: View | None = View(store, text, known)
        except FilterError as error:
            self.view = None
            self.problem = error.reason
        self._taken = self._revision = 0
        self._dropped = store.session.dropped
        self.connects: FailedConnects | None = None
        """Failed attempts to connect that are drawn below."""
        self.times = array("q")
        self.latencies = array("q")
        self.waits = array("q")
        self.bad = array("B")

    def advance(self, seconds: float) -> bool:
        """Collect more of them, for `seconds` at most; return whether there were any."""
        view = self.view
        if view is None:
            return False
        view.advance(seconds)
        session = self.store.session
        if (session.dropped, view.revision) != (self._dropped, self._revision):
            # Places are others now.
            self._dropped, self._revision, self._taken = session.dropped, view.revision, 0
            for column in (self.times, self.latencies, self.waits, self.bad):
                del column[:]
        before = self._taken
        for place in range(before, view.arrived):
            index = view.arrival(place)
            self.times.append(session.columns["time_ns"][index])
            self.latencies.append(session.columns["latency_ns"][index])
            self.waits.append(self.store.wait(index))
            self.bad.append(self.store.is_bad(index))
        self._taken = len(self.times)
        return self._taken != before

    def close(self) -> None:
        """Collect no more."""
        if self.view is not None:
            self.view.close()

    @property
    def behind(self) -> bool:
        """Whether there are more to collect."""
        view = self.view
        return view is not None and (view.behind or self._taken < view.arrived)

    @property
    def span(self) -> tuple[int, int]:
        """First and last time of the whole capture: charts of two lines have the same axis."""
        times = self.store.session.columns["time_ns"]
        # In order of completion, so that both ends are near the ends.
        near = 1_000
        ends = [*times[:near], *times[-near:], *self.times[:near], *self.times[-near:]]
        if self.connects is not None and self.connects.reach is not None:
            ends += self.connects.reach
        first, last = min(ends, default=0), max(ends, default=0)
        return first, max(last, first + LEAST_NS)

    def counts(self, width: int, *, bad: bool = False) -> list[int]:
        """Count exchanges in each of `width` slices of the capture's time."""
        import numpy as np

        times = np.array(self.times, np.int64)
        if bad:
            times = times[np.array(self.bad, bool)]
        return slices(times, self.span, width)

    def chart(self, width: int, height: int, clock: Callable[[int], str]) -> list[Spans]:
        """Draw bars of how many there were, with those that failed below."""
        inner = max(10, width - MARGIN)
        if self.problem:
            return [[(f"No chart: {self.problem}", "dim")]]
        dots = self.connects if self.connects is not None and self.connects.times else None
        if not self.times:
            none = [("Nothing yet" if self.behind else "No exchanges", "dim")]
            return [none] if dots is None else [none, *self._below(dots, inner, clock)]
        counts = self.counts(inner)
        first, last = self.span
        step = (last - first) / inner
        out = columns_chart(counts, max(1, height - (3 if dots is None else 5)))
        for row, line in enumerate(out):
            label = f"{max(counts):,}" if not row else ""
            line.insert(0, (f"{label:>{MARGIN - 2}} │", "dim"))
        wrong = self.counts(inner, bad=True)
        if any(wrong):
            marks = "".join("!" if count else " " for count in wrong)
            out.append([(f"{'errors':>{MARGIN - 2}} │", "dim"), (marks, "!")])
        out += self._below(dots, inner, clock)
        more = "" if self.store.progress.done and not self.behind else " so far"
        text = f"{len(self.times):,} exchanges{more}, {duration(int(step))} a column"
        out.append([(" " * MARGIN, ""), (text, "dim")])
        return out

    def _below(
        self, dots: FailedConnects | None, inner: int, clock: Callable[[int], str]
    ) -> list[Spans]:
        """Draw failed attempts to connect, the axis, and the meaning of the dots."""
        axis = self.clock_axis(inner, clock)
        return axis if dots is None else [dots.lane(self.span, inner), *axis, dots.legend()]

    def clock_axis(self, inner: int, clock: Callable[[int], str]) -> list[Spans]:
        """Draw an axis with times."""
        return [[(" " * (MARGIN - 1) + "└", "dim"), (clock_scale(self.span, inner, clock), "dim")]]

    def heat(
        self, width: int, height: int, clock: Callable[[int], str], *, waits: bool
    ) -> list[Spans]:
        """Draw durations over time: latency with `waits`, else excess."""
        import numpy as np

        latencies = np.array(self.latencies, np.int64)
        answered = latencies >= 0
        latencies, waited = latencies[answered], np.array(self.waits, np.int64)[answered]
        marks = np.where(waits & (waited > 0), WAITED, USUAL)
        marks[np.array(self.bad, bool)[answered]] = WRONG
        values = latencies if waits else np.maximum(0, latencies - waited)
        times = np.array(self.times, np.int64)[answered]
        out = heat(times, values, marks, self.span, (width, max(2, height - 1)))
        if len(times):
            out += self.clock_axis(max(10, width - MARGIN), clock)
        return out


def clock_scale(span: tuple[int, int], width: int, clock: Callable[[int], str]) -> str:
    """Write times along an axis, as many as there is room for."""
    first, last = span
    text, column = "", 0
    while column < width:
        mark = clock(first + (last - first) * column // max(1, width))
        if column + len(mark) + 1 > width:
            break
        text = f"{text:<{column}}╵{mark}"
        column = len(text) + max(4, 22 - len(mark))
    return f"{text:<{width}}"
