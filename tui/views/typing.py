"""Text that is typed or pasted into boxes that are not ours to validate (`box`): drawn as all other
text is, without characters that a terminal would obey. What is in them stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.highlighter import Highlighter
from textual.widgets import TextArea

if TYPE_CHECKING:
    from rich.text import Text

    from kafkascope.tui.settings.palette import Glyphs


class Shown(Highlighter):
    """What the palette's box draws in the place of its value: as many characters."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs

    def highlight(self, text: Text) -> None:
        """Textual calls it with a copy of the value."""
        text.plain = self._glyphs.text(text.plain)


class ShownArea(TextArea):
    """Many lines, drawn in the same way."""

    def __init__(self, text: str, glyphs: Glyphs) -> None:
        super().__init__(text, show_line_numbers=True, soft_wrap=True)
        self._glyphs = glyphs

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn."""
        line = super().get_line(line_index)
        line.plain = self._glyphs.text(line.plain)
        return line
