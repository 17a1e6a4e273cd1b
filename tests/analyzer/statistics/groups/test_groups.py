"""Rebalances and their causes, from traffic as brokers and members would have it."""

from typing import Any
from uuid import UUID

import pytest

from kafkascope.analyzer.merging.limits import LIMITS
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.groups.groups import Group, Groups
from kafkascope.analyzer.statistics.groups.timeline import Scale, lanes_of, timeline
from tests.kit.counting import counted, pairs_in, traffic
from tests.kit.members import Members
from tests.kit.wire import MS

GIVEN: dict[str, Any] = {"topic_partitions": [{"topic_id": UUID(int=7).bytes, "partitions": [0]}]}
ORDERS: dict[str, Any] = {"subscribed_topic_names": ["orders"]}
NONE: dict[str, Any] = {"topic_partitions": []}


@pytest.fixture
def group() -> Members:
    """Two members in generation 1."""
    found = Members()
    found.join("a", 0, 1, ("a", "b"))
    found.join("b", 0.05, 1)
    for at in range(1, 10):
        found.beat("a", at, 1)
        found.beat("b", at, 1)
    return found


def second_of(group: Members) -> tuple[str, str]:
    """Cause and text of the second rebalance."""
    second = group.groups().rebalances("g")[1]
    return second["cause"], second["text"]


def test_the_first_generation_forms_the_group(group: Members) -> None:
    (first,) = group.groups().rebalances("g")
    assert (first["cause"], first["members"], first["last_member"]) == ("formed", 2, "b")
    assert first["duration"] == 150 * MS


def test_a_member_that_gets_the_same_partitions_again_does_not_rebalance() -> None:
    """It sends all it knows to a new coordinator, which repeats what it has; others are news."""
    group = Members()
    group.epoch("a", 0, 0, 1, given=GIVEN)
    group.epoch("a", 9, 1, 1, given=GIVEN)
    (first,) = group.groups().rebalances("g")
    assert first["duration"] == 10 * MS
    group.epoch("a", 12, 1, 1, given=NONE)
    (first,) = group.groups().rebalances("g")
    assert first["duration"] == 12_010 * MS


def test_a_member_that_fell_silent_has_expired(group: Members) -> None:
    for at in range(10, 20):
        group.beat("a", at, 1)
    group.join("a", 20, 2, ("a",))
    text = "b timed out: no heartbeat for 11.0 s (session 10 s)"
    assert second_of(group) == ("expired", text)
    states = {line["member"]: line["state"] for line in group.groups().members("g")}
    assert states == {"a": "active", "b": "expired"}


@pytest.mark.parametrize(
    ("takes", "cause", "text"),
    [
        (60, "expired", "b timed out: did not rejoin within 60 s (rebalance timeout)"),
        (2, "left", "b disappeared (cause not captured)"),
    ],
)
def test_a_member_that_did_not_come_back(group: Members, takes: int, cause: str, text: str) -> None:
    for at in range(10, 15):
        group.beat("b", at, 1)
    group.join("a", 15, 2, ("a",), takes=takes)
    assert second_of(group) == (cause, text)


def test_a_member_that_says_goodbye_has_left(group: Members) -> None:
    group.leave("b", 10, "consumer poll timeout has expired.")
    group.join("a", 11, 2, ("a",))
    cause, text = second_of(group)
    assert cause == "left"
    assert "consumer poll timeout has expired" in text


def test_a_new_member_joins(group: Members) -> None:
    group.join("c", 10, 2, asked_id="")
    group.join("a", 10.5, 2, ("a", "b", "c"))
    group.join("b", 10.6, 2)
    assert second_of(group) == ("joined", "c joined")
    assert group.groups().rebalances("g")[1]["last_member"] == "b"


def test_a_group_that_begins_at_generation_1_again() -> None:
    """Brokers forget a group without members and offsets."""
    group = Members()
    for number in range(3):
        name = f"a#{number}"
        group.join(name, 20 * number, 1, (name,))
        group.beat(name, 20 * number + 1, 1)
        group.leave(name, 20 * number + 9)
    found = group.groups().rebalances("g")
    assert [each["duration"] < 2_000 * MS for each in found] == [True, True, True]
    assert [each["cause"] for each in found] == ["formed"] * 3


@pytest.mark.parametrize(("evicted", "cause"), [(True, "expired"), (False, "replaced")])
def test_who_heard_that_it_was_evicted_did_not_restart(evicted: bool, cause: str) -> None:
    group = Members()
    group.join("a#1", 0, 1, ("a#1",))
    group.beat("a#1", 1, 1)
    if evicted:
        group.beat("a#1", 20, 1, 25)
    group.join("a#2", 21, 2, ("a#2",), asked_id="")
    assert group.causes() == [(1, "formed"), (2, cause)]


def test_a_static_member_that_comes_back_is_no_cause_of_its_own() -> None:
    """KIP-345: it takes the place of its old id; here while another member asks for a rebalance."""
    group = Members()
    group.join("a", 0, 1, ("a", "b"))
    group.join("b", 0.05, 1, group_instance_id="i")
    again = {"asked_id": "", "group_instance_id": "i"}
    group.join("a", 5, 2, ("a", "b"), reason="topics changed")
    group.join("b2", 5.05, 2, **again)
    group.join("b3", 9, 3, **again)
    group.join("a", 9.05, 3, ("a", "b3"))
    found = group.groups().rebalances("g")
    assert [each["cause"] for each in found] == ["formed", "metadata", "rejoined"]
    assert [each["members"] for each in found] == [2, 2, 2]
    assert found[2]["text"] == "static member b3 rejoined with another subscription"


@pytest.mark.parametrize(
    ("more", "cause", "text"),
    [
        ({"topics": ("orders", "payments")}, "metadata", "b subscribed to other topics"),
        ({"reason": "cached metadata has changed"}, "metadata",
         "b rejoined: cached metadata has changed"),
        ({"reason": "need to revoke partitions and re-join"}, "handover",
         "b rejoined, after releasing partitions for others"),
    ],
)  # fmt: skip
def test_a_member_that_rejoins_has_a_reason(
    group: Members, more: dict[str, Any], cause: str, text: str
) -> None:
    group.join("b", 10, 2, **more)
    group.join("a", 10.1, 2, ("a", "b"))
    assert second_of(group) == (cause, text)


def test_a_capture_that_starts_in_the_middle_does_not_guess() -> None:
    group = Members()
    group.beat("a", 0, 41)
    group.join("a", 1, 42, ("a", "b"))
    assert group.causes() == [(42, "unknown")]


def test_epochs_tell_what_happens_without_joins() -> None:
    group = Members()
    given = {"topic_partitions": [{"topic_id": UUID(int=7).bytes, "partitions": [0, 1]}]}
    group.epoch("a", 0, 0, 1, **ORDERS, given=given)
    for at in range(1, 5):
        group.epoch("a", at, 1, 1)
    group.epoch("b", 5, 0, 2, **ORDERS)
    group.epoch("a", 6, 1, 2)
    group.epoch("a", 8, 2, 2, subscribed_topic_names=["orders", "payments"])
    group.epoch("b", 9, 2, 3)
    group.epoch("a", 9.1, 2, 3)
    group.epoch("b", 12, -1, -1)
    group.epoch("a", 13, 3, 4)
    found = group.groups()
    assert group.causes() == [(1, "formed"), (2, "joined"), (3, "metadata"), (4, "left")]
    (line,) = found.rows()
    assert (line["protocol"], line["generations"], line["members"]) == ("consumer", "1 -> 4", 2)
    lines = {each["member"]: each for each in found.members("g")}
    assert lines["a"]["assigned"] == ["AAAAAAAA?-0", "AAAAAAAA?-1"]
    assert lines["b"]["state"] == "left"


def test_the_first_assignment_may_come_late() -> None:
    """A new streams group waits for more members before it assigns anything."""
    group = Members()
    group.epoch("a", 0, 0, 1, **ORDERS, given=NONE)
    group.epoch("b", 0.1, 0, 1, **ORDERS, given=NONE)
    group.epoch("a", 5, 1, 3, given=GIVEN)
    group.epoch("b", 5.1, 1, 3)
    group.epoch("a", 9, 3, 4, given=NONE)
    assert group.causes() == [(1, "formed"), (3, "formed"), (4, "unknown")]


def test_a_member_may_be_given_its_partitions_in_the_next_epoch() -> None:
    """Brokers of 4.3 assign at intervals: who joins between is told the epoch that there is."""
    group = Members()
    group.epoch("a", 0, 0, 2, **ORDERS, given=GIVEN)
    group.epoch("b", 1, 0, 2, **ORDERS, given=NONE)
    group.epoch("b", 2, 2, 3)
    group.epoch("a", 2.1, 2, 3, given=GIVEN)
    group.epoch("b", 3, 3, 4)
    assert group.causes() == [(2, "formed"), (3, "joined"), (4, "unknown")]


def test_a_subscription_that_is_said_again_is_no_other_one() -> None:
    """librdkafka says it with each heartbeat until it is given partitions."""
    group = Members()
    group.epoch("a", 0, 0, 2, **ORDERS)
    group.epoch("b", 0.1, 0, 2, **ORDERS, given=GIVEN)
    group.epoch("a", 0.5, 2, 2, **ORDERS)
    group.epoch("b", 1, 2, 3)
    group.epoch("a", 1.1, 2, 3, **ORDERS, given=GIVEN)
    assert second_of(group)[1] == "a had joined and waited for partitions"


def test_a_member_that_leaves_and_comes_back_under_its_id_did_not_poll() -> None:
    group = Members()
    group.epoch("a", 0, 0, 1, **ORDERS, given=GIVEN)
    group.epoch("b", 1, 0, 2, **ORDERS, given=NONE)
    group.epoch("a", 2, 1, 2)
    group.epoch("a", 9, -1, -1)
    group.epoch("b", 9.5, 2, 3, given=GIVEN)
    group.epoch("a", 11, 0, 3, **ORDERS, given=NONE)
    group.epoch("a", 12, 3, 4)
    group.epoch("b", 20, -1, -1)
    group.epoch("a", 20.5, 4, 5, given=GIVEN)
    assert group.causes()[2:] == [(3, "left"), (4, "joined"), (5, "left")]
    texts = [each["text"] for each in group.groups().rebalances("g")]
    assert texts[2].startswith("a left and rejoined as the same member")
    assert texts[4] == "b left"


@pytest.mark.parametrize("evicted", [True, False])
def test_a_member_that_comes_back_under_its_id_after_a_silence(evicted: bool) -> None:
    group = Members()
    group.epoch("a", 0, 0, 1, **ORDERS, given=GIVEN)
    for at in range(2, 12, 2):
        group.epoch("a", at, 1, 1)
        group.epoch("b", at + 0.1, 1, 1)
    group.epoch("b", 18, 1, 2, given=GIVEN)
    group.epoch("a", 21, 1, 0 if evicted else 2)
    if evicted:
        group.epoch("a", 21.1, 0, 3, **ORDERS, given=NONE)
    stories = group.groups()
    lines = stories.rebalances("g")
    assert lines[1]["cause"] == ("expired" if evicted else "unknown")
    assert ("a timed out: no heartbeat for 8.0 s" in lines[1]["text"]) is evicted
    found = Audit(Delivery(), stories, None).happenings("g")
    assert [each.kind for each in found] == ["twice"] * (not evicted)


def test_a_fenced_member() -> None:
    group = Members()
    group.epoch("a", 0, 0, 1, **ORDERS)
    group.epoch("a", 1, 1, 1)
    group.epoch("a", 60, 1, 0)
    (member,) = group.groups().members("g")
    assert (member["state"], member["text"]) == ("fenced", "got FENCED_MEMBER_EPOCH")


class FewEvents(Groups):
    """Groups that share the memory of 128 events."""

    few = LIMITS._replace(shared_from=2, table_events=128)
    _groups: Keyed[Group] = table(Group, weight=2, limits=few)


def test_many_groups_share_one_bound() -> None:
    members = Members()
    for at in range(30):
        for number in range(5):
            members.group = f"g{number}"
            members.join(f"m{number}", at, at, (f"m{number}",))
    events = [event for wire in members.wires.values() for event in wire.events]
    pairs = pairs_in(events)
    one = counted(FewEvents(), pairs)
    parts = [counted(FewEvents(), pairs[half::2]) for half in (0, 1)]
    kept = {name: len(one.events(name)) for name in one.names()}
    assert kept == dict.fromkeys((f"g{number}" for number in range(5)), 8)
    parts[1].merge(parts[0])
    assert parts[1].dump() == one.dump()
    assert FewEvents().load(one.dump()).dump() == one.dump()
    assert one.story("g0").dropped == 22


def test_lanes_show_who_was_there_when(group: Members) -> None:
    for at in range(10, 20):
        group.beat("a", at, 1)
    group.join("a", 20, 2, ("a",))
    group.beat("a", 39, 2)
    story = group.groups().story("g")
    assert story is not None
    title, _, one, two, _ = timeline(story, 40, lambda time_ns: "00:00")
    assert title.startswith("group g   classic protocol   generation 1 -> 2   2 rebalances")
    assert one.split(maxsplit=3)[3].startswith("J===================J===================")
    assert two.split(maxsplit=3)[3].startswith("J========x")
    assert "no heartbeat" in two


@pytest.mark.parametrize("name", ["rebalance.pcap", "transactions.pcap", "aiokafka.pcap"])
def test_lanes_have_no_hole_between_two_signs_of_life(name: str) -> None:
    pairs, _ = traffic(name)
    found = counted(Groups(), pairs)
    lanes = 0
    for group in found.names():
        story = found.story(group)
        for lane in lanes_of(story, Scale(story.first_ns, story.last_ns, 400)):
            lanes += 1
            assert " " not in lane.cells.strip(), (group, lane.cells)
    assert lanes
