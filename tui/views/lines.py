"""A list that is drawn line by line: only the visible lines cost time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.events import Blur, Click, Focus, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kafkascope.analyzer.text import padded
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.stack import Position

CACHED: Final = 2_000
Piece = tuple[str, Style]


class LineList(ScrollView, can_focus=True):
    """A list with a cursor. Subclasses define `count` and the `pieces` of a line."""

    WHOLE: ClassVar[bool] = True
    """Whether the cursor is a whole line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home,g", "go(0)", "first", show=False),
        Binding("end,G", "go(-1)", "last", show=False),
    ]

    @dataclass
    class CursorChanged(Message):
        """The cursor is on another line."""

        lines: LineList

    def __init__(self, glyphs: Glyphs, *, id: str | None = None, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self.glyphs = glyphs
        self.cursor = 0
        self._strips: LRUCache[tuple[int, bool, bool, int], Strip] = LRUCache(CACHED)
        self.behind = NORMAL
        """The widget's own style, behind the texts."""
        self.opened: Callable[[], object] = bool
        """Called for a double click on a line."""

    def count(self) -> int:
        """Return how many lines there are."""
        raise NotImplementedError

    def pieces(self, line: int, width: int) -> list[Piece]:
        """Return a line as styled texts; `render_line` makes them safe, cuts and pads them."""
        raise NotImplementedError

    def changed(self) -> None:
        """Draw all lines again, after their content has changed."""
        self._strips.clear()
        self.cursor = max(0, min(self.cursor, self.count() - 1))
        self.grown()
        self.refresh()

    def grown(self) -> None:
        """Take another number of lines into account; those that were drawn stay."""
        size = Size(self.scrollable_content_region.width or 1, self.count())
        if size != self.virtual_size:
            before, self.virtual_size = self.virtual_size.height, size
            if before < self.scroll_offset.y + self.size.height:
                self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the visible lines. Their style depends on all widgets around: to look it up once for
        all lines costs a fifth less than for each of them."""
        self.behind = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if line >= self.count():
            return Strip.blank(width, self.behind)
        key = (line, line == self.cursor, self.has_focus, width)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._strip(line, width)
        return strip.apply_style(self.behind)

    def _strip(self, line: int, width: int) -> Strip:
        left, segments = width, []
        for text, style in self.pieces(line, width):
            clean = self.glyphs.text(text)
            segment = Segment(clean, style)
            if segment.cell_length > left:
                segment = Segment(self.glyphs.text(padded(clean, left)) if left else "", style)
            segments.append(segment)
            left -= segment.cell_length
            if left <= 0:
                break
        segments.append(Segment(" " * max(0, left), NORMAL))
        strip = Strip(segments).adjust_cell_length(width)
        ground = self.ground(line)
        if ground:
            strip = Strip(Segment.apply_style(strip, None, STYLES[ground]), width)
        return strip

    def ground(self, line: int) -> str:
        """Return the role of the style behind a line: that of the cursor, or none."""
        if line != self.cursor or not self.WHOLE:
            return ""
        return "cursor" if self.has_focus else "faint cursor"

    def move_to(self, line: int, *, tell: bool = True) -> None:
        """Put the cursor on a line and show it; `tell`: whether that is a move of the user's."""
        line = max(0, min(line, self.count() - 1))
        before, self.cursor = self.cursor, line
        self.refresh_lines(before, 1)
        self.refresh_lines(line, 1)
        self.show_line(line)
        if tell and line != before:
            self.post_message(self.CursorChanged(self))

    def show_line(self, line: int) -> None:
        """Scroll as little as shows a line; not while the list is hidden, and has no size."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if not height:
            return
        if line < top or line >= top + height:
            to = line if line < top else line - height + 1
            if abs(line - top) > 2 * height:
                to = max(0, line - height // 2)
            self.scroll_to(y=to, animate=False, immediate=True, force=True)

    @property
    def row(self) -> Position:
        """Where the cursor is, by the number of the line."""
        return Position(self.cursor, self.cursor - self.scroll_offset.y)

    def show_from(self, top: int) -> None:
        """Scroll a line to the top."""
        self.scroll_to(y=max(0, top), animate=False, immediate=True, force=True)

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.cursor + by * max(1, self.scrollable_content_region.height - 1))

    def action_go(self, line: int) -> None:
        """Go to a line; -1: the last one."""
        self.move_to(line if line >= 0 else self.count() - 1)

    def on_click(self, event: Click) -> None:
        """Put the cursor where the mouse is; open the line on a double click."""
        self.move_to(event.y + self.scroll_offset.y)
        if event.chain > 1:
            self.opened()

    @on(Focus)
    @on(Blur)
    def focus_changed(self) -> None:
        """Draw the cursor, which shows whether the list has the focus."""
        self.refresh_lines(self.cursor, 1)

    def on_resize(self, event: Resize) -> None:
        self.changed()
        self.show_line(self.cursor)
