"""What controllers decide, without a terminal."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.actions import parse

from kafkascope.tui.app import ScopeApp
from kafkascope.tui.controllers import table
from kafkascope.tui.controllers.controller import Controller
from kafkascope.tui.controllers.inputs import InputsController
from kafkascope.tui.controllers.marks import MarksController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.search import SearchController
from kafkascope.tui.controllers.sharing import SharingController
from kafkascope.tui.controllers.values import ValuesController
from kafkascope.tui.data.store import Store
from tests.tui.controllers.desk import desk
from tests.tui.pilots import StillFeed


def test_every_key_has_a_method_of_its_controller(store: Store) -> None:
    app = ScopeApp(StillFeed(store), "libraries.pcap")
    for key in table.KEYS:
        if not key.action.startswith("app."):
            name, method, _ = parse(key.action)
            assert isinstance(getattr(app, name), Controller)
            assert callable(getattr(getattr(app, name), method))


# --- marks --------------------------------------------------------------------------------------


def test_marks_are_put_taken_back_and_filtered_by(store: Store) -> None:
    context, shell = desk(store)
    marks = MarksController(context)
    marks.only_marked()
    assert shell.told == ["No marks. m marks an exchange."]
    marks.mark()
    assert context.workspace.notes.marked == {context.list.number}
    marks.only_marked()
    context.workspace.view = context.workspace.filtered("api == Fetch and marked")
    marks.only_marked()
    assert shell.filters == ["marked", "api == Fetch"]
    context.workspace.view = context.workspace.filtered("")
    marks.mark()
    assert not context.workspace.notes.marked


def test_a_comment_is_asked_for_with_what_was_said(store: Store) -> None:
    context, shell = desk(store)
    marks = MarksController(context)
    marks.comment()
    shell.answer("slow")
    marks.comment()
    assert (shell.question[0], shell.question[2]) == (f"Comment on {context.list.number}", "slow")
    shell.answer("")
    assert not context.workspace.notes.comments


# --- moving -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,206,000", "No exchange 1,206,000."),
        ("{first}", "Exchange {first} is not shown: the filter excludes it."),
        ("{ignored}", "Exchange {ignored} is not shown: it is ignored; I shows ignored exchanges."),
        ("yesterday", '"yesterday": '),
        ("999s", "No exchange at that time or later."),
    ],
)
def test_where_nobody_can_go_is_explained(store: Store, text: str, said: str) -> None:
    context, shell = desk(store)
    numbers = store.session.columns["number"]
    names = {"first": numbers[0], "ignored": numbers[2]}
    context.workspace.notes.ignore(numbers[2], store.session)
    context.workspace.view = context.workspace.filtered(f"number > {numbers[1]}")
    while context.workspace.view.behind:
        context.workspace.view.advance(1)
    SearchController(context).goto(text.format(**names))
    assert shell.told[0].startswith(said.format(**names))
    assert context.list.cursor == 0


def test_a_number_or_a_time_moves_the_cursor(store: Store) -> None:
    context, shell = desk(store)
    search, columns = SearchController(context), store.session.columns
    search.goto(str(columns["number"][context.workspace.view[7]]))
    assert (context.list.cursor, shell.told) == (7, [])
    search.goto("1s")
    assert columns["time_ns"][context.list.index] >= columns["time_ns"][0] + 1_000_000_000


def test_a_search_goes_on_in_messages_and_finds_the_row(store: Store) -> None:
    context, shell = desk(store)
    search = SearchController(context)
    search.find()
    search.find()
    assert search.scope == "fields and records"
    shell.answer("no such text anywhere")
    assert context.workspace.activity == 'searching "no such text anywhere"'
    shell.until(lambda: bool(shell.told))
    assert context.workspace.activity == ""
    assert 'No more "no such text anywhere" in fields and records' in shell.told[0]


def test_a_search_that_was_stopped_says_nothing_more(store: Store) -> None:
    context, shell = desk(store)
    search = SearchController(context)
    search.wanted, search.scope = "no such text anywhere", "bytes"
    search.find_next(1)
    search.stop()
    search.find_next(1)
    shell.until(lambda: bool(shell.told))
    assert len(shell.told) == 1


# --- order --------------------------------------------------------------------------------------


def test_following_begins_at_the_end_of_what_grows(store: Store) -> None:
    context, _ = desk(store)
    order = OrderController(context)
    context.list.move_to(len(store))
    order.follow_cursor()
    assert not order.following, "nothing more comes"
    progress = store.progress
    progress.done, progress.following = False, True
    try:
        order.follow_cursor()
        assert order.following
        context.list.move_to(0)
        order.follow_cursor()
        assert not order.following
    finally:
        progress.done, progress.following = True, False


# --- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "wanted"), [("is", "{}"), ("and", "(acks == 1) and {}")])
def test_a_value_becomes_a_filter(store: Store, way: str, wanted: str) -> None:
    context, shell = desk(store, filter_text="acks == 1" if way == "and" else "")
    while context.workspace.view.behind:
        context.workspace.view.advance(1)
    values = ValuesController(context)
    context.list.cursor = 0
    values.filter()
    condition = shell.choices[0][0]
    shell.choose(condition)
    shell.choose(way)
    assert [text.replace("(", "").replace(")", "") for text in shell.filters] == [
        wanted.format(condition).replace("(", "").replace(")", "")
    ]
    values.filter()
    shell.choose(condition)
    shell.choose("prepare")
    assert len(shell.prepared) == 1


def test_columns_come_and_go(store: Store) -> None:
    context, shell = desk(store)
    values = ValuesController(context)
    values.column()
    shell.choose("topic")
    assert context.list.extra == ["topic"]
    values.column()
    assert shell.choices[0] == ("topic", "- topic")
    shell.choose("topic")
    assert context.list.extra == []
    values.add_column("no such field")
    assert context.list.extra == []
    assert len(shell.told) == 1


# --- sharing ------------------------------------------------------------------------------------


def test_what_is_copied_hangs_on_where_keys_go(store: Store) -> None:
    context, shell = desk(store)
    copying = SharingController(context)
    copying.copy()
    pane: Any = context.detail
    pane.has_focus, pane.item = True, SimpleNamespace(text=lambda: "a value")
    copying.copy()
    assert shell.clipboard == [f"row {context.list.number}", "a value"]


def test_an_export_asks_where_runs_and_tells(store: Store, tmp_path: Path) -> None:
    context, shell = desk(store)
    exports = SharingController(context)
    exports.fixture()
    assert (shell.question[0], shell.question[2]) == ("Write 1 exchange to", "libraries-fixtures")
    exports.ask_where("shown", "pcapng")
    shell.answer(str(tmp_path / "out.pcapng"))
    assert context.workspace.activity == "writing out.pcapng"
    exports.ask_where("shown", "pcapng")
    shell.answer(str(tmp_path / "other.pcapng"))
    assert shell.told == ["Another export is running; ctrl+c stops it."]
    shell.until(lambda: not context.workspace.activity)
    assert len(shell.told) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.pcapng"]


# --- other inputs -------------------------------------------------------------------------------


def test_an_input_that_cannot_be_read_again_stays(store: Store) -> None:
    context, shell = desk(store)
    inputs = InputsController(context)
    inputs.once = "a pipe is read once"
    inputs.reopen("")
    inputs.ask_ports()
    assert (inputs.wanted, shell.told, shell.codes) == (None, [inputs.once] * 2, [])
    inputs.reopen("other.pcap")
    assert (inputs.wanted, shell.codes) == ("other.pcap", [0])


def test_ports_are_read_from_what_is_typed(store: Store) -> None:
    context, shell = desk(store)
    inputs = InputsController(context)
    inputs.ask_ports()
    shell.answer("many")
    assert (inputs.wanted, inputs.ports, len(shell.told)) == (None, frozenset(), 1)
    shell.answer("9094, 9100-9101")
    assert (inputs.wanted, inputs.ports) == ("", frozenset({9094, 9100, 9101}))


def test_stopping_takes_what_runs_first(store: Store) -> None:
    context, shell = desk(store)
    inputs = InputsController(context)
    inputs.stop()
    assert shell.told == ["Nothing to stop. Q quits."]
    context.workspace.activity = "writing"
    inputs.stop()
    assert (shell.stopped, len(shell.told)) == (1, 1)
