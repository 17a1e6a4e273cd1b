"""The titles of the list of exchanges; a click on one sorts the list."""

from __future__ import annotations

from dataclasses import dataclass

from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from kafkascope.tui.views.exchanges import EDGE, GAP, LEFT_OVER, ExchangeList


class ListHeading(Static):
    """The line of titles; the status controller writes it."""

    @dataclass
    class Picked(Message):
        """A title was clicked."""

        name: str

    def __init__(self, exchanges: ExchangeList) -> None:
        super().__init__(id="heading", markup=False)
        self._list = exchanges

    def on_click(self, event: Click) -> None:
        """Tell which column is under the mouse."""
        at = EDGE
        for column in self._list.columns(max(1, self._list.scrollable_content_region.width)):
            end = at + (column.width or LEFT_OVER)
            if at <= event.x < end + GAP:
                self.post_message(self.Picked(column.name))
                return
            at = end + GAP
