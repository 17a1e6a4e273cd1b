"""The two things a screen consists of: a table of a statistic, and lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.sheet import Sheet, Spans
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.views.lines import Lines, Piece

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Line

EDGE = 1
"""Columns at the left of a table."""


def styled(spans: Spans) -> list[Piece]:
    """Roles to styles."""
    return [(text, STYLES.get(role, NORMAL)) for text, role in spans]


class Heading(Widget):
    """The titles of a table; a click on one orders by it."""

    DEFAULT_CSS = "Heading { height: 1; text-style: bold; background: $surface; }"

    class Picked(Message):
        """A title was clicked."""

        def __init__(self, heading: Heading, name: str) -> None:
            super().__init__()
            self.heading = heading
            self.name = name

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def render_line(self, y: int) -> Strip:
        """Textual's way to draw."""
        width = self.size.width
        text = self.table.glyphs.text(" " * EDGE + self.table.sheet.heading(self.table.room))
        segments = [Segment(text, STYLES["header"])]
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def on_click(self, event: Click) -> None:
        """Order by the column under the mouse."""
        column = self.table.sheet.column_at(event.x - EDGE, self.table.room)
        if column is not None:
            self.post_message(self.Picked(self, column.name))


class Table(Lines):
    """The lines of a sheet."""

    class Opened(Message):
        """A line is wanted: Enter, or a double click."""

        def __init__(self, table: Lines) -> None:
            super().__init__()
            self.table = table

    def __init__(self, sheet: Sheet, glyphs: Glyphs, *, id: str) -> None:
        super().__init__(glyphs, id=id)
        self.sheet = sheet
        self.empty = ""
        """A sentence for when there are no lines."""
        self.chosen = False
        """Whether the cursor was moved."""
        self.identity: Callable[[Line], Any] = lambda line: next(iter(line.values()), None)
        """What makes a line the same one when there are new numbers."""

    @property
    def room(self) -> int:
        """Columns for the cells."""
        return max(1, self.scrollable_content_region.width - EDGE)

    @property
    def line(self) -> Line | None:
        """The line under the cursor."""
        return self.sheet.lines[self.cursor] if self.cursor < len(self.sheet.lines) else None

    def count(self) -> int:
        """Lines there are; one when there are none, to say so."""
        return len(self.sheet.lines) or bool(self.empty)

    def pieces(self, line: int, width: int) -> list[Piece]:
        """The cells of a line."""
        if not self.sheet.lines:
            return [(f" {self.empty}", STYLES["dim"])]
        edge = "▶" if line == self.cursor else " "
        return [(edge, STYLES["label"]), *styled(self.sheet.row(line, max(1, width - EDGE)))]

    def move_to(self, line: int, *, tell: bool = True) -> None:
        """The cursor was moved: from now on it belongs to its line."""
        self.chosen = line > 0
        super().move_to(line, tell=tell)

    def refilled(self, change: Callable[[], object]) -> None:
        """Change the sheet; the cursor stays on its line, wherever that is now, and at the top
        where nobody moved it."""
        here = self.line if self.chosen else None
        key = None if here is None else self.identity(here)
        change()
        if key is not None:
            self.cursor = next(
                (
                    index
                    for index, each in enumerate(self.sheet.lines)
                    if self.identity(each) == key
                ),
                min(self.cursor, max(0, len(self.sheet.lines) - 1)),
            )
        self.changed()
        self.show_line(self.cursor)

    def on_click(self, event: Click) -> None:
        """The cursor goes there; twice opens."""
        super().on_click(event)
        if event.chain > 1:
            self.post_message(self.Opened(self))


class Text(Lines):
    """Lines of text; those about an exchange open it."""

    def __init__(self, glyphs: Glyphs, *, id: str) -> None:
        super().__init__(glyphs, id=id)
        self.told: Sequence[Told] = []

    def ground(self, line: int) -> str:
        """Text has a cursor only where the keys go."""
        return super().ground(line) if self.has_focus else ""

    @property
    def number(self) -> int | None:
        """The exchange that the line under the cursor is about."""
        return self.told[self.cursor].number if self.cursor < len(self.told) else None

    def count(self) -> int:
        """Lines there are."""
        return len(self.told)

    def pieces(self, line: int, width: int) -> list[Piece]:
        """A line, a little away from the edge."""
        return [(" " * EDGE, NORMAL), *styled(self.told[line].spans)]

    def show(self, told: Sequence[Told]) -> None:
        """Other lines."""
        self.told = told
        self.changed()

    def on_click(self, event: Click) -> None:
        """The cursor goes there; twice opens."""
        super().on_click(event)
        if event.chain > 1:
            self.post_message(Table.Opened(self))


class Still(Text, can_focus=False):
    """Lines of text without a cursor."""

    WHOLE = False

    def show_line(self, line: int) -> None:
        """Nobody is there."""


class TablePane(Vertical):
    """A table below its titles."""

    DEFAULT_CSS = "TablePane { height: 1fr; } TablePane > Lines { height: 1fr; }"

    def __init__(self, table: Table, *, id: str) -> None:
        super().__init__(id=id)
        self.table = table
        self.heading = Heading(table)

    def compose(self) -> ComposeResult:
        """Titles, lines."""
        yield self.heading
        yield self.table

    def refilled(self, change: Callable[[], object]) -> None:
        """Change the sheet, and draw it."""
        self.table.refilled(change)
        self.heading.refresh()
