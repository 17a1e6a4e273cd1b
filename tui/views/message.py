"""The panes of a message: the tree of one tab of an exchange; and its bytes, with those of a field
highlighted."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.events import Blur, Click, Focus

from kafkascope.tui.document.tree import Item, Space, Tree
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.views.lines import LineList, Piece


class DetailPane(LineList):
    """Draws a tree whose lines fold."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "turn", "open or close", show=False),
        Binding("right,l", "unfold", "open", show=False),
        Binding("left,h", "fold", "close, or go to the parent", show=False),
        Binding("z", "all(False)", "close all", show=False),
        Binding("Z", "all(True)", "open all", show=False),
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs, id="detail")
        self.tree_ = Tree([], [])
        self.unfold_slowly: Callable[[Item | None], object] = bool
        """Opens a line, or all of them (None), where what is below takes long to make."""

    def show(self, tree: Tree) -> None:
        self.tree_ = tree
        self.cursor = 0
        self.scroll_to(y=0, animate=False, immediate=True, force=True)
        self.changed()

    @property
    def item(self) -> Item | None:
        return self.tree_.lines[self.cursor] if self.cursor < len(self.tree_.lines) else None

    def count(self) -> int:
        return len(self.tree_.lines)

    def pieces(self, line: int, width: int) -> list[Piece]:
        item = self.tree_.lines[line]
        fold = ("▼ " if item.open else "▶ ") if item.foldable else "  "
        out: list[Piece] = [("  " * item.depth + fold, NORMAL)]
        if item.label:
            out.append((f"{item.label} ", STYLES["label"]))
        parts = item.parts or ((item.value, item.kind),)
        out += [(text, STYLES.get(kind, NORMAL)) for text, kind in parts]
        return out

    def select(self, item: Item) -> None:
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
        if wanted and self.tree_.any_heavy():
            self.unfold_slowly(None)
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
            self.unfold_slowly(item)
            return
        self.tree_.set_open(item, wanted)
        self.changed()


class HexPane(LineList):
    """Shows one space of bytes; left and right go byte by byte, and tell which field that is."""

    WHOLE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "byte(-1)", "byte back", show=False),
        Binding("right,l", "byte(1)", "byte on", show=False),
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs, id="hex")
        self.space: Space | None = None
        self.span = (0, 0)
        """The bytes of the field under the cursor."""
        self.around = (0, 0)
        """Those of what the field is part of, or of a part that has fields itself."""
        self.at = 0
        self.picked: Callable[[int], object] = bool
        """Called with the byte that the user goes to."""

    @property
    def wide(self) -> int:
        width = self.scrollable_content_region.width
        return 16 if width >= 76 else 8 if width >= 43 else 4

    def count(self) -> int:
        return 0 if self.space is None else -(-len(self.space.data) // self.wide)

    def show(
        self,
        space: Space | None,
        span: tuple[int, int] = (0, 0),
        around: tuple[int, int] = (0, 0),
        start: int = 0,
    ) -> None:
        """Show bytes from `start` on, with the `span` of a field strong, and what is `around` it
        faint."""
        self.space, self.span, self.around, self.at = space, span, around, start
        self.cursor = start // self.wide
        self.changed()
        self.show_line(self.cursor)

    def pieces(self, line: int, width: int) -> list[Piece]:
        assert self.space is not None
        wide, (start, end), (low, high) = self.wide, self.span, self.around
        at = line * wide
        row = self.space.data[at : at + wide]
        out: list[Piece] = [(f"{at:08x}  ", STYLES["dim"])]
        texts: list[Piece] = []
        for offset, octet in enumerate(row, at):
            faint = STYLES["faint span"] if low <= offset < high else NORMAL
            style = STYLES["span"] if start <= offset < end else faint
            if offset == self.at and self.has_focus:
                style += Style(underline=True, bold=True)
            between = NORMAL
            if offset + 1 < at + wide:
                between = STYLES["faint span"] if low <= offset < high - 1 else NORMAL
                between = style if start <= offset < end - 1 else between
            out += [(f"{octet:02x}", style), (" ", between)]
            texts.append((chr(octet) if 32 <= octet < 127 else ".", style))
        return [*out, ("   " * (wide - len(row)) + " ", NORMAL), *texts]

    def move_to(self, line: int, *, tell: bool = True) -> None:
        """Go to the byte of a line in the column of the cursor."""
        if self.space is None or not self.space.data:
            return
        line = max(0, min(line, self.count() - 1))
        self._pick(line * self.wide + self.at % self.wide)

    def action_byte(self, by: int) -> None:
        if self.space is not None and self.space.data:
            self._pick(self.at + by)

    def on_click(self, event: Click) -> None:
        if self.space is not None and self.space.data:
            column = max(0, min((event.x - 10) // 3, self.wide - 1))
            self._pick((event.y + self.scroll_offset.y) * self.wide + column)

    def _pick(self, at: int) -> None:
        assert self.space is not None
        self.at = max(0, min(at, len(self.space.data) - 1))
        self.cursor = self.at // self.wide
        self.changed()
        self.show_line(self.cursor)
        self.picked(self.at)

    @on(Focus)
    @on(Blur)
    def show_byte(self) -> None:
        """Draw the byte under the cursor, which only shows with the focus."""
        self.changed()
