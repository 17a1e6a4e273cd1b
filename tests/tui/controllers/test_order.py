"""The list is ordered by number, whenever exchanges end; a live one stays on its newest row until
somebody moves away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.session import Session
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import Numbered
from tests.tui.pilots import idle, run, text_of

LIBRARIES = Path(__file__).parents[3] / "captures" / "samples" / "libraries.pcap"


class Rows(Session):
    """Numbers are all that it has."""

    def __init__(self, numbers: list[int]) -> None:
        self.columns = {"number": numbers}  # type: ignore[dict-item]


@settings(max_examples=50)
@given(st.permutations(range(600)), st.lists(st.integers(1, 400), min_size=1), st.integers(0, 500))
def test_rows_are_by_number_however_they_come(
    numbers: list[int], sizes: list[int], drop: int
) -> None:
    session = Rows(numbers)
    rows, at = Numbered(session), 0
    while at < len(numbers):
        size = sizes[at % len(sizes)]
        rows.extend(range(at, min(len(numbers), at + size)))
        at = min(len(numbers), at + size)
        known = sorted(range(at), key=numbers.__getitem__)
        assert list(rows.indexes()) == known
    assert [rows.place_of(index) for index in known] == list(range(len(known)))
    rows.remove(known[3])
    rows.drop(drop)
    session.columns["number"] = numbers[drop:]
    left = [index - drop for index in known if index >= drop and index != known[3]]
    assert [rows[place] for place in range(len(rows))] == left


def test_of_many_rows_some_are_put_in_their_places_and_the_others_stay() -> None:
    count = 60_000
    numbers = list(range(count))
    late = random.Random(1).sample(range(count), 400)
    early = [number for number in numbers if number not in set(late)]
    session = Rows(early + late)
    rows = Numbered(session)
    rows.extend(range(len(early)))
    assert not rows.moved
    for begin, end in ((0, 100), (100, 400)):
        rows.extend(range(len(early) + begin, len(early) + end))
        assert rows.moved
    assert [session.columns["number"][index] for index in rows.indexes()] == numbers


def test_the_list_of_a_capture_is_by_number_unless_asked(store: Store) -> None:
    numbers = store.session.columns["number"]

    async def steps(app: ScopeApp, pilot: Any) -> None:
        def shown() -> list[int]:
            return [numbers[app.workspace.view[place]] for place in range(len(app.workspace.view))]

        assert shown() == sorted(numbers)
        app.show_filter("api == Fetch")
        await idle(app, pilot)
        assert shown() == sorted(shown())
        assert 0 < len(shown()) < len(numbers)
        here = app.list.number
        app.order.order_by("latency")
        assert shown() != sorted(shown())
        app.order.order_by("")
        assert shown() == sorted(shown())
        assert app.list.number == here

    run(store, steps)


class Live:
    """Exchanges come when they are let."""

    decodes = False

    def __init__(self) -> None:
        capture = open_capture([LIBRARIES])
        self.store = Store(capture.source.read, capture.context)
        self.store.progress.ring = True
        self.left: list[Exchange] = list(capture.exchanges())
        self.let = 0

    def payloads(self) -> None:
        """No schemas."""

    def poll(self, seconds: float) -> bool:
        grew, self.let = self.let, 0
        for exchange in self.left[:grew]:
            self.store.add(exchange)
        del self.left[:grew]
        return bool(grew)

    def stop(self) -> None: ...

    def close(self) -> None: ...


def live(
    steps: Callable[[ScopeApp, Any, Callable[[int], Awaitable[None]]], Awaitable[None]],
    size: tuple[int, int] = (120, 30),
) -> None:
    """Show a live list, and do something with it."""

    async def main() -> None:
        feed = Live()
        app = ScopeApp(feed, "live")
        app.findings.few = 0
        async with app.run_test(size=size) as pilot:

            async def come(count: int) -> None:
                feed.let = count
                app.tick()
                await pilot.pause(0.05)

            await come(100)
            await steps(app, pilot, come)

    asyncio.run(main())


def newest(app: ScopeApp) -> bool:
    return app.list.cursor == len(app.workspace.view) - 1


@pytest.mark.parametrize("size", [(120, 30), (80, 24)], ids=str)
def test_a_live_list_stays_on_the_newest_row_until_one_moves_away(size: tuple[int, int]) -> None:
    async def steps(app, pilot, come):
        assert newest(app)
        assert "newest" in text_of(app)
        await come(50)
        assert newest(app)
        assert app.list.number == max(app.workspace.feed.store.session.columns["number"])
        await pilot.press("up")
        await pilot.pause()
        here = app.list.number
        await come(50)
        assert app.list.number == here
        assert "End: newest" in text_of(app)
        await pilot.press("G")
        await come(50)
        assert newest(app)
        assert "newest" in text_of(app)
        # The end that one is at already.
        await pilot.press("F", "end")
        await come(20)
        assert newest(app)
        await pilot.press("F")
        await come(20)
        assert not newest(app)

    live(steps, size)


def test_the_wheel_and_reading_a_message_move_away_too() -> None:
    async def steps(app, pilot, come):
        app.list.scroll_to(y=0, animate=False, immediate=True, force=True)
        await pilot.pause()
        await come(30)
        assert not newest(app)
        assert app.list.scroll_offset.y == 0
        await pilot.press("end")
        await come(30)
        assert newest(app)
        await pilot.press("enter")
        await pilot.pause()
        here = app.list.number
        await come(30)
        assert app.list.number == here

    live(steps)


def test_a_cursor_stays_with_its_exchange_when_earlier_ones_end() -> None:
    async def steps(app, pilot, come):
        await pilot.press("up", "up", "up")
        await pilot.pause()
        here = app.list.number
        for _ in range(10):
            await come(10)
            assert app.list.number == here
            numbers = app.workspace.feed.store.session.columns["number"]
            shown = [numbers[app.workspace.view[place]] for place in range(len(app.workspace.view))]
            assert shown == sorted(shown)

    live(steps)


def test_a_file_that_is_read_does_not_move_by_itself(store: Store) -> None:
    async def steps(app: ScopeApp, pilot: Any) -> None:
        assert app.list.cursor == 0
        await pilot.press("end")
        await pilot.pause()
        assert not app.order.following
        assert "newest" not in text_of(app)

    run(store, steps)
