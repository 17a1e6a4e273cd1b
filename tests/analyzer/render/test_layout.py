"""Tables of text: cells stand in their columns, whatever their characters take."""

from itertools import accumulate

import pytest

from kafkascope.analyzer.commands.tables import TableFormat, print_table
from kafkascope.analyzer.render.layout import GAP, laid_out, widths_of
from kafkascope.analyzer.render.listing import line
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.table import cell, fitted
from kafkascope.analyzer.text import columns_taken

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
