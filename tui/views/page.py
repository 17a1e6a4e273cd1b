"""Lines of text over everything else, such as the differences of two exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from kafkascope.tui.settings.palette import STYLES, Glyphs
from kafkascope.tui.views.lines import Lines, Piece


class PageLines(Lines):
    """Draws the lines of a page."""

    def __init__(self, lines: Sequence[Sequence[Piece]], glyphs: Glyphs) -> None:
        super().__init__(glyphs, id="page-lines")
        self.lines_ = lines

    def count(self) -> int:
        """Return how many lines there are."""
        return len(self.lines_)

    def pieces(self, line: int, width: int) -> list[Piece]:
        """Return a line."""
        return list(self.lines_[line])

    @property
    def text(self) -> str:
        """All lines as text."""
        return "\n".join("".join(text for text, _ in line) for line in self.lines_)


class Page(ModalScreen[None]):
    """Shows lines that can be scrolled and copied."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "back", show=False),
        Binding("y", "copy", "copy", show=False),
    ]
    DEFAULT_CSS = """
    Page { align: center middle; }
    Page > Vertical { width: 90%; height: 90%; background: $panel; padding: 0 1; }
    Page Static { height: 1; }
    Page Lines { height: 1fr; background: $panel; scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def __init__(self, title: str, lines: Sequence[Sequence[Piece]], glyphs: Glyphs) -> None:
        super().__init__()
        self.heading = title
        self.glyphs = glyphs
        self.page = PageLines(lines, glyphs)

    def compose(self) -> ComposeResult:
        """Yield the title, the lines and the keys."""
        with Vertical():
            yield Static(self.glyphs.rich(self.heading, STYLES["header"]), markup=False)
            yield self.page
            foot = self.glyphs.rich("Esc back   y copy", STYLES["dim"])
            yield Static(foot, markup=False)

    def on_mount(self) -> None:
        """Give the lines the focus."""
        self.page.focus()

    def action_copy(self) -> None:
        """Copy all lines."""
        self.app.copy_to_clipboard(self.page.text.encode("utf-8", "replace").decode())
        self.notify("Copied.")
