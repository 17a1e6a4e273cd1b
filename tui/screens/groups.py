"""Screen 5: groups; the timeline of one above its rebalances, its members, its delivery."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any

from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.model import Rebalance, Story
from kafkascope.analyzer.statistics.groups.timeline import TICK
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroup, KeptGroups
from kafkascope.analyzer.text import wrapped
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Hint, Key, bindings
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.audit import audited
from kafkascope.tui.screens.charted import ChartedBoard, shortened
from kafkascope.tui.screens.lanes import around, lanes
from kafkascope.tui.screens.panes import StaticLines
from kafkascope.tui.screens.sheet import Sheet, TextLine, text_lines

WIDTH = 76
"""Columns of wrapped sentences: the narrowest usual terminal shows them."""
SHORT_NS = 1_500_000_000
"""Time between two ticks of the scale below which milliseconds matter."""
CAUSES = {"expired": "!", "fenced": "!", "left": "", "unknown": "dim"}


class GroupsBoard(ChartedBoard):
    """Shows groups, those with the most rebalances first."""

    NUMBER = 5
    TITLE = "Groups"
    STATISTICS = ("groups", "delivery", "cluster", "zookeeper")
    COMMAND = "kafkascope groups {}"
    TABS = ("Timeline", "Members", "Delivery", "Audit", "Plans", "Over time")
    EMPTY = "No consumer groups in the capture"
    KEYS = (
        Key(
            "groups.zoom",
            "z",
            "z",
            "zoom_lanes",
            "Zoom the timeline to the rebalance, or out",
            (
                Hint("table", 3, "zoom"),
                Hint("tab", 2, "zoom"),
            ),
        ),
    )
    BINDINGS = bindings(KEYS)
    ENTER = "timeline"
    VIEW = (*ChartedBoard.VIEW, "close")
    HELP = (
        "Groups with the number and causes of their rebalances. Enter goes into the timeline: a"
        " lane for each member, and below it each rebalance with its cause and the slowest "
        "member. Move there, and the arrows above the lanes follow; z zooms; Enter shows the "
        "exchanges of the rebalance. Delivery compares fetched and committed offsets with the "
        "end of each partition. Audit lists redelivered, skipped and lost records. Plans shows "
        "assignments. Groups of consumers before 0.9 are read from ZooKeeper."
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.lanes = self.above_tab = StaticLines(host.glyphs, id="groupsboard-lanes")
        self.close = False
        """Whether the timeline is zoomed to a rebalance."""
        self._story: Story | None = None
        self._kept: KeptGroups | None = None
        """Groups of consumers before 0.9."""
        self._audit: tuple[Any, Audit] | None = None
        """The accumulator of deliveries, and the audit of it."""

    def make_sheet(self) -> Sheet:
        """Return the columns of `groups`."""
        return Sheet(
            [column for column in Groups.COLUMNS if not column.wide],
            alarms={"failed": "!", "rebalances": "?"},
            keep=("rebalances", "members", "active", "causes", "protocol"),
        )

    def lines_of(self, found: Any) -> Sequence[Line]:
        """Return the lines of `groups`, and those of groups that ZooKeeper keeps."""
        self._story = None
        keeper = self.statistic("zookeeper")
        self._kept = None if keeper is None else KeptGroups(keeper.stories())
        return [*super().lines_of(found), *([] if self._kept is None else self._kept.lines())]

    def kept(self, group: str) -> KeptGroup | None:
        """Return what ZooKeeper keeps of a group; None of groups of brokers."""
        if self.line is None or "path" not in self.line or self._kept is None:
            return None
        return self._kept.groups.get(group)

    def evidence(self, line: Line) -> str:
        """Return the filter for a group."""
        if "path" in line:
            return evidence.of_kept_group(line["path"])
        return evidence.of_group(line)

    def low_evidence(self, tab: str, line: Line) -> str:
        """Return the filter for a rebalance, a member or a partition."""
        kept = self.kept(line.get("group", ""))
        if kept is not None and tab == "Timeline":
            return f"number == {line['number']}" if line["number"] else ""
        if kept is not None and tab == "Members":
            return evidence.of_kept_group(kept.path, f"ids/{line['member']}")
        if tab == "Timeline":
            return evidence.of_rebalance(line)
        if tab == "Members":
            return evidence.of_member(line)
        if tab in ("Audit", "Plans") and line.get("number"):
            return f"number == {line['number']}"
        return evidence.both(evidence.of_group(line), evidence.of_topic(line))

    def command(self) -> str:
        """Return the command for the group under the cursor."""
        group = self.line["group"] if self.line else ""
        return f"{self.COMMAND} --group {quote(group)} --timeline" if group else self.COMMAND

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return the table of a tab about a group, or the chart over time."""
        group = line["group"]
        if tab == "Over time":
            return self.chart_tab(line, width, height)
        if tab in ("Delivery", "Audit", "Plans"):
            return self._audit_tab(tab, group)
        found = self.statistic("groups")
        if found is None:
            return []
        old = self._kept if self.kept(group) is not None else None
        if tab == "Members":
            members = Sheet(
                [column for column in Groups.MEMBER_COLUMNS if not column.wide],
                tones={"state": lambda value: {"expired": "!", "fenced": "!"}.get(value, "")},
                keep=("client_id", "client_address", "state", "text"),
            )
            told = found.members(group, self.names) if old is None else old.members(group)
            return members.fill(told, self.host.times())
        self._story = found.story(group) if old is None else None
        lines = (found if old is None else old).rebalances(group)
        if not lines:
            return text_lines([[(self.worded("no rebalance in the capture"), "dim")]])
        rebalances = Sheet(
            [column for column in Groups.REBALANCE_COLUMNS if not column.wide],
            tones={"cause": lambda value: CAUSES.get(value, "label")},
            keep=("cause", "text", "duration", "generation"),
        )
        return rebalances.fill(lines, self.host.times())

    def _audit_tab(self, tab: str, group: str) -> Sheet | Sequence[TextLine]:
        delivery = self.statistic("delivery")
        if delivery is None:
            return text_lines([[("Counting ...", "dim")]])
        if self._audit is None or self._audit[0] is not delivery:
            cluster, groups = self.statistic("cluster"), self.statistic("groups")
            self._audit = delivery, Audit(delivery, groups, cluster, self.names)
        sheet, empty = audited(self._audit[1], tab, group, self.host.times())
        if not sheet.lines:
            lines = wrapped(self.worded(empty), WIDTH, breaks=True)
            return text_lines([[(line, "dim")] for line in lines])
        return sheet

    # --- lanes ------------------------------------------------------------------------------

    def refill_lower(self) -> None:
        """Fill the tab and draw the lanes above it."""
        super().refill_lower()
        self.draw_lanes()

    def action_open_line(self) -> None:
        """Go into the timeline of the group; from its rebalances to exchanges."""
        if not self.below and self.line is not None:
            self.host.shell.push_view()
            self.tab = self.TABS[0]
            self.refill_lower()
            self.enter_lower()
        else:
            self.open_exchanges()

    def low_moved(self) -> None:
        """Point at the rebalance under the cursor."""
        self.draw_lanes()

    def draw_lanes(self) -> None:
        """Draw the lanes of the group under the cursor."""
        story = self._story
        wanted = self.tab == "Timeline" and story is not None and self.tabs.display
        if not wanted or story is None or self.line is None:
            self.lanes.display = False
            return
        width = max(30, self.size.width - 2)
        shown = self.rebalance()
        first, last = story.first_ns, story.last_ns
        if self.close and shown is not None:
            first, last = around(shown, first, last)
        short = (last - first) * TICK < SHORT_NS * max(10, width - 60)
        clock = shortened(self.host.times().text, short=short)
        lines = lanes(story, width, clock, shown=shown, zoomed=self.close, so_far=bool(self.so_far))
        self.lanes.show(text_lines(lines))
        room = max(3, self.size.height - (0 if self.alone else self.upper_height()) - 6)
        self.lanes.styles.height = min(len(lines), room)
        self.lanes.display = True

    def rebalance(self) -> Rebalance | None:
        """Return the rebalance under the cursor, while its list has the focus or is zoomed to."""
        line = self.low_table.line
        if line is None or self._story is None or "generation" not in line:
            return None
        if not (self.low_table.has_focus or self.close):
            return None
        wanted = (line["time"], line["number"])
        found = (each for each in self._story.rebalances if (each.begin_ns, each.number) == wanted)
        return next(found, None)

    def action_zoom_lanes(self) -> None:
        """Zoom the timeline to the rebalance, or back."""
        self.close = not self.close
        self.draw_lanes()
