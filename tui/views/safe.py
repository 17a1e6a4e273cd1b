"""Widgets for text that is typed, pasted, or put there from traffic: Textual draws it as it is, so
what a terminal would obey is replaced by signs or escapes."""

from __future__ import annotations

from rich.highlighter import Highlighter
from rich.text import Text
from textual.widgets import Input, TextArea

from kafkascope.analyzer.text import escaped
from kafkascope.tui.settings.palette import Glyphs


class SafeInput(Input):
    """A line of text that holds escapes in the place of what does not print."""

    def validate_value(self, value: str) -> str:
        r"""Write `\u202e` in the place of what does not print; Textual calls it for every value."""
        return escaped(value)


class SafeHighlighter(Highlighter):
    """Draws the value of an input that is not ours to validate, with as many characters."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs

    def highlight(self, text: Text) -> None:
        """Replace characters in a copy of the value."""
        text.plain = self._glyphs.text(text.plain)


class SafeTextArea(TextArea):
    """Many lines, which keep what is in them and are drawn without what does not print."""

    def __init__(self, text: str, glyphs: Glyphs) -> None:
        super().__init__(text, show_line_numbers=True, soft_wrap=True)
        self._glyphs = glyphs

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        line.plain = self._glyphs.text(line.plain)
        return line
