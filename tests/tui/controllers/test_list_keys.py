"""Keys of the list: order, notes, follow, find, times, copy, export."""

import json
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.filter.saved import read_saved, saved_path
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.config import remember
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.views.dialogs import Page
from tests.kit.samples import SAMPLES
from tests.matrix import each_nth, mostly_slow
from tests.tui.pilots import filled, run, text_of

SAMPLE = SAMPLES / "libraries.pcap"


async def test_orders_by_a_column_and_back(app, pilot, store) -> None:
    session = store.session
    await pilot.do("o", *"latency", "enter")
    shown = [session.columns["latency_ns"][i] for i in app.workspace.view.array()]
    known = [each for each in shown if each >= 0]
    assert known == sorted(known, reverse=True)
    assert len(shown) == len(store)
    assert "Latency▼" in text_of(app)
    await pilot.do("v")
    shown = [
        session.columns["latency_ns"][i]
        for i in app.workspace.view.array()
        if session.columns["latency_ns"][i] >= 0
    ]
    assert shown == sorted(shown)
    await pilot.click("#heading", offset=(4, 0))
    await pilot.settle()
    assert app.workspace.view.order.name == "number"
    await pilot.do("o", "up", "enter", "o")
    await pilot.do(*"order of", "enter")
    assert app.workspace.view.order is None
    app.order.order_by("nothing")
    await pilot.settle()
    assert "Cannot sort by nothing: it is decoded" in str([n.message for n in app._notifications])


async def test_a_file_that_is_read_does_not_move_by_itself(app, pilot) -> None:
    assert app.list.cursor == 0
    await pilot.do("end")
    assert not app.order.following
    assert "newest" not in text_of(app)


async def test_while_rows_come_nothing_is_said_to_be_missing_for_good(
    app, pilot, store, monkeypatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(app, "say", lambda text, *rest: said.append(text))
    here, nobody = int(store.session.columns["number"][0]), len(store) + 1_000
    app.workspace.notes.ignore(here, store.session)
    app.workspace.view.hide(0)
    app.search.goto(str(here))
    assert app.workspace.view.behind
    app.workspace.view.advance(60)
    app.search.goto(str(here))
    app.show_filter("api == ListOffsets")
    await pilot.settle()
    app.search.goto(str(int(store.session.columns["number"][1])))
    store.progress.done = False
    app.search.goto(str(nobody))
    store.progress.done = True
    app.search.goto(str(nobody))
    await pilot.press("end", "e")
    words = ("not shown yet", "ignored", "the filter excludes it")
    assert all(word in told for word, told in zip(words, said, strict=False))
    assert [told.endswith((" yet", " yet.")) for told in said[3:5]] == [True, False]
    assert said[5].startswith("No error below")


async def test_a_search_that_fails_says_so(app, pilot, monkeypatch) -> None:
    def fail(*told: object) -> None:
        raise ArithmeticError("a fault of ours")

    said: list[str] = []
    monkeypatch.setattr(app, "say", lambda text, *rest: said.append(text))
    monkeypatch.setattr("kafkascope.tui.data.messages.search", fail)
    await pilot.do("ctrl+f", "ctrl+f", *"text", "enter")
    assert "a fault of ours" in said[-1]
    assert not app.workspace.activity


async def test_a_row_that_has_gone_is_not_copied(app, pilot, store, monkeypatch) -> None:
    await pilot.do("c")
    monkeypatch.setattr(store.session, "index_of", lambda number: None)
    await pilot.do("enter")
    assert not app.clipboard
    assert "was evicted" in str([n.message for n in app._notifications])


async def test_the_cursor_stays_with_its_exchange_when_the_order_changes(app, pilot, store) -> None:
    await pilot.press("pagedown")
    number = app.list.number
    app.order.order_by("client")
    await pilot.settle()
    assert app.list.number == number
    await pilot.do("slash", *f"number <= {number}", "enter")
    assert app.list.number == number
    clients = [
        store.session.tables["client_id"].values[store.session.columns["client_id"][i]]
        for i in app.workspace.view.array()
    ]
    named = [client.lower() for client in clients if client]
    assert named == sorted(named)


async def test_the_cursor_comes_back_when_half_a_filter_had_left_its_exchange_out(
    app, pilot
) -> None:
    await pilot.do("pagedown")
    number = app.list.number
    assert number > 9
    for text in ("number <= 1", "number <= 2"):
        app.filter.apply(text, entered=False)
        await pilot.settle()
        assert app.list.number < number
    app.filter.apply(f"number <= {number}", entered=True)
    await pilot.settle()
    assert app.list.number == number
    app.filter.apply("number <= 5", entered=False)
    await pilot.settle()
    await pilot.press("home")
    app.filter.apply("number <= 50", entered=True)
    await pilot.settle()
    assert app.list.number == 1


def test_marks_and_comments_are_kept_beside_the_capture(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "libraries.pcap.kafkascope.json"

    async def mark(app, pilot):
        await pilot.do("home", "m")
        assert str(path) in [str(each.message) for each in app._notifications][-1]
        await pilot.do("question_mark")
        assert path.name in "".join(line.strip() for line in text_of(app).splitlines())
        await pilot.do("escape", "down", "semicolon", *"look here", "enter")
        assert "; look here" in text_of(app)
        await pilot.do("M")
        assert len(app.workspace.view) == 1
        await pilot.do("M")
        assert len(app.workspace.view) == len(store)

    notes = Notes(path)
    run(store, mark, notes=notes)
    assert {each["number"] for each in json.loads(path.read_text())["exchanges"]} == {
        *notes.marked,
        *notes.comments,
    }

    async def again(app, pilot):
        assert (app.workspace.notes.marked, app.workspace.notes.comments) == (
            notes.marked,
            notes.comments,
        )
        await pilot.press("apostrophe")
        assert app.list.number in notes.marked
        await pilot.do("slash", *"comment contains look", "enter")
        assert len(app.workspace.view) == 1

    run(store, again, notes=Notes(path))


async def test_follows_what_an_exchange_is_part_of(app, pilot, store) -> None:
    connection = store.session.connections[store.session.columns["connection"][0]].number
    await pilot.do("f")
    await pilot.do("enter")
    assert app.workspace.view.text == f"conn == {connection}"
    assert 0 < len(app.workspace.view) < len(store)
    await pilot.do("f")
    await pilot.do(*"ladder", "enter")
    assert app.host.number == 2


async def test_values_become_filters_in_six_ways(app, pilot) -> None:
    await pilot.do("home", "enter")
    item = next(i for i in app.detail.tree_.lines if i.label == "throttle_time_ms")
    app.detail.select(item)
    await pilot.do("a")
    await pilot.do(*"is not", "enter")
    assert app.workspace.view.text == "not response.throttle_time_ms == 0"
    app.show_filter("api == Fetch or api == Produce")
    await pilot.do("a")
    await pilot.do("enter")
    await pilot.do(*"... and not", "enter")
    assert app.workspace.view.text.startswith("(api == Fetch or api == Produce) and not ")


async def test_a_field_becomes_a_column(app, pilot) -> None:
    await pilot.do("enter")
    item = next(i for i in app.detail.tree_.lines if i.path)
    app.detail.select(item)
    await pilot.do("A")
    assert app.list.extra == [item.path]
    assert item.path in app.list.heading(160)


@pytest.mark.parametrize(
    ("text", "presses"),
    [("joingroup", 0), ("topic_id", 1), ("0x00 00 00 00", 2)],
    ids=["list", "fields", "bytes"],
)
async def test_finds_texts_in_the_list_in_fields_and_in_bytes(app, pilot, text, presses) -> None:
    await pilot.do("ctrl+f", *["ctrl+f"] * presses)
    assert app.query_one("#prompt").has_focus
    app.query_one("#prompt").value = text
    await pilot.do("enter")
    first = app.list.cursor
    assert first > 0
    await pilot.do("n")
    second = app.list.cursor
    assert second > first
    await pilot.do("N")
    assert app.list.cursor == first


async def test_times_count_from_a_reference_and_from_the_row_before(app, pilot, store) -> None:
    await pilot.do("down", "down", "T")
    assert "since the reference" in text_of(app)
    line = "".join(text for text, _ in app.list.pieces(2, 160))
    assert "0.000000" in line
    seen = {app.list.times}
    for _ in range(7):
        await pilot.press("t")
        seen.add(app.list.times)
    assert seen == {"a", "u", "r", "dd", "m", "e", "ad", "ud"}
    times = store.session.columns["time_ns"]
    app.order.write_times("dd")
    delta = (times[1] - times[0]) / 1e9
    assert f"{delta:.6f}"[:-1] in "".join(text for text, _ in app.list.pieces(1, 160))


@pytest.mark.parametrize(
    ("choice", "wanted"),
    mostly_slow(
        [
            ("json", '"api":"ApiVersions"'),
            ("command", "kafkascope show libraries.pcap 1"),
            ("filter", "api == ApiVersions"),
            ("hexadecimal", "00"),
            ("hex dump", "00000000  "),
            ("Python", "b'"),
        ],
        lambda pair: pair[0] in ("command", "hex dump"),
    ),
)
async def test_copies_in_many_forms(app, pilot, choice, wanted) -> None:
    await pilot.do("c")
    await pilot.do(*choice, "enter")
    assert wanted in app.clipboard


@pytest.mark.parametrize(
    "form", each_nth(["pcapng", "jsonl", "full", "csv", "records", "fixture"], 3)
)
async def test_exports_what_is_shown(app, pilot, store, tmp_path, form) -> None:
    target = tmp_path / ("out" if form == "fixture" else f"out.{form}")
    app.show_filter("api == Produce")
    await pilot.settle()
    written = []
    for _ in range(2):  # once it is there it is not written again
        app.sharing.ask_where("shown", form)
        await pilot.settle()
        app.query_one("#prompt").value = str(target)
        await pilot.do("enter")
        written.append(target.stat().st_mtime_ns)
    assert written[0] == written[1]
    produces = sum(1 for key in store.session.columns["api_key"] if key == 0)
    if form == "pcapng":
        with open_capture([target]) as capture:
            assert sum(1 for _ in capture.exchanges()) == produces
    elif form in ("jsonl", "full"):
        assert len(target.read_text().splitlines()) == produces
    elif form == "fixture":
        assert list(target.rglob("*.json"))


async def test_comments_are_in_an_exported_capture(app, pilot, store, tmp_path) -> None:
    target = tmp_path / "out.pcapng"
    app.workspace.notes.comment(app.list.number, "see here", store.session)
    await pilot.press("w")
    app.query_one("#prompt").value = str(target)
    await pilot.do("enter")
    assert b"see here" in target.read_bytes()


@pytest.mark.shown(notes=Notes())
async def test_two_marked_exchanges_are_compared(app, pilot) -> None:
    await pilot.do("D")
    assert not isinstance(app.screen, Page)
    assert "marked: 0." in str([each.message for each in app._notifications])
    await pilot.do("m", "end", "m", "D")
    assert "exchange.api" in app.screen.page.text
    await pilot.do("q")
    assert app.list.has_focus


async def test_completion_offers_fields_and_values_and_says_where_it_is_wrong(app, pilot) -> None:
    await pilot.do("slash", *"cli")
    assert "client " in text_of(app)
    await pilot.do("tab")
    assert app.filter.box.value.startswith("client")
    app.filter.put("client ")
    await pilot.do(*"== ", "down", "enter")
    assert app.filter.box.value.startswith("client == ")
    assert len(app.filter.box.value) > len("client == ")
    app.filter.box.value = ""
    await pilot.do(*"topik == x ")
    assert "^^^^^" in text_of(app)
    assert "topic" in text_of(app)


async def test_a_filter_is_kept_used_and_forgotten(home, app, pilot, store) -> None:
    await pilot.do("slash", *"@p = api == Produce", "enter")
    assert read_saved() == ({"p": "api == Produce"}, "")
    assert saved_path().parent == home / "kafkascope"
    assert app.filter.box.value == "@p"
    assert 0 < len(app.workspace.view) < len(store)
    app.filter.put("@p and number > 9")
    await pilot.do("slash", "enter")
    assert app.filter.error == ""
    assert app.workspace.view.text == "(api == Produce) and number > 9"
    await pilot.press("slash")
    app.filter.put("@q = nonsense == 3")
    await pilot.press("enter")
    assert "@q: unknown field" in app.filter.error
    app.filter.put("@p =")  # the box still has the focus: nothing was kept
    await pilot.do("enter")
    assert read_saved() == ({}, "")
    assert len(app.workspace.view) == len(store)


async def test_filters_of_before_come_back(home, app, pilot) -> None:
    for text in ("api == Fetch", "api == Produce"):
        app.filter.box.value = text
        app.filter.box.focus()
        await pilot.do("enter")
    await pilot.press("slash")
    app.filter.put("")
    for key, text in (("up", "api == Produce"), ("up", "api == Fetch")):
        await pilot.press(key)
        assert app.filter.box.value == text
    await pilot.press("down", "down")
    assert app.filter.box.value == ""


def test_packets_are_dissected_when_asked_for() -> None:
    with open_capture([SAMPLE]) as capture:
        store = Store(capture.source.read, capture.context, lambda n: capture.source.find(n))

        async def steps(app, pilot):
            for tab, words in (
                ("Packets", ("[Packets]", "TCP", "bytes on the wire")),
                ("Context", ("on this connection",)),
            ):
                app.inspector.show_tab(tab)
                await pilot.settle()
                assert all(word in text_of(app) for word in words)

        run(filled(store, capture.exchanges()), steps)


async def test_layouts_and_widths_change(app, pilot) -> None:
    below = text_of(app)
    await pilot.do("vertical_line")
    assert app.hex.region.y > app.detail.region.y
    await pilot.do("vertical_line")
    assert not app.hex.display
    await pilot.do("vertical_line")
    assert text_of(app) == below
    width = app.hex.size.width
    await pilot.do("greater_than_sign")
    assert app.hex.size.width < width
    await pilot.do("equals_sign")
    assert app.hex.size.width == width


async def test_enter_in_an_empty_filter_box_takes_no_suggestion(app, pilot, store) -> None:
    await pilot.do("slash", "a", "backspace")
    assert app.filter.choices.display
    await pilot.do("enter")
    assert (app.filter.box.value, app.workspace.view.text, len(app.workspace.view)) == (
        "",
        "",
        len(store),
    )
    assert app.list.has_focus


async def test_tab_in_a_box_over_everything_stays_in_it(home, app, pilot) -> None:
    remember([str(SAMPLE)])
    await pilot.do("ctrl+o", "tab")
    assert app.screen.query_one("Input").value == str(SAMPLE)
    await pilot.do("escape")
    assert app.list.has_focus
