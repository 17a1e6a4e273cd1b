"""Lines between panes that the mouse can drag, and the titles of tabs in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import Static


class Splitter(Static):
    """Tells where the mouse drags it; a click without a move is left to others."""

    @dataclass
    class Dragged(Message):
        """The user wants the upper left corner there, in cells of the screen."""

        splitter: Splitter
        x: int
        y: int

        @property
        def control(self) -> Splitter:
            """The sender, for selectors of `on`."""
            return self.splitter

    _grabbed = (0, 0)
    """The cell of the widget by which the mouse holds it."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to follow the mouse."""
        self.capture_mouse()
        self._grabbed = event.x, event.y

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Cease to follow the mouse."""
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tell where the mouse is."""
        if self.app.mouse_captured is self:
            x, y = self._grabbed
            self.post_message(self.Dragged(self, event.screen_x - x, event.screen_y - y))


class Bar(Splitter):
    """A line between two panes side by side."""

    def __init__(self, sign: str, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._sign = sign

    def on_resize(self, event: events.Resize) -> None:
        """Draw the line as high as the panes."""
        self.update("\n".join(self._sign * max(1, event.size.height)))


def tab_titles(tabs: Sequence[str], chosen: str) -> str:
    """Return the titles of tabs in a line, the chosen one in brackets."""
    return "  ".join(f"[{tab}]" if tab == chosen else f" {tab} " for tab in tabs)


def tab_at(tabs: Sequence[str], x: int) -> str | None:
    """Return the tab whose title is at a column of `tab_titles`."""
    left = 0
    for tab in tabs:
        if left <= x < left + len(tab) + 2:
            return tab
        left += len(tab) + 4
    return None
