"""Groups of the Java client on a real broker, against what the clients read and committed and what
the broker kept. `tests/interop/make_groups.py` made the captures."""

import json
from functools import cache
from typing import Any

import pytest

from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.statistics.delivery.audit import Audit
from tests.kit.counting import count_capture
from tests.kit.samples import CAPTURES


@cache
def audited(name: str) -> tuple[Audit, Findings, list[Finding]]:
    findings = Findings()
    names = count_capture(CAPTURES / f"{name}.pcap.gz", findings)
    base = findings.base
    audit = Audit(base.delivery, base.groups, base.cluster, names)
    return audit, findings, findings.reported(names)


def truth(name: str) -> Any:
    return json.loads((CAPTURES / f"{name}.truth.json").read_text())


def again(*reads: list[int]) -> int:
    """Offsets that were read when they, or later ones, had been read before. A member polls ahead
    of its application, which is why each reader starts with a list of its own."""
    seen: set[int] = set()
    count = 0
    for read in reads:
        count += len(seen & set(read))
        seen |= set(read)
    return count


def test_what_members_of_the_consumer_protocol_read_again() -> None:
    told, (audit, _, _) = truth("consumer-protocol"), audited("consumer-protocol")
    lines = {f"{line['topic']}-{line['partition']}": line for line in audit.partitions()}
    assert lines.keys() == told["committed"].keys()
    for place, line in lines.items():
        first = told["first"][place]
        turn = next((at for at in range(1, len(first)) if first[at] < first[at - 1]), len(first))
        second = told["second"].get(place, [])
        expected = again(first[:turn], second, first[turn:], told["third"][place])
        assert line["again"] == expected
        assert line["committed_offset"] == told["committed"][place] == line["end_offset"]
        assert line["fetched_offset"] == max(told["third"][place]) + 1
        assert (line["lag"], line["beyond"], line["back"]) == (0, 0, 0)
        commits = ("first commit", "second commit", "third commit")
        assert line["commits"] == sum(place in told[name] for name in commits)


def test_a_killed_member_of_the_consumer_protocol() -> None:
    _, findings, found = audited("consumer-protocol")
    story = findings.base.groups.story("next-group")
    assert story.protocol == "consumer"
    assert [each.cause for each in story.rebalances] == ["formed", "joined", "expired", "left"]
    assert {member.label: member.state for member in story.members} == {
        "first": "left",
        "second": "expired",
        "third": "left",
    }
    by_rule = {finding.name: finding for finding in found}
    assert "owned-twice" not in by_rule
    assert "second timed out: no heartbeat for 5" in by_rule["rebalance-expired"].text
    assert "group.consumer.session.timeout.ms" in by_rule["rebalance-expired"].advice


def test_a_share_group_owns_together() -> None:
    told, (audit, findings, found) = truth("share-group"), audited("share-group")
    assert set(told["one"]["shared-0"]).isdisjoint(told["two"]["shared-0"])
    story = findings.base.groups.story("share-group")
    assert story.protocol == "share"
    assert {member.label: member.assigned for member in story.members}.keys() == {"one", "two"}
    assert all(member.assigned for member in story.members)
    assert not list(audit.happenings())
    assert {finding.severity for finding in found} <= {"chat"}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_assignments_are_those_of_their_assignor(name: str) -> None:
    audit, findings, _ = audited("assignors")
    plans = audit.plans(f"{name}-group")
    assert {plan["assignor"] for plan in plans} == {name}
    whole = [plan for plan in plans if not plan["unassigned"]]
    like = "sticky" if "sticky" in name else name
    # The first and the last one of a single member are alike for all of them.
    assert like in whole[1]["same_as"]
    assert whole[1]["members"] == 2
    assert whole[1]["spread"] == (2 if name == "range" else 0)
    assert whole[1]["moved"] == (2 if name == "range" else 3)
    assert not list(audit.happenings(f"{name}-group"))
    story = findings.base.groups.story(f"{name}-group")
    second = ["handover"] if name == "cooperative-sticky" else []
    assert [each.cause for each in story.rebalances] == ["formed", "joined", *second, "left"]


def test_a_restart_without_goodbye() -> None:
    told, (audit, findings, found) = truth("restarted-member"), audited("restarted-member")
    (line,) = audit.partitions()
    assert line["again"] == again(told["first"]["again-0"], told["second"]["again-0"]) == 12
    assert line["committed_offset"] == told["committed"]["again-0"] == 30
    story = findings.base.groups.story("again-group")
    assert [each.cause for each in story.rebalances] == ["formed", "replaced", "formed"]
    names = {finding.name for finding in found}
    assert {"rebalance-restarts", "rebalance-poll", "consumer-silent", "redelivered"} <= names
    (pause,) = [each for each in audit.happenings() if each.kind == "pause"]
    assert 10_000 < pause.count / 1e6 < 11_000  # it stood for 10 s; the restart is no pause
