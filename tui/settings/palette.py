"""Colours and glyphs. Colours are Okabe and Ito's, lighter on a dark background and darker on a
light one, so that nobody has to tell red from green; the letter before a result says the same
without colour."""

from __future__ import annotations

from typing import Any, Final

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.theme import Theme

from kafkascope.analyzer.text import ascii_only, safe, suggestion

NORMAL: Final = Style()
STRONG: Final = Style(bold=True)

_ALWAYS: Final = {
    "": NORMAL,
    "header": STRONG,
    "here": Style(bold=True, reverse=True),
    "span": Style(color="#000000", bgcolor="#e69f00"),
}
_COLOURS: Final = {
    "text": ("#e4e4e4", "#1c1c22"),
    **dict.fromkeys(("!", "error"), ("#f28e5c", "#a33f00")),
    "?": ("#e69f00", "#7a5200"),
    **dict.fromkeys(("~", "dim", "note"), ("#9a9a9a", "#5c5c5c")),
    "label": ("#56b4e9", "#005a8f"),
    "mark": ("#f0e442", "#6a5d00"),
    "bar": ("#56b4e9", "#0068a3"),
    "good": ("#3fbf9a", "#00664a"),
    "wait": ("#d99abf", "#8f3f6d"),
    "cursor": ("#1a3549", "#cfe4f5"),
    "faint cursor": ("#2a2a33", "#e2e2dd"),
}
DARK: Final = {role: dark for role, (dark, _) in _COLOURS.items()}
LIGHT: Final = {role: light for role, (_, light) in _COLOURS.items()}
"""Role -> colour of the text; of cursors, of the background."""


def _styles(colours: dict[str, str]) -> dict[str, Style]:
    return {
        **_ALWAYS,
        **{role: Style(color=colour) for role, colour in colours.items()},
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


_BLUE, _ORANGE = "#0072b2", "#e69f00"
_THEME: Final = {
    "primary": (_BLUE, _BLUE),
    "secondary": ("#56b4e9", "#005a8f"),
    **dict.fromkeys(("accent", "warning"), (_ORANGE, "#7a5200")),
    "error": ("#d55e00", "#a33f00"),
    "success": ("#56b4e9", "#00664a"),
    "foreground": _COLOURS["text"],
    "background": ("#101014", "#fcfcfa"),
    "surface": ("#1c1c22", "#f1f1ee"),
    "panel": ("#26262e", "#e6e6e2"),
}


def _theme(name: str, colours: dict[str, str], *, dark: bool) -> Theme:
    # The line under the cursor of Textual's own lists is the ground of our cursors, on which all
    # texts have enough contrast.
    cursor = {"background": colours["cursor"], "foreground": colours["text"]}
    cursors = {
        f"block-cursor-{blurred}{part}": colour
        for blurred in ("", "blurred-")
        for part, colour in cursor.items()
    }
    values: dict[str, Any] = {part: pair[0 if dark else 1] for part, pair in _THEME.items()}
    return Theme(name, **values, dark=dark, variables=cursors)


DARK_THEME: Final = _theme("kafkascope", DARK, dark=True)
LIGHT_THEME: Final = _theme("kafkascope-light", LIGHT, dark=False)
USUAL: Final = DARK_THEME.name


def register(app: App[Any], wanted: str = "") -> str:
    """Register our themes and use one; return a sentence if there is none of that name."""
    for theme in (DARK_THEME, LIGHT_THEME):
        app.register_theme(theme)
    problem = ""
    if wanted and wanted not in app.available_themes:
        problem = f'no theme "{wanted}"{suggestion(wanted, app.available_themes)}'
        wanted = ""
    app.theme = wanted or USUAL
    use(dark=app.current_theme.dark)
    return problem
