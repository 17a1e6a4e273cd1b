"""Text that was typed, pasted or taken from traffic reaches no terminal raw, in any box."""

from __future__ import annotations

import asyncio
import json

import pytest
from textual import events
from textual.app import App, ComposeResult

from kafkascope.tui.controllers.filter import TYPING
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.palette import Glyphs
from kafkascope.tui.views.dialogs import Editor
from tests.tui.pilots import idle, run, text_of

HOSTILE = "a\u202eb\u2066c\u200bd\x9b31m\x1b[2Je"
UNSEEN = set(HOSTILE) - set("abcde31m[2J")


def unseen(screen: str) -> set[str]:
    """Characters of that text that reached the screen."""
    return UNSEEN & set(screen)


@pytest.mark.parametrize(
    "keys", [("slash",), ("ctrl+g",), ("o",), ("question_mark",), ("colon",)], ids="-".join
)
def test_boxes_draw_what_was_pasted_without_what_terminals_obey(
    store: Store, keys: tuple[str, ...]
) -> None:
    async def steps(app, pilot):
        await pilot.press(*keys)
        await pilot.pause(0.1)
        box = app.screen.focused if app.screen is not app.screen_stack[0] else app.focused
        box.post_message(events.Paste(HOSTILE))
        await pilot.pause(0.1)
        assert unseen(text_of(app)) == set()
        assert "31m" in text_of(app)
        await pilot.press("left", "left", "shift+home")
        await pilot.pause()
        assert unseen(text_of(app)) == set()

    run(store, steps)


def test_a_filter_from_hostile_names_is_drawn_safely_and_still_filters(store: Store) -> None:
    async def steps(app, pilot):
        app.show_filter(f'client == "{HOSTILE[:7]}"')
        await idle(app, pilot)
        await pilot.pause(2 * TYPING)  # what is shown already is not applied once more
        assert app.workspace.view.text == f'client == "{HOSTILE[:7]}"'
        assert unseen(text_of(app)) == set()
        app.pick("which", [(HOSTILE, HOSTILE)], lambda text: None)
        await pilot.pause()
        assert unseen(text_of(app)) == set()

    run(store, steps)


def test_a_held_body_is_edited_without_what_terminals_obey() -> None:
    class Stage(App[None]):
        def compose(self) -> ComposeResult:
            yield from ()

    async def main() -> None:
        app = Stage()
        async with app.run_test(size=(80, 24)) as pilot:
            editor = Editor("held", {"topic": HOSTILE}, Glyphs())
            await app.push_screen(editor)
            await pilot.pause(0.1)
            area = editor.query_one("TextArea")
            assert json.loads(area.text) == {"topic": HOSTILE}
            assert unseen(text_of(app)) == set()
            area.post_message(events.Paste(HOSTILE))
            await pilot.pause(0.1)
            assert unseen(text_of(app)) == set()

    asyncio.run(main())
