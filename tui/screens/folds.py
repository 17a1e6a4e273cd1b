"""A table with lines below others, and the keys that open and close these.

A line whose `level` is 0 is a head; those behind it with a level above 0 belong to it. Knows no
statistics: the board decides what is below a head, and which heads are open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual.message import Message

from kafkascope.tui.keys import Key, bindings
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

    BINDINGS = bindings(FOLD_KEYS)

    @dataclass
    class Folded(Message):
        """The user wants to see what is below a head, or below every one."""

        opens: bool | None
        """Whether to open or to close; None: whichever it is not."""
        every: bool = False

    def action_turn(self) -> None:
        """Open the head if it is closed, else close it."""
        self._to_head()
        self.post_message(self.Folded(None))

    def action_unfold(self) -> None:
        """Open the head under the cursor."""
        if not self._level():
            self.post_message(self.Folded(opens=True))

    def action_fold(self) -> None:
        """Close the head under the cursor; from a line below one, go to its head."""
        if self._level():
            self._to_head()
        else:
            self.post_message(self.Folded(opens=False))

    def action_every(self, opens: bool) -> None:
        """Open or close every head."""
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
