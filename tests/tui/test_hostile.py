"""The UI on a real capture whose every name is hostile: nothing of it reaches the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.captures.inputs.spool import Spool
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.values import of_row
from kafkascope.tui.views.dialogs import Editor
from tests.hostile import EVIL, hostile
from tests.tui import pilots
from tests.tui.pilots import idle, text_of

SAMPLES = Path(__file__).parents[2] / "captures" / "samples"
SHORT = "\x1b[31m\n\x9b\u202e\u200b[red][/]"


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("evil") / "evil.pcapng"
    capture = open_capture([hostile(SAMPLES / "rebalance.pcap", path, SHORT)], spool=Spool())
    found = Store(capture.source.read, capture.context)
    for exchange in capture.exchanges():
        found.add(exchange)
    yield found
    capture.close()


def drawn(app: ScopeApp) -> str:
    text = text_of(app)
    odd = {char for char in text if not char.isprintable()} - {"\n"}
    assert not odd, odd
    return text


def test_no_screen_shows_what_a_terminal_obeys(evil: Store) -> None:
    async def steps(app: ScopeApp, pilot: Any) -> None:
        assert "[red][/]" in drawn(app)  # markup is text
        for _ in range(3):
            await pilot.press("j", "enter", "tab")
            await idle(app, pilot)
            drawn(app)
            await pilot.press("escape")
        for number in "2345678":
            await pilot.press(number)
            await pilots.counted(app, pilot)
            await pilot.press("enter")
            await idle(app, pilot)
            drawn(app)
            await pilot.press("1")

    pilots.run(evil, steps)


def test_a_filter_from_a_value_stands_as_escapes(evil: Store) -> None:
    async def steps(app: ScopeApp, pilot: Any) -> None:
        conditions = of_row(app.workspace.feed.store.session, 5)
        condition = next(each for each in conditions if "red" in each)
        assert "\\u202e" in condition
        app.show_filter(condition)
        await idle(app, pilot)
        assert len(app.workspace.view) > 0
        assert app.filter.box.value == condition
        drawn(app)

    pilots.run(evil, steps)


def test_what_is_pasted_or_put_into_a_box_stands_as_escapes(evil: Store) -> None:
    async def steps(app: ScopeApp, pilot: Any) -> None:
        app.filter.put('client == "a\u202eb\x9b"')
        assert app.filter.box.value == r'client == "a\u202eb\x9b"'
        app.filter.box.value = ""
        app.filter.box.insert_text_at_cursor('client == "\u2066"')
        assert app.filter.box.value == r'client == "\u2066"'
        app.ask("comment", lambda text: None, f"a{EVIL}")
        await pilot.pause()
        assert app.query_one("#prompt", Input).value.isprintable()
        drawn(app)

    pilots.run(evil, steps)
    assert str(parse(r'client == "a\u202eb\x9b"')) == r'client == "a\u202eb\x9b"'
    assert parse(r'client == "\u202e\U0001f389\ud800"') == parse('client == "\u202e🎉\ud800"')


def test_a_held_body_is_edited_as_escapes(evil: Store) -> None:
    async def steps(app: ScopeApp, pilot: Any) -> None:
        body = {"name": f"a{EVIL}", "other": "日本\udc80"}
        app.push_screen(Editor(f"held {EVIL}", body, app.glyphs), told.append)
        await pilot.pause()
        assert app.screen.query_one(TextArea).text.replace("\n", "").isprintable()
        drawn(app)
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert told == [body]

    told: list[Any] = []
    pilots.run(evil, steps)


def test_the_palette_takes_no_markup_from_names(
    evil: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from textual.content import Content

    name = "/[red]x/[@click=app.quit]q.pcap\x1b\u202e"
    monkeypatch.setattr("kafkascope.tui.controllers.inputs.recent", lambda: [name])

    async def steps(app: ScopeApp, pilot: Any) -> None:
        found = [each for each in app.get_system_commands(app.screen) if "q.pcap" in each.title]
        content = Content.from_markup(found[-1].title)
        assert content.plain.endswith("pen [@click=app.quit]q.pcap··")
        assert Content.from_markup(found[-1].help).plain == "/[red]x"
        assert content.spans == []
        await pilot.press("ctrl+p", *"open")
        await pilot.pause(0.3)
        drawn(app)

    pilots.run(evil, steps)
