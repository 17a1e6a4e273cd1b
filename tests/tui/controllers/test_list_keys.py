"""Keys of the list: order, notes, follow, find, times, copy, export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.config import remember
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.views.dialogs import Page
from tests.matrix import each_nth, mostly_slow
from tests.tui.pilots import idle, run, text_of

SAMPLE = Path(__file__).parents[3] / "captures" / "samples" / "libraries.pcap"


def test_orders_by_a_column_and_back(store: Store) -> None:
    async def steps(app, pilot):
        session = store.session
        await pilot.press("o", *"latency", "enter")
        await idle(app, pilot)
        shown = [session.columns["latency_ns"][i] for i in app.workspace.view.array()]
        known = [each for each in shown if each >= 0]
        assert known == sorted(known, reverse=True)
        assert len(shown) == len(store)
        assert "Latency▼" in text_of(app)
        await pilot.press("v")
        await idle(app, pilot)
        shown = [
            session.columns["latency_ns"][i]
            for i in app.workspace.view.array()
            if session.columns["latency_ns"][i] >= 0
        ]
        assert shown == sorted(shown)
        await pilot.click("#heading", offset=(4, 0))
        await idle(app, pilot)
        assert app.workspace.view.order.name == "number"
        await pilot.press("o", "up", "enter", "o")
        await idle(app, pilot)
        await pilot.press(*"order of", "enter")
        await idle(app, pilot)
        assert app.workspace.view.order is None

    run(store, steps)


def test_while_rows_come_nothing_is_said_to_be_missing_for_good(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(app, pilot):
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
        await idle(app, pilot)
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

    run(store, steps)


def test_a_search_that_fails_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*told: object) -> None:
        raise ArithmeticError("a fault of ours")

    async def steps(app, pilot):
        said: list[str] = []
        monkeypatch.setattr(app, "say", lambda text, *rest: said.append(text))
        monkeypatch.setattr("kafkascope.tui.data.messages.search", fail)
        await pilot.press("ctrl+f", "ctrl+f", *"text", "enter")
        await idle(app, pilot)
        assert "a fault of ours" in said[-1]
        assert not app.workspace.activity

    run(store, steps)


def test_a_row_that_has_gone_is_not_copied(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(app, pilot):
        await pilot.press("c")
        await pilot.pause()
        monkeypatch.setattr(store.session, "index_of", lambda number: None)
        await pilot.press("enter")
        await pilot.pause()
        assert not app.clipboard
        assert "was evicted" in str([n.message for n in app._notifications])

    run(store, steps)


def test_the_cursor_stays_with_its_exchange_when_the_order_changes(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("pagedown")
        number = app.list.number
        app.order.order_by("client")
        await idle(app, pilot)
        assert app.list.number == number
        await pilot.press("slash", *f"number <= {number}", "enter")
        await idle(app, pilot)
        assert app.list.number == number
        clients = [
            store.session.tables["client_id"].values[store.session.columns["client_id"][i]]
            for i in app.workspace.view.array()
        ]
        named = [client.lower() for client in clients if client]
        assert named == sorted(named)

    run(store, steps)


def test_the_cursor_comes_back_when_half_a_filter_had_left_its_exchange_out(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("pagedown")
        await idle(app, pilot)
        number = app.list.number
        assert number > 9
        for text in ("number <= 1", "number <= 2"):
            app.filter.apply(text, entered=False)
            await idle(app, pilot)
            assert app.list.number < number
        app.filter.apply(f"number <= {number}", entered=True)
        await idle(app, pilot)
        assert app.list.number == number
        app.filter.apply("number <= 5", entered=False)
        await idle(app, pilot)
        await pilot.press("home")
        app.filter.apply("number <= 50", entered=True)
        await idle(app, pilot)
        assert app.list.number == 1

    run(store, steps)


def test_marks_and_comments_are_kept_beside_the_capture(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "libraries.pcap.kafkascope.json"

    async def mark(app, pilot):
        await pilot.press("home", "m")
        await idle(app, pilot)
        assert str(path) in [str(each.message) for each in app._notifications][-1]
        await pilot.press("question_mark")
        await idle(app, pilot)
        assert path.name in "".join(line.strip() for line in text_of(app).splitlines())
        await pilot.press("escape", "down", "semicolon", *"look here", "enter")
        await idle(app, pilot)
        assert "; look here" in text_of(app)
        await pilot.press("M")
        await idle(app, pilot)
        assert len(app.workspace.view) == 1
        await pilot.press("M")
        await idle(app, pilot)
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
        await pilot.press("slash", *"comment contains look", "enter")
        await idle(app, pilot)
        assert len(app.workspace.view) == 1

    run(store, again, notes=Notes(path))


def test_follows_what_an_exchange_is_part_of(store: Store) -> None:
    async def steps(app, pilot):
        connection = store.session.connections[store.session.columns["connection"][0]].number
        await pilot.press("f")
        await idle(app, pilot)
        await pilot.press("enter")
        await idle(app, pilot)
        assert app.workspace.view.text == f"conn == {connection}"
        assert 0 < len(app.workspace.view) < len(store)
        await pilot.press("f")
        await idle(app, pilot)
        await pilot.press(*"ladder", "enter")
        await idle(app, pilot)
        assert app.host.number == 2

    run(store, steps)


def test_values_become_filters_in_six_ways(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("home", "enter")
        await idle(app, pilot)
        item = next(i for i in app.detail.tree_.lines if i.label == "throttle_time_ms")
        app.detail.select(item)
        await pilot.press("a")
        await idle(app, pilot)
        await pilot.press(*"is not", "enter")
        await idle(app, pilot)
        assert app.workspace.view.text == "not response.throttle_time_ms == 0"
        app.show_filter("api == Fetch or api == Produce")
        await pilot.press("a")
        await idle(app, pilot)
        await pilot.press("enter")
        await idle(app, pilot)
        await pilot.press(*"... and not", "enter")
        await idle(app, pilot)
        assert app.workspace.view.text.startswith("(api == Fetch or api == Produce) and not ")

    run(store, steps)


def test_a_field_becomes_a_column_and_goes_again(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("A")
        await idle(app, pilot)
        await pilot.press(*"+ group", "enter")
        await idle(app, pilot)
        assert "group  " in app.list.heading(160)
        app.values.add_column("group")
        assert "group  " not in app.list.heading(160)
        await pilot.press("enter")
        await idle(app, pilot)
        item = next(i for i in app.detail.tree_.lines if i.path)
        app.detail.select(item)
        await pilot.press("A")
        await idle(app, pilot)
        assert app.list.extra == [item.path]

    run(store, steps)


@pytest.mark.parametrize(
    ("text", "presses"),
    [("joingroup", 0), ("topic_id", 1), ("0x00 00 00 00", 2)],
    ids=["list", "fields", "bytes"],
)
def test_finds_texts_in_the_list_in_fields_and_in_bytes(
    store: Store, text: str, presses: int
) -> None:
    async def steps(app, pilot):
        await pilot.press("ctrl+f", *["ctrl+f"] * presses)
        await idle(app, pilot)
        assert app.query_one("#prompt").has_focus
        app.query_one("#prompt").value = text
        await pilot.press("enter")
        await idle(app, pilot)
        first = app.list.cursor
        assert first > 0
        await pilot.press("n")
        await idle(app, pilot)
        second = app.list.cursor
        assert second > first
        await pilot.press("N")
        await idle(app, pilot)
        assert app.list.cursor == first

    run(store, steps)


def test_times_count_from_a_reference_and_from_the_row_before(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("down", "down", "T")
        await idle(app, pilot)
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

    run(store, steps)


def test_goes_to_a_time(store: Store) -> None:
    async def steps(app, pilot):
        app.search.goto("1s")
        times = store.session.columns["time_ns"]
        assert times[app.list.index] >= times[0] + 1_000_000_000
        assert app.list.cursor > 0
        app.search.goto("nonsense")
        await idle(app, pilot)
        assert app.is_running

    run(store, steps)


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
def test_copies_in_many_forms(store: Store, choice: str, wanted: str) -> None:
    async def steps(app, pilot):
        await pilot.press("c")
        await idle(app, pilot)
        await pilot.press(*choice, "enter")
        await idle(app, pilot)
        assert wanted in app.clipboard

    run(store, steps)


@pytest.mark.parametrize(
    "form", each_nth(["pcapng", "jsonl", "full", "csv", "records", "fixture"], 3)
)
def test_exports_what_is_shown(store: Store, tmp_path: Path, form: str) -> None:
    target = tmp_path / ("out" if form == "fixture" else f"out.{form}")

    async def steps(app, pilot):
        app.show_filter("api == Produce")
        await idle(app, pilot)
        app.sharing.ask_where("shown", form)
        await idle(app, pilot)
        app.query_one("#prompt").value = str(target)
        await pilot.press("enter")
        await idle(app, pilot)
        assert target.exists()
        # It is there: not written again.
        before = target.stat().st_mtime_ns
        app.sharing.ask_where("shown", form)
        app.query_one("#prompt").value = str(target)
        await pilot.press("enter")
        await idle(app, pilot)
        assert target.stat().st_mtime_ns == before

    notes = Notes()
    run(store, steps, notes=notes)
    produces = sum(1 for key in store.session.columns["api_key"] if key == 0)
    if form == "pcapng":
        with open_capture([target]) as capture:
            assert sum(1 for _ in capture.exchanges()) == produces
    elif form in ("jsonl", "full"):
        assert len(target.read_text().splitlines()) == produces
    elif form == "fixture":
        assert list(target.rglob("*.json"))


def test_comments_are_in_an_exported_capture(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "out.pcapng"

    async def steps(app, pilot):
        app.workspace.notes.comment(app.list.number, "see here", store.session)
        await pilot.press("w")
        app.query_one("#prompt").value = str(target)
        await pilot.press("enter")
        await idle(app, pilot)

    run(store, steps, notes=Notes())
    assert b"see here" in target.read_bytes()


def test_two_marked_exchanges_are_compared(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("D")
        await idle(app, pilot)
        assert not isinstance(app.screen, Page)
        await pilot.press("m", "end", "m", "D")
        await idle(app, pilot)
        assert isinstance(app.screen, Page)
        assert "exchange.api" in app.screen.page.text
        await pilot.press("q")
        await idle(app, pilot)
        assert app.list.has_focus

    run(store, steps, notes=Notes())


def test_completion_offers_fields_and_values_and_says_where_it_is_wrong(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("slash", *"cli")
        await idle(app, pilot)
        assert "client " in text_of(app)
        await pilot.press("tab")
        await idle(app, pilot)
        assert app.filter.box.value.startswith("client")
        app.filter.put("client ")
        await pilot.press(*"== ", "down", "enter")
        await idle(app, pilot)
        assert app.filter.box.value.startswith("client == ")
        assert len(app.filter.box.value) > len("client == ")
        app.filter.box.value = ""
        await pilot.press(*"topik == x ")
        await idle(app, pilot)
        assert "^^^^^" in text_of(app)
        assert "topic" in text_of(app)

    run(store, steps)


def test_filters_of_before_come_back(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    async def steps(app, pilot):
        for text in ("api == Fetch", "api == Produce"):
            app.filter.box.value = text
            app.filter.box.focus()
            await pilot.press("enter")
            await idle(app, pilot)
        await pilot.press("slash")
        app.filter.put("")
        await pilot.press("up")
        assert app.filter.box.value == "api == Produce"
        await pilot.press("up")
        assert app.filter.box.value == "api == Fetch"
        await pilot.press("down", "down")
        assert app.filter.box.value == ""

    run(store, steps)


def test_packets_are_dissected_when_asked_for() -> None:
    with open_capture([SAMPLE]) as capture:
        store = Store(capture.source.read, capture.context, lambda n: capture.source.find(n))
        for exchange in capture.exchanges():
            store.add(exchange)

        async def steps(app, pilot):
            app.inspector.show_tab("Packets")
            await idle(app, pilot)
            screen = text_of(app)
            assert "[Packets]" in screen
            assert "TCP" in screen
            assert "bytes on the wire" in screen
            app.inspector.show_tab("Context")
            await idle(app, pilot)
            assert "on this connection" in text_of(app)

        run(store, steps)


def test_other_ports_are_read_again_as_kafka(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("d", *"9094 nonsense", "enter")
        await idle(app, pilot)
        assert app.inputs.wanted is None
        await pilot.press("d", *"9094 9100-9101", "enter")

    async def check(app, pilot):
        await steps(app, pilot)
        assert app.inputs.ports == {9094, 9100, 9101}
        assert app.inputs.wanted == ""

    run(store, check)


def test_layouts_and_widths_change(store: Store) -> None:
    async def steps(app, pilot):
        below = text_of(app)
        await pilot.press("vertical_line")
        await idle(app, pilot)
        assert app.hex.region.y > app.detail.region.y
        await pilot.press("vertical_line")
        await idle(app, pilot)
        assert not app.hex.display
        await pilot.press("vertical_line")
        await idle(app, pilot)
        assert text_of(app) == below
        width = app.hex.size.width
        await pilot.press("greater_than_sign")
        await idle(app, pilot)
        assert app.hex.size.width < width
        await pilot.press("equals_sign")
        await idle(app, pilot)
        assert app.hex.size.width == width

    run(store, steps)


def test_enter_in_an_empty_filter_box_takes_no_suggestion(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("slash", "a", "backspace")
        await pilot.pause()
        assert app.filter.choices.display
        await pilot.press("enter")
        await pilot.pause()
        assert (app.filter.box.value, app.workspace.view.text, len(app.workspace.view)) == (
            "",
            "",
            len(store),
        )
        assert app.list.has_focus

    run(store, steps)


def test_tab_in_a_box_over_everything_stays_in_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    remember([str(SAMPLE)])

    async def steps(app, pilot):
        await pilot.press("ctrl+o", "tab")
        await pilot.pause()
        assert app.screen.query_one("Input").value == str(SAMPLE)
        await pilot.press("escape")
        await pilot.pause()
        assert app.list.has_focus

    run(store, steps)
