"""The value under the cursor as a filter, as something to follow, or as a column."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.render.listing import columns_of
from kafkascope.analyzer.render.times import Times
from kafkascope.tui.controllers.controller import Controller
from kafkascope.tui.document import values
from kafkascope.tui.document.tree import Item
from kafkascope.tui.screens import CONNECTIONS

LADDER: Final = "ladder"
COLUMNS: Final = (
    *("conn", "version", "topic", "partition", "group", "error", "wait", "excess"),
    *("throttle", "records", "codec", "acks", "software", "user", "producer.id", "member"),
    *("generation", "correlation_id", "client.ip", "frame", "state", "txn"),
)
"""Columns to choose from where the cursor is on no field."""


class ValuesController(Controller):
    """Makes filters and columns from values."""

    def _field(self) -> Item | None:
        """Return the field under the cursor; None if the list has the focus."""
        return self.detail.item if self.detail.has_focus or self.hex.has_focus else None

    def filter(self) -> None:
        """Offer filters for the field or the row under the cursor."""
        item, index = self._field(), self.list.index
        if item is not None:
            condition = values.of_item(item)
            if condition:
                self._ways(condition)
                return
            self.shell.say("This line has no value. Showing filters for the row instead.")
        if index is None:
            return
        conditions = values.of_row(self.workspace.session, index)
        self.shell.pick("Filter by this row", [(each, each) for each in conditions], self._ways)

    def _ways(self, condition: str) -> None:
        present = self.workspace.view.text
        usable = [way for way in values.WAYS if present or way[0] in ("is", "not", "prepare")]
        choices = [(way, title.format(condition)) for way, title in usable]

        def chosen(way: str) -> None:
            text = values.joined(way, condition, present)
            if way == "prepare":
                self.shell.prepare_filter(text)
            else:
                self.shell.show_filter(text)

        self.shell.pick("Filter", choices, chosen)

    def follow(self) -> None:
        """Offer filters for what the exchange belongs to: its connection, client, group, ..."""
        index = self.list.index
        if index is None:
            return
        session = self.workspace.session
        found = list(values.follows(session, index))
        number = session.connections[session.columns["connection"][index]].number
        choices = [(each.filter, each.title) for each in found]
        choices.insert(1, (LADDER, f"connection {number} as a ladder (2 Connections)"))

        async def ladder() -> None:
            from kafkascope.tui.screens.connections import select

            await self.shell.show_screen(CONNECTIONS)
            if (board := self.host.board) is not None:
                select(board, number)

        def chosen(text: str) -> None:
            if text == LADDER:
                self.shell.call_later(ladder)
            else:
                self.shell.show_filter(text)
                self.shell.say("Filter applied. Esc goes back.")

        self.shell.pick("Follow", choices, chosen)

    def column(self) -> None:
        """Make the field under the cursor a column of the list, or remove that; elsewhere ask."""
        item, extra = self._field(), self.list.extra
        if item is not None and item.path:
            self.add_column(item.path)
            return
        choices = [(name, f"- {name}") for name in extra]
        choices += [(name, f"+ {name}") for name in COLUMNS if name not in extra]
        self.shell.pick("Columns", choices, self.add_column)

    def add_column(self, name: str) -> None:
        """Add a column, or remove it."""
        extra = self.list.extra
        if name in extra:
            extra.remove(name)
        else:
            try:
                columns_of((name,), Times())
            except FilterError as error:
                self.shell.say(error.reason, "warning")
                return
            extra.append(name)
        self.list.changed()
        self.shell.update_status()
        if not self.shell.in_list():
            self.shell.say(f"Column {name} {'added' if name in extra else 'removed'}.")
