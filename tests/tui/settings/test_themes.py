"""Our themes can be read by everybody."""

from collections.abc import Iterator

import pytest
from rich.color import Color
from textual.app import App

from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings import palette
from kafkascope.tui.settings.palette import DARK_THEME as DARK
from kafkascope.tui.settings.palette import LIGHT_THEME as LIGHT
from kafkascope.tui.settings.palette import register
from tests.matrix import mostly_slow
from tests.tui.pilots import run, text_of

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
            if role in cursors or role == "text":
                continue
            assert contrast(colour, ground) >= LEAST, (role, ground)


KEYS = (
    ("",),
    ("tab",),
    ("escape", "slash", *"api =="),
    ("escape", "question_mark"),
    ("escape", "f1"),
    ("escape", "colon"),
    ("escape", "o"),
    ("escape", "x"),
    ("escape", "m", "semicolon"),
    *(("escape", str(number)) for number in range(2, 10)),
)
"""Screens, boxes and dialogs, one after the other."""
BLOCKS = set("▔▁▂▃▄▅▆▇█▌▐░▒▓─━│┃└├┤┬┴┼╵· ")


@pytest.mark.parametrize("theme", mostly_slow([DARK.name, LIGHT.name], LIGHT.name.__eq__))
def test_every_text_on_every_screen_has_enough_contrast(store: Store, theme: str) -> None:
    """All that is drawn: from themes, roles and the style sheets together."""
    weak: dict[tuple[str, str], str] = {}

    async def steps(app, pilot):
        app.theme = theme
        for keys in KEYS:
            await pilot.do(*filter(None, keys))
            for text, one, other in texts(app):
                if contrast(one, other) < LEAST:
                    weak[one, other] = f"{keys}: {text} {contrast(one, other):.2f}"

    try:
        run(store, steps, (120, 40))
    finally:
        palette.use(dark=True)
    assert not weak


def texts(app: ScopeApp) -> Iterator[tuple[str, str, str]]:
    """Yield each text of the screen on top with its colour and that of its ground; what a dialog
    covers is dim on purpose."""
    screen = app.screen
    box = screen.children[0].region if len(app.screen_stack) > 1 else screen.region
    for y, strip in enumerate(screen._compositor.render_strips()):
        if not box.y <= y < box.bottom:
            continue
        for text, style, _ in strip.crop(box.x, box.right):
            if style is None or set(text) <= BLOCKS:
                continue
            colours = (
                [style.bgcolor, style.color] if style.reverse else [style.color, style.bgcolor]
            )
            one, other = (each.get_truecolor().hex for each in colours if each is not None)
            yield text.strip(), one, other


def test_16_colours_and_none_show_the_same_words(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    screens = []

    async def steps(app, pilot):
        screens.append(text_of(app))

    async def ansi(app, pilot):
        app.theme = "textual-ansi" if "textual-ansi" in app.available_themes else "ansi-dark"
        await pilot.settle()
        screens.append(text_of(app))

    run(store, steps)
    run(store, ansi)
    monkeypatch.setenv("NO_COLOR", "1")
    run(store, steps)
    palette.use(dark=True)
    assert screens[0] == screens[1] == screens[2]


def test_both_grounds_have_the_same_roles() -> None:
    assert palette.DARK.keys() == palette.LIGHT.keys()


def test_an_unknown_theme_is_told_with_the_nearest_one() -> None:
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
