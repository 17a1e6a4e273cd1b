"""The two things that a screen consists of: a table of a statistic, and lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.segment import Segment
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.strip import Strip
from textual.widget import Widget

from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import wrapped
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.stack import Position
from kafkascope.tui.views.lines import LineList, Piece

# Columns at the left of a table.
EDGE = 1


def styled(spans: Spans) -> list[Piece]:
    return [(text, STYLES.get(role, NORMAL)) for text, role in spans]


class TableHeading(Widget):
    """Draws the titles of a table; a click on one sorts by it."""

    DEFAULT_CSS = "TableHeading { height: 1; text-style: bold; background: $surface; }"

    def __init__(self, pane: TablePane) -> None:
        super().__init__()
        self.pane, self.table = pane, pane.table

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        text = self.table.glyphs.text(" " * EDGE + self.table.sheet.heading(self.table.room))
        segments = [Segment(text, STYLES["header"])]
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def on_click(self, event: Click) -> None:
        column = self.table.sheet.column_at(event.x - EDGE, self.table.room)
        if column is not None:
            self.pane.sort_by(column.name)


class SheetTable(LineList):
    """Draws the lines of a sheet."""

    action_call: Callable[[str], None]
    """Does what only its board does, for keys that come before those of lists."""

    def __init__(self, sheet: Sheet, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self.sheet = sheet
        self.empty = ""
        """The sentence that stands in the place of lines."""
        self.chosen = False
        """Whether the user moved the cursor."""
        self.wanted: Position | None = None
        """Where to put the cursor as soon as that line is there."""
        self.identity: Callable[[Line], Any] = lambda line: next(iter(line.values()), None)
        """Tells what identifies a line among those of newer numbers."""

    @property
    def room(self) -> int:
        """Columns of the terminal for the cells."""
        return max(1, self.scrollable_content_region.width - EDGE)

    @property
    def line(self) -> Line | None:
        return self.sheet.lines[self.cursor] if self.cursor < len(self.sheet.lines) else None

    def count(self) -> int:
        """Return how many lines there are, those of the sentence where the sheet has none."""
        return len(self.sheet.lines) or len(self._empty_lines())

    def _empty_lines(self) -> list[str]:
        return wrapped(self.empty, min(self.room, LIMITS.sentence_columns), breaks=True)

    def ground(self, line: int) -> str:
        """Return the role behind a line: a sentence has no cursor."""
        return super().ground(line) if self.sheet.lines else ""

    def pieces(self, line: int, width: int) -> list[Piece]:
        if not self.sheet.lines:
            return [(f" {self._empty_lines()[line]}", NORMAL)]
        edge = "▶" if line == self.cursor else " "
        return [(edge, STYLES["label"]), *styled(self.sheet.row(line, max(1, width - EDGE)))]

    def move_to(self, line: int, *, tell: bool = True) -> None:
        """Put the cursor on a line, to which it belongs from now on."""
        self.chosen, self.wanted = line > 0, None
        super().move_to(line, tell=tell)

    def position(self) -> Position:
        """Return where the cursor is, for going back to it."""
        line = self.line if self.chosen else None
        key = None if line is None else self.identity(line)
        return self.wanted or Position(key, self.cursor - self.scroll_offset.y)

    def refilled(self, change: Callable[[], object]) -> None:
        """Change the sheet; the cursor stays on its line, wherever that is now, or at the top if
        the user has not moved it."""
        row = self.position()
        change()
        lines = self.sheet.lines
        places = (place for place, line in enumerate(lines) if self.identity(line) == row.key)
        place = None if row.key is None else next(places, None)
        if place is not None:
            self.cursor, self.chosen = place, place > 0
        elif self.wanted is not None:
            self.cursor = 0
        else:
            self.cursor = min(self.cursor, max(0, len(lines) - 1))
        self.changed()
        if self.wanted is not None and (place is not None or (row.key is None and lines)):
            self.wanted = None
            self.show_from(self.cursor - row.above)
        else:
            self.show_line(self.cursor)


class TextLines(LineList):
    """Draws lines of text; those about an exchange open it."""

    def __init__(self, glyphs: Glyphs, *, classes: str = "") -> None:
        super().__init__(glyphs, classes=classes)
        self.content: Sequence[Spans | TextLine] = ()

    def ground(self, line: int) -> str:
        """Return the role behind a line: text has a cursor only while it has the focus."""
        return super().ground(line) if self.has_focus else ""

    @property
    def number(self) -> int | None:
        """The exchange that the line under the cursor is about."""
        line = self.content[self.cursor] if self.cursor < len(self.content) else None
        return line.number if isinstance(line, TextLine) else None

    def count(self) -> int:
        return len(self.content)

    def pieces(self, line: int, width: int) -> list[Piece]:
        content = self.content[line]
        spans = content.spans if isinstance(content, TextLine) else content
        return [(" " * EDGE, NORMAL), *styled(spans)]

    def show(self, content: Sequence[Spans | TextLine]) -> None:
        self.content = content
        self.changed()


class StaticLines(TextLines, can_focus=False):
    """Draws lines of text without a cursor."""

    WHOLE = False

    def show_line(self, line: int) -> None:
        """Stay where the mouse has scrolled to: there is no cursor to follow."""


class TablePane(Vertical):
    """A table below its titles."""

    DEFAULT_CSS = "TablePane { height: 1fr; } TablePane > LineList { height: 1fr; }"

    def __init__(self, table: SheetTable, *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self.table = table
        self.heading = TableHeading(self)

    def compose(self) -> ComposeResult:
        yield self.heading
        yield self.table

    def refilled(self, change: Callable[[], object]) -> None:
        self.table.refilled(change)
        self.heading.refresh()

    def sort_by(self, name: str) -> None:
        self.refilled(lambda: self.table.sheet.sort_by(name))
