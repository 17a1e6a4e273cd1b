"""The keys of the screen, what a pane is for, and how to leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kafkascope.tui.boards import board_of
from kafkascope.tui.controllers.controller import Controller
from kafkascope.tui.controllers.table import KEYS
from kafkascope.tui.keys import of_all_screens, of_list, of_list_only
from kafkascope.tui.screens import EXCHANGES, TABS
from kafkascope.tui.views.dialogs import ABOUT_LIST, HelpScreen, Row, Section


class About(NamedTuple):
    """The help of a pane."""

    title: str
    text: str
    keys: tuple[tuple[str, str], ...] = ()


PANES: Final = {
    "exchanges": About(
        "The list of exchanges",
        ABOUT_LIST,
        (
            ("Enter", "Open the details"),
            ("e E", "Next error or missing response, previous"),
            ("] [", "Next exchange on this connection, previous"),
            ("a f", "Filter by the row; follow its connection, client, group, ..."),
            ("o v", "Sort by a column, reverse"),
            ("A", "Toggle a column"),
            ("m M ' \"", "Toggle mark, only marked, next mark, previous"),
            ("i I", "Toggle ignore, only ignored"),
            ("; D", "Comment; compare two marked exchanges"),
            ("t T", "Next time format; count times from this row"),
            ("c x w", "Copy, export, save as a capture"),
        ),
    ),
    "detail": About(
        "The details of an exchange",
        "Each line is a field of the message, by its name in the protocol, with the meaning of the "
        "value after it. The bytes of the field under the cursor are highlighted in the bytes "
        "pane. Records are read from their batches and decompressed. Context describes the "
        "connection and the client.",
        (
            ("right left", "Expand, collapse"),
            ("Z z", "Expand all, collapse all"),
            ("r", "Switch between request and response"),
            ("R", "Next tab"),
            ("a", "Filter by this field and value"),
            ("y", "Copy the value"),
        ),
    ),
    "hex": About(
        "The bytes",
        "The bytes of the message, with the field under the cursor highlighted. Move, or click a "
        "byte, to select its field in the details. Decompressed records are a view of their own.",
        (("arrows", "Move by one byte or line"), ("y", "Copy the bytes of the field as hex")),
    ),
    "filter": About(
        "The filter",
        "A comparison is: field operator value. Operators are == != > < >= <= contains, ~ for a "
        "regular expression, in {a, b}. Combine comparisons with and, or, not, ( ). A field alone "
        "is true if it is present. Wireshark's field names work as well; kafkascope fields lists "
        "all fields. Filters on columns apply while you type; filters on decoded messages apply "
        "with Enter. On other screens, L applies the filter.",
        (
            ("api == Produce and error != 0", "failed produce requests"),
            ("excess > 250ms", "slow, long polls excluded"),
            ("topic == orders and partition in {0, 3..5}", "some partitions"),
            ("client.ip == 10.0.0.0/24 and not answered", "without a response"),
            ("group == app and api in {JoinGroup, SyncGroup}", "rebalances of a group"),
            ('"timeout"', "text in the summary"),
        ),
    ),
}
"""Id of a widget -> its help."""


class HelpController(Controller):
    """Opens help screens."""

    def keys(self) -> None:
        if not self._of_board():
            about = f"{ABOUT_LIST} {self.workspace.notes.home}"
            rows = of_list(KEYS)
            self._open("Exchanges", rows, about=about, others=self._of_boards())

    def about(self) -> None:
        focused = self.shell.focused
        name = focused.id if focused is not None else None
        if name == "filter" or not self._of_board():
            about = PANES[name if name in PANES else "exchanges"]
            self._open(about.title, about.keys, about=about.text)

    def _of_boards(self, shown: int = EXCHANGES) -> list[Section]:
        """Return the keys that only other screens have."""
        return [
            (f"{number} {tab.title}", [(key.shown, key.help) for key in board_of(number).keys])
            for number, tab in TABS.items()
            if number not in (shown, EXCHANGES)
        ]

    def _open(self, title: str, rows: Sequence[Row], **options: Any) -> None:
        screen = HelpScreen(self.shell.glyphs, title, ((title, rows),), **options)
        self.shell.push_screen(screen)

    def _of_board(self) -> bool:
        """Show the help of the board; return whether one is shown."""
        board = self.host.board
        if board is not None:
            others = [("1 Exchanges", of_list_only(KEYS)), *self._of_boards(board.spec.number)]
            self.shell.push_screen(board.help(of_all_screens(KEYS), others))
        return board is not None
