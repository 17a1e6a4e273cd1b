"""Our themes can be read by everybody."""

from __future__ import annotations

import pytest
from rich.color import Color

from kafkascope.tui.settings import palette
from kafkascope.tui.settings.themes import DARK, LIGHT, register

LEAST = 4.5


def luminance(colour: str) -> float:
    parts = Color.parse(colour).get_truecolor()
    linear = [
        part / 255 / 12.92 if part / 255 <= 0.03928 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("theme", "colours"), [(DARK, palette.DARK), (LIGHT, palette.LIGHT)], ids=["dark", "light"]
)
def test_every_role_has_enough_contrast_on_every_ground(theme, colours) -> None:
    cursors = {role: colour for role, colour in colours.items() if "cursor" in role}
    for ground in (theme.background, theme.surface, theme.panel, *cursors.values()):
        assert contrast(theme.foreground, ground) >= LEAST
        for role, colour in colours.items():
            if role in cursors:
                continue
            assert contrast(colour, ground) >= LEAST, (role, ground)


def test_both_grounds_have_the_same_roles() -> None:
    assert palette.DARK.keys() == palette.LIGHT.keys()


def test_colours_follow_the_ground() -> None:
    try:
        palette.use(dark=False)
        assert palette.STYLES["!"].color == Color.parse(palette.LIGHT["!"])
    finally:
        palette.use(dark=True)
    assert palette.STYLES["!"].color == Color.parse(palette.DARK["!"])


def test_an_unknown_theme_is_told_with_the_nearest_one() -> None:
    from textual.app import App

    app: App[None] = App()
    try:
        assert register(app, "kafkascope-ligth") == (
            'no theme "kafkascope-ligth"; did you mean kafkascope-light?'
        )
        assert app.theme == "kafkascope"
        assert register(app, "kafkascope-light") == ""
        assert app.theme == "kafkascope-light"
    finally:
        palette.use(dark=True)


def test_glyphs_of_the_screens_have_ascii_twins() -> None:
    plain = palette.Glyphs(plain=True)
    for sign in "▶◀▼▲─━│┃└├┤┬┴┼╵·▁▂▃▄▅▆▇█▌░▒▓…–—×":
        assert plain.text(sign) != "?", sign
        assert len(plain.text(sign)) == 1
