"""A view has the rows that its filter wants, in order, however little time it gets at once."""

from unittest.mock import patch

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.captures.inputs.spool import Spool
from kafkascope.tui.data.columns import bad
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import Order, View
from tests.kit.samples import SAMPLES
from tests.tui.pilots import text_of

SAMPLE = SAMPLES / "aiokafka.pcap"


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


def test_filters_and_orders_follow_rows_that_come() -> None:
    with open_capture([SAMPLE], spool=Spool()) as capture:
        exchanges = list(capture.exchanges())
        store = Store(capture.source.read, capture.context)
        views = [View(store, text) for text in ("api == Fetch", "topic", "record.value")]
        ordered = View(store)
        ordered.sort(Order("records", True))
        half = len(exchanges) // 2
        for part in (exchanges[:half], exchanges[half:]):
            for exchange in part:
                store.add(exchange)
            for view in views:
                view.advance(60)
                fresh = View(store, view.text)
                fresh.advance(60)
                assert list(view.array()) == list(fresh.array())
                assert not view.behind
        store.progress.done = True
        ordered.advance(60)
        for view in views:
            single = compile_filter(view.text)
            wanted = [i for i, e in enumerate(exchanges) if single(store.session.row(i), e)]
            wanted.sort(key=store.session.columns["number"].__getitem__)
            assert list(view.array()) == wanted
        records = store.session.columns["records"]
        assert records[int(ordered.array()[0])] == max(records)
        rows = [store.session.row(index) for index in range(len(store))]
        lost = [row.state in ("lost", "orphan") for row in rows]
        failed = [bool(row.errors) and not row.expected for row in rows]
        assert bad(store).tolist() == [any(pair) for pair in zip(lost, failed, strict=True)]


@pytest.fixture
def growing(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(store.progress, "following", True)
    return store


@pytest.mark.shown(of="growing", filter_text="topic")
async def test_the_screen_says_that_a_file_is_followed(app, pilot, store, monkeypatch) -> None:
    monkeypatch.setattr(store.progress, "done", False)
    app.workspace.unsettled = True
    app.tick()
    await pilot.pause(0.2)
    assert "following  ctrl+c stops" in text_of(app)
    store.progress.done, store.progress.following = True, False
    app.workspace.unsettled = True
    app.tick()
    await pilot.pause()
    assert "following" not in text_of(app)
