"""The titles of the list of exchanges; a click on one orders the list."""

from __future__ import annotations

from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from kafkascope.tui.views.exchanges import EDGE, GAP, LEFT_OVER, ExchangeList


class Heading(Static):
    """As wide as the list."""

    class Picked(Message):
        """The user wants another order."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, exchanges: ExchangeList) -> None:
        super().__init__(id="heading", markup=False)
        self._list = exchanges

    def on_click(self, event: Click) -> None:
        """The column under the mouse."""
        at = EDGE
        for column in self._list.columns(max(1, self._list.scrollable_content_region.width)):
            end = at + (column.width or LEFT_OVER)
            if at <= event.x < end + GAP:
                self.post_message(self.Picked(column.name))
                return
            at = end + GAP
