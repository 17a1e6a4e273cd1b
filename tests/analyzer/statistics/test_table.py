"""Tables on a terminal: which columns are hidden, what stands below a row, what nobody cuts."""

import pytest

from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.table import NO_PRIORITY, fitted, json_line, raw
from kafkascope.analyzer.text import columns_taken

COLUMNS = [
    Column("client"),
    Column("user"),
    Column("count", "count"),
    Column("library"),
    Column("why", "list"),
]
WHY = Priority(sentences=("why",))


def lines(
    width: int | None, *rows: list[str], priority: Priority = WHY, columns: list[Column] = COLUMNS
) -> list[str]:
    return [text for text, _ in fitted(list(rows), columns, width, priority)]


def test_columns_without_any_value_are_left_out() -> None:
    assert lines(80, ["app", "", "7", "-", "old"], ["b", "", "12", "", ""]) == [
        "Client  Count  Why",
        "app         7  old",
        "b          12",
    ]


def test_a_long_sentence_stands_below_its_row() -> None:
    found = lines(40, ["app", "", "7", "", "Produce v2 is gone, and it knows no newer one, sadly"])
    assert found == [
        "Client  Count",
        "app         7",
        "    Produce v2 is gone, and it knows no",
        "    newer one, sadly",
    ]


def test_the_most_telling_sentence_of_a_row_stands_below_it() -> None:
    both = Priority(sentences=("why", "library"))
    found = lines(
        20,
        ["app", "", "7", "closed its last connection", "Produce v2 is gone"],
        ["b", "", "12", "vanished without a FIN", ""],
        priority=both,
    )
    assert found == [
        *("Client  Count", "app         7", "    Produce v2 is", "    gone"),
        *("b          12", "    vanished without", "    a FIN"),
    ]


def test_nothing_is_wider_than_the_terminal() -> None:
    found = lines(30, ["x" * 60, "y" * 60, "7", "l" * 50, "z" * 90])
    assert max(map(len, found)) == 30


ROWS = (
    ["orders-svc", "alice", "7", "librdkafka 2.16.1", "no"],
    ["b", "bob", "12", "kafka-python", "yes"],
)


def test_the_least_important_columns_are_hidden_and_counted() -> None:
    ranked = Priority(("why", "library"))
    assert lines(42, *ROWS, priority=ranked) == [
        "Client      User   Library            Why",
        "orders-svc  alice  librdkafka 2.16.1  no",
        "b           bob    kafka-python       yes",
        "1 column hidden: Count (--wide, or --json)",
    ]
    assert lines(35, *ROWS, priority=ranked)[0] == "Client      Library            Why"
    assert lines(35, *ROWS, priority=ranked)[-1] == "2 columns hidden: --wide, or --json"


def test_important_columns_shrink_when_all_others_are_hidden() -> None:
    head, first, *_ = lines(30, *ROWS, priority=Priority(("why", "library")))
    assert head == "Client      Library        Why"
    assert first == "orders-svc  librdkafka 2…  no"


def test_numbers_are_hidden_and_never_cut() -> None:
    columns = [Column("client"), Column("bytes", "count")]
    rows = ["orders-service", "123456"]
    assert lines(20, rows, columns=columns, priority=NO_PRIORITY)[1] == "orders-service"
    found = lines(20, rows, columns=columns, priority=Priority(("bytes",)))
    assert found[1] == "orders-serv…  123456"


@pytest.mark.parametrize("width", [12, 20, 31, 45, 60, 80, 200])
def test_the_subject_stays_at_any_width(width: int) -> None:
    head, first, second, *_ = lines(width, *ROWS, priority=Priority(("why", "library")))
    assert head.startswith("Client")
    assert first.startswith("orders-svc")
    assert second.startswith("b")


def test_what_all_rows_share_is_said_once_where_columns_have_no_room() -> None:
    rows = (["app", "alice", "7", "kafka-python", "no"], ["b", "alice", "12", "kafka-python", ""])
    found = lines(26, *rows, priority=Priority(("why",)))
    assert found == [
        *("Client  Count  Why", "app         7  no", "b          12"),
        *("all rows: User alice,", "    Library kafka-python"),
    ]


def test_a_sentence_that_all_rows_share_is_said_once() -> None:
    found = lines(30, *(["app", "", "7", "", "had no committed offset"] for _ in range(3)))
    assert found == [
        "Client  Count",
        *["app         7"] * 3,
        "all rows: had no committed",
        "    offset",
    ]


def test_without_a_width_all_columns_are_whole() -> None:
    long = ["app", "alice", "7", "l" * 60, "z" * 90]
    assert (
        lines(None, long, ["b", "", "", "", ""])[1]
        == f"app     alice      7  {'l' * 60}  {'z' * 90}"
    )
    assert lines(None, ["app", "", "7", "", ""])[-1] == "empty columns: User, Library, Why"


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
    found = lines(60, ["日本語クライアント", "", "7", "", "old"], ["b", "", "12", "", ""])
    assert [
        columns_taken(line[: line.rindex(n)]) for line, n in zip(found[1:], "72", strict=True)
    ] == [24, 24]
    assert found[0] == "Client              Count  Why"
