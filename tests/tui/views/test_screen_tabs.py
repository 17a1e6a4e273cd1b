"""The bar of tabs: it fits, every screen is there, the shown one stands out without colour."""

from types import SimpleNamespace

import pytest
from rich.text import Text

from kafkascope.tui.screens import CONNECTIONS, LIVE, TABS, ZOOKEEPER
from kafkascope.tui.settings.palette import Glyphs
from kafkascope.tui.views.screen_tabs import ScreenTabs, cells

ALL = tuple(TABS)
USUAL = tuple(number for number in ALL if number not in (LIVE, ZOOKEEPER))


class Drawn(ScreenTabs):
    """The bar without a program."""

    def __init__(self) -> None:
        super().__init__(Glyphs(), print)
        self.drawn = Text()

    def update(self, content: Text = Text(), **options: object) -> None:  # type: ignore[override]  # noqa: B008
        self.drawn = content


@pytest.mark.parametrize("width", [160, 120, 100, 80, 60, 40])
@pytest.mark.parametrize("numbers", [ALL, USUAL], ids=["all", "usual"])
def test_all_tabs_fit_and_the_shown_one_is_in_brackets(
    numbers: tuple[int, ...], width: int
) -> None:
    for shown in numbers:
        bar = Drawn()
        bar.show(numbers, shown, width)
        text = bar.drawn.plain
        assert len(text) <= width
        (inside,) = [part.split("]")[0] for part in text.split("[")[1:]]
        assert inside.startswith(f"{shown} ")
        for number in numbers:
            assert f"{number}" in text


def test_80_columns_have_all_titles_but_one_in_full() -> None:
    bar = Drawn()
    bar.show(USUAL, 3, 80)
    cut = [number for number in USUAL if TABS[number].title not in bar.drawn.plain]
    assert cut == [CONNECTIONS]
    bar.show(USUAL, 3, 82)
    assert all(TABS[number].title in bar.drawn.plain for number in USUAL)
    bar.show(ALL, 3, 80)
    assert all(TABS[number].short in bar.drawn.plain for number in ALL)
    bar.show(ALL, 3, 120)
    assert all(TABS[number].title in bar.drawn.plain for number in ALL)


def test_cells_are_where_their_text_is() -> None:
    for shown in ALL:
        bar = Drawn()
        bar.show(ALL, shown, 120)
        for cell in cells(ALL, shown, 120)[0]:
            assert bar.drawn.plain[cell.left :].startswith(cell.text)


@pytest.mark.shown(size=(80, 24))
async def test_a_click_shows_a_screen_and_tabs_without_content_are_hidden(app, pilot) -> None:
    assert app.host.tabs() == USUAL
    cell = next(each for each in cells(USUAL, 1, 80)[0] if each.number == 4)
    await pilot.click("#screens", offset=(cell.left + 2, 0))
    await pilot.pause()
    assert app.host.number == 4
    await pilot.press("9")
    assert app.host.tabs() == tuple(number for number in ALL if number != LIVE)
    app.host.proxy = SimpleNamespace(version=0)
    assert LIVE in app.host.tabs()
    app.host.proxy = None
