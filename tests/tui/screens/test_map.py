"""The map's screen: Enter leads to the exchanges behind an edge."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.tui.screens.map import BOARD
from tests.kit.samples import SAMPLES
from tests.tui.pilots import ReadScene, text_of


@pytest.fixture(scope="module")
def demo() -> ReadScene:
    return ReadScene(SAMPLES / "demo.pcap.zst")


@pytest.mark.shown(BOARD)
async def test_enter_shows_the_exchanges_behind_an_edge(app, pilot, scene) -> None:
    await pilot.press("enter")
    await pilot.do(*["down"] * 7)
    assert "-> billing" in text_of(app)
    await pilot.press("enter")
    assert scene.shown == [
        "api in {Fetch, ShareFetch} and client in {billing-1, billing-2, billing-3}"
        " and topic == orders",
        "api == Produce and client == orders-svc and topic == orders",
    ]
    for text in scene.shown:
        compile_filter(text)


@pytest.mark.shown(BOARD)
async def test_it_groups_by_other_names(app, pilot) -> None:
    await pilot.do("B")
    assert "billing-2" in text_of(app).split("Application]")[0]
    assert app.board.command() == "kafkascope map libraries.pcap --by client_id"
