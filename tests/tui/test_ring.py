"""Input without end: the oldest rows go, on both sides of the pipe alike."""

from __future__ import annotations

from pathlib import Path

from analyzer.context import Context
from analyzer.offline import open_capture
from analyzer.rows import result, row_of
from analyzer.session import Session
from analyzer.session_deltas import Growth, apply
from tui.sorting import Order
from tui.store import Store
from tui.view import View

SAMPLE = Path(__file__).parents[2] / "captures" / "samples" / "demo.pcap"
LIMIT = 80


def test_both_sides_drop_the_same_and_what_is_left_is_as_it_was() -> None:
    with open_capture([SAMPLE]) as capture:
        whole = Session(capture.context, capture.source.read)
        child = Session(capture.context, capture.source.read)
        growth = Growth(child)
        shown = Session(Context(), capture.source.read)
        for count, exchange in enumerate(capture.exchanges()):
            row = row_of(exchange, capture.context.names)
            whole.add(exchange, row)
            child.add(exchange, row)
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
            number = shown.numbers[index]
            assert shown.index_of(number) == index
            assert shown.ids(index, index + 1) == whole.ids(
                shown.dropped + index, shown.dropped + index + 1
            )
        assert shown.index_of(1) is None
        assert len(shown.apis.values) <= len(whole.apis.values)


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
            row = row_of(exchange, capture.context.names)
            source.add(exchange, row)
            store.texts.extend([result(row)])
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
    import re

    assert store.texts.rows_with(re.compile(b"thr")) == [1]
    # What begins in one text and ends in the next is in neither.
    assert store.texts.rows_with(re.compile(b"fthr")) == []
