"""What pytest-kafkascope says of findings, without a broker: causes, consequences below them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.kit.samples import ROOT

TESTS = ROOT / "tests"
PLUGIN = TESTS.parent / "bindings" / "python" / "pytest_kafkascope.py"
CAUSES = TESTS / "analyzer" / "captures" / "causes"
KAFKASCOPE = Path(sys.executable).with_name("kafkascope")


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    """It is a distribution of its own, and not installed here."""
    spec = importlib.util.spec_from_file_location("pytest_kafkascope_here", PLUGIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def capture(plugin: ModuleType) -> Callable[[Path], Any]:
    return lambda path: plugin.Capture([str(KAFKASCOPE)], path)


def failure(capture: Any, *args: Any, **known: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        capture.assert_no_findings(*args, **known)
    return str(raised.value)


def test_a_failure_tells_the_cause_and_below_it_what_followed(
    capture: Callable[[Path], Any],
) -> None:
    it = capture(CAUSES / "broker-down-java.pcap.gz")
    found = it.findings()
    assert {"id", "key", "because"} <= set(found[0])
    lines = failure(it).splitlines()
    assert lines[0] == "2 findings of level warning or worse:"
    assert lines[1].startswith("warning broker-down: Broker 127.0.0.1:9092 (node 1) was down")
    assert lines[3] == "    consequences:"
    assert lines[4].startswith("        warning unanswered: 1 JoinGroup request")
    assert lines[5].startswith("            ls -Y 'client == ")
    assert len(lines) == 6


def test_a_consequence_of_what_is_allowed_says_what_explains_it(
    capture: Callable[[Path], Any],
) -> None:
    lines = failure(capture(CAUSES / "broker-down-java.pcap.gz"), allow=["broker-down"])
    assert "1 finding of level warning" in lines
    assert "\nwarning unanswered: 1 JoinGroup request" in lines
    assert "\n    because: Broker 127.0.0.1:9092 (node 1) was down" in lines


def finding(name: str, *because: str, severity: str = "error") -> dict[str, Any]:
    found = {"id": name, "name": name, "severity": severity, "text": name.upper(), "filter": ""}
    return {**found, "because": list(because)}


@pytest.mark.parametrize(
    ("every", "told"),
    [
        ([finding("a"), finding("b")], ["a", "b"]),
        ([finding("a"), finding("c", "b"), finding("b", "a")], ["a", "  c", "  b"]),
        ([finding("a"), finding("b"), finding("c", "b", "a")], ["a", "  c", "b"]),
        ([finding("x", "gone")], ["x"]),
        (
            [finding("m", severity="note"), finding("b", "m"), finding("c", "b")],
            ["b", "  because m", "  c"],
        ),
    ],
)
def test_causes_stand_before_consequences(
    plugin: ModuleType, every: Sequence[dict[str, Any]], told: list[str]
) -> None:
    bad = [each for each in every if each["severity"] == "error"]
    shown = []
    for line in plugin._folded(bad, every):
        kind, _, rest = line.strip().partition(": ")
        if kind == "because":
            shown.append(f"  because {rest.lower()}")
        elif rest:
            shown.append(("  " if line.startswith(" ") else "") + rest.lower())
    assert shown == told


SCHEMAS = TESTS / "analyzer" / "captures" / "schemas"


def test_records_are_asserted_by_fields_of_their_values(capture: Callable[[Path], Any]) -> None:
    it = capture(SCHEMAS / "avro-registry.pcap")
    found = it.assert_records("topic == orders and record.value.amount > 250.00 and api == Produce")
    assert [one["value_decoded"]["amount"] for one in found] == ["269.84", "289.83"]
    assert len(it.records()) > len(it.records("topic == orders")) > 2
    it.assert_records("record.value.amount > 1000", count=0)
    it.assert_records("record.value.amount > 250.00", count=4)
    (exchange,) = it.assert_request(api="Fetch", where="record.value.amount > 250.00")
    assert exchange["topics"] == ["orders"]
    with pytest.raises(AssertionError, match=r"^4 records, not 1, with .*; there were 2 of orders"):
        it.assert_records("record.value.amount > 250.00", count=1)
    with pytest.raises(AssertionError, match=r"^no record with .*> 1000; there were .* of orders"):
        it.assert_records("record.value.amount > 1000")


def test_schemas_are_given_by_folder_and_by_topic(
    capture: Callable[[Path], Any], plugin: ModuleType, tmp_path: Path
) -> None:
    path = SCHEMAS / "bad-schemas.pcap"
    plain = capture(path)
    assert not [one for one in plain.records() if "value_decoded" in one]
    with pytest.raises(AssertionError, match="value_error unknown-schema at offset"):
        plain.assert_records("record.value.name")
    given = capture(path)
    given.use_schemas(SCHEMAS / "schemas" / "bad-schemas")
    assert given.assert_records("record.value.name")[0]["value_schema"]["source"] == "folder"
    by_topic = capture(path)
    (tmp_path / "any.json").write_text('{"type": "object"}')
    by_topic.use_schemas(topics={"nothing": tmp_path / "any.json"})
    assert by_topic.records() == plain.records()
    wrong = capture(path)
    wrong.use_schemas(tmp_path, topics={"x": "no.txt"})
    with pytest.raises(plugin.KafkascopeError, match=r"no\.txt"):
        wrong.records()
