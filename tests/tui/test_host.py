"""Screens in the program: switching, numbers, filters and what is around them."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.numbers import ProcessNumbers, StoreNumbers
from kafkascope.tui.data.store import Store
from kafkascope.tui.screens.activity import Activity
from kafkascope.tui.settings.config import Config, remember
from kafkascope.tui.views.dialogs import HelpScreen, Picker
from tests.kit.samples import SAMPLES
from tests.matrix import each_nth
from tests.tui.pilots import ReadScene, found, run, text_of

DEMO = SAMPLES / "libraries.pcap"


async def test_digits_choose_screens_and_q_goes_back(app, pilot) -> None:
    await pilot.do("3")
    screen = text_of(app)
    assert "[3 Clients]" in screen
    assert "librdkafka-reader" in screen
    assert "Esc back" in screen
    await pilot.do("6", "4")
    assert "java-4.4.0.snappy" in text_of(app)
    await pilot.do("0")
    screen = text_of(app)
    assert "[0 Map]" in screen
    assert "librdkafka.group" in screen
    await pilot.press("q")  # once: tabs that were switched through are no views to go back to
    await pilot.pause()
    assert app.host.number == 1
    assert app.list.has_focus
    assert "CreateTopics v7" in text_of(app)
    await pilot.press("4")
    assert app.host.number == 4
    assert not app.list.has_focus
    await pilot.press("1")
    assert app.host.number == 1
    assert app.list.has_focus
    await pilot.press("q")  # at the root
    assert not app.is_running


async def test_enter_sets_the_filter_and_the_filter_stays_between_screens(
    app, pilot, store
) -> None:
    await pilot.do("5")
    await pilot.do("enter")
    assert app.host.board.below  # in the timeline
    await pilot.do("enter")
    assert app.host.number == 1
    assert app.workspace.view.text.startswith('group == "librdkafka.group.group" and time')
    shown = len(app.workspace.view)
    assert 0 < shown < len(store)
    await pilot.do("2", "L")
    limited = len(app.host.board.sheet.lines)
    await pilot.do("L")
    assert 0 < limited < len(app.host.board.sheet.lines)
    assert len(app.workspace.view) == shown


async def test_a_new_filter_changes_what_follows_it(app, pilot) -> None:
    await pilot.do("6", "L")
    await pilot.do("slash", *"api == Fetch", "enter")
    assert [line["api"] for line in app.host.board.sheet.lines] == ["Fetch"]
    assert app.host.board.table.has_focus


async def test_a_line_of_a_ladder_opens_its_exchange(app, pilot, store) -> None:
    await pilot.do("2")
    await pilot.do("tab", "down", "enter")
    assert app.host.number == 1
    assert store.session.columns["connection"][app.list.index] == 0


@pytest.mark.parametrize("size", each_nth([(80, 24), (160, 50), (3, 2), (20, 5)], 2))
async def test_all_screens_in_all_sizes(app, pilot, size) -> None:
    for key in "2345678":
        await pilot.do(key)
    await pilot.press("tab", "backslash", "plus", "equals_sign", "tab", "t")
    await pilot.resize_terminal(120, 40)
    assert app.host.board.spec.number == 8


async def test_help_of_a_screen_can_be_searched(app, pilot) -> None:
    await pilot.do("2", "question_mark")
    assert isinstance(app.screen, HelpScreen)
    assert "Group by client, or by connection" in text_of(app)
    await pilot.do(*"the filter box")
    screen = text_of(app)
    assert "Put the filter of the line into the filter box" in screen
    assert "Group by client, or by connection" not in screen
    await pilot.press("escape", "f1")
    assert "unanswered requests" in text_of(app)
    await pilot.do("q", "1", "f1")
    assert "The list of exchanges" in text_of(app)
    await pilot.do("q", "slash", "f1")
    assert "The filter" in text_of(app)


@pytest.mark.parametrize("size", each_nth([(80, 24), (120, 30), (50, 20), (30, 10)], 4), ids=str)
async def test_help_breaks_lines_where_its_box_ends(app, pilot, size) -> None:
    for number in "123456789":
        await pilot.press(number, "question_mark")
        await pilot.pause(0.05)
        shown = app.screen.query_one("#help-keys")
        text = shown.content.plain.splitlines()
        assert len(text) > 5
        assert max(map(len, text)) <= shown.region.width
        assert shown.region.height == len(text)  # none went on in a line of its own
        await pilot.press("escape")


async def until(pilot: Any, there: Callable[[], bool]) -> None:
    """Until something is so, or for a minute."""
    for _ in range(3000):
        if there():
            return
        await pilot.pause(0.02)


async def test_the_palette_knows_actions_and_numbers(app, pilot, store) -> None:
    await pilot.press("colon", *"clients: libraries")
    await found(app, pilot, "libraries")
    await pilot.press("enter")
    await until(pilot, lambda: app.host.number == 3)
    assert app.host.number == 3
    await pilot.press("ctrl+p", *"100")
    await found(app, pilot, "100")
    await pilot.press("enter")
    await until(pilot, lambda: app.host.number == 1)
    assert app.host.number == 1
    await until(pilot, lambda: store.session.columns["number"][app.list.index] == 100)
    assert store.session.columns["number"][app.list.index] == 100


def test_another_file_and_the_same_again(store: Store, home: Path) -> None:
    remember([str(DEMO)])

    async def open_(app, pilot):
        await pilot.do("ctrl+o")
        assert isinstance(app.screen, Picker)
        await pilot.do(*"/none/such", "enter")
        assert app.inputs.wanted is None
        await pilot.do("ctrl+o", "enter")
        assert app.inputs.wanted is None
        await pilot.press("ctrl+o", *"libraries", "down", "enter")

    assert run(store, open_).inputs.wanted == str(DEMO)

    async def again(app, pilot):
        await pilot.press("ctrl+r")

    assert run(store, again).inputs.wanted == ""

    async def asked(app, pilot):
        await pilot.press("d", *"9094", "enter")

    app = run(store, asked)
    assert (app.inputs.wanted, app.inputs.ports) == ("", frozenset({9094}))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the program told."""
    found: list[str] = []
    monkeypatch.setattr(ScopeApp, "notify", lambda self, text, **rest: found.append(text))
    return found


async def test_what_would_be_lost_is_not_read_again(said, app, pilot) -> None:
    app.inputs.once = "what comes through a pipe cannot be read again"
    await pilot.press("ctrl+r", "d")
    assert said == [app.inputs.once] * 2
    app.inputs.once = ""
    app.host.proxy = SimpleNamespace(version=0)
    await pilot.press("ctrl+r", "ctrl+o")
    app.inputs.reopen(str(DEMO))
    app.host.proxy = None
    assert said[2:] == ["A proxy has no other input. Press Q to quit."] * 3
    assert app.inputs.wanted is None


CONFIG = Config(theme="kafkascope-light", keys={"list.mark": "ctrl+k", "board.reverse": "s"})
CONFIG.said.append("no action has the id x")


@pytest.mark.shown(config=CONFIG)
async def test_keys_and_theme_of_the_settings(said, app, pilot) -> None:
    assert app.theme == "kafkascope-light"
    await pilot.press("m")
    assert not app.workspace.notes.marked
    await pilot.press("ctrl+k")
    assert app.workspace.notes.marked
    await pilot.do("2")
    app.host.board.upper.sort_by("requests")
    await pilot.press("s")
    assert not app.host.board.sheet.down
    assert said[0] == CONFIG.said[0]
    assert said[1:] == ["Marks and comments are not saved: the input is not a file."]
    app.theme = "kafkascope"
    await pilot.pause()


# --- numbers ------------------------------------------------------------------------------------


def waited(numbers: Any) -> Any:
    end = time.monotonic() + 60
    while not numbers.done and time.monotonic() < end:
        numbers.advance()
        time.sleep(0.01)
    return numbers


def test_a_process_counts_what_the_command_prints() -> None:
    with closing(waited(ProcessNumbers([str(DEMO)]))) as numbers:
        assert numbers.version > 0
        lines = numbers.get("connections").rows()
        assert lines == ReadScene(DEMO).statistics["connections"].rows()
        assert all(line["end"] for line in lines)  # beginnings and ends were seen
        assert all(numbers.get(name) is not None for name in accumulators())


def test_a_process_counts_what_a_filter_wants() -> None:
    with closing(waited(ProcessNumbers([str(DEMO)], filter_text="api == Fetch"))) as numbers:
        assert [line["api"] for line in numbers.get("latency").rows()] == ["Fetch"]


def test_what_cannot_be_read_twice_is_counted_from_the_store(store: Store) -> None:
    numbers = waited(StoreNumbers(store))
    counted = Connections().load(numbers.get("connections").dump())
    assert sum(line["requests"] for line in counted.rows()) == len(
        [size for size in store.session.columns["request_bytes"] if size >= 0]
    )
    assert waited(StoreNumbers(store, "api == Fetch")).get("latency").rows()[0]["api"] == "Fetch"


def test_rows_that_go_while_they_are_counted_are_no_problem() -> None:
    capture = open_capture([DEMO])
    live = Store(capture.source.read, capture.context)
    numbers, activity = StoreNumbers(live), Activity(live, "api == Metadata")
    for exchange in capture.exchanges():
        live.add(exchange)
        if len(live) == 200:
            numbers.advance()
            activity.advance(1.0)
            seen = len(activity.times)
            live.session.drop(150)
            live.texts.drop(150)
    live.progress.done = True
    waited(numbers)
    while activity.advance(1.0):
        pass
    assert 0 < len(activity.times) < seen + 60
    assert sum(line["requests"] for line in numbers.get("apis").rows()) <= 336
