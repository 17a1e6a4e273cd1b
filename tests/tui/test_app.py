"""Keys and screens, with the demo capture already read; screens as the text of their strips."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.inputs.spool import Spool
from kafkascope.tui.data.columns import bad
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.tree import Space
from tests.tui.boards import compare
from tests.tui.pilots import idle, run, text_of

CAPTURES = Path(__file__).parents[1] / "analyzer" / "captures"


@pytest.mark.parametrize("size", [(160, 50), (110, 40), (80, 24), (20, 5)], ids=str)
def test_the_exchanges_look_as_they_did(store: Store, size: tuple[int, int]) -> None:
    async def steps(app, pilot):
        await pilot.press("ctrl+g", *"14", "enter")
        await idle(app, pilot)
        compare(f"exchanges-{size[0]}x{size[1]}", text_of(app))

    run(store, steps, size)


def test_the_detail_draws_the_stages_of_an_exchange() -> None:
    """A client that wrote a request in two pieces: Nagle's algorithm and a delayed
    acknowledgement."""

    async def steps(app, pilot):
        await pilot.press("ctrl+g", *"9", "enter")
        await idle(app, pilot)
        compare("exchanges-stages", text_of(app))

    with open_capture([CAPTURES / "nagle.pcap.gz"], spool=Spool()) as capture:
        found = Store(capture.source.read, capture.context)
        for exchange in capture.exchanges():
            found.add(exchange)
        run(found, steps, (160, 40))


def test_without_colours_the_same_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(app, pilot):
        await pilot.press("ctrl+g", *"14", "enter")
        await idle(app, pilot)
        compare("exchanges-160x50", text_of(app))
        styles = [s.style for strip in app.screen._compositor.render_strips() for s in strip]
        colours = [style.color for style in styles if style is not None and style.color]
        assert all(c.triplet is None or len(set(c.triplet)) == 1 for c in colours)

    run(store, steps)


def test_the_widest_layout_shows_list_detail_and_bytes(store: Store) -> None:
    async def steps(app, pilot):
        screen = text_of(app)
        assert "336 exchanges" in screen
        assert "CreateTopics v7" in screen
        assert "▼ ApiVersionsResponse v5" in screen
        assert "00000010  00 04 00 12" in screen

    run(store, steps)


def test_keys_that_move(store: Store) -> None:
    async def steps(app, pilot):
        for key, cursor in [
            *(("down", 1), ("j", 2), ("k", 1), ("up", 0), ("G", 335), ("g", 0)),
            *(("end", 335), ("home", 0)),
        ]:
            await pilot.press(key)
            assert app.list.cursor == cursor, key
        await pilot.press("pagedown")
        there = app.list.cursor
        await pilot.press("space", "pageup")
        assert app.list.cursor == there > 10

    run(store, steps)


def test_errors_connections_marks_and_numbers(store: Store) -> None:
    async def steps(app, pilot):
        session = store.session
        await pilot.press("e")
        first = app.list.index
        assert bad(store)[first]
        await pilot.press("e", "E")
        assert app.list.index == first
        await pilot.press("left_square_bracket")
        assert session.columns["connection"][app.list.index] == session.columns["connection"][first]
        assert app.list.index < first
        await pilot.press("right_square_bracket")
        assert app.list.index == first
        await pilot.press("m", "g", "apostrophe")
        assert app.list.index == first
        assert "* " in text_of(app)
        await pilot.press("ctrl+g", *"100", "enter")
        assert session.columns["number"][app.list.index] == 100
        await pilot.press("ctrl+g", *"99999", "enter")
        assert session.columns["number"][app.list.index] == 100

    run(store, steps)


def test_a_filter_applies_while_it_is_typed_and_says_what_is_wrong(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("slash", *"api == Produce")
        await pilot.pause(0.4)
        some = len(app.workspace.view)
        assert 0 < some < len(store)
        assert "applied" in text_of(app)
        await pilot.press(*" and topik == x")
        await pilot.pause(0.4)
        assert 'unknown field "topik"' in text_of(app)
        assert len(app.workspace.view) == some
        await pilot.press("enter")
        assert app.focused.id == "filter"
        await pilot.press("escape")
        assert app.list.has_focus
        box = app.query_one("#filter")
        assert (box.value, len(app.workspace.view)) == ("", len(store))

    run(store, steps)


def test_a_filter_that_reads_messages_waits_for_enter(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("slash", *"request.max_wait_ms > 0")
        await pilot.pause(0.4)
        assert len(app.workspace.view) == len(store)
        await pilot.press("enter")
        await idle(app, pilot)
        assert 0 < len(app.workspace.view) < len(store)
        assert app.list.has_focus

    run(store, steps)


def test_find_next_and_before(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("ctrl+f", *"joingroup", "enter")
        first = app.list.cursor
        await pilot.press("n", "N")
        assert app.list.cursor == first > 0

    run(store, steps)


def test_field_to_bytes_and_byte_to_field(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("e", "enter")
        await idle(app, pilot)
        assert app.detail.has_focus
        await pilot.press("down", "down", "down")
        item = app.detail.item
        assert app.hex.span == (item.start, item.end)
        await pilot.press("tab", "right")
        await idle(app, pilot)
        assert app.hex.has_focus
        inner = app.detail.item
        assert inner.start <= app.hex.at < inner.end
        assert app.hex.span == (inner.start, inner.end)

    run(store, steps)


def test_trees_fold_and_tabs_change(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("enter")
        await idle(app, pilot)
        some = app.detail.count()
        await pilot.press("Z")
        assert app.detail.count() > some
        await pilot.press("z")
        assert app.detail.count() < some
        await pilot.press("r")
        assert "[Request]" in text_of(app)
        await pilot.press("R", "R", "R")
        await idle(app, pilot)
        assert "[Context]" in text_of(app)
        assert "exchange 1: ApiVersions" in text_of(app)

    run(store, steps)


def test_decompressed_records_are_bytes_of_their_own(store: Store) -> None:
    async def steps(app, pilot):
        index = next(i for i in range(len(store)) if store.session.row(i).codecs == ("gzip",))
        app.list.move_to(index)
        await idle(app, pilot)
        app.inspector.show_tab("Request")
        await pilot.press("tab", "Z")
        lines = app.detail.tree_.lines
        inside = next(i for i, line in enumerate(lines) if line.space > 0)
        app.detail.move_to(inside)
        await idle(app, pilot)
        assert app.hex.space.name == "Decompressed"

    run(store, steps)


def test_copy_goes_through_the_terminal(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("y")
        assert "ApiVersions v5" in app.clipboard

    run(store, steps)


def test_filter_from_a_value(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("a")
        await idle(app, pilot)
        await pilot.press("down", "enter")
        await idle(app, pilot)
        await pilot.press("enter")
        await idle(app, pilot)
        assert app.workspace.view.text == 'api == ApiVersions and client == "java-4.4.0.admin"'
        assert 0 < len(app.workspace.view) < len(store)

    run(store, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 5)])
def test_every_size_opens_the_detail_and_comes_back(store: Store, size: tuple[int, int]) -> None:
    async def steps(app, pilot):
        assert app.list.display
        await pilot.press("enter")
        await idle(app, pilot)
        assert app.detail.has_focus
        await pilot.press("tab", "down", "q")
        await idle(app, pilot)
        assert app.list.has_focus
        text_of(app)

    run(store, steps, size)


def test_80_columns_show_what_matters(store: Store) -> None:
    async def steps(app, pilot):
        screen = text_of(app).splitlines()
        assert all(len(line) <= 80 for line in screen)
        assert "! COORDINATOR_NOT_" in "\n".join(screen)
        assert "Client" in screen[3]
        assert "java-4.4.0" in "\n".join(screen[4:])
        await pilot.press("ctrl+g", *"14", "enter", "enter")
        await idle(app, pilot)
        assert "FindCoordinatorResponse v6" in text_of(app)

    run(store, steps, (80, 24))


def test_a_storm_of_resizes(store: Store) -> None:
    async def steps(app, pilot):
        for width, height in [(20, 5), (200, 60), (1, 1), (80, 24), (139, 30), (160, 50)]:
            await pilot.resize_terminal(width, height)
        await idle(app, pilot)
        assert "CreateTopics v7" in text_of(app)

    run(store, steps)


def test_plain_is_ascii(store: Store) -> None:
    async def steps(app, pilot):
        widgets = (app.list, app.detail, app.hex)
        lines = [widget.render_line(y).text for widget in widgets for y in range(10)]
        assert all(line.isascii() for line in lines)

    run(store, steps, plain=True)


def test_help_and_what_ctrl_c_does(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("question_mark")
        await idle(app, pilot)
        assert "Next error or missing response" in text_of(app)
        await pilot.press("q", "ctrl+c")
        assert app.is_running

    run(store, steps)


def test_bytes_of_traffic_never_reach_the_terminal_raw(store: Store) -> None:
    async def steps(app, pilot):
        evil = "\x1b[31m\x07\ud800\u202e\r\nx"
        app.detail.tree_.lines[0].value = evil
        app.detail.tree_.lines[0].label = evil
        app.detail.changed()
        app.hex.show(Space("Wire", evil.encode("utf-8", "surrogatepass")), (0, 3))
        texts = [w.render_line(0).text for w in (app.detail, app.hex)]
        assert all(text.isprintable() for text in texts)
        app.say(evil)
        await idle(app, pilot)

    run(store, steps)


def test_a_remark_about_the_capture_covers_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "12 TLS connections to brokers cannot be decrypted"
    monkeypatch.setattr(store.progress, "remarks", [said])

    async def steps(app, pilot):
        lines = text_of(app).splitlines()
        assert said in lines[-1]
        assert [line for line in lines[:-1] if said[:12] in line] == []
        await pilot.press("enter")
        await idle(app, pilot)
        app.remark("")
        assert said not in text_of(app)

    run(store, steps)
