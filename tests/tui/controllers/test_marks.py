"""Exchanges that are ignored, and topic ids that the user names: at once, in filters, and kept."""

import json
from pathlib import Path

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.filter.language import compile_query
from kafkascope.analyzer.transform.marks import marks_of, notes_path
from kafkascope.dissectors.values import Uuid
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import Order, View
from kafkascope.tui.settings.notes import Notes
from tests.kit.samples import SAMPLES
from tests.tui.pilots import filled, found, run, store_of, text_of


def numbers(store: Store, view: View) -> list[int]:
    return [store.session.columns["number"][index] for index in view.array()]


@pytest.mark.parametrize("text", ["", "api == Produce or number < 9", "request.max_wait_ms >= 0"])
@pytest.mark.parametrize("order", [None, Order("latency", True)])
def test_what_is_ignored_leaves_every_view(store: Store, text: str, order: Order | None) -> None:
    notes = Notes()
    view = View(store, text, notes.known)
    while view.advance(60):
        pass
    view.sort(order)
    before = numbers(store, view)
    for gone in (before[0], before[3], before[-1]):
        notes.ignore(gone, store.session)
        view.hide(store.session.index_of(gone))
        while view.advance(60):
            pass
        before.remove(gone)
        assert numbers(store, view) == before
    fresh = View(store, text, notes.known)
    while fresh.advance(60):
        pass
    fresh.sort(order)
    assert numbers(store, fresh) == before


def test_filters_know_what_is_ignored(store: Store) -> None:
    known = Known(ignored={3, 5})
    there = store.session.columns["number"]
    mask = compile_query("ignored", known).mask(store.session)
    assert {there[i] for i in mask.nonzero()[0]} == {3, 5}
    mask = compile_query("not ignored", known).mask(store.session)
    assert {there[i] for i in mask.nonzero()[0]} == set(there) - {3, 5}


def test_ignoring_and_taking_back(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes((SAMPLES / "libraries.pcap").read_bytes())
    with open_capture([path]) as capture:
        store = store_of(capture)
        kept = notes_path([str(path)])

        async def ignore(app, pilot):
            await pilot.press("I")
            assert len(app.workspace.view) == len(store)
            await pilot.do("j", "j", "i", "i")
            assert app.workspace.notes.ignored == {3, 4}
            assert app.list.number == 5
            assert len(app.workspace.view) == len(store) - 2
            assert "334 of 336 shown, 2 ignored" in text_of(app)
            await pilot.do("G", "i")
            assert app.list.cursor == len(app.workspace.view) - 1
            assert app.list.number not in app.workspace.notes.ignored
            assert len(app.workspace.notes.ignored) == 3

        run(store, ignore, notes=Notes(kept))
        assert marks_of([str(path)]).ignored >= {3, 4}

        async def back(app, pilot):
            assert len(app.workspace.view) == len(store) - 3
            await pilot.do("I")
            assert numbers(store, app.workspace.view)[:2] == [3, 4]
            await pilot.do("i")
            assert (len(app.workspace.view), app.list.number) == (2, 4)
            await pilot.do("I")
            assert len(app.workspace.view) == len(store) - 2

        run(store, back, notes=Notes(kept))


def test_a_topic_id_gets_a_name_by_hand(tmp_path: Path) -> None:
    with open_capture([SAMPLES / "libraries.pcap"]) as capture:
        # Another context: nothing tells it the names of topics.
        store = filled(Store(capture.source.read, Context()), capture.exchanges())
        kept = tmp_path / "a.json"
        names = store.session.context.names

        async def steps(app, pilot):
            await pilot.do("slash", *"api == Produce and version == 13", "enter")
            assert "?" in app.list.pieces(0, 160)[-1][0]
            topic_id = store.session.row(app.list.index).topic_ids[0]
            await pilot.press("colon", *("space" if key == " " else key for key in "name a topic"))
            await found(app, pilot, "Name a topic id")
            await pilot.do("enter")
            await pilot.press("enter")
            await pilot.do(*"by-hand", "enter")
            assert names.get(topic_id) == "by-hand"
            assert "by-hand" in app.list.pieces(0, 160)[-1][0]
            assert "by-hand" in text_of(app)
            app.show_filter("topic == by-hand")
            await pilot.settle()
            assert len(app.workspace.view) > 0
            assert json.loads(kept.read_text())["topics"] == {str(Uuid(topic_id)): "by-hand"}

        run(store, steps, notes=Notes(kept))

    again = Store()
    notes = Notes(kept)
    notes.give_names(again.session)
    assert "by-hand" in again.session.context.names.all().values()


def test_wrong_names_in_the_file_are_told(tmp_path: Path) -> None:
    kept = tmp_path / "a.json"
    for topics in ([], {"short": "x"}, 3):
        kept.write_text(json.dumps({"schema": "notes/1", "exchanges": [], "topics": topics}))
        assert "cannot be read" in Notes(kept).said


def test_notes_that_are_odd_are_kept_as_they_are(store: Store, tmp_path: Path) -> None:
    kept = tmp_path / "libraries.pcap.notes.json"
    odd = [
        {"id": "no hex at all !!", "marked": True},
        {"id": "0011223344556677", "comment": "half a letter: \udcff"},
    ]
    kept.write_text(json.dumps({"schema": "notes/1", "exchanges": odd}))
    notes = Notes(kept)
    assert not notes.resolve(store.session)
    notes.mark(int(store.session.columns["number"][0]), store.session)
    assert not notes.said
    told = json.loads(kept.read_text("utf-8"))["exchanges"]
    assert told[1:] == odd
