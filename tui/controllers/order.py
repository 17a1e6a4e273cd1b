"""The order of the list, how its times are written, and whether it stays on the newest row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.render.times import TIME_FORMATS
from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.keys import Hint, Key
from kafkascope.tui.views.exchanges import SINCE_MARK

if TYPE_CHECKING:
    from kafkascope.tui.data.sorting import Order

CLOCKS: Final = ("a", "u", "r", "dd", SINCE_MARK, "e", "ad", "ud")
"""Time formats in the order in which `t` goes through them."""
SINCE_MARK_WORDS: Final = "seconds since the reference (T)"


class OrderController(Controller):
    """Sorts the list and keeps it at its end."""

    KEYS = (
        Key("list.tail", "F", "F", "tail", "Follow the newest exchange, or stop"),
        Key("list.sort", "o", "o", "sort", "Sort by a column", (Hint("list", 7, "sort"),)),
        Key("list.reverse", "v", "v", "reverse", "Reverse the order"),
        Key("list.time", "t", "t", "time", "Next time format", (Hint("list", 9, "time format"),)),
        Key("list.reference", "T", "T", "reference", "Count times from this exchange"),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.following = self.workspace.store.progress.ring
        """Whether the cursor stays on the newest row."""

    # --- the newest row ---------------------------------------------------------------------

    def cursor_moved(self) -> None:
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
        self.shell.tell(
            "Following the newest exchange." if self.following else "No longer following."
        )
        self.shell.update_status()

    # --- order ------------------------------------------------------------------------------

    def sort(self) -> None:
        """Ask for a column to sort by."""
        from kafkascope.tui.data.sorting import sortable

        columns = self.list.columns(400)
        choices = [("", "capture order")]
        choices += [(c.name, c.title) for c in columns if sortable(c.name)]
        names = {c.name for c in columns}
        more = ("excess", "wait", "error", "topic", "group", "conn", "throttle", "records")
        choices += [(name, name) for name in more if name not in names]
        order = self.workspace.view.order
        self.shell.pick("Sort by", choices, self.order_by, order.name if order else "")

    def order_by(self, name: str) -> None:
        """Sort by a column; by the same one again, the other way round; empty: as captured."""
        from kafkascope.tui.data.sorting import Order, sortable, usual

        order = self.workspace.view.order
        if not name:
            self._order(None)
        elif order is not None and order.name == name:
            self._order(Order(name, not order.downwards))
        elif sortable(name):
            self._order(usual(name))
        else:
            self.shell.tell(f"Cannot sort by {name}: it is decoded from messages.", "warning")

    def restore(self, order: Order | None, *, following: bool) -> None:
        """Sort as a view was sorted that is shown again."""
        if order != self.workspace.view.order:
            self._order(order)
        self.following = following

    def _order(self, order: Order | None) -> None:
        index, view = self.list.index, self.workspace.view
        self.following = self.following and order is None
        view.sort(order)
        self.list.cursor = 0 if index is None else view.place_of(index)
        self.list.changed()
        self.list.move_to(self.list.cursor, tell=False)
        self.shell.update_status()

    def reverse(self) -> None:
        """Sort the other way round."""
        order = self.workspace.view.order
        if order is None:
            self.order_by("number")
            self.order_by("number")
        else:
            self.order_by(order.name)

    # --- times ------------------------------------------------------------------------------

    def clock_words(self) -> str:
        """Describe how times are written, for the header."""
        since_mark = self.list.times == SINCE_MARK
        return SINCE_MARK_WORDS if since_mark else TIME_FORMATS[self.list.times]

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
        """Write times in a way of `CLOCKS`."""
        self.list.times = way
        self.list.changed()
        if self.shell.host.board is not None:
            self.shell.host.board.refresh_numbers()
        self.shell.update_status()
