"""Tests that share brokers run in one process."""

import re
from pathlib import Path

import pytest

from tests.distribution import NEWEST, SHARES, following, group
from tests.interop.drivers import CLIENT_LIST
from tests.interop.scenarios import DIAGONAL, marks

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
