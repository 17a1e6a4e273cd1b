"""docs/faults.md shows what is held to real clients."""

from __future__ import annotations

from pathlib import Path

from kafkascope.proxy.rules.faults import FAULTS, parse_fault
from tests.interop.changes import CASES, table

DOCS = (Path(__file__).parents[4] / "docs" / "faults.md").read_text()


def test_the_table_is_that_of_the_tests() -> None:
    assert table() in DOCS


def test_each_action_that_reaches_into_messages_is_in_it() -> None:
    said = [str(parse_fault(case.rule).action) for case in CASES]
    for word in ("set request", "set response", "versions", "member expire"):
        assert any(each.startswith(word) for each in said)
    changes = ("lose", "duplicate", "reorder", "corrupt crc", "corrupt value")
    changes += ("set value", "set key", "set timestamp", "set header")
    for change in changes:
        assert any(each.startswith(f"records {change}") for each in said), change


def test_each_action_is_told() -> None:
    for word in FAULTS:
        assert f"`{word}" in DOCS
