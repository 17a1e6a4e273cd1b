"""What stands out among the bytes."""

from __future__ import annotations

from kafkascope.tui.controllers.inspector import NOTHING, highlights
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.tree import Item, Space
from kafkascope.tui.settings.palette import STYLES
from tests.tui.pilots import run

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


def test_a_whole_message_does_not_paint_the_pane(store: Store) -> None:
    async def steps(app, pilot):
        item = app.detail.item
        assert item is not None
        assert item.foldable
        assert item.parent is None
        grounds = {
            style.bgcolor
            for line in range(app.hex.count())
            for _, style in app.hex.pieces(line, 78)
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

    run(store, steps)
