"""Groups whose members come and go, do not belong together, or have nothing to do."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.statistics.groups.test_groups import Members, Seconds


def restless(turns: int, every: Seconds = 5) -> Members:
    """One of two members leaves and comes back under a new id, again and again."""
    group, tenth = Members(), Fraction(1, 10)
    group.join("a#0", 0, 1, ("a#0", "b"))
    group.join("b", tenth, 1)
    for turn in range(1, turns + 1):
        at = turn * every
        group.leave(f"a#{turn - 1}", at)
        group.join("b", at + 3 * tenth, 2 * turn, ("b",))
        group.join(f"a#{turn}", at + 1, 2 * turn + 1, asked_id="")
        group.join("b", at + 1 + tenth, 2 * turn + 1, ("b", f"a#{turn}"))
    return group


@pytest.mark.parametrize(
    ("beats", "setting"), [("b", "max.poll.interval.ms"), ("a", "session.timeout.ms")]
)
def test_the_fix_names_the_timeout_that_passed(beats: str, setting: str) -> None:
    group = Members()
    group.join("a", 0, 1, ("a", "b"))
    group.join("b", Fraction(1, 20), 1)
    for second in range(1, 15):
        group.beat(beats, second, 1)
    group.join("a", 15, 2, ("a",), takes=60 if beats == "b" else Fraction(1, 10))
    finding = found(group.wires.values())["rebalance-expired"]
    named = {"max.poll.interval.ms", "session.timeout.ms"} & set(
        re.findall(r"\w+(?:\.\w+)+", finding.advice)
    )
    assert named == {setting}


@pytest.mark.parametrize(("turns", "storm"), [(1, False), (2, True), (3, True)])
def test_a_client_that_comes_back_once_was_deployed(turns: int, storm: bool) -> None:
    told = found(restless(turns).wires.values())
    assert ("rebalance-storm" in told) == storm
    if storm:
        assert states(told["rebalance-storm"].text, "2 members", f"left and came back: a ({turns}")


@pytest.mark.parametrize(("every", "storm"), [(100, True), (400, False)])
def test_comings_and_goings_that_are_rare_are_no_storm(every: float, storm: bool) -> None:
    told = found(restless(2, every).wires.values())
    assert ("rebalance-storm" in told) == storm


def both(topics: tuple[str, ...], begins: float = 5) -> Members:
    """A member of `orders` until 9 s, and one of other topics."""
    group = Members()
    group.join("a", 0, 1, ("a",))
    group.beat("a", 9, 1)
    group.join("b", begins, 2, ("a", "b"), topics=topics)
    group.beat("b", begins + 5, 2)
    return group


@pytest.mark.parametrize(
    ("topics", "begins", "told"),
    [
        (("invoices",), 5, True),
        (("invoices", "orders"), 5, False),
        (("orders",), 5, False),
        (("invoices",), 12, False),
    ],
    ids=["other topics", "more topics", "the same", "one after the other"],
)
def test_two_applications(topics: tuple[str, ...], begins: float, told: bool) -> None:
    findings = found(both(topics, begins).wires.values())
    assert ("two-applications" in findings) == told
    if told:
        assert findings["two-applications"].text.endswith("b to invoices, a to orders")


def consumers(*parts: int) -> Members:
    """Members of the consumer protocol with so many partitions each."""
    group = Members()
    number = 0
    for at, count in enumerate(parts):
        given = {
            "topic_partitions": [
                {"topic_id": bytes(15) + b"\7", "partitions": list(range(number, number + count))}
            ]
        }
        number += count
        group.epoch(f"m{at}", at, 0, 1, subscribed_topic_names=["t"], given=given)
    return group


@pytest.mark.parametrize(
    ("parts", "idle"), [((1, 1, 0), 1), ((1, 1, 1), 0), ((2, 1, 0), 0), ((1, 0, 0, 0), 3)]
)
def test_members_without_a_partition(parts: tuple[int, ...], idle: int) -> None:
    told = found(consumers(*parts).wires.values())
    assert ("idle-members" in told) == bool(idle)
    if idle:
        assert told["idle-members"].text.startswith(f"{idle} of {len(parts)} members of group g")
