"""Screen 9: ZooKeeper's tree with its history, sessions, elections."""

from typing import Any

import pytest

from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.screens import groups, zookeeper
from kafkascope.tui.screens.zookeeper import data_lines, tree
from tests.kit.samples import CAPTURES, SAMPLES
from tests.tui.pilots import ReadScene, compare, speaks_in_any_size, text_of


@pytest.fixture(scope="module")
def demo() -> ReadScene:
    return ReadScene(SAMPLES / "zookeeper.pcap")


def select(app: Any, path: str) -> None:
    """Put the cursor on a node."""
    paths = [line["path"] for line in app.board.sheet.lines]
    app.board.table.move_to(paths.index(path))


@pytest.mark.parametrize("size", [(160, 50), (80, 24)], ids=["160x50", "80x24"])
@pytest.mark.shown(zookeeper.BOARD)
async def test_the_tree_looks_as_it_did(app, pilot, size) -> None:
    compare(f"zookeeper-{size[0]}x{size[1]}", text_of(app))


@pytest.mark.shown(zookeeper.BOARD, size=(120, 40))
async def test_tabs_look_as_they_did(app, pilot) -> None:
    select(app, "/tour/persistent")
    for tab in app.board.tabs:
        await pilot.settle()
        compare(f"zookeeper-{tab.lower()}", text_of(app))
        await pilot.press("R")


@pytest.mark.shown(zookeeper.BOARD, plain=True)
async def test_each_tab_says_something_in_any_size_and_in_ascii(app, pilot) -> None:
    await speaks_in_any_size(app, pilot)


@pytest.mark.shown(zookeeper.BOARD)
async def test_enter_shows_what_asked_for_a_node_and_the_exchange_of_a_change(
    app, pilot, scene
) -> None:
    select(app, "/tour/persistent")
    await pilot.settle()
    await pilot.press("enter")
    app.board.enter_pane()
    await pilot.pause()
    await pilot.press("down", "enter")
    assert scene.shown == ['path == "/tour/persistent"', "number == 26"]


@pytest.mark.shown(zookeeper.BOARD, size=(200, 30))
async def test_secrets_of_the_tour_are_not_shown(app, pilot) -> None:
    for path in [line["path"] for line in app.board.sheet.lines]:
        select(app, path)
        app.board.refill_lower()
        await pilot.pause()
        assert "-secret" not in text_of(app)
    for _ in app.board.tabs:
        await pilot.do("R")
        assert "-secret" not in text_of(app)


@pytest.mark.shown(zookeeper.BOARD, of="java-old.pcap")
async def test_a_capture_without_zookeeper_says_so(app, pilot) -> None:
    assert zookeeper.BOARD.empty in text_of(app)
    for _ in app.board.tabs:
        await pilot.press("R")


@pytest.fixture(scope="module")
def two_ensembles() -> ReadScene:
    return ReadScene(CAPTURES / "zookeeper-groups.pcapng.gz")


@pytest.mark.shown(zookeeper.BOARD, of="two_ensembles", size=(200, 60))
async def test_each_ensemble_has_a_tree_of_its_own(app, pilot) -> None:
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
        assert f'broker in {{"127.0.0.1:{port}"}}' in app.board.spec.evidence(app.board, lines[at])


@pytest.mark.shown(groups.BOARD, of="two_ensembles", size=(160, 30))
async def test_groups_of_old_consumers_are_on_the_groups_screen(app, pilot) -> None:
    lines = {line["group"]: line for line in app.board.sheet.lines}
    assert list(lines) == ["shop at 127.0.0.1:21811", "shop at 127.0.0.1:21812"]
    assert app.board.spec.evidence(app.board, lines["shop at 127.0.0.1:21811"]) == (
        'protocol == zookeeper and path contains "/consumers/shop/"'
    )
    await pilot.settle()
    compare("groups-zookeeper-timeline", text_of(app))
    await pilot.do("R")
    compare("groups-zookeeper-members", text_of(app))
    for _ in app.board.tabs:
        await pilot.do("R")


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
