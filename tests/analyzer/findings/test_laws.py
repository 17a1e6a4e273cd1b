"""Findings follow the laws of statistics: order and division do not matter, and a state comes back
whole."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.findings import RULES, Finding, Findings
from kafkascope.analyzer.findings.framing import Framing
from kafkascope.analyzer.findings.other_protocols import OtherProtocols
from kafkascope.analyzer.findings.slow import Slowness
from kafkascope.analyzer.findings.unanswered import Unanswered
from kafkascope.analyzer.findings.view import Counts
from kafkascope.analyzer.statistics.model import WrongState
from kafkascope.dissectors.reference.codes import ERRORS
from tests.analyzer.findings.judging import judged
from tests.kit.counting import counted, parts, traffic
from tests.kit.samples import CAPTURES

FILES = ("rebalance.pcap", "transactions.pcap", "java-old.pcap", "sasl.pcap", "zookeeper.pcap")


@settings(max_examples=5, deadline=None)
@given(data=st.data(), file=st.sampled_from(FILES))
def test_any_division_and_order_give_the_same(data: st.DataObject, file: str) -> None:
    pairs, names = traffic(file)
    whole = counted(Findings(), pairs)
    divided = [counted(Findings(), part) for part in data.draw(parts(pairs))]
    sum_ = divided.pop(data.draw(st.integers(0, len(divided) - 1)))
    for each in data.draw(st.permutations(divided)):
        sum_.merge(each)
    assert sum_.reported(names) == whole.reported(names)
    assert sum_.dump() == whole.dump()


@pytest.mark.parametrize(
    ("kind", "table"),
    [(Framing, "orphans"), (OtherProtocols, "odd"), (Slowness, "polls"), (Unanswered, "late")],
)
def test_which_connections_are_kept_does_not_depend_on_their_numbers(
    kind: type[Counts], table: str
) -> None:
    """They are counted in one way of reading a capture, and places in another."""
    kept = []
    for first in (0, 1 << 62):
        keys = getattr(kind(), table)
        for number in range(12_000):
            keys[(first + number, number, "")]
        assert keys.others is not None
        kept.append([key[1:] for key, _ in keys.items()])
    assert kept[0] == kept[1]


@pytest.mark.parametrize("file", FILES)
def test_a_state_comes_back_whole(file: str) -> None:
    pairs, names = traffic(file)
    whole = counted(Findings(), pairs)
    again = Findings().load(json.loads(json.dumps(whole.dump())))
    assert again.reported(names) == whole.reported(names)
    assert again.dump() == whole.dump()


def test_a_state_of_something_else_is_refused() -> None:
    state = Findings().dump()
    with pytest.raises(WrongState):
        Findings().load({**state, "version": 99})


def test_lines_have_the_columns_that_are_declared() -> None:
    pairs, names = traffic("java-old.pcap")
    lines = counted(Findings(), pairs).rows(names)
    assert lines
    declared = {name for each in Findings.COLUMNS for name in (each.name, each.by) if name}
    for line in lines:
        assert declared == line.keys()


def test_rules_can_be_chosen_and_left_out() -> None:
    pairs, names = traffic("java-old.pcap")
    only = counted(Findings(only={"batch-old-format"}), pairs).reported(names)
    assert {each.name for each in only} == {"batch-old-format"}
    others = counted(Findings(ignore={"batch-old-format"}), pairs).reported(names)
    assert "batch-old-format" not in {each.name for each in others}
    with pytest.raises(KeyError):
        Findings(only={"no-such-rule"})


def test_every_rule_has_advice_and_a_title() -> None:
    for name, rule in RULES.items():
        assert rule.name == name
        assert rule.title
        assert rule.advice.endswith(".")


def test_links_are_errors_that_can_be_looked_up() -> None:
    names = {error.name for error in ERRORS.values()}
    assert {rule.link for rule in RULES.values() if rule.link} <= names


TRUTH = CAPTURES / "causes"
BAD = ("error", "warning")


def says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def names(finding: Finding, cause: dict[str, Any]) -> bool:
    """Whether a finding names a cause, fairly worded and bad enough."""
    entities = finding.line()["entities"]
    every = " ".join([finding.text, finding.advice, *entities])
    return (
        finding.severity in cause.get("severity", BAD)
        and all(says(one, every) for one in cause.get("about", ()))
        and says(cause.get("says", ""), f"{finding.name} {every}")
        and says(cause.get("text", ""), finding.text)
    )


def untrue(finding: Finding, false: dict[str, Any]) -> bool:
    """Whether a finding claims what is not so."""
    return (
        finding.severity in false.get("severity", (finding.severity,))
        and finding.name == false.get("name", finding.name)
        and says(false.get("says", ""), finding.text)
    )


def failures(truth: dict[str, Any], every: list[Finding]) -> list[str]:
    """What is wrong with a list of findings, in sentences."""
    causes = [each for each in every if not each.because]
    wrong = []
    for cause in truth["causes"]:
        places = [at for at, each in enumerate(causes, 1) if names(each, cause)]
        if not places or places[0] > cause.get("within", 1):
            wrong.append(f"{cause['id']} is at {places[:1] or 'no place'}")
    for false in truth["false"]:
        wrong += [f"{each.name}: {false['why']}" for each in every if untrue(each, false)]
    loud = [each.name for each in causes if each.severity in BAD]
    if len(loud) > truth.get("most", 99):
        wrong.append(f"{len(loud)} warnings and errors, {truth['most']} help: {loud}")
    quiet = [each.name for each in causes if each.severity not in BAD]
    if len(quiet) > truth.get("chats", 99):
        wrong.append(f"{len(quiet)} notes and chats, {truth['chats']} help: {quiet}")
    if truth["healthy"] and any(each.severity in BAD for each in every):
        wrong.append("exit code 1 for healthy traffic")
    return wrong


@pytest.mark.parametrize("path", sorted(TRUTH.glob("*.cause.json")), ids=lambda path: path.name)
def test_the_truth_is_told(path: Path) -> None:
    truth = json.loads(path.read_text())
    capture = next(TRUTH.glob(path.name.replace(".cause.json", ".pcap*")))
    every, _ = judged(capture)
    assert not failures(truth, every), [f"{each.severity} {each.name}" for each in every]
