"""The delivery audit on traffic of groups: real captures, and histories made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.merging.tables import Keyed
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.delivery.ends import APART, Periods, Positions
from kafkascope.analyzer.statistics.delivery.follow import Follow
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.statistics.delivery.plans import (
    Subscriber,
    assignment,
    by_range,
    by_round_robin,
    judge,
    subscribers,
)
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.captures.model import StreamEvent
from tests.analyzer.findings.judging import states
from tests.analyzer.statistics.delivery.audits import audit_of, line_of
from tests.kit.batches import batch
from tests.kit.samples import CAPTURES, SAMPLES
from tests.kit.wire import Wire, request, response, told


def test_offsets_of_a_healthy_group() -> None:
    audit = audit_of(CAPTURES / "healthy.pcap")
    lines = audit.partitions("well-group")
    assert [line["lag"] for line in lines] == [0, 0]
    assert sum(line["committed_offset"] for line in lines) == 40
    assert all(
        line["fetched_offset"] == line["end_offset"] == line["committed_offset"] for line in lines
    )
    assert audit.events("well-group") == []


def test_a_group_without_committed_offsets_is_remarked_even_if_it_read_nothing() -> None:
    audit = audit_of(CAPTURES / "causes" / "latest-skips-librdkafka.pcap.gz")
    assert "had no committed offset" in line_of(audit, "leads")["remarks"]


def test_commits_that_skip_and_go_back() -> None:
    audit = audit_of(CAPTURES / "odd-commits.pcap")
    line = line_of(audit, "commits")
    assert (line["fetched_offset"], line["committed_offset"], line["beyond"], line["back"]) == (
        20,
        50,
        30,
        5,
    )
    assert [event["kind"] for event in audit.events()] == ["back", "beyond"]


def test_a_group_without_commits_reads_again_after_a_rebalance() -> None:
    audit = audit_of(SAMPLES / "rebalance.pcap")
    java = line_of(audit, "java-4.4.0.group", 1)
    assert (java["again"], java["committed_offset"]) == (0, 12)
    other = line_of(audit, "librdkafka.group", 1)
    assert (other["again"], other["commits"]) == (24, 0)
    assert "no commit" in other["remarks"]
    assert {event["kind"] for event in audit.events()} == {"again"}


def test_what_was_on_its_way_when_a_group_rebalanced_is_not_read_again() -> None:
    """Each member of billing has a Fetch waiting when the group rebalances, drops its records and
    asks for them again: that is no second delivery. What a stopped member had got is one, and what
    it fetches when it goes on."""
    audit = audit_of(CAPTURES / "shop.pcap.zst")
    found = [event for event in audit.events("billing") if event["kind"] == "again"]
    assert [event["text"] for event in found] == [
        "orders-2: offset 9 was fetched again by billing-1@10.0.2.12, previously by "
        "billing-2@10.0.2.13",
        "orders-2: offsets 10 to 14 were fetched again by billing-2@10.0.2.13, previously by "
        "billing-1@10.0.2.12",
    ]


def fetch_of(sent: int, told_: int, first: int, to: int) -> Event:
    about = {"from": first, "to": to, "high": to, "end_ns": told_}
    return Event(sent, f"f{sent}", 0, sent, "fetch", about)


def start_of(sent: int, told_: int, offset: int) -> Event:
    return Event(sent, f"s{sent}", 0, sent, "start", {"offset": offset, "end_ns": told_})


@pytest.mark.parametrize(
    ("fetched", "again"),
    [
        # Asked before the group was told where to start, answered when it was.
        ((10, 60), 0),
        # Answered while the group was asking.
        ((10, 35), 0),
        # Answered before: the application may have them.
        ((10, 20), 5),
    ],
)
def test_only_what_came_before_a_group_starts_anew_is_read_again(
    fetched: tuple[int, int], again: int
) -> None:
    place = AuditedPartition("g", "t", 0)
    follow = Follow(place)
    follow.take([fetch_of(1, 5, 0, 3), fetch_of(*fetched, 3, 8), fetch_of(70, 80, 3, 8)], "a@h")
    follow.take([start_of(30, 40, 3)])
    follow.run()
    assert place.again == again
    assert place.fetched == 8


def test_lag_over_time_never_grows_in_a_group_that_reads_everything() -> None:
    audit = audit_of(SAMPLES / "rebalance.pcap")
    lags = [line["lag"] for line in audit.lags("java-4.4.0.group.group")]
    assert lags
    assert all(lag >= 0 for lag in lags)
    assert lags[-1] == 0


def test_the_plans_of_leaders_are_those_of_their_assignor() -> None:
    audit = audit_of(SAMPLES / "rebalance.pcap")
    plans = audit.plans()
    assert {plan["assignor"] for plan in plans} == {"range"}
    assert all("range" in plan["same_as"] for plan in plans)
    assert all(not plan["unassigned"] and not plan["twice"] for plan in plans)


def test_pauses_are_held_against_the_limit_of_the_group() -> None:
    audit = audit_of(CAPTURES / "restarted-member.pcap.gz")
    (pause,) = [event for event in audit.events() if event["kind"] == "pause"]
    assert "more than its max.poll.interval.ms (8 s)" in pause["text"]


def test_who_left_and_comes_back_did_not_pause() -> None:
    """librdkafka fetches ahead while its application does not poll, leaves, and joins anew."""
    audit = audit_of(CAPTURES / "silent-consumer.pcap.gz")
    assert not [event for event in audit.events() if event["kind"] == "pause"]


A = Subscriber("a", "", ("t", "u"))
B = Subscriber("b", "", ("t", "u"))
COUNTS = {"t": 3, "u": 3}


def test_range_gives_the_first_members_more_of_each_topic() -> None:
    given = by_range([A, B], COUNTS)
    assert given["a"] == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}
    assert given["b"] == {("t", 2), ("u", 2)}


def test_round_robin_deals_in_turn() -> None:
    given = by_round_robin([A, B], COUNTS)
    assert given["a"] == {("t", 0), ("t", 2), ("u", 1)}
    assert given["b"] == {("t", 1), ("u", 0), ("u", 2)}


def test_round_robin_passes_over_those_who_do_not_subscribe() -> None:
    given = by_round_robin([A, Subscriber("b", "", ("u",))], COUNTS)
    assert given["a"] >= {("t", 0), ("t", 1), ("t", 2)}


def test_static_members_come_first_by_their_instance() -> None:
    found = subscribers((("a", "", ("t",)), ("z", "i1", ("t",)), ("y", "i2", ("t",))))
    assert [each.id for each in found] == ["z", "y", "a"]


def test_a_sticky_assignment_moves_only_what_balance_needs() -> None:
    before = {"a": {("t", n) for n in range(4)}}
    members = [Subscriber("a", "", ("t",)), Subscriber("b", "", ("t",))]
    good = {"a": {("t", 0), ("t", 3)}, "b": {("t", 1), ("t", 2)}}
    judged = judge(good, members, {"t": 4}, before)
    assert judged.same_as == ("sticky",)
    assert (judged.moved, judged.needless) == (2, 0)
    swapped = judge({"a": good["b"], "b": good["a"]}, members, {"t": 4}, good)
    assert (swapped.moved, swapped.needless) == (4, 4)
    assert "sticky" not in swapped.same_as


def test_partitions_of_two_members_and_of_none() -> None:
    given = {"a": {("t", 0)}, "b": {("t", 0)}}
    judged = judge(given, [A, B], {"t": 2, "u": 0}, None)
    assert judged.twice == (("t", 0),)
    assert judged.unassigned == (("t", 1),)


def test_unknown_counts_make_nobody_guilty() -> None:
    judged = judge({"a": {("t", 0)}, "b": set()}, [A, B], {}, None)
    assert judged.unassigned == ()
    assert judged.same_as == ()


def test_an_assignment_is_read_from_the_state() -> None:
    assert assignment((("a", (("t", (0, 2)),)),)) == {"a": {("t", 0), ("t", 2)}}


@pytest.mark.parametrize("assignor", [by_range, by_round_robin])
@given(
    members=st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.frozensets(st.sampled_from("tuv"), min_size=1),
        min_size=1,
        max_size=5,
    ),
    counts=st.fixed_dictionaries({name: st.integers(0, 7) for name in "tuv"}),
)
def test_every_partition_of_a_subscribed_topic_has_one_owner(
    assignor: Any, members: dict[str, frozenset[str]], counts: dict[str, int]
) -> None:
    found = [Subscriber(name, "", tuple(sorted(topics))) for name, topics in members.items()]
    found.sort(key=lambda member: member.id)
    given = assignor(found, counts)
    owned = sorted(place for places in given.values() for place in places)
    topics = {topic for member in found for topic in member.topics}
    assert owned == sorted((topic, n) for topic in topics for n in range(counts[topic]))
    for member in found:
        assert {topic for topic, _ in given[member.id]} <= set(member.topics)


@given(
    polls=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=30),
    data=st.data(),
)
def test_periods_do_not_depend_on_order(polls: list[tuple[int, int]], data: st.DataObject) -> None:
    second = APART // 2
    one, two = Periods(), Periods()
    for begin, length in polls:
        one.add(begin * second, (begin + length) * second)
    for begin, length in data.draw(st.permutations(polls)):
        two.add(begin * second, (begin + length) * second)
    assert one.dump() == two.dump()
    assert all(end - begin > APART for begin, end in one.pauses())


def test_each_of_many_groups_does_not_look_through_all(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery, groups, context = Delivery(), Groups(), Context()
    events: list[StreamEvent] = []
    for number in range(50):
        about = {"group_id": f"g{number}", "member_id": "m"}
        wire = Wire(number=number)
        wire.client(request("JoinGroup", 5, 1, "app", **about))
        wire.broker(response("JoinGroup", 5, 1, generation_id=1, member_id="m"))
        wire.client(request("OffsetCommit", 7, 2, "app", **about, generation_id=1))
        wire.broker(response("OffsetCommit", 7, 2))
        events += wire.events
    for exchange in told(events, context):
        for each in (delivery, groups):
            each.add(ExchangeBatch.of(row_of(exchange, context.names), exchange))  # type: ignore[attr-defined]
    audit = Audit(delivery, groups, None)
    sorts = []
    items = Keyed.items

    def counted(table: Keyed[Any]) -> Any:
        sorts.append(table)
        return items(table)

    monkeypatch.setattr(Keyed, "items", counted)
    names = groups.names()
    assert len(names) == 50
    for name in names:
        audit.events(name)
        assert groups.story(name) is not None
    assert len(sorts) <= 5


class Group:
    """A member that fetches one partition and commits."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.ids = 0

    def ask(self, api: str, version: int, asked: Any, answer: Any) -> None:
        self.ids += 1
        self.wire.client(request(api, version, self.ids, **asked))
        self.wire.broker(response(api, version, self.ids, **answer))

    def fetch(
        self, offset: int, blob: bytes | None = None, *, told: bool = True, **more: Any
    ) -> None:
        part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1000}
        part |= {"current_leader_epoch": -1, "log_start_offset": -1}
        data = {"partition_index": 0, "error_code": 0, "high_watermark": 172, "records": blob}
        data |= {"last_stable_offset": 172, "log_start_offset": 0, "aborted_transactions": None}
        data |= {"preferred_read_replica": -1} | more
        answer = [{"topic": "t", "partitions": [data]}] if told else []
        topics = [{"topic": "t", "partitions": [part]}]
        self.ask("Fetch", 11, {"topics": topics}, {"responses": answer})

    def start(self, offset: int) -> None:
        data = {"partition_index": 0, "committed_offset": offset, "error_code": 0}
        data |= {"committed_leader_epoch": -1, "metadata": ""}
        topics = [{"name": "t", "partition_indexes": [0]}]
        answer = [{"name": "t", "partitions": [data]}]
        self.ask("OffsetFetch", 5, {"group_id": "g", "topics": topics}, {"topics": answer})

    def commit(self, offset: int) -> None:
        part = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": "t", "partitions": [part | {"committed_metadata": None}]}]
        asked = {"group_id": "g", "member_id": "m", "generation_id": 1, "topics": topics}
        done = [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]
        self.ask("OffsetCommit", 7, asked, {"topics": done})

    def beyond(self, kind: str = "beyond") -> list[str]:
        """What the audit says, whatever the order in which exchanges are counted."""
        context = Context()
        pairs = [(row_of(each, context.names), each) for each in told(self.wire.events, context)]
        found = []
        for order in (pairs, pairs[::-1]):
            one, two = Delivery(), Delivery()
            for number, (row, exchange) in enumerate(order):
                (one, two)[number % 2].add(ExchangeBatch.of(row, exchange))
            one.merge(Delivery().load(two.dump()))
            events = Audit(one, None, None).events()
            found.append([event["text"] for event in events if event["kind"] == kind])
        assert found[0] == found[1]
        return found[0]


def test_a_commit_where_nothing_was_fetched_is_ahead() -> None:
    for told_ in (True, False):
        group = Group()
        group.fetch(0, told=told_)
        group.commit(0)
        group.commit(172)
        (text,) = group.beyond()
        assert states(text, "offset 172", "nothing from 0 on", "172 records")


def test_a_reader_that_went_to_the_end_by_itself_skipped_nothing_by_its_commit() -> None:
    for offsets in ((172,), (0, 172)):
        group = Group()
        for offset in offsets:
            group.fetch(offset)
        group.commit(172)
        assert group.beyond() == []
    group = Group()
    group.fetch(0, batch([(None, b"v")] * 2))
    group.fetch(172)
    group.commit(172)
    assert group.beyond() == []


def test_the_marker_behind_a_transaction_is_no_record_that_is_fetched_again() -> None:
    """kafkajs resumes behind the last record, which is at the marker."""
    group, marker = Group(), batch([(b"\0\0\0\1", b"")], base_offset=2, attributes=48)
    two = [(None, b"v")] * 2
    group.commit(0)
    group.fetch(0, batch(two) + marker)
    group.fetch(2, marker)
    group.fetch(2, marker + batch(two, base_offset=3))
    assert group.beyond("again") == []
    group.fetch(2, marker + batch(two, base_offset=3))
    (text,) = group.beyond("again")
    assert states(text, "offsets 3 to 4 were fetched again")


def test_what_others_committed_before_is_not_held_against_a_member() -> None:
    group = Group()
    group.fetch(0)
    group.start(100)
    group.commit(100)
    assert group.beyond() == []


@pytest.mark.parametrize("away", [{"error_code": 6}, {"preferred_read_replica": 2}])
def test_who_fetches_elsewhere_may_have_fetched_there(away: dict[str, int]) -> None:
    group = Group()
    group.fetch(0)
    group.fetch(0, **away)
    group.commit(172)
    assert group.beyond() == []
    group = Group()
    group.fetch(0, **away)
    group.fetch(0)
    group.commit(172)
    assert len(group.beyond()) == 1


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 50)), max_size=400), st.data())
def test_positions_of_parts_are_those_of_the_whole(
    asked: list[tuple[int, int]], data: st.DataObject
) -> None:
    whole, parts = Positions(), [Positions(), Positions()]
    for offset, time_ns in asked:
        whole.add(offset, time_ns)
        parts[data.draw(st.integers(0, 1))].add(offset, time_ns)
    parts[0].merge(Positions().load(parts[1].dump()))
    assert parts[0].dump() == whole.dump()
    assert len(whole.dump()) <= LIMITS.positions


def test_members_of_streams_groups_are_known_by_their_heartbeats() -> None:
    """KIP-1071: no JoinGroup, no OffsetCommit of their own."""
    wire = Wire()
    wire.client(request("StreamsGroupHeartbeat", 0, 1, group_id="g", member_id="m"))
    wire.broker(response("StreamsGroupHeartbeat", 0, 1, error_code=0))
    part = {"partition": 0, "fetch_offset": 5, "partition_max_bytes": 1000}
    part |= {"current_leader_epoch": -1, "log_start_offset": -1}
    data = {"partition_index": 0, "error_code": 0, "high_watermark": 7, "last_stable_offset": 7}
    data |= {"log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1}
    data |= {"records": batch([(None, b"v")] * 2, base_offset=5)}
    wire.client(request("Fetch", 11, 2, topics=[{"topic": "t", "partitions": [part]}]))
    answer = [{"topic": "t", "partitions": [data]}]
    wire.broker(response("Fetch", 11, 2, error_code=0, responses=answer))
    delivery, context = Delivery(), Context()
    for exchange in told(wire.events, context):
        delivery.add(ExchangeBatch.of(row_of(exchange, context.names), exchange))
    (line,) = delivery.rows()
    assert (line["group"], line["topic"], line["fetched_offset"], line["end_offset"]) == (
        "g",
        "t",
        7,
        7,
    )
