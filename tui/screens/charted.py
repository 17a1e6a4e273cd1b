"""Boards with a chart over time of the exchanges behind the line under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar, Final

from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.host import Host
from kafkascope.tui.screens.activity import Activity
from kafkascope.tui.screens.board import SLICE, Board
from kafkascope.tui.screens.sheet import TextLine, text_lines

REDRAW: Final = 0.4
"""Seconds between two drawings of a chart that grows."""


class ChartedBoard(Board):
    """Draws the activity of one line, which grows with the capture."""

    CHARTS: ClassVar[frozenset[str]] = frozenset({"Over time"})
    """Tabs that show the chart."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._activity: Activity | None = None
        self._new = False
        self._due = 0.0

    def activity(self, line: Line) -> Activity:
        """Return the activity of the exchanges behind a line."""
        text = self.limited_to_filter(self.evidence(line))
        if self._activity is None or self._activity.text != text:
            if self._activity is not None:
                self._activity.close()
            self._activity = Activity(self.host.store, text, self.host.workspace.notes.known)
            self._activity.advance(SLICE)
        return self._activity

    def work(self) -> bool:
        """Take in more exchanges; return whether it is time to draw the chart again."""
        activity = self._activity
        if activity is None or self.tab not in self.CHARTS:
            return False
        self._new |= activity.advance(SLICE)
        now = monotonic()
        if not self._new or (activity.behind and now < self._due):
            return False
        self._new, self._due = False, now + REDRAW
        return True

    def clock(self) -> Callable[[int], str]:
        """Return how times of an axis are written; without milliseconds where seconds will do."""
        column = self.host.store.session.columns["time_ns"]
        span = column[-1] - column[0] if len(column) else 0
        return shortened(self.host.times().text, short=span < 30_000_000_000)

    def chart_tab(self, line: Line, width: int, height: int) -> Sequence[TextLine]:
        """Return the chart of the exchanges behind a line over time."""
        return text_lines(self.activity(line).chart(width, min(height, 14), self.clock()))


def shortened(clock: Callable[[int], str], *, short: bool) -> Callable[[int], str]:
    """Return a clock without milliseconds, unless the stretch of time is `short`."""

    def text(time_ns: int) -> str:
        full = clock(time_ns)
        return full[:-4] if not short and full[-4:-3] == "." and ":" in full else full

    return text
