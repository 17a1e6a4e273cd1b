"""Panes that the mouse makes larger."""

from __future__ import annotations

from kafkascope.tui.data.store import Store
from tests.tui.pilots import counted, idle, run


async def drag(pilot, selector: str, by: tuple[int, int]) -> None:
    widget = pilot.app.screen.query(selector).first()
    x, y = widget.region.width // 2, 0 if widget.region.height == 1 else 2
    await pilot.mouse_down(widget, offset=(x, y))
    await pilot.hover(widget, offset=(x + by[0], y + by[1]))
    await pilot.pause()
    await pilot.mouse_up(widget, offset=(x, y))
    await pilot.pause()


def test_lines_between_panes_are_dragged(store: Store) -> None:
    async def steps(app, pilot):
        high, wide = app.list.size.height, app.hex.size.width
        await drag(pilot, "#tabs", (0, 6))
        assert abs(app.list.size.height - high - 6) <= 1
        await drag(pilot, "#bar", (-9, 0))
        assert app.hex.size.width == wide + 9
        tab = app.inspector.tab
        await pilot.press("equals_sign")
        await idle(app, pilot)
        assert (app.list.size.height, app.hex.size.width) == (high, wide)
        await pilot.press("vertical_line")
        await idle(app, pilot)
        left = app.list.size.width
        await drag(pilot, "#tabs", (20, 0))
        assert app.list.size.width > left
        assert app.inspector.tab == tab

    run(store, steps)


def test_the_table_of_a_board_is_dragged(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("2")
        await counted(app, pilot)
        board = app.host.board
        high = board.upper.size.height
        await drag(pilot, ".board-tabs", (0, -5))
        assert board.upper.size.height < high
        await pilot.press("equals_sign")
        await pilot.pause()
        assert board.upper.size.height == high

    run(store, steps)
