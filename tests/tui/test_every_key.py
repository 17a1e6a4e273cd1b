"""No key without a test that presses it; and the tests of those that have none elsewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from textual import events

from kafkascope.tui.boards import board_of
from kafkascope.tui.controllers.table import KEYS
from kafkascope.tui.keys import BOARD_KEYS
from kafkascope.tui.screens import SCREENS
from kafkascope.tui.views.dialogs import Picker

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "keys.md"


def pressed() -> set[str]:
    """Keys that tests of the UI press by their names."""
    found: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="press" | "do"), args=args):
                    found |= {
                        each.value
                        for each in args
                        if isinstance(each, ast.Constant) and isinstance(each.value, str)
                    }
    return found


def test_every_key_is_pressed_in_a_test() -> None:
    keys = {key.id: key.keys for key in (*KEYS, *BOARD_KEYS)}
    keys |= {key.id: key.keys for number in SCREENS for key in board_of(number).keys}
    told = set(re.findall(r"\| `([a-z]+\.\w+)` \|", PAGE.read_text("utf-8")))
    assert told == set(keys)
    known = pressed()
    assert [id_ for id_ in sorted(keys) if not known & set(keys[id_].split(","))] == []


async def test_panes_back_and_their_sizes(app, pilot) -> None:
    await pilot.press("shift+tab")
    assert app.hex.has_focus
    wide, high = app.hex.size.width, app.list.size.height
    await pilot.do("less_than_sign", "minus")
    assert app.hex.size.width > wide
    assert app.list.size.height < high


async def test_other_bytes(app, pilot) -> None:
    await pilot.do("slash", *"api == Produce and codec == zstd", "enter", "r", "enter")
    await pilot.do("Z")
    assert {space.name for space in app.detail.tree_.spaces} == {"Wire", "Decompressed"}
    first = app.hex.space.name
    await pilot.press("b")
    assert {first, app.hex.space.name} == {"Wire", "Decompressed"}


async def test_marks_backwards_and_the_end(app, pilot, store) -> None:
    await pilot.press("m", "G", "quotation_mark")
    assert app.list.cursor == 0
    await pilot.press("F")
    assert (app.order.following, app.list.cursor) == (True, len(store) - 1)
    await pilot.press("F")
    assert not app.order.following


async def test_menus_of_exports_and_fixtures(app, pilot) -> None:
    await pilot.do("x")
    assert isinstance(app.screen, Picker)
    await pilot.do("escape", "X")
    prompt = app.query_one("#prompt")
    assert prompt.has_focus
    assert prompt.value == "libraries-fixtures"
    await pilot.do("escape", "8")
    assert app.host.number == 8
    await pilot.do("9")
    assert app.host.number == 9


@pytest.mark.parametrize("size", [(160, 50), (20, 5)], ids=str)
async def test_leaving_from_anywhere(app, pilot, size) -> None:
    await pilot.press("7", "Q")
    assert app.return_code == 0


async def test_what_is_typed_at_once_is_not_lost(app, pilot) -> None:
    names = {"/": "slash", " ": "space", "=": "equals_sign"}
    for letter in "/api == Fetch":
        app.post_message(events.Key(names.get(letter, letter), letter))
    await pilot.pause(0.1)
    await pilot.settle()
    assert app.filter.box.value == "api == Fetch"
