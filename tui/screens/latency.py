"""Screen 6: latency by API, with the wait that clients asked for apart; its histogram, and the same
over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkascope.analyzer.statistics.histogram import Histogram
from kafkascope.analyzer.statistics.latency import Latency
from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Hint, Key, bindings
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.charts import beside, histogram
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines

WAYS = (
    ("api",),
    ("api", "client"),
    ("api", "broker"),
    ("api", "version"),
    ("client",),
    ("broker",),
)
BOTH = 120
"""Columns of the terminal from which the two charts stand side by side."""
WITH_WAITS = ("p50", "p95", "p99", "max", "wait_share", "waited")
WITHOUT = ("excess_p50", "excess_p95", "excess_p99", "excess_max", "wait_share", "slowest")


class LatencyBoard(ChartedBoard):
    """Shows latency, or the part of it that clients did not ask for."""

    NUMBER = 6
    TITLE = "Latency"
    STATISTICS = ("latency",)
    COMMAND = "kafkascope latency {}"
    TABS = ("Charts", "Histogram", "Over time")
    CHARTS = frozenset({"Charts", "Over time"})
    EMPTY = "No responses in the capture"
    KEYS = (
        Key(
            "latency.waits",
            "W",
            "W",
            "waits",
            "Include or exclude long-poll waits",
            (Hint("table", 3, "waits"),),
        ),
        Key(
            "latency.by",
            "B",
            "B",
            "by",
            "Group by API, client, broker, version",
            (Hint("table", 3, "group by"),),
        ),
    )
    BINDINGS = bindings(KEYS)
    VIEW = (*ChartedBoard.VIEW, "by", "waits")
    HELP = (
        "Latency runs from the first byte of a request to the last byte of its response. Wait "
        "is the part that the client requested: long polls, forming groups. Excess is the rest;"
        " for a Fetch at the end of the log, the time beyond max_wait_ms. The table is sorted "
        "by excess, so that slow requests come before long polls. W includes the waits."
    )

    def __init__(self, host: Host) -> None:
        self.waits = False
        self.by: tuple[str, ...] = WAYS[0]
        super().__init__(host)

    def make_sheet(self) -> Sheet:
        """Return the columns of `stats latency --by`."""
        found = {column.name: column for column in Latency.COLUMNS}
        first = WITH_WAITS if self.waits else WITHOUT
        order = dict.fromkeys(("requests", *first, *found))
        columns = [found[name] for name in order if not found[name].wide]
        key = Latency.key_columns(self.by)
        names = [column.name for column in key]
        return Sheet((*key, *columns), keep=(*names, *first[1:4], "requests", first[0]))

    def identity(self, line: Line) -> Any:
        """Return what the latencies are summed up by."""
        return tuple(line.get(column.name) for column in Latency.key_columns(self.by))

    def lines_of(self, found: Any) -> Sequence[Line]:
        """Return the lines of `stats latency`, with waits the longest latency first."""
        lines: list[Line] = found.rows(self.names, by=self.by)
        if self.waits:
            lines.sort(key=lambda line: -(line["p95"] or 0))
        return lines

    def evidence(self, line: Line) -> str:
        """Return the filter for the exchanges that a line sums up."""
        return evidence.both(evidence.of_api(line), "answered")

    def command(self) -> str:
        """Return the command with --by."""
        by = "" if self.by == WAYS[0] else f" --by {','.join(self.by)}"
        return self.COMMAND + by

    def said(self) -> str:
        """Return what is measured."""
        what = "latency with waits" if self.waits else "excess: latency without waits"
        return f"{what}   W changes"

    def action_waits(self) -> None:
        """Take waits that clients asked for in, or leave them out."""
        self.waits = not self.waits
        self.remake()

    def action_by(self) -> None:
        """Sum up by the next of `WAYS`."""
        self.by = WAYS[(WAYS.index(self.by) + 1) % len(WAYS)]
        self.remake()

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return the charts of a line."""
        high = max(5, min(height, 24))
        if tab == "Histogram" or (tab == "Charts" and width < BOTH):
            return text_lines(self._histogram(line, width, high))
        if tab == "Over time":
            return text_lines(self._heat(line, width, high))
        half = width // 2 - 1
        left = self._histogram(line, half, high)
        return text_lines(beside(left, self._heat(line, width - half - 2, high), half + 2))

    def _histogram(self, line: Line, width: int, height: int) -> list[Spans]:
        found = self.statistic("latency")
        key = self.identity(line)
        wanted = Histogram()
        for parts, times in () if found is None else found.keyed(self.by):
            if tuple(parts.values()) == key:
                wanted = times.latency if self.waits else times.beyond_wait
        what = "latency" if self.waits else "excess"
        name = "  ".join(str(part) for part in key if part is not None)
        title: Spans = [(f"{name}: {what} of {wanted.count:,}", "header")]
        return [title, *histogram(wanted, width, max(2, height - 5))]

    def _heat(self, line: Line, width: int, height: int) -> list[Spans]:
        activity = self.activity(line)
        title: Spans = [("over time", "header")]
        if self.waits:
            title += [("   w", "wait"), (" long poll", "dim")]
        title += [("   !", "!"), (" failed", "dim")]
        if activity.behind:
            title.append(("   Counting ...", "dim"))
        chart = activity.heat(width, max(3, height - 2), self.clock(), waits=self.waits)
        return [title, *chart]
