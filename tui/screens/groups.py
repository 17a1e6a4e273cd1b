"""Screen 5: groups; the timeline of one above its rebalances, its members, its delivery."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding

from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.model import Rebalance
from kafkascope.analyzer.statistics.groups.timeline import TICK
from kafkascope.analyzer.text import wrapped
from kafkascope.tui.keys import Key
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.audit import audited
from kafkascope.tui.screens.board import told
from kafkascope.tui.screens.charted import ChartedBoard, shortened
from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.lanes import around, lanes
from kafkascope.tui.screens.panes import Still
from kafkascope.tui.screens.sheet import Sheet

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kafkascope.analyzer.statistics.groups.model import Story
    from kafkascope.analyzer.statistics.model import Line

WIDTH = 76
"""Sentences are wrapped there, so that the narrowest terminal shows them."""
SHORT_NS = 1_500_000_000
"""Between two times of the scale, below which milliseconds matter."""
CAUSES = {"expired": "!", "fenced": "!", "left": "", "unknown": "dim"}


class GroupsBoard(ChartedBoard):
    """Groups by rebalances."""

    NUMBER = 5
    TITLE = "Groups"
    STATISTICS = ("groups", "delivery", "cluster")
    COMMAND = "kafkascope groups {}"
    TABS = ("Timeline", "Members", "Delivery", "Audit", "Plans", "Over time")
    EMPTY = "no traffic of a group in the capture"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("groups.zoom", "z", "z", "zoom_lanes", "zoom the timeline to the rebalance, and back"),
    )
    HELP = (
        "Groups with how often they rebalanced and why. The timeline has a lane per member; below "
        "it stands each rebalance with its cause and who was last to be ready. Move in that list: "
        "the arrows above the lanes follow, z zooms in, Enter opens the messages. Delivery "
        "holds what was fetched and committed against the end of each partition; Audit what was "
        "delivered twice, skipped or lost; Plans who assigned what to whom."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in KEYS
    ]

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self.lanes = Still(scene.glyphs, id="groupsboard-lanes")
        self.close = False
        self._story: Story | None = None
        self._audit: tuple[Any, Audit] | None = None
        """The accumulator, and what is read out of it."""

    def compose(self) -> ComposeResult:
        """The lanes stand between the tabs and what they say."""
        yield self.note
        yield self.upper
        yield self.tabs
        yield self.lanes
        self.low_sheet.add_class("lower")
        self.low_text.add_class("lower")
        yield self.low_sheet
        yield self.low_text

    def make_sheet(self) -> Sheet:
        """As `groups`."""
        return Sheet(
            [column for column in Groups.COLUMNS if not column.wide],
            alarms={"errors": "!", "rebalances": "?"},
            keep=("rebalances", "members", "active", "causes", "protocol"),
        )

    def lines(self) -> Sequence[Line] | None:
        """As `groups`."""
        found = self.statistic("groups")
        self._story = None
        return None if found is None else found.rows(self.names)

    @property
    def names(self) -> Any:
        """Of topics that have only an id."""
        return self.scene.store.session.context.names

    def evidence(self, line: Line) -> str:
        """A group."""
        return evidence.of_group(line)

    def low_evidence(self, tab: str, line: Line) -> str:
        """A rebalance, a member, a partition."""
        if tab == "Timeline":
            return evidence.of_rebalance(line)
        if tab == "Members":
            return evidence.of_member(line)
        if tab in ("Audit", "Plans") and line.get("number"):
            return f"number == {line['number']}"
        return evidence.both(evidence.of_group(line), evidence.of_topic(line))

    def command(self) -> str:
        """Of the group under the cursor."""
        group = self.line["group"] if self.line else ""
        return f"{self.COMMAND} --group {quote(group)} --timeline" if group else self.COMMAND

    def said(self) -> str:
        """A hint."""
        return "tab to the rebalances, z zooms" if self.tab == "Timeline" else ""

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """What there is about a group."""
        group = line["group"]
        if tab == "Over time":
            return self.chart_tab(line, width, height)
        if tab in ("Delivery", "Audit", "Plans"):
            return self._audit_tab(tab, group)
        found = self.statistic("groups")
        if found is None:
            return []
        if tab == "Members":
            columns = [c for c in Groups.MEMBER_COLUMNS if not c.wide]
            sheet = Sheet(
                columns,
                tones={"state": lambda value: {"expired": "!", "fenced": "!"}.get(value, "")},
                keep=("client", "host", "state", "text"),
            )
            sheet.fill(found.members(group, self.names), self.scene.times())
            return sheet
        self._story = found.story(group)
        lines = found.rebalances(group)
        if not lines:
            return told([[(self.worded("no rebalance in the capture"), "dim")]])
        sheet = Sheet(
            [column for column in Groups.REBALANCE_COLUMNS if not column.wide],
            tones={"cause": lambda value: CAUSES.get(value, "label")},
            keep=("cause", "text", "duration", "generation"),
        )
        sheet.fill(lines, self.scene.times())
        return sheet

    def _audit_tab(self, tab: str, group: str) -> Sheet | Sequence[Told]:
        delivery = self.statistic("delivery")
        if delivery is None:
            return told([[("counting ...", "dim")]])
        if self._audit is None or self._audit[0] is not delivery:
            cluster, groups = self.statistic("cluster"), self.statistic("groups")
            self._audit = delivery, Audit(delivery, groups, cluster, self.names)
        sheet, empty = audited(self._audit[1], tab, group, self.scene.times())
        if not sheet.lines:
            lines = wrapped(self.worded(empty), WIDTH, breaks=True)
            return told([[(line, "dim")] for line in lines])
        return sheet

    # --- lanes ------------------------------------------------------------------------------

    def refill_lower(self) -> None:
        """The lanes belong to the tab."""
        super().refill_lower()
        self.draw_lanes()

    def low_moved(self) -> None:
        """The pointer follows the list of rebalances."""
        self.draw_lanes()

    def draw_lanes(self) -> None:
        """Lanes of the group under the cursor."""
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
        clock = shortened(self.scene.times().text, short=short)
        lines = lanes(story, width, clock, shown=shown, zoomed=self.close, so_far=bool(self.so_far))
        self.lanes.show(told(lines))
        room = max(3, self.size.height - (0 if self.alone else self.upper_height()) - 6)
        self.lanes.styles.height = min(len(lines), room)
        self.lanes.display = True

    def rebalance(self) -> Rebalance | None:
        """The one under the cursor of the list, when that has the focus or the zoom is on it."""
        line = self.low_table.line
        if line is None or self._story is None or "generation" not in line:
            return None
        if not (self.low_table.has_focus or self.close):
            return None
        return next(
            (
                each
                for each in self._story.rebalances
                if each.begin_ns == line["time"] and each.number == line["number"]
            ),
            None,
        )

    def action_zoom_lanes(self) -> None:
        """Around the rebalance, or all."""
        self.close = not self.close
        self.draw_lanes()
