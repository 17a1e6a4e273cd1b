"""The map's screen: Enter leads to the exchanges behind an edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.tui.screens.map import BOARD
from tests.tui.boards import ReadScene, Stage, perform, settled, text_of

DEMO = Path(__file__).parents[3] / "captures" / "samples" / "demo.pcap.zst"


def test_enter_shows_the_exchanges_behind_an_edge() -> None:
    scene = ReadScene(DEMO)

    async def steps(app: Stage, pilot: Any) -> None:
        await pilot.press("enter")
        for _ in range(7):
            await pilot.press("down")
        await settled(app, pilot)
        assert "-> billing" in text_of(app)
        await pilot.press("enter")

    perform(BOARD, scene, steps)
    assert scene.shown == [
        "api in {Fetch, ShareFetch} and client in {billing-1, billing-2, billing-3}"
        " and topic == orders",
        "api == Produce and client == orders-svc and topic == orders",
    ]
    for text in scene.shown:
        compile_filter(text)


def test_it_groups_by_other_names() -> None:
    scene = ReadScene(DEMO)

    async def steps(app: Stage, pilot: Any) -> None:
        await pilot.press("B")
        await settled(app, pilot)
        assert "billing-2" in text_of(app).split("Application]")[0]
        assert app.board.command() == "kafkascope map libraries.pcap --by client_id"

    perform(BOARD, scene, steps)
