"""The lines around the panes: header, titles, tabs, the state of the filter, hints."""

from __future__ import annotations

from typing import Final

from rich.style import Style

from kafkascope.analyzer.text import padded, plural
from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.controllers.filter import FilterController
from kafkascope.tui.controllers.findings import FindingsController
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.panes import PanesController
from kafkascope.tui.document.tree import TABS
from kafkascope.tui.screens import SCREENS
from kafkascope.tui.settings.palette import NORMAL, STYLES
from kafkascope.tui.views.splitter import tab_titles

FOOTERS: Final = (
    " / filter   Enter open   f follow   e error   1-9 screens   ? keys   q quit",
    " Enter exchanges   tab pane   R next tab   1-9 screens   ? keys   q back",
    " Tab take   up down choose   Enter apply   Esc leave and clear",
    " Enter do it   Esc leave",
)
TITLE: Final = 30
"""Columns of the header that the name of the input and of the screen keep."""
REMARK_S: Final = 30.0
"""Seconds that a remark about the capture stays."""


class StatusController(Controller):
    """Writes the lines around the panes; the one controller that asks most others."""

    def __init__(
        self,
        context: Context,
        panes: PanesController,
        filter_: FilterController,
        order: OrderController,
        inspector: InspectorController,
        findings: FindingsController,
    ) -> None:
        super().__init__(context)
        self.panes, self.filter, self.order = panes, filter_, order
        self.inspector, self.findings = inspector, findings
        self._remark = ""

    def update(self) -> None:
        """Write header, heading, tabs, filter state and footer."""
        write = self.shell.write
        write("header", self.header(self.shell.size.width), NORMAL)
        width = max(1, self.list.scrollable_content_region.width)
        write("heading", self.list.heading(width), NORMAL)
        write("tabs", self.tabs(self.panes.lower.size.width), NORMAL)
        write("filterstate", *self.filter_state())
        write("footer", *self.footer())

    def remark(self, text: str) -> None:
        """Show a remark in the footer for a while: a notification would cover the detail."""
        self._remark = text
        self.shell.update_status()
        if text:
            self.shell.set_timer(REMARK_S, lambda: self.remark(""))

    def header(self, width: int) -> str:
        """Return the input, the screen, how much is shown and what is going on."""
        workspace, host = self.workspace, self.shell.host
        total, shown = len(workspace.store), len(workspace.view)
        count = plural(total, "exchange")
        if workspace.view.wanted:
            count = f"{shown:,} of {total:,} shown"
        if workspace.notes.ignored:
            count += f", {len(workspace.notes.ignored):,} ignored"
        state = f"{workspace.activity}  ctrl+c stops" if workspace.activity else self._reading()
        endless = workspace.endless
        order = self.order
        tail = "newest row" if order.following else "End: newest" if endless else ""
        screen = SCREENS[host.number][0] if host.number in SCREENS else ""
        title = f" kafkascope  {workspace.name}   {screen}".rstrip()
        counting = "" if endless else host.board_so_far()
        parts = [count, self.findings.words(), order.clock_words(), tail, counting, state]
        # What matters least goes first when there is no room.
        for least in (2, 1, 0) if counting or state else (2, 1):
            if len("   ".join(filter(None, parts))) + 1 + TITLE > width:
                parts[least] = ""
        right = "   ".join(filter(None, parts)) + " "
        room = max(1, width - len(right) - 1)
        return f"{padded(self.shell.glyphs.text(title), room)} {right}"

    def _reading(self) -> str:
        progress = self.workspace.store.progress
        if progress.failure:
            return "! incomplete"
        if progress.stopped and progress.done:
            return "stopped"
        if progress.done:
            return ""
        if progress.following:
            return "following  ctrl+c stops"
        if 0 < progress.read < progress.size:
            share = 100 * progress.read // progress.size
            return f"reading {share} %{progress.left()}  ctrl+c stops"
        word = "live" if progress.ring else "reading"
        return f"{word}{progress.rate()}  ctrl+c stops"

    def tabs(self, width: int) -> str:
        """Return the titles of the tabs and the range of bytes of the field."""
        inspector = self.inspector
        tabs = tab_titles(TABS, inspector.tab)
        item, space = self.detail.item, self.hex.space
        place = space.name if space is not None else ""
        if item is not None and item.end > item.start and space is inspector.space_of(item):
            place = f"{place}  {item.label}: bytes {item.start}-{item.end - 1}"
        return f"{tabs}{' ' * max(1, width - len(tabs) - len(place) - 1)}{place}"

    def filter_state(self) -> tuple[str, Style]:
        """Return the error of the filter, or how far it is, with its style."""
        view, error = self.workspace.view, self.filter.error
        if error:
            return error, STYLES["!"]
        if not view.text:
            return "", NORMAL
        if view.behind:
            return f"scanning {int(100 * view.scanned)} %", STYLES["dim"]
        if "finding" in view.text and (pending := self.findings.pending()):
            return f"{pending}: partial", STYLES["dim"]
        return f"valid{', fast' if view.fast else ''}", STYLES["label"]

    def footer(self) -> tuple[str, Style]:
        """Return the remark, or the keys of what has the focus, with its style."""
        focused = self.shell.focused
        name = focused.id if focused is not None else None
        which = {"filter": 2, "prompt": 3}.get(name or "", int(self.shell.host.board is not None))
        if self._remark and which == 0:
            return f" {self._remark}   {FOOTERS[0]}", STYLES["?"]
        return FOOTERS[which], STYLES["dim"]
