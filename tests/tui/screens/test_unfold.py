"""Large batches are opened beside the keyboard."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafkascope.tui.data.store import Store
from kafkascope.tui.document.tree import HEAVY, Item, Space, Tree
from tests.tui.pilots import idle, run


def heavy(gate: threading.Event, begun: threading.Event | None = None) -> Tree:
    def make() -> list[Item]:
        if begun is not None:
            begun.set()
        assert gate.wait(120)
        return [Item("record[0]", "offset 0", 0, 9)]

    item = Item("records", "5000 bytes", 0, HEAVY + 1, make=make)
    return Tree([item], [Space("Wire", bytes(HEAVY + 1))])


def test_keys_work_while_a_batch_is_opened(store: Store) -> None:
    async def steps(app, pilot):
        gate = threading.Event()
        await pilot.press("enter")
        app.detail.show(heavy(gate))
        await pilot.press("right")
        await pilot.pause(0.4)
        assert app.inspector.decoding
        assert app.detail.tree_.roots[0].value == "5000 bytes  decoding ..."
        await pilot.press("tab", "down")  # the bytes are there already
        gate.set()
        await idle(app, pilot)
        assert [item.label for item in app.detail.tree_.lines] == ["records", "record[0]"]
        assert app.detail.tree_.roots[0].value == "5000 bytes"

    run(store, steps)


def test_another_exchange_does_not_wait_for_a_batch(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(app, pilot):
        gate, begun = threading.Event(), threading.Event()
        await pilot.press("enter")
        app.detail.show(heavy(gate, begun))
        await pilot.press("Z", "escape")
        assert await asyncio.to_thread(begun.wait, 60)
        monkeypatch.setattr("kafkascope.tui.data.decoding.PATIENCE", 0.0)
        await pilot.press("down")
        await idle(app, pilot)
        assert app.inspector.document.exchange.number == app.list.number
        shown = app.detail.tree_
        gate.set()
        await pilot.pause(0.1)
        await idle(app, pilot)
        assert app.detail.tree_ is shown

    run(store, steps)


def test_a_byte_does_not_open_what_is_heavy() -> None:
    gate = threading.Event()
    tree = heavy(gate)
    assert tree.find(0, 5) is tree.roots[0]
    assert tree.any_heavy()
    gate.set()
    tree.set_all(True)
    assert not tree.any_heavy()
    assert len(tree.lines) == 2
