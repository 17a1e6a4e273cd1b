"""Tables of text: cells stand in their columns, whatever their characters take."""

import csv
import io
from itertools import accumulate
from pathlib import Path

import pytest

from kafkascope.analyzer.commands.tables import TableFormat, print_table
from kafkascope.analyzer.export import ExportOptions, open_writer
from kafkascope.analyzer.render.cells import csv_line
from kafkascope.analyzer.render.layout import GAP, laid_out, widths_of
from kafkascope.analyzer.render.listing import line
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.journeys.drawing import (
    Graph,
    GraphEdge,
    GraphNode,
    dot,
    mermaid,
)
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.table import cell, fitted
from kafkascope.analyzer.text import columns_taken
from kafkascope.analyzer.topics import TopicNames, short_id
from tests.hostile import EVIL, hostile
from tests.kit.run import run
from tests.kit.samples import SAMPLES

WIDE = ("orders", "注文", "заказы", "e\u0301te\u0301", "🚚 fleet", "주문-サービス")
"""ASCII, two columns a character, one, a letter with a combining accent, an emoji, mixed."""


def place_of(text: str, word: str) -> int:
    """The column of the terminal in which a word begins."""
    return columns_taken(text[: text.index(word)])


def test_widths_are_columns_of_a_terminal() -> None:
    assert [widths_of([[word]]) for word in WIDE] == [[6], [4], [6], [3], [8], [13]]


def test_a_table_is_cut_to_the_terminal_and_no_character_in_half() -> None:
    columns = [Column("word"), Column("more")]
    for text, _ in fitted([(word, "x" * 20) for word in WIDE], columns, 9):
        assert columns_taken(text) <= 9


@pytest.mark.parametrize("whole", [False, True], ids=["cut", "pushing"])
def test_a_cell_beyond_its_column_is_cut_or_pushes(whole: bool) -> None:
    text = laid_out(("주문-サービス", "end"), (6, 0 if whole else 3), whole=whole)
    assert place_of(text, "end") == (13 if whole else 6) + len(GAP)


def test_numbers_stand_at_the_right() -> None:
    rows = [("注文", "7"), ("orders", "12345")]
    widths = widths_of(rows)
    for row in rows:
        text = laid_out(row, widths, (False, True))
        assert columns_taken(text) == sum(widths) + len(GAP)


def test_statistics_have_their_columns_below_each_other() -> None:
    columns = [Column("topic"), Column("count", "count"), Column("text")]
    lines = [{"topic": word, "count": 5, "text": "end"} for word in WIDE]
    cells = [[cell(column, each, Times()) for column in columns] for each in lines]
    head, *rows = [text for text, _ in fitted(cells, columns, 80)]
    assert {place_of(text, "end") for text in rows} == {place_of(head, "Text")}


def test_rows_that_are_printed_one_by_one_have_their_columns_below_each_other() -> None:
    class Shape:
        def __init__(self, name: str, width: int, right: bool) -> None:
            self.name, self.width, self.right = name, width, right

    shapes = [Shape("topic", 10, False), Shape("count", 4, True), Shape("text", 0, False)]
    begins = list(accumulate([10 + len(GAP), 4 + len(GAP)]))
    for word in WIDE:
        text = line(shapes, (word, "5", "end"), 40)
        assert place_of(text, "end") == begins[-1]


def test_a_table_of_a_command_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("what", "found"), [(word, "end") for word in WIDE], TableFormat("table", 40))
    head, *rows = capsys.readouterr().out.splitlines()
    assert {place_of(text, "end") for text in rows} == {place_of(head, "Found")}


# --- CSV of hostile traffic -----------------------------------------------------------------------


SIGNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def cells(*values: object, raw: bool = False) -> list[str]:
    (found,) = csv.reader(io.StringIO(csv_line(values, raw=raw)))
    return found


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", " =", "\u3000="])
def test_text_that_begins_as_a_formula_is_text(sign: str) -> None:
    (cell,) = cells(f"{sign}HYPERLINK(1)")
    assert cell[0] == "'"
    assert cells(f"{sign}x", raw=True)[0][0] != "'"


def test_numbers_stay_numbers() -> None:
    given = ["-1", "+2", "-0.5", "-1.5e-7", -3, -0.25, "7", ".5"]
    assert cells(*given) == [str(each) for each in given]


def test_expressions_are_no_numbers() -> None:
    assert cells("-1+1", "+1|x", "-", "-1e", "-٣") == ["'-1+1", "'+1|x", "'-", "'-1e", "'-٣"]


def test_what_does_not_print_is_an_escape_on_one_line() -> None:
    line = csv_line(["a\nb\tc\\d\x9b\u202e", "日本 é"])
    assert line == r"a\nb\tc\\d\x9b\u202e,日本 é" + "\n"
    assert cells("\t=1", "\r=1") == [r"\t=1", r"\r=1"]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every name and value of a real capture as a formula."""
    target = tmp_path_factory.mktemp("formulas") / "formulas.pcapng"
    return str(hostile(SAMPLES / "transactions.pcap", target, "|' /C calc'!A0", "=cmd-"))


@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("ls", "--columns", "client,topic,group,number"),
        ("records",),
        ("stats", "topics"),
        ("groups",),
        ("clients",),
        ("producers",),
        ("export", "-o", "-"),
        ("export", "-o", "-", "--table", "records"),
    ],
    ids=" ".join,
)
def test_no_command_writes_formulas(capture: str, words: tuple[str, ...]) -> None:
    name = 2 if words[0] == "stats" else 1
    words = (*words[:name], capture, *words[name:], "--format", "csv")
    for raw in (False, True):
        done = run(*[*words, "--raw"] if raw else words)
        assert done.exit_code == 0, done.output
        rows = list(csv.reader(io.StringIO(done.stdout)))
        found = [cell for row in rows for cell in row if cell.startswith(SIGNS)]
        formulas = [cell for cell in found if not cell.lstrip("-").replace(".", "").isdigit()]
        assert bool(formulas) == raw, formulas[:3]
        assert any("'=cmd-" in cell for row in rows for cell in row) != raw
        if not raw and "export" in words and len(words) == 6:
            assert "-1" in found  # producer ids and epochs


def test_a_topic_that_gets_its_name_late_is_no_formula(tmp_path: Path) -> None:
    topic_id = b"\xfb" * 16
    names = TopicNames()
    assert short_id(topic_id).startswith("-")
    for raw in (False, True):
        with (tmp_path / "x.csv").open("w+b") as file:
            writer = open_writer("csv", file, names, ExportOptions("records", raw=raw))
            cell = writer._cell_renamed(f"'{short_id(topic_id)}", {short_id(topic_id): "=1+1"})  # type: ignore[attr-defined]
        assert cell == ("=1+1" if raw else "'=1+1")


# --- graphs for Mermaid and Graphviz --------------------------------------------------------------


EVIL_NAME = '"] --> x["`a` <b>&amp;#quot; \\N end'


def graph(name: str) -> Graph:
    return Graph(
        [GraphNode("a0", "application", (name, "2 members")), GraphNode("t0", "topic", (name,))],
        [GraphEdge("a0", "t0", f"{name} 3", 12)],
        1,
    )


def test_mermaid_is_a_flowchart() -> None:
    assert mermaid(graph("orders-svc")) == (
        "flowchart LR\n"
        '    a0["orders-svc<br>2 members"]\n'
        '    t0[("orders-svc")]\n'
        '    a0 -->|"orders-svc 3"| t0\n'
        "    %% 1 more topics are left out\n"
    )


def test_dot_is_a_digraph() -> None:
    lines = dot(graph("orders-svc")).splitlines()
    assert lines[0] == "digraph kafka {"
    assert lines[-1] == "}"
    assert r'    a0 [shape=box, label="orders-svc\n2 members"];' in lines
    assert '    a0 -> t0 [label="orders-svc 3"];' in lines


def test_hostile_names_are_text() -> None:
    for name in (EVIL_NAME, EVIL):
        for each in mermaid(graph(name)).splitlines():
            label = each.partition('"')[2].rpartition('"')[0]
            assert not set(label.replace("<br>", "")) & set('"<>`[]{}|\\\x1b')
        assert len(mermaid(graph(name)).splitlines()) == 5
        assert len(dot(graph(name)).splitlines()) == 9
        assert "\x1b" not in dot(graph(name))
    assert r'label="\"] --> x[\"`a` <b>&amp;amp;#quot; \\N end"' in dot(graph(EVIL_NAME))
