"""Colour rules: read, wrong ones told, rows drawn by them, read again."""

from pathlib import Path

import pytest
from rich.color import Color

from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.filter.saved import write_saved
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.colours import Colours, colours_path, style_of
from kafkascope.tui.settings.palette import DARK, LIGHT, STYLES, use
from tests.tui.pilots import found, run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for the file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    colours_path().parent.mkdir()
    return colours_path()


def colours(store: Store, text: str, path: Path) -> Colours:
    path.write_text(text, encoding="utf-8")
    found = Colours(store, Known())
    found.read()
    return found


def index_of(store: Store, api: str) -> int:
    session = store.session
    return next(
        i
        for i in range(len(store))
        if session.tables["api"].values[session.columns["api"][i]] == api
    )


def test_the_first_rule_that_wants_a_row_colours_it(store: Store, home: Path) -> None:
    write_saved({"asks": "api == Fetch"})
    made = colours(
        store, '"@asks and number > 0" = "bold red"\n"api in {Fetch, Produce}" = "italic"\n', home
    )
    assert made.said == ""
    assert made.style(index_of(store, "Fetch")) == style_of("bold red")
    assert made.style(index_of(store, "Produce")) == style_of("italic")
    assert made.style(index_of(store, "Metadata")) is None


def test_rules_may_ask_what_messages_hold(store: Store, home: Path) -> None:
    made = colours(store, '"request.max_wait_ms >= 0" = "underline"', home)
    assert made.style(index_of(store, "Fetch")) == style_of("underline")
    assert made.style(index_of(store, "Produce")) is None


def test_rows_that_take_too_long_come_later(store: Store, home: Path) -> None:
    made = colours(store, '"request.max_wait_ms >= 0" = "underline"', home)
    row = index_of(store, "Fetch")
    store.budget.took(3600)
    store.waiting = False
    assert (made.style(row), store.waiting) == (None, True)
    store.waiting = False
    store.budget._window = 0.0  # another period
    assert made.style(row) == style_of("underline")
    assert not store.waiting


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"api == Fetsh" = "red"', "Fetsh"),
        ('"api == Fetch" = "reddish"', "unable to parse"),
        ('"api == Fetch" = "blink red"', "no blinking"),
        ('"api == Fetch" = ""', "a style is wanted"),
        ('"api == Fetch" = 3', "in quotes"),
        ('"@nobody" = "red"', 'no saved filter "@nobody"'),
        ('" " = "red"', "wants every row"),
        ("error.top = 'red'", "in quotes"),
        ("[rule", "no colour rules"),
        ("\ufeff\0", "no colour rules"),
    ],
)
def test_what_is_wrong_is_one_line_and_the_rest_works(
    store: Store, home: Path, text: str, told: str
) -> None:
    made = colours(store, f"{text}\n'api == Produce' = 'bold'\n", home)
    assert told in made.said
    assert str(home) in made.said
    assert len(made.said.splitlines()) == 1
    if "no colour rules" not in told:
        assert made.style(index_of(store, "Produce")) == style_of("bold")


def test_names_of_colours_follow_the_ground() -> None:
    assert style_of("bold good").color == STYLES["good"].color
    try:
        use(dark=False)
        assert style_of("good").color == Color.parse(LIGHT["good"])
    finally:
        use(dark=True)
    assert style_of("good").color == Color.parse(DARK["good"])


def drawn(app, word: str):
    """The style of a word in the list."""
    for line in app.screen._compositor.render_strips():
        for segment in line:
            if segment.text.startswith(word):
                return segment.style
    raise AssertionError(word)


def test_rows_are_drawn_by_rules_and_rules_are_read_again(store: Store, home: Path) -> None:
    home.write_text('"api == Metadata" = "black on #e69f00"\n"x" = "red"', encoding="utf-8")

    async def steps(app, pilot):
        assert 'unknown field "x"' in str([each.message for each in app._notifications])
        await pilot.do("slash", *"api == Metadata", "enter", "G")
        here = app.list.cursor
        ground = Color.parse("#e69f00")
        rows = [app.list._strip(line, 100) for line in (here, here - 1)]
        # The cursor has a ground of its own; its neighbour is coloured to the edge.
        grounds = [[each.style.bgcolor if each.style else None for each in row] for row in rows]
        assert ground not in grounds[0]
        assert set(grounds[1]) <= {ground, None}
        assert grounds[1].count(ground) > 5
        home.write_text('"api == Metadata" = "underline"', encoding="utf-8")
        await pilot.press("ctrl+p")
        await pilot.press(*"colour rules")
        await found(app, pilot, "colour rules")
        await pilot.do("enter")
        assert [rule.words for rule in app.workspace.colours.rules] == ["underline"]
        assert app.list._strip(here, 100)._segments[2].style.underline

    run(store, steps)


@pytest.mark.parametrize("plain", [False, True])
def test_without_colours_what_is_no_colour_stays(
    store: Store, home: Path, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    home.write_text("\"api == Metadata\" = 'bold red underline'", encoding="utf-8")

    async def steps(app, pilot):
        await pilot.do("slash", *"api == Metadata", "enter")
        style = drawn(app, "Metadata")
        assert style.underline
        red, green, blue = style.color.get_truecolor()
        assert red == green == blue

    run(store, steps, plain=plain)
