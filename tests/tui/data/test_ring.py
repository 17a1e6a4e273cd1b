"""Input without end: the oldest rows go, on both sides of the pipe alike."""

import os
import pickle
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.session import deltas
from kafkascope.analyzer.session.deltas import Growth, apply
from kafkascope.analyzer.session.session import Session
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import Order, View
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"
LIMIT = 80


def test_both_sides_drop_the_same_and_what_is_left_is_as_it_was() -> None:
    with open_capture([SAMPLE]) as capture:
        whole = Session(capture.context, capture.source.read)
        child = Session(capture.context, capture.source.read)
        growth = Growth(child)
        shown = Session(Context(), capture.source.read)
        for count, exchange in enumerate(capture.exchanges()):
            whole.add(exchange)
            child.add(exchange)
            if count % 7 == 0:
                apply(growth.take(LIMIT), shown)
                assert len(child) <= LIMIT
        apply(growth.take(), shown)
        apply(growth.take(), shown)
        assert child.dropped == shown.dropped > 0
        assert len(shown) == len(child) <= LIMIT + 7
        assert len(shown) + shown.dropped == len(whole)
        for index in range(len(shown)):
            assert shown.exchange(index) == whole.exchange(shown.dropped + index)
            assert shown.frames(index) == whole.frames(shown.dropped + index)
            number = shown.columns["number"][index]
            assert shown.index_of(number) == index
            assert shown.ids(index, index + 1) == whole.ids(
                shown.dropped + index, shown.dropped + index + 1
            )
        assert shown.index_of(1) is None
        assert len(shown.tables["api"].values) <= len(whole.tables["api"].values)


def test_rows_of_too_many_connections_go_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "MOST_CONNECTIONS", 8)
    with open_capture([SAMPLE]) as capture:
        child = Session(capture.context, capture.source.read)
        growth = Growth(child)
        shown = Session(Context(), capture.source.read)
        most = 0
        for count, exchange in enumerate(capture.exchanges()):
            child.add(exchange)
            if count % 3 == 0:
                apply(growth.take(1_000_000), shown)
                most = max(most, len(shown.connections))
        apply(growth.take(), shown)
        apply(growth.take(), shown)
        assert child.rows_appended < 1_000_000
        assert child.dropped == shown.dropped > 0
        assert len(child.connections) == len(shown.connections)
        assert most <= 8 + 3 * 2  # what comes between two looks, and is told before it is dropped
        for index in range(len(shown)):
            assert shown.exchange(index) == child.exchange(index)


def test_views_follow_the_ring() -> None:
    with open_capture([SAMPLE]) as capture:
        exchanges = list(capture.exchanges())
        source = Session(capture.context, capture.source.read)
        growth = Growth(source)
        store = Store(capture.source.read)
        views = [View(store, text) for text in ("", "error != 0", "response.throttle_time_ms == 0")]
        ordered = View(store)
        ordered.sort(Order("latency", True))
        for count, exchange in enumerate(exchanges):
            store.texts.extend(source.extend([exchange]))
            if count % 10 == 9 or count == len(exchanges) - 1:
                delta = growth.take(LIMIT)
                store.texts.drop(delta.get("drop", 0))
                apply(delta, store.session)
                for view in views:
                    view.advance(60)
        delta = growth.take()
        store.texts.drop(delta.get("drop", 0))
        apply(delta, store.session)
        store.progress.done = True
        ordered.advance(60)
        for view in views:
            view.advance(60)
            fresh = View(store, view.text)
            fresh.advance(60)
            assert list(view.array()) == list(fresh.array())
        assert sorted(ordered.array()) == list(range(len(store)))


def test_texts_go_from_the_front() -> None:
    store = Store()
    store.texts.extend(["one", "zwölf", "three"])
    store.texts.drop(1)
    assert [store.texts[n] for n in range(len(store.texts))] == ["zwölf", "three"]
    assert store.texts.rows_with(re.compile(b"thr")) == [1]
    # What begins in one text and ends in the next is in neither.
    assert store.texts.rows_with(re.compile(b"fthr")) == []


def test_a_row_that_is_read_while_others_go_is_the_right_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_capture([SAMPLE]) as capture:
        store = Store(capture.source.read, capture.context)
        for exchange in capture.exchanges():
            store.add(exchange)
        session, wanted = store.session, 50
        read = session.exchange

        def torn(index: int) -> Any:
            monkeypatch.undo()
            with store.dropping(7):
                session.drop(7)
            return read(index)

        monkeypatch.setattr(session, "exchange", torn)
        found = store.exchange(wanted)
        assert found.number == wanted
        assert store.exchange(3) is None

        told: list[Any] = []
        reading = threading.Thread(target=lambda: told.append(store.exchange(wanted)))
        with store.dropping(5):
            reading.start()
            reading.join(0.1)
            assert not told
            session.drop(5)
        reading.join(60)
        assert [each.number for each in told] == [wanted]


class Live:
    """A client that comes again and again under another name, seen through the pipe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        with open_capture([SAMPLE]) as capture:
            self.seen = list(capture.exchanges())
            self.read = capture.source.read
        self.child = Session(Context(), self.read)
        self.growth = Growth(self.child)
        self.store = Store(self.read)
        self.view = View(self.store, "api == Produce or error")
        self.told = 0

    def feed(self, batches: int, size: int = 1_000) -> None:
        for _ in range(batches):
            some, connections = [], {}
            for place in range(size):
                exchange = self.seen[place % len(self.seen)]
                key = (exchange.connection.number, place // 100)
                if key not in connections:
                    number = (self.told + place) * 10 + len(connections)
                    connections[key] = replace(exchange.connection, number=number)
                some.append(
                    replace(
                        exchange,
                        number=self.told + place + 1,
                        connection=connections[key],
                        client_id=f"client-{self.told // 3_000}",
                    )
                )
            texts = self.child.extend(some)
            delta = pickle.loads(pickle.dumps(self.growth.take(self.limit), protocol=5))
            with self.store.dropping(delta.get("drop", 0)):
                apply(delta, self.store.session)
            self.store.texts.extend(texts)
            self.view.advance(60)
            self.told += size


def check_bounds(live: Live, limit: int) -> None:
    session = live.store.session
    assert session.dropped > 0
    assert len(session) <= limit + 2_000
    assert len(session.connections) <= len(session)
    assert {*session.columns["connection"]} == {*range(len(session.connections))}
    assert len(session.tables["client_id"].values) <= len(session) // 3_000 + 2
    assert len(session._index) <= 2 * len(session)
    for index in (0, len(session) - 1):
        number = session.columns["number"][index]
        old = live.seen[(number - 1) % 1_000 % len(live.seen)]
        found = session.exchange(index)
        assert (found.client, found.broker, found.request) == (old.client, old.broker, old.request)
        assert found.client_id == f"client-{(number - 1) // 1_000 * 1_000 // 3_000}"


def test_connections_and_names_go_with_their_rows() -> None:
    live = Live(4_000)
    live.feed(12)
    check_bounds(live, 4_000)


@pytest.mark.soak
def test_a_million_exchanges_leave_no_more_behind_than_the_ring_holds() -> None:
    limit = 50_000
    live = Live(limit)
    live.feed(200)
    before = rss()
    live.feed(800)
    assert live.told == 1_000_000
    check_bounds(live, limit)
    assert rss() < before * 1.15 + 20_000_000


def rss() -> int:
    """Bytes of this process in memory."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
