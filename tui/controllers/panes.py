"""The panes of the main screen: which are shown, how large they are, and which has the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.views.exchanges import ListHeading
from kafkascope.tui.views.lines import LineList
from kafkascope.tui.views.screen_tabs import Bar, Splitter

if TYPE_CHECKING:
    from kafkascope.tui.screens.board import Board

# `WIDE` columns show bytes beside the detail; `LOW` lines a detail below the list, `TALL` ones
# where there are less than `MIDDLE` columns.
WIDE: Final = 140
MIDDLE: Final = 100
LOW: Final = 24
TALL: Final = 32
# Lines that a list must leave free for the detail to be shown on a smaller terminal.
FREE: Final = 6
# Lines around the panes: header, tabs, filter, footer.
AROUND: Final = 4
BYTES: Final = 78
LAYOUTS: Final = ("below", "beside", "no bytes")


class PanesController(Controller):
    """Arranges list, detail and bytes; a board has the place of all three."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.main, self.boards = Vertical(id="main"), Vertical(id="boards")
        self.upper, self.lower = Vertical(id="list"), Vertical(id="below")
        self.details = Horizontal(id="panes")
        self.bar = Bar(self.shell.glyphs.text("│"), self._drag_bar, id="bar")
        self.entered: LineList = self.list
        """The pane that had the focus last."""
        self.zoomed = False
        """Whether that pane has the screen for itself."""
        self.all: tuple[LineList, ...] = (self.list, self.detail, self.hex)
        self._layout = LAYOUTS[0]
        self._share = 1.0
        """Height or width of the list as a multiple of what is below or beside it."""
        self._beside = False
        self._compact = 0
        self._empty = False
        """Lines of a short list on a small terminal, where the detail has the rest."""
        self._bytes = BYTES

    def compose(self) -> ComposeResult:
        with self.main:
            with self.upper:
                yield ListHeading(self.list)
                yield self.list
            with self.lower:
                yield Splitter(self._drag_tabs, id="tabs")
                with self.details:
                    yield self.detail
                    yield self.bar
                    yield self.hex
        yield self.boards

    # --- layout -----------------------------------------------------------------------------

    def arrange(self, width: int, height: int) -> None:
        """Show and hide panes for a size of the terminal. The focus has to move before its pane
        goes, so that no key is lost to the filter."""
        pane, board = self.entered, self.host.board is not None
        self._compact = self._rows_that_leave_room(width, height)
        self._empty = not len(self.workspace.view)
        low = height < (LOW if width >= MIDDLE else TALL)
        alone = self.zoomed or (low and not self._compact) or (self._empty and pane is self.list)
        beside = self._layout == "beside" and width >= WIDE
        self._beside = beside and not alone
        self.main.styles.layout = "horizontal" if self._beside else "vertical"
        self.details.styles.layout = "vertical" if beside else "horizontal"
        _show(self.boards, board)
        _show(self.main, not board)
        _show(self.upper, not alone or pane is self.list)
        _show(self.lower, not alone or pane is not self.list)
        both = width >= WIDE and not alone and self._layout != "no bytes"
        _show(self.hex, both or pane is self.hex)
        _show(self.detail, both or pane is not self.hex)
        _show(self.bar, both and not beside)
        self.hex.styles.width = self._bytes if both and not beside else "1fr"
        self._share_list()
        self.shell.update_status()
        self.shell.call_after_refresh(self.shell.update_status)  # by then all have their widths

    def _rows_that_leave_room(self, width: int, height: int) -> int:
        """Return the lines of a list that is so short that a small terminal has room for the detail
        below it; 0 elsewhere."""
        lines = len(self.workspace.view) + 1
        small = height < (LOW if width >= MIDDLE else TALL)
        return lines if lines > 1 and small and height - AROUND - lines >= FREE else 0

    def fit(self) -> None:
        """Arrange the panes again when rows came or went that others need."""
        width, height = self.shell.size.width, self.shell.size.height
        rows = self._rows_that_leave_room(width, height)
        if (self._compact, self._empty) != (rows, not len(self.workspace.view)):
            self.rearrange()

    def rearrange(self) -> None:
        self.arrange(self.shell.size.width, self.shell.size.height)

    def enter(self, pane: LineList, *, zoomed: bool = False) -> None:
        self.entered, self.zoomed = pane, zoomed
        pane.display = True
        self.main.display = True
        (self.upper if pane is self.list else self.lower).display = True
        self.shell.focus_now(pane)
        self.rearrange()

    def focus_view(self) -> None:
        if (board := self.host.board) is None:
            self.enter(self.list)
        else:
            self.shell.focus_now(board.table)

    def show_board(self, board: Board) -> None:
        """Show a board that is mounted and give it the focus. It is drawn before its numbers are
        counted: old lines never stand under the title of another screen."""
        for other in self.boards.children:
            other.display = other is board
        self.boards.display = True
        self.shell.focus_now(board.table)
        self.rearrange()
        self.shell.call_after_refresh(self.host.refresh, board)

    # --- keys -------------------------------------------------------------------------------

    def open(self) -> None:
        """Go into the detail; on a small terminal it takes the screen."""
        if self.entered is self.list:
            self.shell.push_view()
        self.shell.look()
        self.enter(self.detail)

    def cycle(self, by: int) -> None:
        """Complete the filter that is typed; elsewhere go to the next pane."""
        if self.shell.take_choice():
            return
        if self.host.board is not None:
            self.host.board.enter_pane()
            return
        self.shell.look()
        self.enter(self.all[(self.all.index(self.entered) + by) % 3])

    def zoom(self) -> None:
        if (board := self.host.board) is not None:
            board.zoom()
        else:
            self.enter(self.entered, zoomed=not self.zoomed)

    def layout(self) -> None:
        self._layout = LAYOUTS[(LAYOUTS.index(self._layout) + 1) % len(LAYOUTS)]
        self.rearrange()
        self._share_list()
        if self.shell.size.width < WIDE:
            self.shell.say(f"Panes: {self._layout}; needs a terminal of {WIDE} columns.")

    def resize(self, by: int) -> None:
        """Give the list more room, or less; 0: as usual."""
        if self.host.board is not None:
            self.host.board.resize(by)
            return
        step = 1.3 if by > 0 else 1 / 1.3
        self._share = 1.0 if not by else min(5.0, max(0.2, self._share * step))
        self._share_list()
        if not by:
            self._bytes = BYTES
            self.rearrange()

    def widen(self, by: int) -> None:
        self._widen(self._bytes + 6 * by)

    def _widen(self, width: int) -> None:
        self._bytes = max(24, min(self.shell.size.width - 40, width))
        self.rearrange()

    # --- the mouse --------------------------------------------------------------------------

    def _drag_bar(self, x: int, y: int) -> None:
        self._widen(self.hex.region.right - x - 2)

    def _drag_tabs(self, x: int, y: int) -> None:
        main = self.main.region
        at, size = (x - main.x, main.width) if self._beside else (y - main.y, main.height)
        above = min(max((at + 0.5) / max(1, size), 0.1), 0.9)
        self._share = above / (1 - above)
        self._share_list()

    def _share_list(self) -> None:
        share = f"{self._share:.3f}fr"
        styles = self.upper.styles
        if self._compact and self.lower.display:
            styles.height, styles.width = self._compact, "1fr"
            return
        styles.height, styles.width = ("1fr", share) if self._beside else (share, "1fr")


def _show(widget: Widget, wanted: bool) -> None:
    if widget.display != wanted:
        widget.display = wanted
