"""Colours and glyphs. Colours are Okabe and Ito's, so that nobody has to tell red from green; the
letter in front of a result says the same without colour."""

from __future__ import annotations

from typing import Final

from rich.style import Style
from rich.text import Text

from analyzer.render_list import ascii_only, safe

NORMAL: Final = Style()
DIM: Final = Style(color="#9a9a9a")
STRONG: Final = Style(bold=True)
STYLES: Final = {
    "!": Style(color="#f28e5c"),
    "?": Style(color="#e69f00"),
    "~": DIM,
    "error": Style(color="#f28e5c"),
    "note": DIM,
    "label": Style(color="#56b4e9"),
    "mark": Style(color="#f0e442", bold=True),
    "header": STRONG,
    "cursor": Style(reverse=True),
    "faint cursor": Style(underline=True, bold=True),
    "span": Style(color="#000000", bgcolor="#e69f00"),
}
ASCII: Final = str.maketrans({"▶": ">", "▼": "v", "─": "-", "│": "|", "·": ".", "…": "~", "█": "#"})


class Glyphs:
    """What may be drawn: everything, or ASCII."""

    def __init__(self, plain: bool = False) -> None:
        self.plain = plain

    def text(self, text: str) -> str:
        """Text of traffic or of ours that may go to the terminal."""
        clean = safe(text)
        return ascii_only(clean.translate(ASCII)) if self.plain else clean

    def rich(self, text: str, style: Style = NORMAL) -> Text:
        """The same for Textual's own widgets, without markup."""
        return Text(self.text(text), style=style, no_wrap=True, overflow="ellipsis", end="")
