"""Filters about decoded values in a list: a thread decides, keys never wait for schemas."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.language import FilterError, Known, compile_filter
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import IncomingSchemas, KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.decoding import ONE
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.numbers import StoreNumbers
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View
from kafkascope.tui.settings.colours import Colours
from tests.kit.schemas import capture, folder
from tests.tui.pilots import run, store_of, text_of

FILTERS = [
    "record.value.amount > 0",
    "not record.value.amount > 0",
    "api == Produce and record.key.region == US",
    "schema.id == 2 or schema.error",
    "number > 10 and all record.value.amount < 100000",
]


@pytest.fixture(scope="module")
def store() -> Store:
    return store_of(capture("avro-registry"))


def known_by(store: Store, payloads: Payloads | None) -> Known:
    names = store.session.context.names
    return Known(decoding=Decoding(lambda: payloads, lambda: names, guard=ONE))


def shown(view: View) -> list[int]:
    return [view.arrival(place) for place in range(view.arrived)]


def finished(view: View, done: Callable[[], bool] | None = None) -> list[int]:
    end = time.monotonic() + 60
    while time.monotonic() < end and (view.behind or not (done or (lambda: True))()):
        view.advance(0.01)
        time.sleep(0.002)
    return shown(view)


def expected(store: Store, text: str) -> list[int]:
    wanted = compile_filter(text, known_by(store, Payloads(KnownSchemas(folder("avro-registry")))))
    found = []
    for index in range(len(store)):
        exchange = store.session.exchange(index)
        if wanted(row_of(exchange, store.session.context.names), exchange):
            found.append(index)
    return found


@pytest.mark.parametrize("text", FILTERS)
def test_a_view_has_the_rows_that_a_filter_wants(store: Store, text: str) -> None:
    payloads = Payloads(KnownSchemas(folder("avro-registry")))
    found = finished(View(store, text, known_by(store, payloads)))
    assert found == expected(store, text)
    assert found
    assert len(found) < len(store)


def test_whoever_knows_a_schema_is_asked_beside_the_keyboard(store: Store) -> None:
    asked, answer = threading.Event(), threading.Event()
    by_key = {key: each for each in folder("avro-registry") for key in each.keys}

    def registry(key: SchemaKey) -> Schema | None:
        assert threading.current_thread() is not threading.main_thread()
        asked.set()
        answer.wait(60)
        return by_key.get(key)

    text = FILTERS[0]
    view = View(store, text, known_by(store, Payloads(KnownSchemas(registry=registry))))
    assert not asked.wait(0.05)  # a filter that is only typed asks nobody
    view.advance(0.01)
    assert asked.wait(60)
    begun = time.monotonic()
    view.advance(0.01)
    assert time.monotonic() - begun < 1
    assert view.behind
    answer.set()
    assert finished(view) == expected(store, text)


def test_schemas_that_come_later_serve_earlier_rows(store: Store) -> None:
    told, known = IncomingSchemas(), KnownSchemas()
    known.grows(told)
    view = View(store, FILTERS[0], known_by(store, Payloads(known)))
    assert finished(view) == []
    numbers = StoreNumbers(store, view=view)
    while not numbers.done:
        numbers.advance()
    assert numbers.get("apis").rows() == []
    told.take([replace(each, source="capture") for each in folder("avro-registry")])
    wanted = expected(store, FILTERS[0])
    assert finished(view, lambda: shown(view) == wanted) == wanted
    assert [view[place] for place in range(len(view))] == wanted
    assert view.has_reordered()
    assert all(view.selects(index) == (index in wanted) for index in range(len(store)))
    # What is counted follows.
    while not numbers.done or numbers._revised():
        numbers.advance()
    assert sum(row["requests"] for row in numbers.get("apis").rows()) == len(wanted)


def test_without_schemas_such_a_filter_is_refused(store: Store) -> None:
    with pytest.raises(FilterError, match="decoded with a schema"):
        View(store, FILTERS[0])


def test_no_colour_waits_for_a_schema(store: Store, tmp_path: Path) -> None:
    rules = tmp_path / "colours.toml"
    rules.write_text("'record.value.amount > 0' = 'red'\n'api == Produce' = 'bold'\n")
    colours = Colours(store, known_by(store, Payloads(KnownSchemas(folder("avro-registry")))))
    colours.read(rules)
    assert "decoded with a schema" in colours.said
    assert [rule.text for rule in colours.rules] == ["api == Produce"]


def test_the_reader_tells_the_schemas_of_its_input() -> None:
    feed = Feed([str(capture("avro-registry"))], payloads=lambda: Payloads(KnownSchemas()))
    try:
        end = time.monotonic() + 60
        while not feed.store.progress.done and time.monotonic() < end:
            feed.poll(0.05)
        payloads = feed.payloads()
        assert payloads is feed.payloads()
        assert payloads.known.find(SchemaKey("id", 2))[0].format == "avro"
        known = known_by(feed.store, payloads)
        found = finished(View(feed.store, FILTERS[0], known))
        assert found == expected(feed.store, FILTERS[0])
    finally:
        feed.close()


def test_schemas_of_a_pipe_serve_its_rows() -> None:
    with capture("avro-registry").open("rb") as file:
        feed = Feed(["-"], stdin=file.fileno(), payloads=lambda: Payloads(KnownSchemas()))
    try:
        view = View(feed.store, FILTERS[0], known_by(feed.store, feed.payloads()))
        end = time.monotonic() + 60
        while time.monotonic() < end and not (feed.store.progress.done and not view.behind):
            feed.poll(0.02)
            view.advance(0.01)
        wanted = expected(feed.store, FILTERS[0])
        assert finished(view, lambda: shown(view) == wanted) == wanted != []
    finally:
        feed.close()


def test_a_filter_in_the_list_its_numbers_and_completion(store: Store) -> None:
    asked: list[SchemaKey] = []
    by_key = {key: each for each in folder("avro-registry") for key in each.keys}

    def registry(key: SchemaKey) -> Schema | None:
        asked.append(key)
        return by_key.get(key)

    text = "record.value.amount > 0"
    wanted = expected(store, text)

    async def steps(app: ScopeApp, pilot: Any) -> None:
        await pilot.do("slash", *text)
        assert app.filter.error == ""
        assert asked == []  # while it is typed
        assert len(app.workspace.view) == len(store)
        await pilot.do("enter")
        assert app.workspace.view.text == text
        assert len(app.workspace.view) == len(wanted)
        assert asked
        # The screens count what the list shows.
        await pilot.do("3", "L")
        assert "orders" in text_of(app)
        numbers = app.host._some
        assert isinstance(numbers, StoreNumbers)
        assert sum(row["requests"] for row in numbers.get("apis").rows()) == len(wanted)
        await pilot.press("1", "slash")
        app.filter.put("")
        await pilot.do(*"record.value.am")
        assert "record.value.amount" in [each.text for each in app.filter.choices.found.items]

    run(store, steps, payloads=Payloads(KnownSchemas(registry=registry)))


@pytest.mark.shown(payloads=Payloads(KnownSchemas(folder("avro-registry"))))
async def test_fields_of_schemas_are_completed_before_any_value_was_decoded(app, pilot) -> None:
    await pilot.press("slash")
    decoding = app.workspace.decoding
    end = time.monotonic() + 60
    while "amount" not in decoding.seen("record.value.") and time.monotonic() < end:
        time.sleep(0.01)
    await pilot.do(*"record.value.am")
    assert "record.value.amount" in [each.text for each in app.filter.choices.found.items]
    assert "region" in decoding.seen("record.key.")
    assert "region" not in decoding.seen("record.value.")
