"""Boards with a chart over time of the exchanges behind the line under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.activity import Activity
from kafkascope.tui.screens.board import SLICE, Board, told
from kafkascope.tui.screens.ladder import Told

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Line

REDRAW: Final = 0.4
"""Seconds between two drawings of a chart that grows."""


class ChartedBoard(Board):
    """Keeps the activity of one line; it grows with the capture."""

    CHARTS: ClassVar[frozenset[str]] = frozenset({"Over time"})
    """Tabs that show it."""

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._activity: Activity | None = None
        self._new = False
        self._due = 0.0

    def activity(self, line: Line) -> Activity:
        """Of the exchanges behind a line, or of what the filter shows of them."""
        text = self.evidence(line)
        if self.limited:
            text = evidence.both(self.scene.filter_text(), text)
        if self._activity is None or self._activity.text != text:
            self._activity = Activity(self.scene.store, text)
            self._activity.advance(SLICE)
        return self._activity

    def work(self) -> bool:
        """Look at more exchanges; the chart is drawn anew now and then, and at the end."""
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
        """Times of an axis, without milliseconds."""
        times = self.scene.times()
        session = self.scene.store.session
        span = (
            session.columns["time_ns"][-1] - session.columns["time_ns"][0]
            if len(session.columns["time_ns"])
            else 0
        )
        return shortened(times.text, short=span < 30_000_000_000)

    def chart_tab(self, line: Line, width: int, height: int) -> Sequence[Told]:
        """How many there were over time."""
        return told(self.activity(line).chart(width, min(height, 14), self.clock()))


def shortened(clock: Callable[[int], str], *, short: bool) -> Callable[[int], str]:
    """Without milliseconds where seconds will do."""

    def text(time_ns: int) -> str:
        full = clock(time_ns)
        return full[:-4] if not short and full[-4:-3] == "." and ":" in full else full

    return text
