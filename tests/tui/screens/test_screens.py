"""Screens 2 to 9 as text, wide and narrow, and what their keys do."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.strip import Strip

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.causes import Cause
from kafkascope.analyzer.findings.model import Finding
from kafkascope.analyzer.findings.view import DetectorInput
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.topics import TopicNames
from kafkascope.tui.boards import board_of
from kafkascope.tui.screens import (
    SCREENS,
    clients,
    connections,
    findings,
    groups,
    latency,
    live,
    topics,
)
from kafkascope.tui.screens import map as map_screen
from kafkascope.tui.screens.board import Board, BoardSpec
from tests.kit.samples import SAMPLES
from tests.matrix import each_nth
from tests.small_tables import FEW, small_tables  # noqa: F401  (a fixture)
from tests.tui.pilots import ReadScene, compare, perform, speaks_in_any_size, text_of

BOARDS: list[BoardSpec] = [
    connections.BOARD,
    clients.BOARD,
    topics.BOARD,
    groups.BOARD,
    latency.BOARD,
    findings.BOARD,
    live.BOARD,
    map_screen.BOARD,
]


class SomeFindings:
    """What `check` finds changes more often than how it is shown."""

    def __init__(self, statistics: dict[str, Any]) -> None:
        self._real = Findings(beside=statistics)

    def view(self, names: TopicNames | None = None) -> DetectorInput:
        """Of the real numbers: what became of clients."""
        return self._real.view(names)

    def reported(self, names: object = None) -> list[Finding]:
        return []

    def causes(self, names: object = None) -> list[Cause]:
        text = "broker 2 told clients 10.0.9.9:9092, which nobody reached"
        address = some("error", "wrong-address", 3, text)
        followed = [
            some("warning", "storm", 1_204, "orders-svc asked broker 2 again and again"),
            some("note", "rejoined", 2, "group billing lost a member", "group billing lost one"),
        ]
        return [
            Cause(address, tuple(replace(each, because=(address.id,)) for each in followed)),
            Cause(some("note", "old", 1, "legacy-job sends no ApiVersions")),
            *(Cause(some("chat", name, 5, f"{name} happens")) for name in ("polls", "probe")),
        ]


def some(severity: Severity, name: str, count: int, text: str, brief: str = "") -> Finding:
    times = 1_700_000_000_000_000_000, 1_700_000_001_500_000_000
    filter_ = "" if name == "old" else f"api == Metadata and number < {count}"
    advice = "Set advertised.listeners to what clients can reach. " * 3
    brief = brief or "{n} lookup|{n} lookups"
    told = (severity, text, count, *times, filter_, advice)
    return Finding(name, *told, number=14, key=name, brief=brief)


@pytest.fixture(scope="module")
def demo() -> ReadScene:
    scene = ReadScene(SAMPLES / "libraries.pcap")
    scene.statistics["findings"] = SomeFindings(scene.statistics)
    return scene


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.title)
@pytest.mark.parametrize("size", [(160, 50), (80, 24)], ids=["160x50", "80x24"])
async def test_screens_look_as_they_did(app, pilot, board, size) -> None:
    compare(f"{board.title.lower()}-{size[0]}x{size[1]}", text_of(app))


@pytest.mark.shown(findings.BOARD)
async def test_what_is_still_counted_is_not_called_fine(app, pilot, scene) -> None:
    scene.statistics = {**scene.statistics, "findings": SimpleNamespace(causes=lambda names: [])}
    scene.counting = True
    app.board.refresh_numbers()
    await pilot.pause()
    assert findings.BOARD.empty not in text_of(app)
    assert findings.BOARD.early in text_of(app)
    scene.counting = False
    app.board.refresh_numbers()
    await pilot.pause()
    assert findings.BOARD.empty in text_of(app)


@pytest.mark.parametrize("board", each_nth(BOARDS, 3), ids=lambda board: board.title)
@pytest.mark.shown(plain=True)
async def test_each_tab_says_something_in_any_size_and_in_ascii(app, pilot, board) -> None:
    await speaks_in_any_size(app, pilot)


@pytest.mark.shown(connections.BOARD)
async def test_enter_shows_the_exchanges_behind_a_line(app, pilot, scene) -> None:
    await pilot.press("down", "enter")
    app.board.enter_pane()
    await pilot.pause()
    await pilot.press("down", "enter")
    assert scene.shown == ["conn == 1"]
    assert len(scene.exchanges) == 1


@pytest.mark.shown(connections.BOARD)
async def test_a_table_that_follows_the_filter_keeps_it(app, pilot, scene) -> None:
    scene.filter = "error != 0 or lost"
    await pilot.press("L")
    assert "connections" in scene.limited
    await pilot.press("enter", "L", "enter", "a")
    assert scene.shown == ["(error != 0 or lost) and conn == 0", "conn == 0"]
    assert scene.prepared == ["conn == 0"]


@pytest.mark.shown(connections.BOARD)
async def test_following_without_a_filter_is_explained(app, pilot, scene) -> None:
    await pilot.press("L")
    assert "No filter is set" in scene.told[0]


@pytest.mark.shown(connections.BOARD)
async def test_order_by_key_by_title_and_back(app, pilot) -> None:
    await pilot.do("o", *"unans", "enter")
    assert app.board.sheet.sort.name == "unanswered"
    heading = app.board.upper.heading
    x = app.board.sheet.heading(app.board.table.room).index("Life")
    await pilot.click(heading, offset=(x + 1, 0))
    assert app.board.sheet.sort.name == "life"
    lives = [line["life"] for line in app.board.sheet.lines]
    assert lives == sorted(lives, reverse=True)
    await pilot.press("v")
    assert [line["life"] for line in app.board.sheet.lines] == sorted(lives)
    await pilot.do("o", *"default", "enter")
    assert app.board.sheet.sort is None


@pytest.mark.shown(connections.BOARD)
async def test_the_cursor_stays_on_its_line_when_numbers_change(app, pilot) -> None:
    await pilot.press("down", "down")
    here = app.board.line["connection"]
    app.board.upper.refilled(lambda: app.board.sheet.sort_by("life"))
    assert app.board.line["connection"] == here
    app.board.refresh_numbers()
    assert app.board.line["connection"] == here


@pytest.mark.shown(connections.BOARD, of="demo.pcap.zst")
async def test_connects_that_failed_are_dots_over_time(app, pilot) -> None:
    """Node 3 refuses who comes while it is down; the address of reports-ui answers nobody."""
    board = app.board
    refused = {line["broker_address"]: line["connection"] for line in board.sheet.lines[::-1]}
    connections.select(board, refused["10.0.1.3:9092"])
    await pilot.do("R", "R")
    compare("connections-refused", text_of(app))
    assert "● 9 connects to 10.0.1.3:9092 refused" in text_of(app)
    assert "○" not in text_of(app)
    await pilot.do("B")
    clients = [line["client_id"] or line["client_address"] for line in board.sheet.lines]
    for client, dots in (("reports-ui", 4), ("10.0.2.27", 4), ("orders-svc", 0)):
        board.table.move_to(clients.index(client))
        await pilot.pause(0.1)
        await pilot.settle()
        told = f"○ {dots} connects of {client} not answered"
        assert (told in text_of(app)) == bool(dots), client
        assert ("failed │" in text_of(app)) == bool(dots), client


@pytest.mark.shown(connections.BOARD)
async def test_a_double_click_opens_and_a_click_on_a_tab_chooses_it(app, pilot, scene) -> None:
    await pilot.click(app.board.table, offset=(3, 2))
    assert app.board.table.cursor == 2
    await pilot.click(app.board.table, offset=(3, 2), times=2)
    await pilot.click(app.board.titles, offset=(13, 0))
    await pilot.pause()
    assert app.board.tab == "Network"
    assert scene.shown == ["conn == 2"]


@pytest.mark.shown(connections.BOARD)
async def test_lines_and_commands_are_copied(app, pilot) -> None:
    await pilot.press("y")
    assert app.clipboard.startswith("0  127.0.0.1:38722")
    await pilot.press("B", "Y")
    assert app.clipboard == "kafkascope connections libraries.pcap --by client"


@pytest.mark.shown(groups.BOARD)
async def test_a_command_names_its_group_whatever_that_is_called(app, pilot, monkeypatch) -> None:
    monkeypatch.setattr(groups.GroupsBoard, "line", {"group": "it's {0}"})
    copied = "kafkascope groups libraries.pcap --group 'it'\"'\"'s {0}' --timeline"
    app.board.action_copy_command()
    assert app.clipboard == copied
    assert app.board.help([], []).command == copied


@pytest.mark.shown(clients.BOARD, of="java-old.pcap")
async def test_clients_are_judged_for_the_release_that_is_chosen(app, pilot) -> None:
    assert "breaks" in text_of(app)
    await pilot.do("K", *"3.9.1", "enter")
    assert app.board.settings["release"] == "3.9.1"
    assert {line["verdict"] for line in app.board.sheet.lines} == {"ok"}
    await pilot.do("K", *"nonsense", "enter")
    assert app.board.settings["release"] == "3.9.1"


@pytest.mark.shown(groups.BOARD)
async def test_the_timeline_points_at_the_rebalance_under_the_cursor(app, pilot, scene) -> None:
    assert "▼" not in text_of(app)
    app.board.enter_pane()
    await pilot.settle()
    first = next(line for line in text_of(app).splitlines() if "▼" in line)
    await pilot.do("down")
    second = next(line for line in text_of(app).splitlines() if "▼" in line)
    assert first.index("▼") < second.index("▼")
    before = text_of(app)
    await pilot.do("z")
    assert text_of(app) != before
    await pilot.press("enter")
    assert scene.shown[0].startswith('group == "librdkafka.group.group" and time >= 20')


@pytest.mark.shown(latency.BOARD)
async def test_waits_can_be_put_back(app, pilot) -> None:
    assert app.board.sheet.lines[0]["api"] != "Fetch"
    await pilot.do("W")
    assert "latency with waits" in text_of(app)
    worst = max(app.board.sheet.lines, key=lambda line: line["p95"] or 0)
    assert app.board.sheet.lines[0]["p95"] == worst["p95"]
    await pilot.press("B")
    assert "client_id" in app.board.sheet.lines[0]


@pytest.mark.parametrize("board", [groups.BOARD, findings.BOARD, clients.BOARD, latency.BOARD])
async def test_without_colour_nothing_is_lost(no_color, app, pilot, board) -> None:
    compare(f"{board.title.lower()}-160x50", text_of(app))
    ground = app.screen.background_colors[1]
    colours = {
        segment.style.color.triplet
        for strip in app.screen._compositor.render_strips()
        for each in app._filters
        for segment in Strip(strip).apply_filter(each, ground)
        if segment.style and segment.style.color and segment.style.color.triplet
    }
    assert colours
    assert all(colour.red == colour.green == colour.blue for colour in colours)


def sentences(board: Board) -> list[str]:
    return [str(line["text"]) for line in board.sheet.lines]


@pytest.mark.shown(findings.BOARD)
async def test_what_followed_is_folded_into_its_cause(app, pilot, scene) -> None:
    board = app.board
    closed = [line["name"] for line in board.sheet.lines]
    assert closed == ["wrong-address", "old", "chat"]
    assert "! error   ▸" in text_of(app)
    assert board.sheet.lines[0]["consequences"] == 2
    assert "2 consequences" in board.spec.remark(board)
    assert "Consequences" in text_of(app)
    assert "1,204 lookups, group billing lost one" in text_of(app)
    await pilot.do("enter")
    assert scene.shown == [], "the first Enter opens"
    opened = [line["name"] for line in board.sheet.lines]
    assert opened == ["wrong-address", "storm", "rejoined", "old", "chat"]
    assert "└ orders-svc asked broker 2 again and again" in text_of(app)
    assert "! error   ▾" in text_of(app)
    await pilot.do("down")
    assert "Cause" in text_of(app)
    assert text_of(app).count("which nobody reached") == 2, "its cause is told below"
    await pilot.press("enter")
    assert scene.shown == ["api == Metadata and number < 1204"]
    board.upper.sort_by("count")
    names = [line["name"] for line in board.sheet.lines]
    assert names == ["wrong-address", "storm", "rejoined", "chat", "old"], names
    board.action_reverse()
    names = [line["name"] for line in board.sheet.lines]
    assert names == ["old", "chat", "wrong-address", "storm", "rejoined"], names
    board.upper.refilled(board.sheet.unsort)
    await pilot.press("left")
    assert board.table.line["name"] == "wrong-address", "left goes to the cause"
    await pilot.press("left")
    assert [line["name"] for line in board.sheet.lines] == closed
    await pilot.press("right")
    assert [line["name"] for line in board.sheet.lines] == opened
    await pilot.press("enter")
    assert scene.shown[1:] == ["api == Metadata and number < 3"], "Enter again: the evidence"
    await pilot.press("space")
    assert [line["name"] for line in board.sheet.lines] == closed


@pytest.mark.shown(findings.BOARD)
async def test_severities_are_ordered_by_how_bad_they_are(app, pilot) -> None:
    board = app.board
    usual = [line["name"] for line in board.sheet.lines]
    await pilot.do("o", *"sever", "enter")
    assert board.sheet.sort.title == "Severity"
    assert [line["name"] for line in board.sheet.lines] == usual == [*usual[:2], "chat"]
    await pilot.press("v")
    assert [line["name"] for line in board.sheet.lines] == usual[::-1]


@pytest.mark.shown(findings.BOARD)
async def test_what_is_normal_is_one_line_at_the_end(app, pilot, scene) -> None:
    board = app.board
    assert sentences(board)[-1] == "normal, often mistaken for problems: polls, probe"
    await pilot.press("end", "enter")
    assert sentences(board)[-2:] == ["polls happens", "probe happens"]
    await pilot.press("down", "enter")
    assert scene.shown == ["api == Metadata and number < 5"]
    await pilot.press("space")
    assert sentences(board)[-1].startswith("normal")
    await pilot.press("Z")
    assert len(board.sheet.lines) == 7
    board.refresh_numbers()
    assert len(board.sheet.lines) == 7, "new numbers leave open what is open"
    await pilot.press("z")
    assert len(board.sheet.lines) == 3


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("path", each_nth(FEW, 2), ids=lambda path: path.name)
def test_screens_show_what_small_tables_kept(path: Path) -> None:
    scene = ReadScene(path)

    async def steps(app, pilot):
        board = app.board
        for tab in board.tabs:
            board.tab = tab
            for line in {0, max(0, board.table.count() - 1)}:  # the last one may be the others
                board.table.move_to(line)
                board.refill_lower()
                await pilot.pause()
                board.action_open_line()
                board.enter_pane()
                await pilot.pause()
                board.action_open_line()
                board.enter_pane()

    for number in SCREENS:
        perform(board_of(number), scene.fresh(), steps)


@pytest.mark.shown(map_screen.BOARD, of="demo.pcap.zst")
async def test_enter_shows_the_exchanges_behind_an_edge_of_the_map(app, pilot, scene) -> None:
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


@pytest.mark.shown(map_screen.BOARD, of="demo.pcap.zst")
async def test_the_map_groups_by_other_names(app, pilot) -> None:
    await pilot.do("B")
    assert "billing-2" in text_of(app).split("Application]")[0]
    assert app.board.command() == "kafkascope map libraries.pcap --by client_id"
