"""Keys: none for two things on a screen, an id for each, a page that says what is true."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from kafkascope.tui.boards import board_of
from kafkascope.tui.controllers.table import KEYS, all_ids
from kafkascope.tui.keys import BOARD_KEYS, BOXES, FOOTER, HELP_KEY, footer
from kafkascope.tui.screens import SCREENS, TABS

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
