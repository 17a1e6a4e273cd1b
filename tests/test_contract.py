"""What `tests.contract` says of two outcomes: order, numbers, or else."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.distribution import NEWEST, SHARES, following, group
from tests.interop.drivers import CLIENT_LIST
from tests.interop.scenarios import DIAGONAL, marks
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


# --- tests that share brokers run in one process --------------------------------------------------


INTEROP = Path(__file__).parent / "interop"


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/spark/test_docs.py::test_the_tables", "spark"),
        ("tests/interop/test_proxy.py::test_a_client[3.9.2-kafkajs]", "clusters 3.9.2"),
        ("tests/interop/test_proxy_tls.py::test_tls[SSL to SSL-java-4.4.0]", "clusters 4.4.0"),
        ("tests/interop/test_clients.py::test_no_secret[3.9.2-java-1.1.1]", "brokers"),
        ("tests/interop/test_admin.py::test_every_frame[3.9.2]", "test_admin 3.9.2"),
        ("tests/interop/test_replay.py::test_what_4_answers[4.4]", "test_replay"),
        ("tests/dissectors/codec/test_laws.py::test_products_agree[Fetch-4]", ""),
    ],
)
def test_the_group_follows_from_the_id(nodeid: str, expected: str) -> None:
    assert group(nodeid) == expected


def test_every_module_with_shared_brokers_is_known() -> None:
    used = {}
    for path in INTEROP.glob("test_*.py"):
        quick = [each for each in path.read_text().split("\n\n\n") if "mark.soak\n" not in each]
        for name, call in (("clusters", r"\bclusters\("), ("brokers", r"\b(brokers|record)\(")):
            if re.search(call, "\n".join(quick)):
                used[path.stem] = name
    assert used == SHARES


def test_one_broker_and_three_client_libraries_run_in_make_test() -> None:
    fast = [pair for pair in DIAGONAL if marks(pair[0])]
    assert {broker for broker, _ in fast} == {NEWEST}
    assert {CLIENT_LIST[client].kind for _, client in fast} == {"java", "confluent", "aiokafka"}


def test_groups_come_first_and_a_process_stays_in_its_module() -> None:
    queue = {"a.py 2": "..", "b.py 0": "..", "c.py 0": ".", "spark": ".", "brokers": "..."}
    order = []
    module = "b.py"
    while queue:
        order.append(following(queue, module, {"a.py", "b.py"}))
        del queue[order[-1]]
    assert order == ["brokers", "spark", "b.py 0", "c.py 0", "a.py 2"]
