"""Keys and screens, with the demo capture already read; screens as the text of their strips."""

from collections.abc import Iterator

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.inputs.spool import Spool
from kafkascope.tui.data.columns import bad
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.tree import Space
from tests.kit.samples import CAPTURES
from tests.tui.pilots import compare, store_of, text_of


@pytest.fixture(scope="module")
def nagle() -> Iterator[Store]:
    with open_capture([CAPTURES / "nagle.pcap.gz"], spool=Spool()) as capture:
        yield store_of(capture)


@pytest.mark.parametrize("size", [(160, 50), (110, 40), (80, 24), (20, 5)], ids=str)
async def test_the_exchanges_look_as_they_did(app, pilot, size) -> None:
    await pilot.do("ctrl+g", *"14", "enter")
    compare(f"exchanges-{size[0]}x{size[1]}", text_of(app))


@pytest.mark.shown(of="nagle", size=(160, 40))
async def test_the_detail_draws_the_stages_of_an_exchange(app, pilot) -> None:
    """A client that wrote a request in two pieces: Nagle's algorithm and a delayed
    acknowledgement."""
    await pilot.do("ctrl+g", *"9", "enter")
    compare("exchanges-stages", text_of(app))


async def test_without_colours_the_same_is_told(no_color, app, pilot) -> None:
    await pilot.do("ctrl+g", *"14", "enter")
    compare("exchanges-160x50", text_of(app))
    styles = [s.style for strip in app.screen._compositor.render_strips() for s in strip]
    colours = [style.color for style in styles if style is not None and style.color]
    assert all(c.triplet is None or len(set(c.triplet)) == 1 for c in colours)


async def test_keys_that_move(app, pilot) -> None:
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


async def test_errors_connections_marks_and_numbers(app, pilot, store) -> None:
    session = store.session
    await pilot.do("left_square_bracket")
    assert "No exchange on this connection above." in str([n.message for n in app._notifications])
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


async def test_a_filter_applies_while_it_is_typed_and_says_what_is_wrong(app, pilot, store) -> None:
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


async def test_a_filter_that_reads_messages_waits_for_enter(app, pilot, store) -> None:
    await pilot.press("slash", *"request.max_wait_ms > 0")
    await pilot.pause(0.4)
    assert len(app.workspace.view) == len(store)
    await pilot.do("enter")
    assert 0 < len(app.workspace.view) < len(store)
    assert app.list.has_focus


async def test_field_to_bytes_and_byte_to_field(app, pilot) -> None:
    await pilot.do("e", "enter")
    assert app.detail.has_focus
    await pilot.press("down", "down", "down")
    item = app.detail.item
    assert app.hex.span == (item.start, item.end)
    await pilot.do("tab", "right")
    assert app.hex.has_focus
    inner = app.detail.item
    assert inner.start <= app.hex.at < inner.end
    assert app.hex.span == (inner.start, inner.end)


async def test_trees_fold_and_tabs_change(app, pilot) -> None:
    await pilot.do("enter")
    some = app.detail.count()
    await pilot.press("Z")
    assert app.detail.count() > some
    await pilot.press("z")
    assert app.detail.count() < some
    await pilot.press("r")
    assert "[Request]" in text_of(app)
    await pilot.do("R", "R", "R")
    assert "[Context]" in text_of(app)
    assert "exchange 1: ApiVersions" in text_of(app)


async def test_decompressed_records_are_bytes_of_their_own(app, pilot, store) -> None:
    index = next(i for i in range(len(store)) if store.session.row(i).codecs == ("gzip",))
    app.list.move_to(index)
    await pilot.settle()
    app.inspector.show_tab("Request")
    await pilot.press("tab", "Z")
    lines = app.detail.tree_.lines
    inside = next(i for i, line in enumerate(lines) if line.space > 0)
    app.detail.move_to(inside)
    await pilot.settle()
    assert app.hex.space.name == "Decompressed"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 5)])
async def test_every_size_opens_the_detail_and_comes_back(app, pilot, size) -> None:
    assert app.list.display
    await pilot.do("enter")
    assert app.detail.has_focus
    await pilot.do("tab", "down", "q")
    assert app.list.has_focus
    text_of(app)


async def test_a_storm_of_resizes(app, pilot) -> None:
    for width, height in [(20, 5), (200, 60), (1, 1), (80, 24), (139, 30), (160, 50)]:
        await pilot.resize_terminal(width, height)
    await pilot.settle()
    assert "CreateTopics v7" in text_of(app)


@pytest.mark.shown(plain=True)
async def test_plain_is_ascii(app, pilot) -> None:
    widgets = (app.list, app.detail, app.hex)
    lines = [widget.render_line(y).text for widget in widgets for y in range(10)]
    assert all(line.isascii() for line in lines)


async def test_help_and_what_ctrl_c_does(app, pilot) -> None:
    await pilot.do("question_mark")
    assert "Next error or missing response" in text_of(app)
    await pilot.press("q", "ctrl+c")
    assert app.is_running


async def test_bytes_of_traffic_never_reach_the_terminal_raw(app, pilot) -> None:
    evil = "\x1b[31m\x07\ud800\u202e\r\nx"
    app.detail.tree_.lines[0].value = evil
    app.detail.tree_.lines[0].label = evil
    app.detail.changed()
    app.hex.show(Space("Wire", evil.encode("utf-8", "surrogatepass")), (0, 3))
    texts = [w.render_line(0).text for w in (app.detail, app.hex)]
    assert all(text.isprintable() for text in texts)
    app.say(evil)
    await pilot.settle()


SAID = "12 TLS connections to brokers cannot be decrypted"


@pytest.fixture
def remarked(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(store.progress, "remarks", [SAID])
    return store


@pytest.mark.shown(of="remarked")
async def test_a_remark_about_the_capture_covers_nothing(app, pilot) -> None:
    lines = text_of(app).splitlines()
    assert SAID in lines[-1]
    assert [line for line in lines[:-1] if SAID[:12] in line] == []
    await pilot.do("enter")
    app.remark("")
    assert SAID not in text_of(app)
