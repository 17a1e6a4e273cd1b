"""Keys: none for two things on a screen, an id for each, a page that says what is true."""

from __future__ import annotations

import runpy
from pathlib import Path

from kafkascope.tui.controllers.table import KEYS, all_ids
from kafkascope.tui.keys import BOARD_KEYS
from kafkascope.tui.screens import SCREENS, board_class

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

    for number, (title, _) in SCREENS.items():
        kind = board_class(number)
        assert (number, title) == (kind.NUMBER, kind.TITLE)
        assert len(kind.HELP) > 80
        command = kind.COMMAND.split()
        assert command[0] == "kafkascope"
        assert command[1] in {*COMMANDS, "check"}


def test_the_page_of_keys_is_what_binds_them() -> None:
    page = runpy.run_path(str(DOCS / "print_keys.py"))["markdown"]()
    assert (DOCS / "keys.md").read_text("utf-8") == page
