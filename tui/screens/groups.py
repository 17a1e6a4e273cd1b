"""Screen 5: groups; the timeline of one above its rebalances, its members, its delivery."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from shlex import quote
from typing import Any, Final

from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.model import (
    EVENT_COLUMNS,
    PARTITION_COLUMNS,
    PLAN_COLUMNS,
    unaudited,
)
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.model import Rebalance, Story
from kafkascope.analyzer.statistics.groups.timeline import Scale, lanes_of, scale_clock, title_of
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroups
from kafkascope.analyzer.text import columns_taken, cut, padded, wrapped
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Key
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import COUNTING, OVER_TIME, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.charts import spark
from kafkascope.tui.screens.panes import StaticLines
from kafkascope.tui.screens.sheet import ELSE, Sheet, Spans, narrow

ROLES: Final = {"=": "bar", ".": "dim", "J": "?", "S": "label", "x": "!", "l": "dim"}
SIGNS: Final = str.maketrans({"=": "━", ".": "·"})
"""Signs of the printed timeline -> signs for screens with more than ASCII."""
# Columns for how a member ended, beside the lanes.
NOTE: Final = 34
LEAST: Final = 24
WORDS: Final = (
    ("J", "join"),
    (".", "waiting"),
    ("S", "sync"),
    ("=", "stable"),
    ("l", "left"),
    ("x", "evicted"),
)


def lanes(
    story: Story,
    width: int,
    clock: Callable[[int], str],
    *,
    shown: Rebalance | None = None,
    zoomed: bool = False,
    so_far: bool = False,
) -> list[Spans]:
    """Draw title, scale, a lane per member and legend, with a pointer at the rebalance `shown`.
    `zoomed`: only what is around that; `so_far`: more may come."""
    first, last = story.first_ns, story.last_ns
    if zoomed and shown is not None:
        first, last = around(shown, first, last)
    labels = [lane.label for lane in lanes_of(story, Scale(first, last, 10))]
    margin = min(max(map(columns_taken, labels), default=0) + 1, max(10, width // 4))
    noted = width - margin - NOTE >= 2 * LEAST
    size = max(10, width - margin - 3 - (NOTE if noted else 0))
    scale = Scale(first, last, size)
    more = "   so far" if so_far else ""
    ticks = f" {'':{margin}}{scale.ticks(clock)}".rstrip()
    out: list[Spans] = [[(f" {title_of(story)}{more}", "header")], [(ticks, "dim")]]
    if shown is not None:
        out.append(_pointer(shown, scale, margin))
    for lane in lanes_of(story, scale):
        line: Spans = [(f" {padded(cut(lane.label, margin - 1), margin)}", "")]
        for sign, run in groupby(lane.cells):
            line.append((sign.translate(SIGNS) * len(list(run)), ROLES.get(sign, "")))
        if noted:
            # A member that fell silent gets a colour.
            line.append((f"  {lane.text}", "!" if "x" in lane.cells else "dim"))
        out.append(line)
    hidden = len(story.members) - len(labels)
    if hidden:
        out.append([(f" {hidden} earlier members omitted", "dim")])
    legend: Spans = [(" ", "")]
    for sign, text in WORDS:
        legend += [(sign.translate(SIGNS), ROLES[sign]), (f" {text}   ", "dim")]
    return [*out, legend]


def around(shown: Rebalance, first: int, last: int) -> tuple[int, int]:
    """Return a stretch of time that shows a rebalance and what came before and after."""
    end = shown.end_ns or shown.begin_ns
    room = max(1_000_000_000, 2 * (end - shown.begin_ns))
    return max(first, shown.begin_ns - room), min(last, end + room)


def _pointer(shown: Rebalance, scale: Scale, margin: int) -> Spans:
    begin = scale.column(shown.begin_ns)
    end = scale.column(shown.end_ns or shown.begin_ns)
    text = "▼" if begin == end else f"▼{'─' * (end - begin - 1)}▼"
    return [(f" {'':{margin}}{'':{begin}}", ""), (text, "mark")]


# --- the delivery audit: partitions with their lag, what went wrong, plans ------------------------

# Columns of the lag over time.
LAG_WIDTH: Final = 16
LAG: Final = Column("lag_over_time")
KINDS: Final = {
    **dict.fromkeys(("beyond", "back", "gone", "lost", "twice"), "!"),
    "again": "?",
    "none": "?",
    ELSE: "label",
}
"""Kind of an event -> its role."""


def audited(audit: Audit, tab: str, group: str, times: Times) -> tuple[Sheet, str]:
    """Return the table of a tab, and the sentence to show when it is empty."""
    if audit.groups is not None and "share" in audit.groups.protocols(group):
        return Sheet(()), unaudited(group)
    make, empty = TABLES[tab]
    sheet, lines = make(audit, group)
    return sheet.fill(lines, times), empty


def _partitions(audit: Audit, group: str) -> tuple[Sheet, list[Line]]:
    columns = narrow(PARTITION_COLUMNS, "group")
    columns.insert([column.name for column in columns].index("lag") + 1, LAG)
    lags = {(each.topic, each.number): each.lags() for each in audit.found if each.group == group}
    lines = audit.partitions(group)
    for line in lines:
        line[LAG.name] = lag_line(lags.get((line["topic"], line["partition"]), []))
    offsets = ("partition", "committed_offset", "end_offset", "lag", "fetched_offset")
    alarms = {"beyond": "!", "back": "!", "again": "?", "lag": "?"}
    keep = (*offsets, LAG.name, "remarks")
    return Sheet(columns, alarms=alarms, tones={LAG.name: {ELSE: "bar"}}, keep=keep), lines


def lag_line(points: list[tuple[int, int]]) -> str:
    """Draw the largest lag in each slice of the time in which it is known."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    step = max(1, -(-(last - first + 1) // LAG_WIDTH))
    found: list[int | None] = [None] * LAG_WIDTH
    for time_ns, lag in points:
        at = max(0, min(LAG_WIDTH - 1, (time_ns - first) // step))
        found[at] = max(found[at] or 0, lag)
    # Between two points the lag is what it was.
    values: list[int] = []
    for value in found:
        values.append(value if value is not None else values[-1] if values else 0)
    return spark(values).replace(" ", "·")


def _events(audit: Audit, group: str) -> tuple[Sheet, list[Line]]:
    columns, keep = narrow(EVENT_COLUMNS, "group"), ("kind", "text", "topic", "partition")
    return Sheet(columns, tones={"kind": KINDS}, keep=keep), audit.events(group)


def _plans(audit: Audit, group: str) -> tuple[Sheet, list[Line]]:
    sheet = Sheet(
        narrow(PLAN_COLUMNS, "group"),
        alarms={"needless": "?"},
        tones={"unassigned": lambda value: "!", "twice": lambda value: "!"},
        keep=("generation", "assignor", "members", "same_as", "moved"),
    )
    return sheet, audit.plans(group)


TABLES: Final = {
    "Delivery": (_partitions, "this group fetched and committed nothing in the capture"),
    "Audit": (_events, "nothing was lost, skipped or delivered twice, as far as seen"),
    "Plans": (_plans, "no assignment of this group is in the capture"),
}
"""Tab -> what makes its table and lines, and the sentence where there are none."""

# --- the board ------------------------------------------------------------------------------------

# Columns of wrapped sentences: the narrowest usual terminal shows them.
WIDTH: Final = 76
EVICTED: Final = {"expired": "!", "fenced": "!"}
CAUSES: Final = {**EVICTED, "left": "", "unknown": "dim", ELSE: "label"}
TIMELINE: Final = "Timeline"


class GroupsBoard(Board):
    """Shows the lanes of a group above the list of its rebalances."""

    def __init__(self, host: Host, spec: BoardSpec) -> None:
        super().__init__(host, spec)
        self.lanes = self.above_tab = StaticLines(host.glyphs)
        self.lanes.opened = self.action_open_line
        self._story: Story | None = None
        self._kept: KeptGroups | None = None
        """Groups of consumers before 0.9."""
        self._audit: tuple[Any, Audit] | None = None
        """The accumulator of deliveries, and the audit of it."""

    def known(self, groups: Groups) -> list[Line]:
        """Return the lines of `groups`, and those of groups that ZooKeeper keeps."""
        self._story, keeper = None, self.statistic("zookeeper")
        self._kept = None if keeper is None else KeptGroups(keeper.stories())
        return [*groups.rows(self.names), *([] if self._kept is None else self._kept.lines())]

    def members(self, line: Line) -> Content:
        groups, group = self.statistic("groups"), line["group"]
        if groups is None:
            return []
        sheet = Sheet(
            narrow(Groups.MEMBER_COLUMNS),
            tones={"state": EVICTED},
            keep=("client_id", "client_address", "state", "text"),
        )
        kept = self._kept if "path" in line else None
        lines = groups.members(group, self.names) if kept is None else kept.members(group)
        return sheet.fill(lines, self.host.times())

    def rebalances(self, line: Line) -> Content:
        groups, group = self.statistic("groups"), line["group"]
        if groups is None:
            return []
        kept = self._kept if "path" in line else None
        self._story = groups.story(group) if kept is None else None
        lines = (kept or groups).rebalances(group)
        sheet = Sheet(
            narrow(Groups.REBALANCE_COLUMNS),
            tones={"cause": CAUSES},
            keep=("cause", "text", "duration", "generation"),
        )
        return self.listed(sheet, lines, "no rebalance in the capture")

    def audit(self, line: Line, tab: str) -> Content:
        """Return a table of the delivery of a group."""
        delivery = self.statistic("delivery")
        if delivery is None:
            return COUNTING
        if self._audit is None or self._audit[0] is not delivery:
            cluster, groups = self.statistic("cluster"), self.statistic("groups")
            self._audit = delivery, Audit(delivery, groups, cluster, self.names)
        sheet, empty = audited(self._audit[1], tab, line["group"], self.host.times())
        if not sheet.lines:
            lines = wrapped(self.worded(empty), WIDTH, breaks=True)
            return [[(text, "dim")] for text in lines]
        return sheet

    # --- lanes ------------------------------------------------------------------------------

    def enter_timeline(self) -> None:
        """Go into the timeline of the group; from its rebalances to exchanges."""
        if not self.below and self.line is not None:
            self.host.shell.push_view()
            self.tab = TIMELINE
            self.refill_lower()
            self.enter_lower()
        else:
            self.open_exchanges()

    def follow_low_cursor(self) -> None:
        """Draw the lanes of the group, with a pointer at the rebalance under the cursor."""
        story = self._story
        if self.tab != TIMELINE or story is None or not self.titles.display or self.line is None:
            self.lanes.display = False
            return
        width = max(30, self.size.width - 2)
        shown, zoomed = self.rebalance(), self.settings["close"]
        first, last = story.first_ns, story.last_ns
        if zoomed and shown is not None:
            first, last = around(shown, first, last)
        clock = scale_clock(self.host.times().text, last - first, max(10, width - 60))
        lines = lanes(story, width, clock, shown=shown, zoomed=zoomed, so_far=bool(self.so_far))
        self.lanes.show(lines)
        above = 0 if self.one_pane else self.upper_height()
        self.lanes.styles.height = min(len(lines), max(3, self.size.height - above - 6))
        self.lanes.display = True

    def rebalance(self) -> Rebalance | None:
        """Return the rebalance under the cursor, while its list has the focus or is zoomed to."""
        line = self.low_table.line
        if line is None or self._story is None or "generation" not in line:
            return None
        if not (self.low_table.has_focus or self.settings["close"]):
            return None
        key = (line["time"], line["number"])
        rebalances = self._story.rebalances
        return next((each for each in rebalances if (each.begin_ns, each.number) == key), None)

    def zoom_lanes(self) -> None:
        """Zoom the timeline to the rebalance, or back."""
        self.settings["close"] = not self.settings["close"]
        self.follow_low_cursor()


def _evidence(board: GroupsBoard, line: Line) -> str:
    return evidence.of_kept_group(line["path"]) if "path" in line else evidence.of_group(line)


def _number(board: GroupsBoard, line: Line) -> str:
    return f"number == {line['number']}" if line.get("number") else _delivered(board, line)


def _delivered(board: GroupsBoard, line: Line) -> str:
    return evidence.both(evidence.of_group(line), evidence.of_topic(line))


def _path(board: GroupsBoard) -> str:
    """Return the node that keeps the group of the tab; empty for groups of brokers."""
    return "" if board.line is None else board.line.get("path", "")


def _rebalance(board: GroupsBoard, line: Line) -> str:
    if not _path(board):
        return evidence.of_rebalance(line)
    return f"number == {line['number']}" if line["number"] else ""


def _member(board: GroupsBoard, line: Line) -> str:
    path = _path(board)
    return (
        evidence.of_kept_group(path, f"ids/{line['member']}") if path else evidence.of_member(line)
    )


def _audit(tab: str, of_line: Callable[[Any, Line], str]) -> Tab:
    return Tab(partial(GroupsBoard.audit, tab=tab), of_line)


def _words(board: GroupsBoard) -> str:
    group = board.line["group"] if board.line else ""
    return f" --group {quote(group)} --timeline" if group else ""


BOARD: Final = BoardSpec(
    number=5,
    statistic="groups",
    command="kafkascope groups {}",
    help=(
        "Groups with the number and causes of their rebalances. Enter goes into the timeline: a"
        " lane for each member, and below it each rebalance with its cause and the slowest "
        "member. Move there, and the arrows above the lanes follow; z zooms; Enter shows the "
        "exchanges of the rebalance. Delivery compares fetched and committed offsets with the "
        "end of each partition. Audit lists redelivered, skipped and lost records. Plans shows "
        "assignments. Groups of consumers before 0.9 are read from ZooKeeper."
    ),
    tabs={
        TIMELINE: Tab(GroupsBoard.rebalances, _rebalance),
        "Members": Tab(GroupsBoard.members, _member),
        "Delivery": _audit("Delivery", _delivered),
        "Audit": _audit("Audit", _number),
        "Plans": _audit("Plans", _number),
        "Over time": OVER_TIME,
    },
    sheet=lambda board: Sheet(
        narrow(Groups.COLUMNS),
        alarms={"failed": "!", "rebalances": "?"},
        keep=("rebalances", "members", "active", "causes", "protocol"),
    ),
    lines=GroupsBoard.known,
    evidence=_evidence,
    words=_words,
    keys=(Key("groups.zoom", "z", "call('zoom')", "Zoom the timeline to the rebalance, or out"),),
    choices={"close": (False, True)},
    actions={"zoom": GroupsBoard.zoom_lanes, "open": GroupsBoard.enter_timeline},
    enter="timeline",
    empty="No consumer groups in the capture",
    board=GroupsBoard,
)
