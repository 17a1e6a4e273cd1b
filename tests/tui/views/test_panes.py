"""Panes of the program: bytes, lines between panes, signs of rules, batches that open slowly."""

import asyncio
import threading

from kafkascope.analyzer.conversation.tampering import NOTE
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Note
from kafkascope.analyzer.topics import TopicNames
from kafkascope.tui.controllers.inspector import NOTHING, highlights
from kafkascope.tui.document.document import Document
from kafkascope.tui.document.tree import HEAVY, Item, Space, Tree
from kafkascope.tui.settings.palette import STYLES
from kafkascope.tui.views.exchanges import RULE
from tests.kit.samples import SAMPLES
from tests.tui.pilots import run, store_of, text_of

SPACE = Space("Wire", bytes(100))


def tree() -> tuple[Item, Item, Item]:
    message = Item("Fetch", start=0, end=100)
    part = Item("topics", start=20, end=60)
    leaf = Item("name", start=24, end=30)
    message.adopt([part])
    part.adopt([leaf])
    return message, part, leaf


def test_a_field_is_strong_and_what_it_is_part_of_faint() -> None:
    message, part, leaf = tree()
    assert highlights(leaf, SPACE) == ((24, 30), (20, 60))
    assert highlights(part, SPACE) == (NOTHING, (20, 60))
    assert highlights(message, SPACE) == (NOTHING, NOTHING)


async def test_a_whole_message_does_not_paint_the_pane(app, pilot) -> None:
    item = app.detail.item
    assert item.foldable
    assert item.parent is None
    grounds = {
        style.bgcolor for line in range(app.hex.count()) for _, style in app.hex.pieces(line, 78)
    }
    assert grounds == {None}
    app.detail.action_unfold()
    app.detail.action_move(1)
    await pilot.pause()
    strong = STYLES["span"]
    painted = [
        text
        for line in range(app.hex.count())
        for text, style in app.hex.pieces(line, 78)
        if style.bgcolor == strong.bgcolor
    ]
    if not app.detail.item.foldable:
        assert painted


async def drag(pilot, selector: str, by: tuple[int, int]) -> None:
    widget = pilot.app.screen.query(selector).first()
    x, y = widget.region.width // 2, 0 if widget.region.height == 1 else 2
    await pilot.mouse_down(widget, offset=(x, y))
    await pilot.hover(widget, offset=(x + by[0], y + by[1]))
    await pilot.pause()
    await pilot.mouse_up(widget, offset=(x, y))
    await pilot.pause()


async def test_lines_between_panes_are_dragged(app, pilot) -> None:
    high, wide = app.list.size.height, app.hex.size.width
    await drag(pilot, "#tabs", (0, 6))
    assert abs(app.list.size.height - high - 6) <= 1
    await drag(pilot, "#bar", (-9, 0))
    assert app.hex.size.width == wide + 9
    tab = app.inspector.tab
    await pilot.do("equals_sign")
    assert (app.list.size.height, app.hex.size.width) == (high, wide)
    await pilot.do("vertical_line")
    left = app.list.size.width
    await drag(pilot, "#tabs", (20, 0))
    assert app.list.size.width > left
    assert app.inspector.tab == tab


async def test_the_table_of_a_board_is_dragged(app, pilot) -> None:
    await pilot.do("2")
    board = app.host.board
    high = board.upper.size.height
    await drag(pilot, ".board-tabs", (0, -5))
    assert board.upper.size.height < high
    await pilot.press("equals_sign")
    await pilot.pause()
    assert board.upper.size.height == high


DEED = Note("note", f"{NOTE}error LEADER_NOT_AVAILABLE")


def test_a_row_that_a_rule_changed_has_a_sign() -> None:
    found = store_of(SAMPLES / "kafka-python.pcap")
    found.session.remarks_by_row[2] = ((), (DEED,))

    async def steps(app, pilot):
        await pilot.settle()
        rows = [line for line in text_of(app).splitlines() if f"{RULE} " in line]
        assert len(rows) == 1
        assert f"{found.session.columns['number'][2]} " in rows[0]

    run(found, steps, (120, 40))


def test_the_detail_names_the_rule() -> None:
    exchange = next(iter(open_capture([SAMPLES / "kafka-python.pcap"]).exchanges()))
    exchange.notes = (*exchange.notes, DEED)
    lines = Document(exchange, TopicNames()).tree("Request").lines
    rule, _, legend, header = lines[:4]
    assert (rule.label, rule.value) == ("proxy rule", "error LEADER_NOT_AVAILABLE")
    assert legend.value == "~ round trip 12 µs  # server 1.5 ms"
    assert header.label == "RequestHeader v2"


def heavy(gate: threading.Event, begun: threading.Event | None = None) -> Tree:
    def make() -> list[Item]:
        if begun is not None:
            begun.set()
        assert gate.wait(120)
        return [Item("record[0]", "offset 0", 0, 9)]

    item = Item("records", "5000 bytes", 0, HEAVY + 1, make=make)
    return Tree([item], [Space("Wire", bytes(HEAVY + 1))])


async def test_keys_work_while_a_batch_is_opened(app, pilot) -> None:
    gate = threading.Event()
    await pilot.press("enter")
    app.detail.show(heavy(gate))
    await pilot.press("right")
    await pilot.pause(0.4)
    assert app.inspector.decoding
    assert app.detail.tree_.roots[0].value == "5000 bytes  decoding ..."
    await pilot.press("tab", "down")  # the bytes are there already
    gate.set()
    await pilot.settle()
    assert [item.label for item in app.detail.tree_.lines] == ["records", "record[0]"]
    assert app.detail.tree_.roots[0].value == "5000 bytes"


async def test_another_exchange_does_not_wait_for_a_batch(app, pilot, monkeypatch) -> None:
    gate, begun = threading.Event(), threading.Event()
    await pilot.press("enter")
    app.detail.show(heavy(gate, begun))
    await pilot.press("Z", "escape")
    assert await asyncio.to_thread(begun.wait, 60)
    monkeypatch.setattr("kafkascope.tui.data.decoding.PATIENCE", 0.0)
    await pilot.do("down")
    assert app.inspector.document.exchange.number == app.list.number
    shown = app.detail.tree_
    gate.set()
    await pilot.pause(0.1)
    await pilot.settle()
    assert app.detail.tree_ is shown


def test_a_byte_does_not_open_what_is_heavy() -> None:
    gate = threading.Event()
    tree = heavy(gate)
    assert tree.find(0, 5) is tree.roots[0]
    assert tree.any_heavy()
    gate.set()
    tree.set_all(True)
    assert not tree.any_heavy()
    assert len(tree.lines) == 2
