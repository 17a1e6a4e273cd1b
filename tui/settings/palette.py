"""Colours and glyphs. Colours are Okabe and Ito's, lighter on a dark background and darker on a
light one, so that nobody has to tell red from green; the letter before a result says the same
without colour."""

from __future__ import annotations

from typing import Final

from rich.style import Style
from rich.text import Text

from kafkascope.analyzer.text import ascii_only, safe

NORMAL: Final = Style()
STRONG: Final = Style(bold=True)

_ALWAYS: Final = {
    "": NORMAL,
    "header": STRONG,
    "here": Style(bold=True, reverse=True),
    "span": Style(color="#000000", bgcolor="#e69f00"),
}
DARK: Final = {
    "text": "#e4e4e4",
    "!": "#f28e5c",
    "?": "#e69f00",
    "~": "#9a9a9a",
    "dim": "#9a9a9a",
    "error": "#f28e5c",
    "note": "#9a9a9a",
    "label": "#56b4e9",
    "mark": "#f0e442",
    "bar": "#56b4e9",
    "good": "#3fbf9a",
    "wait": "#d99abf",
    "cursor": "#1a3549",
    "faint cursor": "#2a2a33",
}
LIGHT: Final = {
    "text": "#1c1c22",
    "!": "#a33f00",
    "?": "#7a5200",
    "~": "#5c5c5c",
    "dim": "#5c5c5c",
    "error": "#a33f00",
    "note": "#5c5c5c",
    "label": "#005a8f",
    "mark": "#6a5d00",
    "bar": "#0068a3",
    "good": "#00664a",
    "wait": "#8f3f6d",
    "cursor": "#cfe4f5",
    "faint cursor": "#e2e2dd",
}
"""Role -> colour of the text; of cursors, of the background."""


def _styles(colours: dict[str, str]) -> dict[str, Style]:
    made = {role: Style(color=colour) for role, colour in colours.items()}
    return {
        **_ALWAYS,
        **made,
        "mark": Style(color=colours["mark"], bold=True),
        # They set the background alone, so that texts keep their colours.
        "cursor": Style(bgcolor=colours["cursor"], bold=True),
        "faint cursor": Style(bgcolor=colours["faint cursor"]),
        "faint span": Style(bgcolor=colours["faint cursor"], underline=True),
    }


STYLES: Final = _styles(DARK)
"""Role -> style, for the background that is in use."""


def use(*, dark: bool) -> None:
    """Choose the colours for a dark or a light background."""
    STYLES.update(_styles(DARK if dark else LIGHT))


ASCII: Final = str.maketrans(
    {
        **dict(zip("▶◀▼▲▸▾●○◆◇■", "><v^>v*o#+@", strict=True)),
        **dict(zip("─━│┃└├┤┬┴┼╵·", "-=||`||-++|.", strict=True)),
        **dict(zip("▁▂▃▄▅▆▇█▌", "_.,-=+*##", strict=True)),
        **dict(zip("░▒▓", ".:#", strict=True)),
        **dict(zip("…–—×", "~--x", strict=True)),
    }
)


class Glyphs:
    """Makes texts safe for the terminal, in ASCII alone if `plain`."""

    def __init__(self, plain: bool = False) -> None:
        self.plain = plain

    def text(self, text: str) -> str:
        """Return a text as the terminal may get it."""
        clean = safe(text)
        return ascii_only(clean.translate(ASCII)) if self.plain else clean

    def rich(self, text: str, style: Style = NORMAL) -> Text:
        """Return a text as Textual's own widgets may get it, without markup."""
        return Text(self.text(text), style=style, no_wrap=True, overflow="ellipsis", end="")
