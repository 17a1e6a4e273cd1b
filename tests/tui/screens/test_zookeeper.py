"""Screen 9: ZooKeeper's tree with its history, sessions, elections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.screens import groups, zookeeper
from kafkascope.tui.screens.zookeeper import data_lines, tree
from tests.tui.boards import ReadScene, compare, perform, settled, text_of

CAPTURES = Path(__file__).parents[2] / "analyzer" / "captures"
SAMPLES = Path(__file__).parents[3] / "captures" / "samples"


@pytest.fixture(scope="module")
def tour() -> ReadScene:
    return ReadScene(SAMPLES / "zookeeper.pcap")


def select(app: Any, path: str) -> None:
    """Put the cursor on a node."""
    paths = [line["path"] for line in app.board.sheet.lines]
    app.board.table.move_to(paths.index(path))


@pytest.mark.parametrize("size", [(160, 50), (80, 24)], ids=["160x50", "80x24"])
def test_the_tree_looks_as_it_did(tour: ReadScene, size: tuple[int, int]) -> None:
    async def steps(app: Any, pilot: Any) -> None:
        compare(f"zookeeper-{size[0]}x{size[1]}", text_of(app))

    perform(zookeeper.BOARD, tour.fresh(), steps, size)


def test_tabs_look_as_they_did(tour: ReadScene) -> None:
    async def steps(app: Any, pilot: Any) -> None:
        select(app, "/tour/persistent")
        for tab in app.board.tabs:
            await settled(app, pilot)
            compare(f"zookeeper-{tab.lower()}", text_of(app))
            await pilot.press("R")

    perform(zookeeper.BOARD, tour.fresh(), steps, (120, 40))


def test_each_tab_says_something_in_any_size_and_in_ascii(tour: ReadScene) -> None:
    async def steps(app: Any, pilot: Any) -> None:
        for size in [(20, 5), (7, 2), (160, 40)]:
            await pilot.resize_terminal(*size)
            for _ in app.board.tabs:
                app.board.action_tab(1)
                app.board.enter_pane()
                await pilot.pause()
        await settled(app, pilot)
        for tab in app.board.tabs:
            assert f"[{tab}]" in text_of(app)
            for line in text_of(app).splitlines():
                assert line.rstrip("▁▂▃▄▅▆▇█ ").isascii(), line
            await pilot.press("R")
            await settled(app, pilot)

    perform(zookeeper.BOARD, tour.fresh(plain=True), steps)


def test_enter_shows_what_asked_for_a_node_and_the_exchange_of_a_change(tour: ReadScene) -> None:
    scene = tour.fresh()

    async def steps(app: Any, pilot: Any) -> None:
        select(app, "/tour/persistent")
        await settled(app, pilot)
        await pilot.press("enter")
        app.board.enter_pane()
        await pilot.pause()
        await pilot.press("down", "enter")

    perform(zookeeper.BOARD, scene, steps)
    assert scene.shown == ['path == "/tour/persistent"', "number == 26"]


def test_secrets_of_the_tour_are_not_shown(tour: ReadScene) -> None:
    async def steps(app: Any, pilot: Any) -> None:
        for path in [line["path"] for line in app.board.sheet.lines]:
            select(app, path)
            app.board.refill_lower()
            await pilot.pause()
            assert "-secret" not in text_of(app)
        for _ in app.board.tabs:
            await pilot.press("R")
            await settled(app, pilot)
            assert "-secret" not in text_of(app)

    perform(zookeeper.BOARD, tour.fresh(), steps, (200, 30))


def test_a_capture_without_zookeeper_says_so() -> None:
    async def steps(app: Any, pilot: Any) -> None:
        assert zookeeper.BOARD.empty in text_of(app)
        for _ in app.board.tabs:
            await pilot.press("R")

    perform(zookeeper.BOARD, ReadScene(SAMPLES / "java-old.pcap"), steps)


@pytest.fixture(scope="module")
def two_ensembles() -> ReadScene:
    return ReadScene(CAPTURES / "zookeeper-groups.pcapng.gz")


def test_each_ensemble_has_a_tree_of_its_own(two_ensembles: ReadScene) -> None:
    async def steps(app: Any, pilot: Any) -> None:
        lines = app.board.sheet.lines
        tops = [line["node"] for line in lines if line["path"] == "/"]
        assert tops == ["/ of 127.0.0.1:21811", "/ of 127.0.0.1:21812"]
        shops = [each for each, line in enumerate(lines) if line["path"] == "/consumers/shop/ids"]
        for at, port, members in zip(shops, (21811, 21812), (2, 1), strict=True):
            app.board.table.move_to(at)
            app.board.tab = "Below"
            app.board.refill_lower()
            await pilot.pause()
            assert text_of(app).count("/ids/shop_") == 2 * members  # came, and went
            assert f'broker in {{"127.0.0.1:{port}"}}' in app.board.spec.evidence(
                app.board, lines[at]
            )

    perform(zookeeper.BOARD, two_ensembles.fresh(), steps, (200, 60))


def test_groups_of_old_consumers_are_on_the_groups_screen(two_ensembles: ReadScene) -> None:
    async def steps(app: Any, pilot: Any) -> None:
        lines = {line["group"]: line for line in app.board.sheet.lines}
        assert list(lines) == ["shop at 127.0.0.1:21811", "shop at 127.0.0.1:21812"]
        assert app.board.spec.evidence(app.board, lines["shop at 127.0.0.1:21811"]) == (
            'protocol == zookeeper and path contains "/consumers/shop/"'
        )
        await settled(app, pilot)
        compare("groups-zookeeper-timeline", text_of(app))
        await pilot.press("R")
        await settled(app, pilot)
        compare("groups-zookeeper-members", text_of(app))
        for _ in app.board.tabs:
            await pilot.press("R")
            await settled(app, pilot)

    perform(groups.BOARD, two_ensembles.fresh(), steps, (160, 30))


# --- the tree


def node(path: str, state: str = "there", **more: Any) -> Line:
    return {"path": path, "state": state, **more}


def test_a_tree_has_all_that_is_above_its_nodes_in_the_order_of_their_parts() -> None:
    lines = tree([node("/a-b"), node("/a/c"), node("/a/b/x", "gone", mode="ephemeral"), node("/a")])
    assert [(line["node"], line["inferred"], line["faded"]) for line in lines] == [
        ("/", True, False),
        ("  a", False, False),
        ("    b", True, False),
        ("      x", False, True),
        ("    c", False, False),
        ("  a-b", False, False),
    ]
    assert lines[3]["mode"] == "ephemeral"


def test_what_is_no_path_stands_behind_the_tree() -> None:
    lines = tree([node("(others)"), node("relative"), node("/")])
    assert [line["node"] for line in lines] == ["/", "(others)", "relative"]


def test_data_are_json_opened_or_text_or_a_sentence() -> None:
    assert data_lines({"data": '{"a":{"b":1}}'}, 80)[2] == [('    "b": 1', "")]
    assert data_lines({"data": "x" * 50}, 40) == [[("x" * 40, "")], [("x" * 10, "")]]
    assert data_lines({"data": None, "bytes": 7}, 40) == [[("7 bytes, binary or secret", "dim")]]
    assert data_lines({}, 40) == [[("No data seen", "dim")]]
