"""The lines around the panes: header, titles, tabs, the state of the filter, hints."""

from __future__ import annotations

from typing import Final

from rich.style import Style

from kafkascope.analyzer.text import padded, plural
from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.controllers.filter import FilterController
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.navigation import NavigationController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.panes import PanesController
from kafkascope.tui.controllers.reading import FindingsController
from kafkascope.tui.controllers.table import KEYS
from kafkascope.tui.document.tree import TABS
from kafkascope.tui.keys import BOARD_KEYS, BOXES, HELP_KEY, footer
from kafkascope.tui.settings.palette import NORMAL, STYLES
from kafkascope.tui.views.screen_tabs import tab_titles

PANES: Final = {"exchanges": "list", "detail": "detail", "hex": "hex"}
"""Id of a pane -> its name in the hints of keys."""
# Columns of the header that the name of the input and of the screen keep.
TITLE: Final = 38
# Seconds that a remark about the capture stays.
REMARK_S: Final = 30.0


class StatusController(Controller):
    """Writes the lines around the panes; the one controller that asks most others."""

    def __init__(
        self,
        context: ControllerContext,
        panes: PanesController,
        navigation: NavigationController,
        filter_: FilterController,
        order: OrderController,
        inspector: InspectorController,
        findings: FindingsController,
    ) -> None:
        super().__init__(context)
        self.panes, self.navigation, self.filter, self.order = panes, navigation, filter_, order
        self.inspector, self.findings = inspector, findings
        self._remark = ""
        self.list.widened = self.shell.update_status

    def update(self) -> None:
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
        work, order = self.workspace, self.order
        count = plural(len(work.store), "exchange")
        if work.view.filter_text:
            count = f"{len(work.view):,} of {len(work.store):,} shown"
        if work.notes.ignored:
            count += f", {len(work.notes.ignored):,} ignored"
        state = f"{work.activity}  ctrl+c stops" if work.activity else self._reading()
        tail = "newest" if order.following else "End: newest" if work.endless else ""
        title = f" kafkascope  {work.name}"
        board = None if work.endless else self.host.board
        counting = "" if board is None else self.host.so_far(limited=board.limited)
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
        tabs = tab_titles(TABS, self.inspector.tab)
        item, space = self.detail.item, self.hex.space
        place = space.name if space is not None else ""
        if item is not None and item.end > item.start and space is self.inspector.space_of(item):
            place = f"{place}  {item.label}: bytes {item.start}-{item.end - 1}"
        return f"{tabs}{' ' * max(1, width - len(tabs) - len(place) - 1)}{place}"

    def filter_state(self) -> tuple[str, Style]:
        """Return the error of the filter, or how far it is, with its style."""
        view, board = self.workspace.view, self.host.board
        if self.filter.error:
            return self.filter.error, STYLES["!"]
        if self.filter.waits:
            return "Enter applies it", STYLES["dim"]
        if not view.text:
            return "", NORMAL
        if view.behind:
            return f"filtering {int(100 * view.scanned)} %", STYLES["dim"]
        if "finding" in view.text and (pending := self.findings.pending()):
            return f"{pending}: partial", STYLES["dim"]
        if board is not None and not board.limited:
            return "not applied: L applies it", STYLES["?"]
        return "applied" if board is None else "applied here: L removes it", STYLES["label"]

    def footer(self) -> tuple[str, Style]:
        """Return the keys of what has the focus after the remark, with its style."""
        focused, board = self.shell.focused, self.host.board
        name = (focused.id if focused is not None else None) or ""
        width = self.shell.size.width
        if name in BOXES:
            return footer((), name, width), STYLES["dim"]
        pane, keys, enter = PANES[self.panes.entered.id or ""], [*KEYS], ""
        if board is not None:
            own, enter = board.hinted()
            pane, keys = ("tab" if board.below else "table"), [*own, *BOARD_KEYS, *KEYS]
        always = f"{HELP_KEY}   {'q quit' if self.navigation.at_root else 'Esc back'}"
        if self._remark and pane == "list":
            remark = f" {self._remark}   "
            rest = footer(keys, pane, width - len(remark), always=always)
            return remark + rest.lstrip(), STYLES["?"]
        return footer(keys, pane, width, enter=enter, always=always), STYLES["dim"]
