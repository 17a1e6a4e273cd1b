"""Going in and back: the stack of views, and that each view is restored as it was left."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.tui.screens import EXCHANGES, LIVE, TABS, ZOOKEEPER
from kafkascope.tui.stack import Order, ViewStack
from tests.matrix import mostly_slow
from tests.tui.pilots import found

# --- the stack alone ----------------------------------------------------------------------------


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=60))
def test_what_is_pushed_comes_back_in_reverse(steps: list[int | None]) -> None:
    stack: ViewStack[int] = ViewStack()
    expected: list[int] = []
    for step in steps:
        if step is None:
            assert stack.pop() == (expected.pop() if expected else None)
        else:
            stack.push(step)
            expected.append(step)
        assert (len(stack), stack.top) == (len(expected), expected[-1] if expected else None)


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 5))
def test_a_tab_on_the_stack_is_gone_back_to(views: list[int], wanted: int) -> None:
    stack: ViewStack[int] = ViewStack()
    for view in views:
        stack.push(view)
    assert stack.pop_to(lambda view: view == wanted) == (wanted if wanted in views else None)
    left = views
    if wanted in views:
        left = views[: len(views) - 1 - views[::-1].index(wanted)]
    assert [stack.pop() for _ in left] == left[::-1]
    assert stack.pop() is None


@given(st.integers(2, 9), st.integers(1, 40))
def test_a_full_stack_keeps_the_root_and_the_newest(limit: int, count: int) -> None:
    stack: ViewStack[int] = ViewStack(limit)
    for view in range(count):
        stack.push(view)
    views = [stack.pop() for _ in range(len(stack))][::-1]
    assert len(views) == min(limit, count)
    assert views[0] == 0
    assert views[1:] == list(range(count))[-len(views[1:]) :][: len(views) - 1]


# --- in the program -----------------------------------------------------------------------------


def view_of(app: Any) -> Any:
    """All that going back has to restore."""
    here, rows, board = app.here(), app.list, app.host.board
    return (
        here._replace(detail=None),
        app.filter.box.value,
        len(app.workspace.view),
        (rows.cursor, rows.scroll_offset.y),
        app.focused.id,
        None if board is None else (board.table.cursor, board.table.scroll_offset.y),
        None if here.detail is None else here.detail[1:],
    )


@pytest.mark.parametrize(
    ("key", "size"),
    mostly_slow([("escape", (160, 50)), ("q", (80, 24))], ("q", (80, 24)).__eq__),
    ids=str,
)
async def test_back_restores_every_view_on_the_way(app, pilot, key, size) -> None:
    ways = (
        ("G", "o", *"latency", "enter", *("down",) * 40),
        ("enter",),  # its detail
        ("down", "down"),
        ("7",),
        ("down",),
        ("enter",),  # its exchanges
        ("end",),
        ("enter",),
        ("2",),
        ("o", "down", "enter", "down", "down", "down"),
        ("tab", "down", "down"),  # its ladder
        ("enter",),  # an exchange of it
        ("slash", *"api == Fetch", "enter"),
        ("5",),
        ("L",),
        ("3",),
        ("down",),
        ("enter",),  # its connections
        ("enter",),  # their exchanges
    )
    app.list.move_to(7)
    await pilot.settle()
    views = [(len(app.navigation.stack), view_of(app))]
    for way in ways:
        await pilot.do(*way)
        depth = len(app.navigation.stack)
        if depth == views[-1][0]:
            views[-1] = (depth, view_of(app))
        else:
            assert depth == views[-1][0] + 1, way
            views.append((depth, view_of(app)))
    assert len(views) >= 9
    for depth, view in reversed(views[:-1]):
        await pilot.do(key)
        if len(app.navigation.stack) > depth:  # tab had gone to the ladder
            await pilot.do(key)
        assert len(app.navigation.stack) == depth
        assert view_of(app) == view
    assert app.is_running
    assert len(app.navigation.stack) == 0


@pytest.mark.slow
@pytest.mark.parametrize("key", ["escape", "q"])
async def test_enter_and_back_on_every_screen(app, pilot, key) -> None:
    for number in TABS:
        await pilot.do(str(number))
        before = view_of(app)
        await pilot.do("enter")
        assert (view_of(app) != before) == (number not in (LIVE, ZOOKEEPER)), number
        if view_of(app) != before:
            await pilot.do(key)
        assert view_of(app) == before, number
        if number != EXCHANGES:
            await pilot.do(key)
        assert app.host.number == EXCHANGES
        assert app.is_running


async def test_q_quits_at_the_root_only(app, pilot) -> None:
    codes: list[Any] = []
    app.exit = lambda *rest, **options: codes.append(options)
    await pilot.do("enter", "q")
    await pilot.press("tab", "q")
    assert (codes, app.list.has_focus) == ([], True)
    await pilot.press("7", "q")
    assert codes == []
    await pilot.press("escape")
    assert codes == []
    await pilot.press("q")
    assert codes == [{"return_code": 0}]


async def test_esc_leaves_the_filter_box_as_it_was_and_takes_back_what_was_entered(
    app, pilot, store
) -> None:
    app.list.move_to(9)
    before = view_of(app)
    await pilot.press("slash", *"api == Fetch")
    await pilot.pause(0.3)
    assert len(app.workspace.view) < len(store)
    await pilot.do("escape")
    assert view_of(app) == before
    await pilot.do("slash", *"api == Fetch", "enter")
    assert app.workspace.view.text == "api == Fetch"
    await pilot.do("escape")
    assert view_of(app) == before


@pytest.mark.shown(filter_text="api == Fetch")
async def test_esc_at_the_root_removes_the_filter_that_the_program_was_started_with(
    app, pilot, store
) -> None:
    assert 0 < len(app.workspace.view) < len(store)
    await pilot.do("escape")
    assert (app.filter.box.value, len(app.workspace.view)) == ("", len(store))
    assert app.is_running


async def test_tabs_do_not_make_the_way_out_longer(app, pilot) -> None:
    for _ in range(3):
        for number in TABS:
            await pilot.press(str(number))
    await pilot.press("1")
    assert len(app.navigation.stack) == 0
    await pilot.press("2", "3", "2")
    assert (app.host.number, len(app.navigation.stack)) == (2, 1)
    await pilot.press("escape")
    assert app.host.number == 1


async def test_jumps_of_the_palette_are_on_the_stack(app, pilot) -> None:
    await pilot.do("G")
    before = view_of(app)
    await pilot.press("ctrl+p", *"100")
    await found(app, pilot, "100")
    await pilot.press("enter")
    for _ in range(500):
        await pilot.pause(0.01)
        if app.list.number == 100:
            break
    assert app.list.number == 100
    await pilot.do("escape")
    assert view_of(app) == before


async def test_an_exchange_that_the_filter_leaves_out_is_shown_and_esc_restores_the_filter(
    app, pilot
) -> None:
    await pilot.do("slash", *"api == Fetch", "enter")
    before = view_of(app)
    app.show_exchange(1)
    await pilot.settle()
    assert (app.list.number, app.filter.box.value) == (1, "")
    await pilot.do("escape")
    assert view_of(app) == before


async def test_an_order_that_is_restored_is_the_one_that_was_left(app, pilot) -> None:
    app.order.order_by("latency")
    await pilot.do("7")
    await pilot.do("enter")
    app.order.order_by("number")
    await pilot.do("escape", "escape")
    assert app.workspace.view.order == Order("latency", True)
