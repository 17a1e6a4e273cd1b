"""The list of exchanges, with an overview of all of them at its edge, and its titles."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from rich.segment import Segment
from textual.events import Click
from textual.strip import Strip
from textual.widgets import Static

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.listing import PRIORITY, ListColumn, columns_of, fitted
from kafkascope.analyzer.render.times import Times, seconds
from kafkascope.analyzer.session.rows import row_of_columns
from kafkascope.analyzer.text import padded
from kafkascope.captures.errors import CaptureError
from kafkascope.tui.data.store import BAD_STATES
from kafkascope.tui.data.view import View
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.views.empty import Empty, empty_lines
from kafkascope.tui.views.lines import LineList, Piece

# Columns for the signs of marks and of findings.
EDGE: Final = 2
RULE: Final = "■"
"""The sign of an exchange that a rule of the proxy changed, in a column of its own."""
GAP: Final = 2
# Columns of the terminal in which a click is one on the last title.
LEFT_OVER: Final = 400
SINCE_MARK: Final = "m"
RELATIVE: Final = ("d", "dd", SINCE_MARK)
"""Time formats that the list counts itself."""
OVERVIEW: Final = 2
# Seconds between two overviews of a list that grows.
EVERY: Final = 1.0


class ExchangeList(LineList):
    """Draws one line per exchange of the workspace's view."""

    def __init__(self, workspace: Workspace, glyphs: Glyphs, times: str) -> None:
        super().__init__(glyphs, id="exchanges")
        self.workspace, self.times = workspace, times
        self.reference_ns: int | None = None
        """The time of the exchange from which times count, in one of the time formats."""
        self.extra: list[str] = []
        """Columns that the user added: fields of the filter language."""
        self._columns: list[ListColumn] = []
        self._for: tuple[object, ...] = ()
        self.proxied = False
        """Whether a rule of a proxy has changed an exchange, so that its sign has a column."""
        self.widened: Callable[[], object] = lambda: None
        """Draws the titles again."""
        self.order_by: Callable[[str], object] = bool
        self.empty: Callable[[], Empty] = lambda: Empty("")
        """Why there are no rows."""
        self._overview, self._overview_for = "", (0, 0, 0.0)
        self._numpy, self._loading = "numpy" in sys.modules, False

    @property
    def view(self) -> View:
        return self.workspace.view

    def count(self) -> int:
        return len(self.view)

    @property
    def index(self) -> int | None:
        """The store's index of the exchange under the cursor."""
        return self.view[self.cursor] if 0 <= self.cursor < len(self.view) else None

    @property
    def number(self) -> int | None:
        index = self.index
        return None if index is None else self.view.store.session.columns["number"][index]

    def columns(self, width: int) -> list[ListColumn]:
        key = (width, self.times, tuple(self.extra), self.reference_ns, self.edge)
        if self._for != key:
            times = self.clock()
            *usual, result = columns_of((), times, width)
            # Shorter, so that the result has room.
            added = columns_of((*self.extra, "result"), times)[:-1] if self.extra else []
            priority = (*PRIORITY[:3], *self.extra, *PRIORITY[3:])
            room = width - self.edge - OVERVIEW
            self._columns = fitted([*usual, *added, result], room, priority)
            self._for = key if len(self.view.store) else ()
        return self._columns

    def clock(self) -> Times:
        """Return how times are written, as far as that depends on no other row."""
        times = Times("r" if self.times in RELATIVE else self.times)
        session = self.view.store.session
        if len(session):
            times.saw(session.columns["time_ns"][0])
        return times

    @property
    def edge(self) -> int:
        """Columns at the left, for signs."""
        return EDGE + self.proxied

    def _widen(self) -> None:
        self.changed()
        self.widened()

    def stay_on(self, index: int | None) -> None:
        """Draw other rows, with the cursor on a row of the store, or at the top."""
        self.cursor = 0 if index is None else self.view.place_of(index)
        self.changed()
        self.move_to(self.cursor, tell=False)

    def heading(self, width: int) -> str:
        order = self.view.order
        cells = []
        for column in self.columns(width):
            title = column.title
            if order is not None and order.name == column.name:
                title += "▼" if order.downwards else "▲"
            cells.append(padded(title, column.width or 20, right=column.right))
        return " " * self.edge + (" " * GAP).join(cells)

    def pieces(self, line: int, width: int) -> list[Piece]:
        index, store = self.view[line], self.view.store
        row, text = row_of_columns(store.session, index), store.result(index)
        read = cache(partial(store.session.exchange, index))
        number = store.session.columns["number"][index]
        rule = self.workspace.colours.style(index) or NORMAL
        if rule.bgcolor is not None and line == self.cursor:
            rule = rule.without_color  # its colours are not made for the cursor's ground
        ground = rule.bgcolor is not None
        failed = "dim" if text[:1] == "!" and store.is_expected(index) else text[:1]
        style = rule if ground else STYLES.get(failed, NORMAL) + rule
        notes = self.workspace.notes
        marked = number in notes.marked
        mark = STYLES["mark"] if marked and not ground else style if ground else NORMAL
        out: list[Piece] = [("*" if marked else " ", mark)]
        sign, role = self.workspace.mentions.sign(number)
        out.append((sign, style if ground else STYLES[role]))
        deeds = store.deeds(index)
        if self.proxied:
            out.append((RULE if deeds else " ", style if ground else STYLES["mark"]))
        elif deeds:
            self.proxied = True
            self.call_later(self._widen)
        for column in self.columns(width + OVERVIEW):  # those of the titles
            if column.name == "result":
                out.append((text, style))
            else:
                cell = self._cell(column, row, line, read)
                cell = padded(self.glyphs.text(cell), column.width, right=column.right)
                out.append((cell + " " * GAP, style))
        if comment := notes.comments.get(number):
            out.append((f"  ; {comment}", style if ground else STYLES["mark"]))
        if ground:
            out.append((" " * width, style))
        return out

    def text(self, width: int) -> str:
        """Return the row under the cursor as text."""
        pieces = self.pieces(self.cursor, width)
        return self.glyphs.text("".join(piece for piece, _ in pieces)).strip()

    def _cell(self, column: ListColumn, row: Row, line: int, read: Callable[[], Exchange]) -> str:
        if column.name == "time" and self.times in RELATIVE:
            since = self.reference_ns
            if self.times != SINCE_MARK:
                times = self.view.store.session.columns["time_ns"]
                since = times[self.view[line - 1]] if line else None
            return seconds(0 if since is None else row.time_ns - since)
        try:
            return column.cell(row, read() if column.name in self.extra else None)
        except CaptureError:
            return "?"  # its bytes are gone

    def _strip(self, line: int, width: int) -> Strip:
        # The overview has the edge, with a blank in front of it.
        return super()._strip(line, max(1, width - OVERVIEW)).adjust_cell_length(width)

    # --- the overview -----------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Draw a row, and at its edge the sign of the line's share of all rows; without rows, why
        there are none."""
        if not len(self.view):
            width = self.scrollable_content_region.width
            pieces = dict(enumerate(empty_lines(self.empty(), width), 1)).get(y, [])
            segments = [Segment(self.glyphs.text(text), style) for text, style in pieces]
            return Strip(segments).adjust_cell_length(width).apply_style(self.behind)
        strip = super().render_line(y)
        signs = self.overview()
        if not signs or y >= len(signs) or strip.cell_length < 2:
            return strip
        sign = signs[y]
        last = Segment(self.glyphs.text("▐") if sign != " " else " ", STYLES.get(sign, NORMAL))
        head = strip.crop(0, strip.cell_length - 1)
        return Strip([*head, *Strip([last]).apply_style(self.behind)], strip.cell_length)

    def overview(self) -> str:
        """Return for each line of the screen the worst sign in its share of the view; an empty
        string when all rows are on the screen."""
        height, size = self.scrollable_content_region.height, len(self.view)
        if size <= height or height < 3 or not self._counts():
            return ""
        before_height, before_size, at = self._overview_for
        if (height, size) != (before_height, before_size) and (
            height != before_height or time.monotonic() - at > EVERY
        ):
            self._overview = self._signs(height)
            self._overview_for = (height, size, time.monotonic())
        return self._overview

    def _counts(self) -> bool:
        """Return whether numpy is loaded: the first rows do not wait for it."""
        if not self._numpy and not self._loading:
            self._loading = True
            self.run_worker(self._load, thread=True)
        return self._numpy

    def _load(self) -> None:
        import numpy  # noqa: F401

        self.app.call_from_thread(self._loaded)

    def _loaded(self) -> None:
        self._numpy = True
        self.refresh()

    def _signs(self, height: int) -> str:
        import numpy as np

        from kafkascope.tui.data.columns import column, failed

        session = self.view.store.session
        rows = self.view.array()
        bad = failed(self.view.store)[rows]
        lost = np.isin(column(session, "state")[rows], list(BAD_STATES))
        edges = np.linspace(0, len(rows), height + 1).astype(np.int64)[:-1]
        some_bad = np.add.reduceat(bad, edges) > 0
        some_lost = np.add.reduceat(lost, edges) > 0
        return "".join(
            "!" if wrong else "?" if gone else " "
            for wrong, gone in zip(some_bad, some_lost, strict=True)
        )

    def action_go(self, line: int) -> None:
        """Go to a line; -1: the last one. Report it even if the cursor was there already, which
        begins to follow the end."""
        super().action_go(line)
        self.post_message(self.CursorChanged(self))

    def on_click(self, event: Click) -> None:
        """Put the cursor on a row, and open it on a double click; the edge is a map of all rows."""
        width = self.scrollable_content_region.width
        if event.x == width - 1 and self.overview():
            height = max(1, self.scrollable_content_region.height)
            self.move_to(event.y * len(self.view) // height)
        else:
            super().on_click(event)


class ListHeading(Static):
    """The line of titles; the status controller writes it."""

    def __init__(self, exchanges: ExchangeList) -> None:
        super().__init__(id="heading", markup=False)
        self._list = exchanges

    def on_click(self, event: Click) -> None:
        at = self._list.edge
        for column in self._list.columns(max(1, self._list.scrollable_content_region.width)):
            end = at + (column.width or LEFT_OVER)
            if at <= event.x < end + GAP:
                self._list.order_by(column.name)
                return
            at = end + GAP
