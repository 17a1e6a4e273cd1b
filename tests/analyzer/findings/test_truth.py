"""Diagnosis against the truth: captures of real clients and brokers, each with what happened.

`captures/causes/NAME.cause.json` says which causes have to be named, how soon (`within`), what is
untrue (`false`), and how many warnings and notes are too many (`most`, `chats`). What another
finding explains is folded in, and counts only when it is untrue.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings.test_captures import HERE, judged

TRUTH = HERE / "causes"
BAD = ("error", "warning")
MISSED: Final[frozenset[str]] = frozenset()
"""Captures whose truth is not told yet."""


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


def cases() -> list[Any]:
    found = []
    for path in sorted(TRUTH.glob("*.cause.json")):
        name = path.name.removesuffix(".cause.json")
        marks = [pytest.mark.xfail(reason="not told yet")] if name in MISSED else []
        found.append(pytest.param(path, id=name, marks=marks))
    return found


@pytest.mark.parametrize("path", cases())
def test_the_truth_is_told(path: Path) -> None:
    truth = json.loads(path.read_text())
    capture = next(TRUTH.glob(path.name.replace(".cause.json", ".pcap*")))
    every, _ = judged(capture)
    assert not failures(truth, every), [f"{each.severity} {each.name}" for each in every]
