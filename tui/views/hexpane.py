"""The bytes pane: offsets, hexadecimal and text, with the bytes of a field highlighted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.events import Blur, Click, Focus
from textual.message import Message

from kafkascope.tui.document.tree import Space
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs
from kafkascope.tui.views.lines import Lines, Piece


class HexPane(Lines):
    """Shows one space of bytes; left and right go byte by byte, and tell which field that is."""

    WHOLE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "byte(-1)", "byte back", show=False),
        Binding("right,l", "byte(1)", "byte on", show=False),
    ]

    @dataclass
    class Picked(Message):
        """The user went to a byte."""

        at: int

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs, id="hex")
        self.space: Space | None = None
        self.span = (0, 0)
        """The bytes of the field under the cursor."""
        self.around = (0, 0)
        """Those of what the field is part of, or of a part that has fields itself."""
        self.at = 0

    @property
    def wide(self) -> int:
        """How many bytes a line has."""
        width = self.scrollable_content_region.width
        return 16 if width >= 76 else 8 if width >= 43 else 4

    def count(self) -> int:
        """Return how many lines the bytes take."""
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
        """Return the offset, the bytes and the text of a line."""
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
            last = offset + 1 == at + wide
            between = style if not last and start <= offset < end - 1 else NORMAL
            if not last and low <= offset < high - 1 and between is NORMAL:
                between = STYLES["faint span"]
            out += [(f"{octet:02x}", style), (" ", between)]
            texts.append((chr(octet) if 32 <= octet < 127 else ".", style))
        out.append(("   " * (wide - len(row)) + " ", NORMAL))
        return out + texts

    def move_to(self, line: int, *, tell: bool = True) -> None:
        """Go to the byte of a line in the column of the cursor."""
        if self.space is None or not self.space.data:
            return
        line = max(0, min(line, self.count() - 1))
        self._pick(line * self.wide + self.at % self.wide)

    def action_byte(self, by: int) -> None:
        """Go to the byte beside."""
        if self.space is not None and self.space.data:
            self._pick(self.at + by)

    def on_click(self, event: Click) -> None:
        """Go to the byte under the mouse."""
        if self.space is not None and self.space.data:
            column = max(0, min((event.x - 10) // 3, self.wide - 1))
            self._pick((event.y + self.scroll_offset.y) * self.wide + column)

    def _pick(self, at: int) -> None:
        assert self.space is not None
        self.at = max(0, min(at, len(self.space.data) - 1))
        self.cursor = self.at // self.wide
        self.changed()
        self.show_line(self.cursor)
        self.post_message(self.Picked(self.at))

    @on(Focus)
    @on(Blur)
    def show_byte(self) -> None:
        """Draw the byte under the cursor, which only shows with the focus."""
        self.changed()
