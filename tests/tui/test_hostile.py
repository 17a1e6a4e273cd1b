"""The UI on a real capture whose every name is hostile: nothing of it reaches the terminal."""

from collections.abc import Iterator
from typing import Any

import pytest
from textual import events
from textual.content import Content
from textual.widgets import Input, TextArea

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.captures.inputs.spool import Spool
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.controllers.filter import TYPING
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.values import of_row
from kafkascope.tui.views.dialogs import Editor
from tests.hostile import EVIL, hostile
from tests.kit.samples import SAMPLES
from tests.tui.pilots import store_of, text_of

PASTED = "a\u202eb\u2066c\u200bd\x9b31m\x1b[2Je"
SHORT = "\x1b[31m\n\x9b\u202e\u200b[red][/]"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("evil") / "evil.pcapng"
    evil = hostile(SAMPLES / "rebalance.pcap", path, SHORT)
    with open_capture([evil], spool=Spool()) as capture:
        yield store_of(capture)


def drawn(app: ScopeApp) -> str:
    text = text_of(app)
    odd = {char for char in text if not char.isprintable()} - {"\n"}
    assert not odd, odd
    return text


async def test_no_screen_shows_what_a_terminal_obeys(app, pilot) -> None:
    assert "[red][/]" in drawn(app)  # markup is text
    for _ in range(3):
        await pilot.do("j", "enter", "tab")
        drawn(app)
        await pilot.press("escape")
    for number in "2345678":
        await pilot.do(number)
        await pilot.do("enter")
        drawn(app)
        await pilot.press("1")


async def test_a_filter_from_a_value_stands_as_escapes(app, pilot) -> None:
    conditions = of_row(app.workspace.feed.store.session, 5)
    condition = next(each for each in conditions if "red" in each)
    assert "\\u202e" in condition
    app.show_filter(condition)
    await pilot.settle()
    assert len(app.workspace.view) > 0
    assert app.filter.box.value == condition
    drawn(app)


@pytest.mark.parametrize(
    "keys", [("slash",), ("ctrl+g",), ("o",), ("question_mark",), ("colon",)], ids="-".join
)
async def test_boxes_draw_what_was_pasted_without_what_terminals_obey(app, pilot, keys) -> None:
    await pilot.press(*keys)
    await pilot.pause(0.1)
    app.screen.focused.post_message(events.Paste(PASTED))
    await pilot.pause(0.1)
    assert "31m" in drawn(app)
    await pilot.press("left", "left", "shift+home")
    await pilot.pause()
    drawn(app)


async def test_a_filter_from_hostile_names_is_drawn_safely_and_still_filters(app, pilot) -> None:
    app.show_filter(f'client == "{PASTED[:7]}"')
    await pilot.settle()
    await pilot.pause(2 * TYPING)  # what is shown already is not applied once more
    assert app.workspace.view.text == f'client == "{PASTED[:7]}"'
    drawn(app)
    app.pick("which", [(PASTED, PASTED)], lambda text: None)
    await pilot.pause()
    drawn(app)


async def test_what_is_pasted_or_put_into_a_box_stands_as_escapes(app, pilot) -> None:
    app.filter.put('client == "a\u202eb\x9b"')
    assert app.filter.box.value == r'client == "a\u202eb\x9b"'
    app.filter.box.value = ""
    app.filter.box.insert_text_at_cursor('client == "\u2066"')
    assert app.filter.box.value == r'client == "\u2066"'
    app.ask("comment", lambda text: None, f"a{EVIL}")
    await pilot.pause()
    assert app.query_one("#prompt", Input).value.isprintable()
    drawn(app)
    assert str(parse(r'client == "a\u202eb\x9b"')) == r'client == "a\u202eb\x9b"'
    assert parse(r'client == "\u202e\U0001f389\ud800"') == parse('client == "\u202e🎉\ud800"')


async def test_a_held_body_is_edited_as_escapes(app, pilot) -> None:
    body = {"name": f"a{EVIL}", "other": "日本\udc80"}
    told: list[Any] = []
    app.push_screen(Editor(f"held {EVIL}", body, app.glyphs), told.append)
    await pilot.settle()
    assert app.screen.query_one(TextArea).text.replace("\n", "").isprintable()
    drawn(app)
    await pilot.do("ctrl+s")
    assert told == [body]
    app.push_screen(Editor("held", body, app.glyphs))
    await pilot.settle()
    app.screen.query_one(TextArea).post_message(events.Paste(PASTED))
    await pilot.pause(0.1)
    drawn(app)


async def test_the_palette_takes_no_markup_from_names(app, pilot, monkeypatch) -> None:
    name = "/[red]x/[@click=app.quit]q.pcap\x1b\u202e"
    monkeypatch.setattr("kafkascope.tui.controllers.inputs.recent", lambda: [name])
    found = [each for each in app.get_system_commands(app.screen) if "q.pcap" in each.title]
    content = Content.from_markup(found[-1].title)
    assert content.plain.endswith("pen [@click=app.quit]q.pcap··")
    assert Content.from_markup(found[-1].help).plain == "/[red]x"
    assert content.spans == []
    await pilot.press("ctrl+p", *"open")
    await pilot.pause(0.3)
    drawn(app)
