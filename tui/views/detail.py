"""The detail pane: the tree of one tab of an exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from kafkascope.tui.document.tree import Item, Tree
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.views.lines import Lines, Piece


class DetailPane(Lines):
    """Draws a tree whose lines fold."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "turn", "open or close", show=False),
        Binding("right,l", "unfold", "open", show=False),
        Binding("left,h", "fold", "close, or go to the parent", show=False),
        Binding("z", "all(False)", "close all", show=False),
        Binding("Z", "all(True)", "open all", show=False),
    ]

    @dataclass
    class Wanted(Message):
        """The user opens a line, or all of them (None), and what is below takes long to make."""

        item: Item | None

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs, id="detail")
        self.tree_ = Tree([], [])

    def show(self, tree: Tree) -> None:
        """Show another tree."""
        self.tree_ = tree
        self.cursor = 0
        self.scroll_to(y=0, animate=False, immediate=True, force=True)
        self.changed()

    @property
    def item(self) -> Item | None:
        """The line under the cursor."""
        return self.tree_.lines[self.cursor] if self.cursor < len(self.tree_.lines) else None

    def count(self) -> int:
        """Return how many lines are not folded away."""
        return len(self.tree_.lines)

    def pieces(self, line: int, width: int) -> list[Piece]:
        """Return the fold mark, the name and the value of a line."""
        item = self.tree_.lines[line]
        fold = ("▼ " if item.open else "▶ ") if item.foldable else "  "
        out: list[Piece] = [("  " * item.depth + fold, NORMAL)]
        if item.label:
            out.append((f"{item.label} ", STYLES["label"]))
        out.append((item.value, STYLES.get(item.kind, NORMAL)))
        return out

    def select(self, item: Item) -> None:
        """Put the cursor on a line that `Tree.find` has found."""
        self.changed()
        self.move_to(self.tree_.lines.index(item), tell=False)

    def action_turn(self) -> None:
        """Open the line if it is closed, else close it."""
        if self.item is not None:
            self._set(self.item, not self.item.open)

    def action_unfold(self) -> None:
        """Open the line; if it is open, go to the first line below it."""
        item = self.item
        if item is not None and item.foldable and item.open:
            self.action_move(1)
        elif item is not None:
            self._set(item, True)

    def action_fold(self) -> None:
        """Close the line; if it is closed, go to its parent."""
        item = self.item
        if item is not None and item.open and item.foldable:
            self._set(item, False)
        elif item is not None and item.parent is not None:
            self.move_to(self.tree_.lines.index(item.parent))

    def action_all(self, wanted: bool) -> None:
        """Open or close every line."""
        if wanted and self.tree_.any_heavy():
            self.post_message(self.Wanted(None))
            return
        self.tree_.set_all(wanted)
        self.changed()

    def on_click(self, event: Click) -> None:
        """Put the cursor on a line; fold it on a double click."""
        line = event.y + self.scroll_offset.y
        again = line == self.cursor
        super().on_click(event)
        if again and event.chain == 2:
            self.action_turn()

    def _set(self, item: Item, wanted: bool) -> None:
        if wanted and item.heavy:
            self.post_message(self.Wanted(item))
            return
        self.tree_.set_open(item, wanted)
        self.changed()
