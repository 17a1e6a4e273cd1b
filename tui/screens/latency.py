"""Screen 6: latency by API, with the wait that clients asked for apart; its histogram, and the same
over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding

from kafkascope.analyzer.statistics.histogram import Histogram
from kafkascope.analyzer.statistics.latency import BY, Latency
from kafkascope.tui.keys import Key
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import told
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.charts import beside, histogram
from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.sheet import Sheet, Spans

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kafkascope.analyzer.statistics.model import Line

WAYS = (
    ("api",),
    ("api", "client"),
    ("api", "broker"),
    ("api", "version"),
    ("client",),
    ("broker",),
)
BOTH = 120
"""Columns from which the two charts stand side by side."""
WITH_WAITS = ("p50", "p95", "p99", "max", "wait", "waited")
WITHOUT = ("excess_p50", "excess_p95", "excess_p99", "excess_max", "wait", "slowest")


class LatencyBoard(ChartedBoard):
    """Latency, or excess."""

    NUMBER = 6
    TITLE = "Latency"
    STATISTICS = ("latency",)
    COMMAND = "kafkascope stats latency {}"
    TABS = ("Charts", "Histogram", "Over time")
    CHARTS = frozenset({"Charts", "Over time"})
    EMPTY = "no request was answered in the capture"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(
            "latency.waits", "W", "W", "waits", "with the waits that clients asked for, or without"
        ),
        Key("latency.by", "B", "B", "by", "by API, client, broker, version"),
    )
    HELP = (
        "Latency is from the first byte of a request to the last of its answer; wait the part that "
        "the client asked for (long polls, groups that form); excess the rest. Of a Fetch at the "
        "end of the log, excess is what goes beyond max_wait_ms. The table is ordered by excess, "
        "so that what is slow comes before what is told to wait. W puts the waits back."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in KEYS
    ]

    def __init__(self, scene: Any) -> None:
        self.waits = False
        self.by: tuple[str, ...] = WAYS[0]
        super().__init__(scene)

    def make_sheet(self) -> Sheet:
        """As `stats latency --by`."""
        key = [BY[part] for part in self.by]
        found = {column.name: column for column in Latency.COLUMNS}
        first = WITH_WAITS if self.waits else WITHOUT
        order = dict.fromkeys(("count", *first, *found))
        columns = [found[name] for name in order if not found[name].wide]
        return Sheet((*key, *columns), keep=(*self.by, *first[1:4], "count", first[0]))

    def identity(self, line: Line) -> Any:
        """The parts of the key."""
        return tuple(line.get(part) for part in self.by)

    def lines(self) -> Sequence[Line] | None:
        """As `stats latency`; with waits by latency."""
        found = self.statistic("latency")
        if found is None:
            return None
        lines: list[Line] = found.rows(self.scene.store.session.context.names, by=self.by)
        if self.waits:
            lines.sort(key=lambda line: -(line["p95"] or 0))
        return lines

    def evidence(self, line: Line) -> str:
        """What was answered of it."""
        return evidence.both(evidence.of_api(line), "answered")

    def command(self) -> str:
        """With --by."""
        by = "" if self.by == WAYS[0] else f" --by {','.join(self.by)}"
        return self.COMMAND + by

    def said(self) -> str:
        """What is measured."""
        what = "latency, waits included" if self.waits else "excess: waits left out"
        return f"{what}   W changes"

    def action_waits(self) -> None:
        """With or without what clients asked to wait."""
        self.waits = not self.waits
        self._changed()

    def action_by(self) -> None:
        """The next way to sum up."""
        self.by = WAYS[(WAYS.index(self.by) + 1) % len(WAYS)]
        self._changed()

    def _changed(self) -> None:
        self.sheet = self.make_sheet()
        self.upper.refilled(lambda: setattr(self.table, "sheet", self.sheet))
        self.refresh_numbers()

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """The charts of a line."""
        high = max(5, min(height, 24))
        if tab == "Histogram" or (tab == "Charts" and width < BOTH):
            return told(self._histogram(line, width, high))
        if tab == "Over time":
            return told(self._heat(line, width, high))
        half = width // 2 - 1
        left = self._histogram(line, half, high)
        return told(beside(left, self._heat(line, width - half - 2, high), half + 2))

    def _histogram(self, line: Line, width: int, height: int) -> list[Spans]:
        found = self.statistic("latency")
        key = self.identity(line)
        wanted = Histogram()
        for parts, times in () if found is None else found.grouped(self.by):
            if tuple(parts[part] for part in self.by) == key:
                wanted = times.latency if self.waits else times.excess
        what = "latency" if self.waits else "excess"
        name = "  ".join(str(part) for part in key if part is not None)
        title: Spans = [(f"{name}: {what} of {wanted.count:,}", "header")]
        return [title, *histogram(wanted, width, max(2, height - 5))]

    def _heat(self, line: Line, width: int, height: int) -> list[Spans]:
        activity = self.activity(line)
        title: Spans = [("over time", "header")]
        if self.waits:
            title += [("   ▒", "wait"), (" waited", "dim")]
        title += [("   ▒", "!"), (" went wrong", "dim")]
        if activity.behind:
            title.append(("   counting ...", "dim"))
        chart = activity.heat(width, max(3, height - 2), self.clock(), waits=self.waits)
        return [title, *chart]
