"""Keys: none for two things on a screen, an id for each, a page that says what is true, and none
without a test that presses it."""

import ast
import re
import runpy
from pathlib import Path

import pytest
from textual import events

from kafkascope.tui.boards import board_of
from kafkascope.tui.controllers.table import KEYS, all_ids
from kafkascope.tui.keys import BOARD_KEYS, BOXES, FOOTER, HELP_KEY, footer
from kafkascope.tui.screens import SCREENS, TABS
from kafkascope.tui.views.dialogs import Picker

DOCS = Path(__file__).parents[2] / "docs"


def test_every_action_has_an_id_of_its_own() -> None:
    ids = all_ids()
    assert len(ids) == len(set(ids))


def test_no_key_of_a_screen_means_two_things() -> None:
    for number in SCREENS:
        mine = [k for key in (*board_of(number).keys, *BOARD_KEYS) for k in key.keys.split(",")]
        assert len(mine) == len(set(mine)), number
    everywhere = [k for key in KEYS for k in key.keys.split(",")]
    assert len(everywhere) == len(set(everywhere))


def test_every_screen_names_its_command_and_what_it_is_for() -> None:
    from kafkascope.tui.cli import COMMANDS

    for number in SCREENS:
        board = board_of(number)
        assert (number, TABS[number].title) == (board.number, board.title)
        assert len(board.help) > 80
        command = board.command.split()
        assert command[0] == "kafkascope"
        assert command[1] in {*COMMANDS, "check"}


def test_the_page_of_keys_is_what_binds_them() -> None:
    page = runpy.run_path(str(DOCS / "print_keys.py"))["markdown"]()
    assert (DOCS / "keys.md").read_text("utf-8") == page


PANES = ("list", "detail", "hex", "table", "tab", "filter", "prompt")


@pytest.mark.parametrize("width", [80, 120])
def test_the_footer_has_the_keys_of_a_pane_in_the_order_of_use(width: int) -> None:
    keys = [*KEYS, *BOARD_KEYS]
    shown = {key.id: key.shown for key in keys}
    for pane in PANES:
        text = footer(keys, pane, width, enter="exchanges", always=f"{HELP_KEY}   Esc back")
        assert len(text) <= width
        assert text.endswith("? help   Esc back")
        wanted = [*BOXES.get(pane, ())]
        wanted += [shown[id_] for id_ in FOOTER.get(pane, ()) if id_ in shown]
        assert text.startswith(f" {wanted[0]} ")
        places = [text.find(f" {each} ") for each in wanted]
        found = [place for place in places if place >= 0]
        assert found == sorted(found)


def test_a_narrow_footer_keeps_help_and_the_way_back() -> None:
    assert footer(KEYS, "list", 20, always=f"{HELP_KEY}   q quit") == " ? help   q quit"


def test_help_of_keys_is_an_imperative_line() -> None:
    keys = [*KEYS, *BOARD_KEYS]
    keys += [key for number in SCREENS for key in board_of(number).keys]
    for key in keys:
        assert key.help[0].isupper(), key
        assert len(key.help) <= 60, key
        assert not key.help.endswith("."), key
    assert {id_ for pane in FOOTER.values() for id_ in pane} <= {key.id for key in keys}
    assert {*FOOTER, *BOXES} == set(PANES)


# --- keys are pressed: in a test at least, and here where they are not elsewhere ------------------


def pressed() -> set[str]:
    """Keys that tests of the UI press by their names."""
    found: set[str] = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
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
    told = set(re.findall(r"\| `([a-z]+\.\w+)` \|", (DOCS / "keys.md").read_text("utf-8")))
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
