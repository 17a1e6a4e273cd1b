"""Screen 6: latency by API, with the wait that clients asked for apart; its histogram, and the same
over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.traffic import Latency, latency_columns
from kafkascope.tui.keys import Key
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import COUNTING, OVER_TIME, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.charts import beside, histogram
from kafkascope.tui.screens.sheet import Sheet, Spans, narrow

WAYS: Final = (
    *(("api",), ("api", "client"), ("api", "broker"), ("api", "version")),
    *(("client",), ("broker",)),
)
# Columns of the terminal from which the two charts stand side by side.
BOTH: Final = 120
STAGES: Final = ("request_transfer_p95", "server_p95", "response_transfer_p95", "rtt_p50")
WITH_WAITS: Final = ("p50", "p95", "p99", "max", *STAGES, "wait_share", "waited")
WITHOUT: Final = (
    *("excess_p50", "excess_p95", "excess_p99", "excess_max", *STAGES, "wait_share", "slowest"),
)


def _sheet(board: Board) -> Sheet:
    latency: Latency | None = board.statistic("latency")
    lines = () if latency is None else latency.rows(by=WAYS[0])
    shown = latency_columns(lines, Latency.COLUMNS)
    columns = {column.name: column for column in narrow(shown)}
    first = WITH_WAITS if board.settings["waits"] else WITHOUT
    order = [name for name in dict.fromkeys(("requests", *first, *columns)) if name in columns]
    key = Latency.key_columns(board.settings["by"])
    names = [column.name for column in key]
    keep = (*names, *first[1:4], "requests", first[0])
    return Sheet((*key, *(columns[name] for name in order)), keep=keep)


def _key(board: Board, line: Line) -> tuple[Any, ...]:
    """Return what the latencies are summed up by."""
    return tuple(line.get(column.name) for column in Latency.key_columns(board.settings["by"]))


def _lines(board: Board, latency: Latency) -> Sequence[Line]:
    """Return the lines of `stats latency`, with waits the longest latency first."""
    lines: list[Line] = latency.rows(board.names, by=board.settings["by"])
    if board.settings["waits"]:
        lines.sort(key=lambda line: -(line["p95"] or 0))
    return lines


def _words(board: Board) -> str:
    by = board.settings["by"]
    return "" if by == WAYS[0] else f" --by {','.join(by)}"


def _remark(board: Board) -> str:
    waits = board.settings["waits"]
    what = "latency with waits" if waits else "excess: latency without waits"
    return f"{what}   W changes"


def _charts(board: Board, line: Line) -> Content:
    """Return both charts side by side, or the histogram where there is no room for two."""
    width = board.room[0]
    if width < BOTH:
        return _histogram(board, line)
    half = width // 2 - 1
    left = _histogram(board, line, half)
    return beside(left, _heat(board, line, width - half - 2), half + 2)


def _histogram(board: Board, line: Line, width: int = 0) -> list[Spans]:
    latency, by, waits = board.statistic("latency"), board.settings["by"], board.settings["waits"]
    key = _key(board, line)
    counts = Histogram()
    for parts, times in () if latency is None else latency.keyed(by):
        if tuple(parts.values()) == key:
            counts = times.latency if waits else times.beyond_wait
    name = "  ".join(str(part) for part in key if part is not None)
    title = f"{name}: {'latency' if waits else 'excess'} of {counts.count:,}"
    height = max(2, _height(board) - 5)
    return [[(title, "header")], *histogram(counts, width or board.room[0], height)]


def _heat(board: Board, line: Line, width: int = 0) -> list[Spans]:
    activity, waits = board.activity(line), board.settings["waits"]
    title: Spans = [("over time", "header")]
    title += [("   w", "wait"), (" long poll", "dim")] if waits else []
    title += [("   !", "!"), (" failed", "dim")]
    title += [(f"   {COUNTING}", "dim")] if activity.behind else []
    height = max(3, _height(board) - 2)
    chart = activity.heat(width or board.room[0], height, board.clock(), waits=waits)
    return [title, *chart]


def _height(board: Board) -> int:
    return max(5, min(board.room[1], 24))


BOARD: Final = BoardSpec(
    number=6,
    statistic="latency",
    command="kafkascope latency {}",
    help=(
        "Latency runs from the first byte of a request to the last byte of its response. Wait "
        "is the part that the client requested: long polls, forming groups. Excess is the rest;"
        " for a Fetch at the end of the log, the time beyond max_wait_ms. Request and Response "
        "are the transfers of their bytes, Server is the broker's time without waits, RTT the "
        "round trip to the broker. The table is sorted "
        "by excess, so that slow requests come before long polls. W includes the waits."
    ),
    tabs={
        "Charts": OVER_TIME._replace(show=_charts),
        "Histogram": Tab(_histogram),
        "Over time": OVER_TIME._replace(show=_heat),
    },
    sheet=_sheet,
    identity=_key,
    lines=_lines,
    evidence=lambda board, line: evidence.both(evidence.of_api(line), "answered"),
    words=_words,
    remark=_remark,
    keys=(
        Key("latency.waits", "W", "switch('waits')", "Include or exclude long-poll waits"),
        Key("latency.by", "B", "switch('by')", "Group by API, client, broker, version"),
    ),
    choices={"by": WAYS, "waits": (False, True)},
    empty="No responses in the capture",
)
