"""The delivery audit on traffic of groups: real captures, and histories made by hand."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.merging.tables import Keyed
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery import plans
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.delivery.follow import Follow
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.statistics.delivery.parts import offset_in
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.captures.model import StreamEvent
from kafkascope.tui.screens.groups import audited
from tests.analyzer.findings.judging import states
from tests.kit.batches import batch
from tests.kit.counting import count_capture, counted, pairs_in
from tests.kit.run import objects, run
from tests.kit.samples import CAPTURES, CAUSES, SAMPLES
from tests.kit.wire import Wire, partition, records, request, response


def audit_of(path: Path) -> Audit:
    delivery, groups, cluster = Delivery(), Groups(), Cluster()
    return Audit(delivery, groups, cluster, count_capture(path, delivery, groups, cluster))


def line_of(audit: Audit, topic: str, number: int = 0) -> dict[str, Any]:
    return next(
        line for line in audit.partitions() if (line["topic"], line["partition"]) == (topic, number)
    )


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
    audit = audit_of(CAUSES / "latest-skips-librdkafka.pcap.gz")
    assert "had no committed offset" in line_of(audit, "leads")["remarks"]


def test_commits_that_skip_and_go_back() -> None:
    audit = audit_of(CAPTURES / "odd-commits.pcap")
    line = line_of(audit, "commits")
    assert (line["fetched_offset"], line["committed_offset"]) == (20, 50)
    assert (line["beyond"], line["back"]) == (30, 5)
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


def fetch_of(sent: int, told: int, first: int, to: int) -> Event:
    about = {"from": first, "to": to, "high": to, "end_ns": told}
    return Event(sent, f"f{sent}", 0, sent, "fetch", about)


@pytest.mark.parametrize(
    ("fetched", "again"),
    [
        ((10, 60), 0),  # asked before the group was told where to start, answered when it was
        ((10, 35), 0),  # answered while the group was asking
        ((10, 20), 5),  # answered before: the application may have them
    ],
)
def test_only_what_came_before_a_group_starts_anew_is_read_again(
    fetched: tuple[int, int], again: int
) -> None:
    place = AuditedPartition("g", "t", 0)
    follow = Follow(place)
    follow.take([fetch_of(1, 5, 0, 3), fetch_of(*fetched, 3, 8), fetch_of(70, 80, 3, 8)], "a@h")
    follow.take([Event(30, "s30", 0, 30, "start", {"offset": 3, "end_ns": 40})])
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
    found = audit.plans()
    assert {plan["assignor"] for plan in found} == {"range"}
    assert all("range" in plan["same_as"] for plan in found)
    assert all(not plan["unassigned"] and not plan["twice"] for plan in found)


def test_pauses_are_held_against_the_limit_of_the_group() -> None:
    audit = audit_of(CAPTURES / "restarted-member.pcap.gz")
    (pause,) = [event for event in audit.events() if event["kind"] == "pause"]
    assert (
        "more than its rebalance timeout (8 s; max.poll.interval.ms in most clients)"
        in pause["text"]
    )


def test_who_left_and_comes_back_did_not_pause() -> None:
    """librdkafka fetches ahead while its application does not poll, leaves, and joins anew."""
    audit = audit_of(CAPTURES / "silent-consumer.pcap.gz")
    assert not [event for event in audit.events() if event["kind"] == "pause"]


A = plans.Subscriber("a", "", ("t", "u"))
B = plans.Subscriber("b", "", ("t", "u"))
COUNTS = {"t": 3, "u": 3}


def test_range_gives_the_first_members_more_of_each_topic() -> None:
    given = plans.by_range([A, B], COUNTS)
    assert given["a"] == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}
    assert given["b"] == {("t", 2), ("u", 2)}


def test_round_robin_deals_in_turn() -> None:
    given = plans.by_round_robin([A, B], COUNTS)
    assert given["a"] == {("t", 0), ("t", 2), ("u", 1)}
    assert given["b"] == {("t", 1), ("u", 0), ("u", 2)}


def test_round_robin_passes_over_those_who_do_not_subscribe() -> None:
    given = plans.by_round_robin([A, plans.Subscriber("b", "", ("u",))], COUNTS)
    assert given["a"] >= {("t", 0), ("t", 1), ("t", 2)}


def test_static_members_come_first_by_their_instance() -> None:
    found = plans.subscribers((("a", "", ("t",)), ("z", "i1", ("t",)), ("y", "i2", ("t",))))
    assert [each.id for each in found] == ["z", "y", "a"]


def test_a_sticky_assignment_moves_only_what_balance_needs() -> None:
    before = {"a": {("t", n) for n in range(4)}}
    members = [plans.Subscriber("a", "", ("t",)), plans.Subscriber("b", "", ("t",))]
    good = {"a": {("t", 0), ("t", 3)}, "b": {("t", 1), ("t", 2)}}
    judged = plans.judge(good, members, {"t": 4}, before)
    assert judged.same_as == ("sticky",)
    assert (judged.moved, judged.needless) == (2, 0)
    swapped = plans.judge({"a": good["b"], "b": good["a"]}, members, {"t": 4}, good)
    assert (swapped.moved, swapped.needless) == (4, 4)
    assert "sticky" not in swapped.same_as


def test_partitions_of_two_members_and_of_none() -> None:
    given = {"a": {("t", 0)}, "b": {("t", 0)}}
    judged = plans.judge(given, [A, B], {"t": 2, "u": 0}, None)
    assert judged.twice == (("t", 0),)
    assert judged.unassigned == (("t", 1),)


def test_unknown_counts_make_nobody_guilty() -> None:
    judged = plans.judge({"a": {("t", 0)}, "b": set()}, [A, B], {}, None)
    assert judged.unassigned == ()
    assert judged.same_as == ()


def test_an_assignment_is_read_from_the_state() -> None:
    assert plans.assignment((("a", (("t", (0, 2)),)),)) == {"a": {("t", 0), ("t", 2)}}


@pytest.mark.parametrize("assignor", [plans.by_range, plans.by_round_robin])
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
    found = [plans.Subscriber(name, "", tuple(sorted(topics))) for name, topics in members.items()]
    found.sort(key=lambda member: member.id)
    given = assignor(found, counts)
    owned = sorted(place for places in given.values() for place in places)
    topics = {topic for member in found for topic in member.topics}
    assert owned == sorted((topic, n) for topic in topics for n in range(counts[topic]))
    for member in found:
        assert {topic for topic, _ in given[member.id]} <= set(member.topics)


def test_each_of_many_groups_does_not_look_through_all(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery, groups = Delivery(), Groups()
    events: list[StreamEvent] = []
    for number in range(50):
        about = {"group_id": f"g{number}", "member_id": "m"}
        wire = Wire(number=number)
        wire.client(request("JoinGroup", 5, 1, "app", **about))
        wire.broker(response("JoinGroup", 5, 1, generation_id=1, member_id="m"))
        wire.client(request("OffsetCommit", 7, 2, "app", **about, generation_id=1))
        wire.broker(response("OffsetCommit", 7, 2))
        events += wire.events
    for each in (delivery, groups):
        counted(each, pairs_in(events))
    audit = Audit(delivery, groups, None)
    sorts = []
    items = Keyed.items

    def counted_items(table: Keyed[Any]) -> Any:
        sorts.append(table)
        return items(table)

    monkeypatch.setattr(Keyed, "items", counted_items)
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
        topics = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": offset}]}]
        data = partition(0, blob, **({"high_watermark": 172, "last_stable_offset": 172} | more))
        answer = [{"topic": "t", "partitions": [data]}]
        self.ask("Fetch", 11, {"topics": topics}, {"responses": answer if told else []})

    def start(self, offset: int) -> None:
        topics = [{"name": "t", "partition_indexes": [0]}]
        data = [{"partition_index": 0, "committed_offset": offset}]
        answer = [{"name": "t", "partitions": data}]
        self.ask("OffsetFetch", 5, {"group_id": "g", "topics": topics}, {"topics": answer})

    def commit(self, offset: int) -> None:
        parts = [{"partition_index": 0, "committed_offset": offset}]
        asked = {"group_id": "g", "member_id": "m", "generation_id": 1}
        done = [{"name": "t", "partitions": [{"partition_index": 0}]}]
        topics = [{"name": "t", "partitions": parts}]
        self.ask("OffsetCommit", 7, asked | {"topics": topics}, {"topics": done})

    def beyond(self, kind: str = "beyond") -> list[str]:
        """What the audit says, whatever the order in which exchanges are counted."""
        pairs = pairs_in(self.wire.events)
        found = []
        for order in (pairs, pairs[::-1]):
            one, two = (counted(Delivery(), order[half::2]) for half in (0, 1))
            one.merge(Delivery().load(two.dump()))
            events = Audit(one, None, None).events()
            found.append([event["text"] for event in events if event["kind"] == kind])
        assert found[0] == found[1]
        return found[0]


def test_a_commit_where_nothing_was_fetched_is_ahead() -> None:
    for told in (True, False):
        group = Group()
        group.fetch(0, told=told)
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
    group.fetch(0, records(0, 2))
    group.fetch(172)
    group.commit(172)
    assert group.beyond() == []


def test_the_marker_behind_a_transaction_is_no_record_that_is_fetched_again() -> None:
    """kafkajs resumes behind the last record, which is at the marker."""
    group, marker = Group(), batch([(b"\0\0\0\1", b"")], base_offset=2, attributes=48)
    group.commit(0)
    group.fetch(0, records(0, 2) + marker)
    group.fetch(2, marker)
    group.fetch(2, marker + records(3, 2))
    assert group.beyond("again") == []
    group.fetch(2, marker + records(3, 2))
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


def test_members_of_streams_groups_are_known_by_their_heartbeats() -> None:
    """KIP-1071: no JoinGroup, no OffsetCommit of their own."""
    group = Group()
    group.ask("StreamsGroupHeartbeat", 0, {"group_id": "g", "member_id": "m"}, {})
    group.fetch(5, records(5, 2), high_watermark=7, last_stable_offset=7)
    (line,) = counted(Delivery(), pairs_in(group.wire.events)).rows()
    assert (line["group"], line["topic"]) == ("g", "t")
    assert (line["fetched_offset"], line["end_offset"]) == (7, 7)


def test_the_end_is_what_anybody_was_told_of_it() -> None:
    """The reader fetched last in the middle; the producer went on."""
    line = line_of(audit_of(CAUSES / "growing-lag-librdkafka.pcap.gz"), "frames")
    assert line["end_offset"] > 1_500
    assert line["lag"] == line["end_offset"] - line["committed_offset"]


def test_commits_in_zookeeper_are_held_against_the_fetches_of_the_same_group() -> None:
    lines = objects("groups", CAPTURES / "zookeeper-consumers.pcap.zst", "--partitions", "--json")
    names = ("topic", "partition", "committed_offset", "fetched_offset", "lag")
    found = [tuple(each[name] for name in names) for each in lines if each["group"] == "zk-group"]
    assert sorted(found) == [("orders", n, at, at, 0) for n, at in enumerate((19, 11, 10))]
    assert {reader for each in lines for reader in each["readers"]} == {
        f"{one}-ConsumerFetcherThread-zk-group_{one}-0-1@127.0.0.1" for one in ("one", "two")
    }


@pytest.mark.parametrize("data", [b"", None, b"-1", b"x", b"9" * 20])
def test_what_is_no_offset_is_none(data: bytes | None) -> None:
    assert offset_in(data) is None
    assert offset_in(b"17") == 17


# --- share groups, which have nothing to audit


SHARES = CAPTURES / "share-group.pcap.gz"


def test_each_share_group_gets_its_sentence() -> None:
    for more in ((), ("share-group",)):
        done = run("groups", "--delivery", SHARES, *more)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.startswith("kafkascope: share-group is a share group: ")
        assert done.stderr.count("\n") == 1
    assert run("groups", "--delivery", SHARES, "-q").stderr == ""
    assert "share group" not in run("groups", "--delivery", SAMPLES / "rebalance.pcap").stderr


def test_the_filters_that_it_names_find_what_they_should() -> None:
    said = run("groups", "--delivery", SHARES).stderr
    handed = re.search(r"-Y '([^']+)'", said)
    again = re.search(r"'(and [^']+)'", said)
    first = run("ls", SHARES, "-Y", handed[1], "--json").stdout.splitlines()
    assert any('"api":"ShareAcknowledge"' in line for line in first)
    second = run("ls", SHARES, "-Y", f"{handed[1]} {again[1]}", "--json")
    assert second.exit_code == 0
    assert len(second.stdout.splitlines()) < len(first)


@pytest.mark.parametrize("tab", ["Delivery", "Audit", "Plans"])
def test_the_screen_says_the_same(tab: str) -> None:
    sheet, empty = audited(audit_of(SHARES), tab, "share-group", Times("u"))
    assert not sheet.lines
    assert "is a share group" in empty
