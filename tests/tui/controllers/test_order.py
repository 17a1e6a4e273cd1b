"""The list is ordered by number, whenever exchanges end; a live one stays on its newest row until
somebody moves away."""

import random
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
from tests.kit.samples import SAMPLES
from tests.tui.pilots import StillFeed, text_of


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


class Live(StillFeed):
    """Exchanges come when they are let."""

    decodes = False

    def __init__(self) -> None:
        capture = open_capture([SAMPLES / "libraries.pcap"])
        super().__init__(Store(capture.source.read, capture.context))
        self.store.progress.done, self.store.progress.ring = False, True
        self.left: list[Exchange] = list(capture.exchanges())
        self.let = 0

    def poll(self, seconds: float) -> bool:
        grew, self.let = self.let, 0
        for exchange in self.left[:grew]:
            self.store.add(exchange)
        del self.left[:grew]
        return bool(grew)


@pytest.fixture
def app() -> ScopeApp:
    found = ScopeApp(Live(), "live")
    found.findings.few = 0
    return found


async def come(app: ScopeApp, pilot: Any, count: int) -> None:
    app.workspace.feed.let = count
    app.tick()
    await pilot.pause(0.05)


def newest(app: ScopeApp) -> bool:
    return app.list.cursor == len(app.workspace.view) - 1


@pytest.mark.parametrize("size", [(120, 30), (80, 24)], ids=str)
async def test_a_live_list_stays_on_the_newest_row_until_one_moves_away(app, pilot, size) -> None:
    await come(app, pilot, 100)
    assert newest(app)
    assert "newest" in text_of(app)
    await come(app, pilot, 50)
    assert newest(app)
    assert app.list.number == max(app.workspace.session.columns["number"])
    await pilot.press("up")
    await pilot.pause()
    here = app.list.number
    await come(app, pilot, 50)
    assert app.list.number == here
    assert "End: newest" in text_of(app)
    await pilot.press("G")
    await come(app, pilot, 50)
    assert newest(app)
    assert "newest" in text_of(app)
    # The end that one is at already.
    await pilot.press("F", "end")
    await come(app, pilot, 20)
    assert newest(app)
    await pilot.press("F")
    await come(app, pilot, 20)
    assert not newest(app)


@pytest.mark.shown(size=(120, 30))
async def test_the_wheel_and_reading_a_message_move_away_too(app, pilot) -> None:
    await come(app, pilot, 100)
    app.list.scroll_to(y=0, animate=False, immediate=True, force=True)
    await pilot.pause()
    await come(app, pilot, 30)
    assert not newest(app)
    assert app.list.scroll_offset.y == 0
    await pilot.press("end")
    await come(app, pilot, 30)
    assert newest(app)
    await pilot.press("enter")
    await pilot.pause()
    here = app.list.number
    await come(app, pilot, 30)
    assert app.list.number == here


@pytest.mark.shown(size=(120, 30))
async def test_a_cursor_stays_with_its_exchange_when_earlier_ones_end(app, pilot) -> None:
    await come(app, pilot, 100)
    await pilot.press("up", "up", "up")
    await pilot.pause()
    here = app.list.number
    for _ in range(10):
        await come(app, pilot, 10)
        assert app.list.number == here
        numbers = app.workspace.session.columns["number"]
        shown = [numbers[app.workspace.view[place]] for place in range(len(app.workspace.view))]
        assert shown == sorted(shown)
