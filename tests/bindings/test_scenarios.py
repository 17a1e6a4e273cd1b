"""Scenarios of the conformance suite are what their schema says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

from kafkascope.analyzer.filter.language import bind
from kafkascope.proxy.answers import PROTOCOL
from kafkascope.proxy.rules.faults import parse_fault
from tests.kit.samples import ROOT

FOLDER = ROOT / "bindings" / "scenarios"
SCENARIOS = sorted(p for p in FOLDER.glob("*.json") if p.name != "scenario.schema.json")
SCHEMA = json.loads((FOLDER / "scenario.schema.json").read_text())


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_is_one(path: Path) -> None:
    scenario = json.loads(path.read_text())
    Draft202012Validator(SCHEMA).validate(scenario)
    assert scenario["name"] == path.stem
    for rule in scenario.get("rules", ()):
        parse_fault(rule)
    for step in scenario.get("steps", ()):
        if "rule" in step:
            parse_fault(step["rule"])
        if "filter" in step and "unexpected" not in str(step.get("fails")):
            bind(step["filter"])


def test_the_schema_refuses_what_is_none() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    validator = Draft202012Validator(SCHEMA)
    good = {"name": "a", "why": "b", "before": ["broker"], "steps": [{"do": "fail"}]}
    validator.validate(good)
    for wrong in (
        {"before": []},
        {"steps": [{"do": "dance"}]},
        {"steps": [{"do": "fail", "more": 1}]},
        {"fails": ["x"]},
        {"start": {"command": "old"}},
    ):
        with pytest.raises(ValidationError):
            validator.validate({**good, **wrong})


def test_the_page_has_every_step_and_the_protocol_number() -> None:
    page = (FOLDER / "README.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    steps = {each["properties"]["do"]["const"] for each in SCHEMA["$defs"]["step"]["oneOf"]}
    assert steps <= told
    assert f"`protocol` is below {PROTOCOL}" in page
