"""Tables on a terminal: what is left out, cut, or told below."""

from __future__ import annotations

from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.table import fitted, json_line, raw
from kafkascope.analyzer.text import columns_taken

COLUMNS = [
    Column("client"),
    Column("user"),
    Column("count", "count"),
    Column("why", "list"),
]


def lines(width: int, *cells: list[str]) -> list[str]:
    titles = [column.title for column in COLUMNS]
    return [text for text, _ in fitted(titles, list(cells), COLUMNS, width)]


def test_columns_without_any_value_are_left_out() -> None:
    assert lines(80, ["app", "", "7", "old"], ["b", "", "12", ""]) == [
        "Client  Count  Why",
        "app         7  old",
        "b          12",
    ]


def test_a_long_sentence_stands_below_its_row() -> None:
    found = lines(40, ["app", "", "7", "Produce v2 is gone, and it knows no newer one, sadly"])
    assert found == [
        "Client  Count",
        "app         7",
        "    Produce v2 is gone, and it knows no",
        "    newer one, sadly",
    ]


def test_nothing_is_wider_than_the_terminal() -> None:
    found = lines(30, ["x" * 60, "y" * 60, "7", "z" * 90])
    assert max(map(len, found)) == 30


def test_values_for_programs() -> None:
    line = {"life": 1_500_000, "opened": 0, "ok": 1, "parts": [1, 2], "gone": None}
    columns = [
        Column("life", "duration"),
        Column("opened", "time"),
        Column("ok", "flag"),
        Column("parts", "list"),
        Column("gone", "count"),
    ]
    assert [raw(column, line) for column in columns] == [
        "1.5",
        "1970-01-01T00:00:00.000000Z",
        "true",
        "1,2",
        "",
    ]
    assert json_line(columns, line, "x/1") == {
        "schema": "x/1",
        "life_ms": 1.5,
        "opened": "1970-01-01T00:00:00.000000Z",
        "ok": True,
        "parts": [1, 2],
        "gone": None,
    }


def test_wide_characters_shift_no_column() -> None:
    found = lines(60, ["日本語クライアント", "", "7", "old"], ["b", "", "12", ""])
    assert [
        columns_taken(line[: line.rindex(n)]) for line, n in zip(found[1:], "72", strict=True)
    ] == [24, 24]
    assert found[0] == "Client              Count  Why"
