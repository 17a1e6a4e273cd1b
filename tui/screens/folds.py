"""Lines of a table that stand below others: the keys that open and close them, and their order.

A line whose `level` is 0 is a head; those behind it with a level above 0 are its own. Knows no
statistics: what is below a head, and which heads are open, is the board's.
"""

from __future__ import annotations

from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.message import Message

from kafkascope.tui.keys import Key
from kafkascope.tui.screens.panes import Table

LEVEL: Final = "level"
OPEN: Final = "▾"
CLOSED: Final = "▸"
FOLD_KEYS: Final = (
    Key("findings.turn", "space", "space", "turn", "what followed from a cause: open, close"),
    Key("findings.unfold", "right,l", "right l", "unfold", "open what followed from a cause"),
    Key("findings.fold", "left,h", "left h", "fold", "close it, or go to the cause"),
    Key("findings.fold_all", "z", "z", "every(False)", "close all"),
    Key("findings.unfold_all", "Z", "Z", "every(True)", "open all"),
)


class FoldTable(Table):
    """A table whose lines open and close."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in FOLD_KEYS
    ]

    class Folded(Message):
        """What is below a head, or below all of them, is to be seen or not; None: the other."""

        def __init__(self, opens: bool | None, *, every: bool = False) -> None:
            super().__init__()
            self.opens = opens
            self.every = every

    def action_turn(self) -> None:
        """Open what is closed, close what is open."""
        self._to_head()
        self.post_message(self.Folded(None))

    def action_unfold(self) -> None:
        """Open."""
        if not self._level():
            self.post_message(self.Folded(opens=True))

    def action_fold(self) -> None:
        """Close; below a head, go to it."""
        if self._level():
            self._to_head()
        else:
            self.post_message(self.Folded(opens=False))

    def action_every(self, opens: bool) -> None:
        """Open or close all."""
        self._to_head()
        self.post_message(self.Folded(opens, every=True))

    def _level(self) -> int:
        return 0 if self.line is None else int(self.line.get(LEVEL) or 0)

    def _to_head(self) -> None:
        at = self.cursor
        while at and at < len(self.sheet.lines) and self.sheet.lines[at].get(LEVEL):
            at -= 1
        if at != self.cursor:
            self.move_to(at)
