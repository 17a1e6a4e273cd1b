"""Our themes, one dark and one light, beside Textual's own. Their colours can be told apart without
red and green, and have a contrast of 4.5 to 1 at least."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from textual.app import App
from textual.theme import Theme

from kafkascope.tui.settings import palette
from kafkascope.tui.settings.palette import use

BLUE: Final = "#0072b2"
SKY: Final = "#56b4e9"
ORANGE: Final = "#e69f00"
VERMILLION: Final = "#d55e00"


def _cursors(colours: dict[str, str]) -> dict[str, str]:
    """Return the line under the cursor of Textual's own lists: the ground of our cursors, on which
    all texts have enough contrast."""
    ground = colours["cursor"]
    return {
        "block-cursor-background": ground,
        "block-cursor-foreground": colours["text"],
        "block-cursor-blurred-background": ground,
        "block-cursor-blurred-foreground": colours["text"],
    }


DARK: Final = Theme(
    name="kafkascope",
    primary=BLUE,
    secondary=SKY,
    accent=ORANGE,
    warning=ORANGE,
    error=VERMILLION,
    success=SKY,
    foreground=palette.DARK["text"],
    background="#101014",
    surface="#1c1c22",
    panel="#26262e",
    dark=True,
    variables=_cursors(palette.DARK),
)
LIGHT: Final = Theme(
    name="kafkascope-light",
    primary=BLUE,
    secondary="#005a8f",
    accent="#7a5200",
    warning="#7a5200",
    error="#a33f00",
    success="#00664a",
    foreground=palette.LIGHT["text"],
    background="#fcfcfa",
    surface="#f1f1ee",
    panel="#e6e6e2",
    dark=False,
    variables=_cursors(palette.LIGHT),
)
USUAL: Final = DARK.name


def register(app: App[Any], wanted: str = "") -> str:
    """Register our themes and use one; return a sentence if there is none of that name."""
    for theme in (DARK, LIGHT):
        app.register_theme(theme)
    told = ""
    if wanted and wanted not in app.available_themes:
        near = get_close_matches(wanted, app.available_themes, n=1)
        told = f'no theme "{wanted}"' + (f"; did you mean {near[0]}?" if near else "")
        wanted = ""
    app.theme = wanted or USUAL
    use(dark=app.current_theme.dark)
    return told
