"""The order of the list, how its times are written, and whether it stays on the newest row."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.render.times import TIME_FORMATS
from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.stack import Order
from kafkascope.tui.views.exchanges import SINCE_MARK

CLOCKS: Final = {
    **{way: TIME_FORMATS[way] for way in ("a", "u", "r", "dd")},
    SINCE_MARK: "seconds since the reference (T)",
    **{way: TIME_FORMATS[way] for way in ("e", "ad", "ud")},
}
"""Time formats in the order in which `t` goes through them, and what they are."""


class OrderController(Controller):
    """Sorts the list and keeps it at its end."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.following = self.workspace.store.progress.ring
        """Whether the cursor stays on the newest row."""

    # --- the newest row ---------------------------------------------------------------------

    def follow_cursor(self) -> None:
        """Start to follow when the cursor is at the end of what grows; stop when it moves away."""
        at_end = self.list.cursor == self.list.count() - 1
        following = at_end and (self.following or self.workspace.endless)
        if following != self.following:
            self.following = following
            self.shell.update_status()

    def follow(self, before: int) -> None:
        """Go to the newest row, unless the wheel went away from it, or a message is being read.
        There were `before` rows."""
        exchanges = self.list
        reading = self.detail.has_focus or self.hex.has_focus
        shown = exchanges.scroll_offset.y + max(1, exchanges.scrollable_content_region.height)
        if reading or (shown < before and exchanges.cursor == before - 1):
            self.following = False
        else:
            exchanges.move_to(exchanges.count() - 1)

    def tail(self) -> None:
        """Start or stop to follow the newest row."""
        self.following = not self.following
        self.list.move_to(self.list.count() - 1 if self.following else self.list.cursor)
        self.shell.say(
            "Following the newest exchange." if self.following else "No longer following."
        )
        self.shell.update_status()

    # --- order ------------------------------------------------------------------------------

    def sort(self) -> None:
        from kafkascope.tui.data.columns import sortable

        columns = self.list.columns(400)
        more = ("excess", "wait", "error", "topic", "group", "conn", "throttle", "records")
        choices = {"": "capture order"} | {c.name: c.title for c in columns if sortable(c.name)}
        left = {c.name for c in columns if not sortable(c.name)}
        choices |= {name: name for name in more if name not in choices and name not in left}
        order = self.workspace.view.order
        here = order.name if order else ""
        self.shell.pick("Sort by", [*choices.items()], self.order_by, here)

    def order_by(self, name: str) -> None:
        """Sort by a column; by the same one again, the other way round; empty: as captured."""
        from kafkascope.tui.data.columns import default_order, sortable

        order = self.workspace.view.order
        if not name:
            self._order(None)
        elif order is not None and order.name == name:
            self._order(Order(name, not order.downwards))
        elif sortable(name):
            self._order(default_order(name))
        else:
            self.shell.say(f"Cannot sort by {name}: it is decoded from messages.", "warning")

    def restore(self, order: Order | None, *, following: bool) -> None:
        if order != self.workspace.view.order:
            self._order(order)
        self.following = following

    def _order(self, order: Order | None) -> None:
        index = self.list.index
        self.following = self.following and order is None
        self.workspace.view.sort(order)
        self.list.stay_on(index)
        self.shell.update_status()

    def reverse(self) -> None:
        order = self.workspace.view.order
        if order is None:
            self.order_by("number")
            self.order_by("number")
        else:
            self.order_by(order.name)

    # --- times ------------------------------------------------------------------------------

    def clock_words(self) -> str:
        """Describe how times are written, for the header."""
        return (TIME_FORMATS | CLOCKS)[self.list.times]

    def time(self) -> None:
        """Write times in the next way of `CLOCKS`."""
        ways = [way for way in CLOCKS if way != SINCE_MARK or self.list.reference_ns is not None]
        here = self.list.times
        self.write_times(ways[(ways.index(here) + 1) % len(ways)] if here in ways else ways[0])

    def reference(self) -> None:
        """Count times from the exchange under the cursor."""
        index = self.list.index
        if index is not None:
            self.list.reference_ns = self.workspace.session.columns["time_ns"][index]
            self.write_times(SINCE_MARK)

    def write_times(self, way: str) -> None:
        self.list.times = way
        self.list.changed()
        if self.host.board is not None:
            self.host.board.refresh_numbers()
        self.shell.update_status()
