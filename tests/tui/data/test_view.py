"""A view has the rows that its filter wants, in order, however little time it gets at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from kafkascope.analyzer import open_capture
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import result, row_of
from kafkascope.analyzer.filter.backends.sources import (
    HEAD_FIELDS,
    LISTS,
    NUMBERS,
    RowRange,
    packets,
)
from kafkascope.analyzer.filter.language import compile_filter, compile_query
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.packing import HEAD_COLUMNS
from kafkascope.analyzer.session.session import Session
from kafkascope.captures import Spool
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.masks import bad
from kafkascope.tui.data.sorting import Order
from kafkascope.tui.data.store import LATER, Store
from kafkascope.tui.data.view import View
from tests.tui.pilots import StillFeed, text_of

SAMPLE = Path(__file__).parents[3] / "captures" / "samples" / "aiokafka.pcap"


@pytest.mark.parametrize(
    "text",
    ["", "api == Fetch", "request.max_wait_ms > 100", '"ok"', "number > 20 or record.value"],
)
@pytest.mark.parametrize("rows", [7, 100_000])
def test_the_rows_are_those_of_the_filter(text: str, rows: int) -> None:
    with (
        open_capture([SAMPLE], spool=Spool()) as capture,
        patch("kafkascope.tui.data.view.PIECE", rows, create=True),
    ):
        store = Store(capture.source.read, capture.context)
        view = View(store, text)
        single = compile_filter(text)
        wanted = []
        for index, exchange in enumerate(capture.exchanges()):
            store.add(exchange)
            if single(store.session.row(index), exchange):
                wanted.append(index)
            if index % 50 == 0:
                view.advance(0)
        while view.behind:
            view.advance(0)
            assert view.scanned <= 1
        assert [view.arrival(place) for place in range(view.arrived)] == wanted
        numbers = store.session.columns["number"]
        shown = [view[place] for place in range(len(view))]
        assert shown == sorted(wanted, key=numbers.__getitem__)
        assert [view.place_of(index) for index in shown] == list(range(len(shown)))
        assert view.scanned == 1
        assert not view.behind


@pytest.fixture
def growing() -> Iterator[tuple[Store, list[Exchange]]]:
    """A store that knows headers only, and the exchanges with their bodies."""
    with open_capture([SAMPLE]) as heads, open_capture([SAMPLE], spool=Spool()) as whole:
        heads.context.bodies = False
        store = Store(whole.source.read, whole.context)
        store.session.extend(list(heads.exchanges()))
        yield store, list(whole.exchanges())


def _fill(store: Store, exchanges: list[Exchange]) -> None:
    rows = [row_of(exchange, store.session.context.names) for exchange in exchanges]
    store.session.fill(exchanges, rows)
    store.texts.extend([result(row) for row in rows])


def test_filters_and_orders_say_how_far_bodies_were_read(
    growing: tuple[Store, list[Exchange]],
) -> None:
    store, exchanges = growing
    heads, bodies, read = (View(store, text) for text in ("api == Fetch", "topic", "record.value"))
    ordered = View(store)
    ordered.sort(Order("records", True))
    by_time = View(store)
    by_time.sort(Order("latency", True))
    for view in (heads, bodies, read):
        view.advance(60)
    fetches = [index for index, each in enumerate(exchanges) if each.api == "Fetch"]
    fetches.sort(key=store.session.columns["number"].__getitem__)
    assert list(heads.array()) == fetches
    assert not heads.behind
    assert not heads.partial
    assert len(bodies) == len(read) == 0
    assert bodies.partial
    assert bodies.behind
    assert ordered.partial
    assert not by_time.partial
    half = len(exchanges) // 2
    _fill(store, exchanges[:half])
    assert store.whole == half
    for view in (bodies, read):
        view.advance(60)
        fresh = View(store, view.text)
        fresh.advance(60)
        assert list(view.array()) == list(fresh.array())
        assert view.partial
        assert max(view.array()) < half
    _fill(store, exchanges[half:])
    store.progress.done = True
    for view in (bodies, read, ordered):
        view.advance(60)
        assert not view.partial
        assert not view.behind
    single = compile_filter("topic")
    wanted = [i for i, e in enumerate(exchanges) if single(store.session.row(i), e)]
    wanted.sort(key=store.session.columns["number"].__getitem__)
    assert list(bodies.array()) == wanted
    records = store.session.columns["records"]
    assert records[int(ordered.array()[0])] == max(records)


def test_a_query_leaves_open_what_bodies_have_to_tell(
    growing: tuple[Store, list[Exchange]],
) -> None:
    store, exchanges = growing
    _fill(store, exchanges[:10])
    yes, maybe = compile_query("topic").settle(store.session)
    assert not maybe[:10].any()
    assert maybe[10:].all()
    assert not yes[10:].any()
    # Who cannot wait reads the message: the same rows in the end.
    early = compile_query("topic").mask(store.session)
    _fill(store, exchanges[10:])
    assert early.tolist() == compile_query("topic").mask(store.session).tolist()


def test_rows_say_what_they_are_about_before_their_turn(
    growing: tuple[Store, list[Exchange]],
) -> None:
    store, exchanges = growing
    early = [store.result(index) for index in range(5)]
    with patch("kafkascope.tui.data.store.SPENT", -1.0):
        assert store.result(6) == LATER
    assert store.waiting
    assert not bad(store)[: len(exchanges)].all()
    _fill(store, exchanges)
    assert [store.result(index) for index in range(5)] == early
    assert [store.is_bad(index) for index in range(len(store))] == bad(store).tolist()


def test_fields_of_headers_look_at_no_column_of_bodies() -> None:
    session = Session(Context(), lambda file, at, size: bytes(size))
    for name in HEAD_FIELDS:
        part = RowRange(session, 0, 0)
        if name == "frame":
            packets(part)
        elif name in NUMBERS:
            NUMBERS[name](part)
        else:
            LISTS[name](part)
        assert part._columns.keys() <= {*HEAD_COLUMNS}, name


def test_the_screen_says_how_far_bodies_were_read(
    growing: tuple[Store, list[Exchange]],
) -> None:
    store, exchanges = growing
    _fill(store, exchanges[: len(exchanges) // 2])

    async def steps() -> None:
        app = ScopeApp(StillFeed(store), "x", filter_text="topic")
        store.progress.done = False
        store.progress.following = True
        async with app.run_test(size=(160, 50)) as pilot:
            await pilot.pause(0.2)
            screen = text_of(app)
            assert "following  bodies 50 %  ctrl+c stops" in screen
            assert "bodies 50 %: partial" in screen
            _fill(store, exchanges[len(exchanges) // 2 :])
            store.progress.done, store.progress.following = True, False
            app.workspace.unsettled = True
            app.tick()
            await pilot.pause()
            screen = text_of(app)
            assert "bodies" not in screen
            assert "following" not in screen

    asyncio.run(steps())
