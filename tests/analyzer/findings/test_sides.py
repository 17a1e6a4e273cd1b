"""Each limit from both sides: just below it nothing is told (or less), just above it is."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import RULES, outcomes
from kafkascope.analyzer.findings.rules import THRESHOLDS
from kafkascope.analyzer.statistics import thresholds as counted
from tests.analyzer.findings import (
    sides_applications,
    sides_connections,
    sides_data,
    sides_delays,
    sides_ends,
    sides_groups,
    sides_logs,
    sides_requests,
    sides_schemas,
    sides_zookeeper,
)
from tests.analyzer.findings.sides import Side

SIDES: dict[tuple[str, ...], Side] = {
    **sides_applications.SIDES,
    **sides_requests.SIDES,
    **sides_delays.SIDES,
    **sides_data.SIDES,
    **sides_groups.SIDES,
    **sides_ends.SIDES,
    **sides_connections.SIDES,
    **sides_schemas.SIDES,
    **sides_zookeeper.SIDES,
    **sides_logs.SIDES,
}
"""(rule, limit) -> what decides there; with another word where a rule reads it once more."""


def test_every_limit_of_every_rule_has_both_sides() -> None:
    pairs = {(rule.name, name) for rule in RULES.values() for name in rule.limits}
    pairs |= {("outcomes", name) for name in outcomes.THRESHOLDS}
    assert pairs == {key[:2] for key in SIDES}


@pytest.mark.parametrize("pair", SIDES, ids=" ".join)
def test_a_limit_decides(pair: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other value of it would: it is raised and lowered by one."""
    side = SIDES[pair]
    name = pair[1]
    assert not side.make(side.calm)
    assert side.make(side.told)
    limit = THRESHOLDS[name]
    for value in (limit.value - 1, limit.value + 1):
        for table in (THRESHOLDS, counted.THRESHOLDS):
            if name in table:
                monkeypatch.setitem(table, name, limit._replace(value=value))
        assert side.make(side.calm) or not side.make(side.told), f"{name} may be {value}"
