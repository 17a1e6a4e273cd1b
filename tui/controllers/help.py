"""The keys of the screen, what a pane is for, and how to leave."""

from __future__ import annotations

from collections.abc import Sequence

from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.guide.about import PANES
from kafkascope.tui.keys import Key, of_all_screens, of_list
from kafkascope.tui.views.help import HelpScreen, Row


class HelpController(Controller):
    """Opens help screens."""

    KEYS = (
        Key("app.help", "question_mark", "?", "keys", "the keys of this screen, searchable"),
        Key("app.about", "f1", "F1", "about", "what the pane with the focus is good for"),
        Key("app.back", "q", "q", "app.leave", "back; on the first screen quit"),
        Key("app.quit", "Q,ctrl+q", "Q", "app.quit", "quit"),
    )

    def __init__(self, context: Context, keys: Sequence[Key]) -> None:
        super().__init__(context)
        self.all_keys = keys

    def keys(self) -> None:
        """Show the keys of this screen."""
        if not self._of_board():
            self._open("Exchanges", of_list(self.all_keys))

    def about(self) -> None:
        """Explain the pane with the focus."""
        focused = self.shell.focused
        name = focused.id if focused is not None else None
        if name == "filter" or not self._of_board():
            about = PANES[name if name in PANES else "exchanges"]
            self._open(about.title, about.keys, about=about.text)

    def _open(self, title: str, rows: Sequence[Row], **options: str) -> None:
        screen = HelpScreen(self.shell.glyphs, title, ((title, rows),), **options)
        self.shell.push_screen(screen)

    def _of_board(self) -> bool:
        """Show the help of the board; return whether one is shown."""
        board = self.shell.host.board
        if board is not None:
            self.shell.push_screen(board.help(of_all_screens(self.all_keys)))
        return board is not None
