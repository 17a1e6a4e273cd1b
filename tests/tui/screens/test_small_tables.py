"""All screens with tables that dropped most of what was counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkascope.tui.boards import board_of
from kafkascope.tui.screens import SCREENS
from tests.matrix import each_nth
from tests.small_tables import FEW, small_tables  # noqa: F401  (a fixture)
from tests.tui.boards import ReadScene, Stage, perform


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("path", each_nth(FEW, 2), ids=lambda path: path.name)
def test_screens_show_what_small_tables_kept(path: Path) -> None:
    scene = ReadScene(path)

    async def steps(app: Stage, pilot: Any) -> None:
        board = app.board
        for tab in board.tabs:
            board.tab = tab
            for line in {0, max(0, board.table.count() - 1)}:  # the last one may be the others
                board.table.move_to(line)
                board.refill_lower()
                await pilot.pause()
                board.action_open_line()
                board.enter_pane()
                await pilot.pause()
                board.action_open_line()
                board.enter_pane()

    for number in SCREENS:
        perform(board_of(number), scene.fresh(), steps)
