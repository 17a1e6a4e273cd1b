"""Lines between panes that the mouse can drag."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import Static


class Splitter(Static):
    """Tells where it is wanted while it is dragged; a click without a move is left to others."""

    class Dragged(Message):
        """Its upper left corner is wanted there, in cells of the screen."""

        def __init__(self, splitter: Splitter, x: int, y: int) -> None:
            super().__init__()
            self.splitter, self.x, self.y = splitter, x, y

        @property
        def control(self) -> Splitter:
            """Which one."""
            return self.splitter

    _grabbed = (0, 0)
    """Where the mouse has it."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """From here on the mouse is ours."""
        self.capture_mouse()
        self._grabbed = event.x, event.y

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """It stays where it is."""
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Along with the mouse."""
        if self.app.mouse_captured is self:
            x, y = self._grabbed
            self.post_message(self.Dragged(self, event.screen_x - x, event.screen_y - y))


class Bar(Splitter):
    """Between two panes side by side."""

    def __init__(self, sign: str, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._sign = sign

    def on_resize(self, event: events.Resize) -> None:
        """As high as the panes."""
        self.update("\n".join(self._sign * max(1, event.size.height)))
