"""The keys of the screen, what a pane is for, and how to leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.guide.about import PANES
from kafkascope.tui.keys import Key, of_all_screens, of_list, of_list_alone
from kafkascope.tui.screens import EXCHANGES, TABS, board_class
from kafkascope.tui.views.help import EXCHANGES as EXCHANGES_ABOUT
from kafkascope.tui.views.help import HelpScreen, Row, Section


class HelpController(Controller):
    """Opens help screens."""

    KEYS = (
        Key(
            "app.help",
            "question_mark",
            "?",
            "keys",
            "Keys of this screen; type to search all screens",
        ),
        Key("app.about", "f1", "F1", "about", "Explain the focused pane"),
        Key("app.back", "q", "q", "app.leave", "Go back; at the root quit"),
        Key("app.quit", "Q,ctrl+q", "Q", "app.quit", "Quit"),
    )

    def __init__(self, context: Context, keys: Sequence[Key]) -> None:
        super().__init__(context)
        self.all_keys = keys

    def keys(self) -> None:
        """Show the keys of this screen."""
        if not self._of_board():
            about = f"{EXCHANGES_ABOUT} {self.workspace.notes.home}"
            rows = of_list(self.all_keys)
            self._open("Exchanges", rows, about=about, others=self._of_boards())

    def about(self) -> None:
        """Explain the pane with the focus."""
        focused = self.shell.focused
        name = focused.id if focused is not None else None
        if name == "filter" or not self._of_board():
            about = PANES[name if name in PANES else "exchanges"]
            self._open(about.title, about.keys, about=about.text)

    def _of_boards(self, shown: int = EXCHANGES) -> list[Section]:
        """Return the keys that only other screens have."""
        return [
            (f"{number} {tab.title}", [(key.shown, key.help) for key in board_class(number).KEYS])
            for number, tab in TABS.items()
            if number not in (shown, EXCHANGES)
        ]

    def _open(self, title: str, rows: Sequence[Row], **options: Any) -> None:
        screen = HelpScreen(self.shell.glyphs, title, ((title, rows),), **options)
        self.shell.push_screen(screen)

    def _of_board(self) -> bool:
        """Show the help of the board; return whether one is shown."""
        board = self.shell.host.board
        if board is not None:
            others = [("1 Exchanges", of_list_alone(self.all_keys)), *self._of_boards(board.NUMBER)]
            self.shell.push_screen(board.help(of_all_screens(self.all_keys), others))
        return board is not None
