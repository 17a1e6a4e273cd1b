"""Keys: none for two things on a screen, an id for each, a page that says what is true."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from kafkascope.tui.controllers.table import KEYS, all_ids
from kafkascope.tui.keys import BOARD_KEYS, BOX_KEYS, HELP_KEY, footer
from kafkascope.tui.screens import SCREENS, TABS, board_class

DOCS = Path(__file__).parents[2] / "docs"


def test_every_action_has_an_id_of_its_own() -> None:
    ids = all_ids()
    assert len(ids) == len(set(ids))


def test_no_key_of_a_screen_means_two_things() -> None:
    for number in SCREENS:
        mine = [k for key in (*board_class(number).KEYS, *BOARD_KEYS) for k in key.keys.split(",")]
        assert len(mine) == len(set(mine)), number
    everywhere = [k for key in KEYS for k in key.keys.split(",")]
    assert len(everywhere) == len(set(everywhere))


def test_every_screen_names_its_command_and_what_it_is_for() -> None:
    from kafkascope.tui.cli import COMMANDS

    for number in SCREENS:
        kind = board_class(number)
        assert (number, TABS[number].title) == (kind.NUMBER, kind.TITLE)
        assert len(kind.HELP) > 80
        command = kind.COMMAND.split()
        assert command[0] == "kafkascope"
        assert command[1] in {*COMMANDS, "check"}


def test_the_page_of_keys_is_what_binds_them() -> None:
    page = runpy.run_path(str(DOCS / "print_keys.py"))["markdown"]()
    assert (DOCS / "keys.md").read_text("utf-8") == page


PANES = ("list", "detail", "hex", "table", "tab", "filter", "prompt")


@pytest.mark.parametrize("width", [80, 120])
def test_the_footer_has_the_keys_of_a_pane_in_the_order_of_use(width: int) -> None:
    keys = [*KEYS, *BOARD_KEYS, *BOX_KEYS]
    for pane in PANES:
        text = footer(keys, pane, width, enter="exchanges", always=f"{HELP_KEY}   Esc back")
        assert len(text) <= width
        assert text.endswith("? help   Esc back")
        hints = sorted((hint.rank, key.shown, hint) for key in keys for hint in key.hints)
        wanted = [f"{shown} " for _, shown, hint in hints if hint.pane == pane]
        assert text.startswith(f" {wanted[0]}")
        places = [text.find(f" {shown}") for shown in wanted]
        found = [place for place in places if place >= 0]
        assert found == sorted(found)


def test_a_narrow_footer_keeps_help_and_the_way_back() -> None:
    assert footer(KEYS, "list", 20, always=f"{HELP_KEY}   q quit") == " ? help   q quit"


def test_help_of_keys_is_an_imperative_line() -> None:
    keys = [*KEYS, *BOARD_KEYS]
    keys += [key for number in SCREENS for key in board_class(number).KEYS]
    for key in keys:
        assert key.help[0].isupper(), key
        assert len(key.help) <= 60, key
        assert not key.help.endswith("."), key
    used = [(hint.pane, hint.rank) for key in (*KEYS, *BOARD_KEYS) for hint in key.hints]
    assert len(used) == len(set(used)), "two keys have the same place in the order of use"
    assert {pane for pane, _ in used} <= set(PANES)
