"""What `tests.contract` says of two outcomes: order, numbers, or else."""

import json
from typing import Final

from tests.outcomes import Numbers, Outcome, compare, matched

NUMBERS: Final = Numbers({1: 2, 2: 1, 3: 3}, {0: 1, 1: 0})


def lines(*rows: dict[str, object]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def kind(before: str, after: str, numbers: Numbers = NUMBERS) -> str:
    return compare({"stdout": before}, {"stdout": after}, numbers).kind


def test_exchanges_are_matched_by_id() -> None:
    rows = [{"exchange_id": word, "number": i, "connection": i % 2} for i, word in enumerate("abc")]
    moved = [rows[1] | {"number": 7, "connection": 4}, {"exchange_id": "new", "number": 8}]
    assert matched(lines(*rows), lines(*moved)) == Numbers({7: 1}, {4: 1})


def test_equal_outcomes_are_the_same() -> None:
    assert compare({"stdout": "a"}, {"stdout": "a"}, NUMBERS).kind == "same"


def test_lines_in_another_order() -> None:
    assert kind("a\nb", "b\na") == "order"
    assert kind("a\nb\nb", "b\na\na") == "else"


def test_numbers_of_rows_and_of_columns() -> None:
    before = lines({"number": 1, "connection": 0, "api": "A"}, {"number": 2, "slowest": 3})
    after = lines({"number": 1, "slowest": 3}, {"number": 2, "connection": 1, "api": "A"})
    assert kind(before, after) == "numbers"
    assert kind(before, after.replace('"A"', '"B"')) == "else"
    assert kind(before, after.replace('"slowest": 3', '"slowest": 2')) == "else"
    table = "No.\tTime\tAPI\n1\t9\tA\n2\t8\tB"
    assert kind(table, "No.\tTime\tAPI\n1\t8\tB\n2\t9\tA") == "numbers"
    assert kind(table, "No.\tTime\tAPI\n2\t8\tB\n1\t9\tA".replace("9", "7")) == "else"
    assert kind("number,api\n1,A\n2,B", "number,api\n1,B\n2,A") == "numbers"


def test_numbers_in_filters_and_sentences() -> None:
    assert kind("ls -Y 'number in {1, 3}'", "ls -Y 'number in {2..3}'") == "numbers"
    assert kind("ls -Y 'number in {1, 3}'", "ls -Y 'number in {1..3}'") == "else"
    assert kind("exchange 1: Fetch, connection 0", "exchange 2: Fetch, connection 1") == "numbers"
    assert kind("'conn == 1'", "'conn == 0'") == "numbers"
    text = '{"filter": "number == 1"}'
    assert kind(text, text.replace("1", "2")) == "numbers"


def test_an_exchange_that_only_one_has_is_no_question_of_numbers() -> None:
    assert kind('{"number": 4}\n{"number": 1}', '{"number": 2}\n{"number": 4}') == "else"


def test_bodies_have_no_numbers_of_ours() -> None:
    assert kind('{"request": {"number": 2}}', '{"request": {"number": 1}}') == "else"


def test_the_worst_part_is_told_and_where_it_differs() -> None:
    before: Outcome = {"exit code": "0", "rows.csv": "a\nb", "stdout": "x" * 500 + "old"}
    after: Outcome = {"exit code": "0", "rows.csv": "b\na", "stdout": "x" * 500 + "new"}
    found = compare(before, after, NUMBERS)
    assert found.kind == "else"
    assert found.diff.splitlines() == [
        "@@ stdout: 1 lines only before, 1 only after @@",
        "-" + "x" * 60 + "old",
        "+" + "x" * 60 + "new",
    ]
    assert compare({"exit code": "0"}, {"exit code": "1"}, NUMBERS).kind == "else"
    assert compare(before, before | {"more": ""}, NUMBERS).diff.startswith("@@ more")
