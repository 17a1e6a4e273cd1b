"""Findings that explain others, and consequences folded into their causes."""

from dataclasses import replace
from graphlib import TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.findings import RULES, Cause, Finding, causes
from kafkascope.analyzer.findings.causes import EXPLANATIONS, Explanation, folded, linked, unfolded
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.model import RANK, key_of, order
from tests.analyzer.findings.judging import capture_of, found, judged, states
from tests.kit.samples import CAPTURES, SAMPLES
from tests.kit.wire import CLIENT, SECOND, Wire


def finding(
    name: str,
    *about: tuple[str, str],
    first: int | None = 0,
    last: int | None = None,
    count: int = 1,
) -> Finding:
    """One of a rule, its times in seconds."""
    rule = RULES[name]
    begin = None if first is None else first * SECOND
    end = begin if last is None else last * SECOND
    key = key_of(rule, about)
    text = f"{name} of {about}"
    return Finding(
        name, rule.severity, text, count, begin, end, "", "", "", about, None, key, rule.brief
    )


ORDERS = ("client", "orders")
STOCK = ("client", "stock")


def test_the_table_names_rules_that_exist() -> None:
    named = {name for line in EXPLANATIONS for name in (*line.causes, *line.effects)}
    assert named <= RULES.keys()


def test_no_rule_explains_itself_through_others() -> None:
    above: dict[str, set[str]] = {}
    for line in EXPLANATIONS:
        for effect in line.effects:
            above.setdefault(effect, set()).update(line.causes)
    list(TopologicalSorter(above).static_order())  # CycleError


def test_every_rule_that_can_follow_has_a_phrase() -> None:
    effects = {name for line in EXPLANATIONS for name in line.effects}
    assert not sorted(name for name in effects if not RULES[name].brief)


@pytest.mark.parametrize(
    ("effect", "explained"),
    [
        (finding("unanswered", ORDERS, first=5), True),
        (finding("unanswered", STOCK, first=5), False),
        (finding("unanswered", ORDERS, first=-1), True),
        (finding("unanswered", ORDERS, first=-2), False),
        (finding("unanswered", ORDERS, first=130), True),
        (finding("unanswered", ORDERS, first=131), False),
        (finding("unanswered", ORDERS, first=None), True),
        (finding("redelivered", ORDERS, first=5), False),
    ],
    ids=["during", "another", "just before", "long before", "soon", "late", "always", "unlisted"],
)
def test_what_explains_what(effect: Finding, explained: bool) -> None:
    cause = finding("version-refused", ORDERS, first=0, last=10)
    told, followed = linked([cause, effect])
    assert told.because == ()
    assert followed.because == ((cause.id,) if explained else ())


def test_all_kinds_that_a_line_demands_are_shared() -> None:
    cause = finding("plain-to-tls", ORDERS, ("broker", "b:1"))
    near = finding("unanswered", ORDERS, ("broker", "b:1"))
    other = finding("unanswered", ORDERS, ("broker", "c:1"))
    assert [bool(each.because) for each in linked([cause, near, other])] == [False, True, False]


def test_a_consequence_of_a_consequence_is_folded_into_the_cause() -> None:
    a = finding("rebalance-poll", ("group", "g"))
    b = finding("rebalance-storm", ("group", "g"), first=1)
    c = finding("redelivered", ("group", "g"), first=2, count=7)
    (cause,) = folded(linked([c, b, a]))
    assert cause.finding.id == a.id
    assert [each.name for each in cause.consequences] == ["rebalance-storm", "redelivered"]


def test_a_cause_is_as_bad_as_what_followed() -> None:
    mild = replace(finding("version-refused", ORDERS), severity="note")
    (cause,) = folded(linked([mild, finding("unanswered", ORDERS)]))
    assert (cause.finding.severity, cause.severity) == ("note", "warning")


def test_what_is_so_all_the_time_comes_behind_what_happened() -> None:
    far, lost = finding("network-far", ORDERS), finding("syn-lost", ORDERS, first=5)
    worse = finding("lost-segments", STOCK, first=9)
    assert [far.severity, lost.severity, worse.severity] == ["note", "note", "warning"]
    assert [each.finding for each in folded([far, lost, worse])] == [worse, lost, far]


def test_a_consequence_whose_cause_was_not_asked_for_stands_alone() -> None:
    cause = finding("version-refused", ORDERS)
    _, followed = linked([cause, finding("unanswered", ORDERS)])
    assert folded([followed]) == [Cause(followed)]


def test_counts_of_one_kind_add_up_in_the_line() -> None:
    cause = Cause(
        finding("version-refused", ORDERS),
        (
            finding("lookup-storm", ORDERS, count=33),
            finding("unanswered", ORDERS, count=1_000),
            finding("no-answer-yet", ORDERS, count=4),
            finding("late-answer", ORDERS, count=1),
        ),
    )
    assert cause.therefore() == "33 lookups, 1,004 requests without response, 1 late response"


def test_worst_and_earliest_first() -> None:
    late = finding("version-refused", ORDERS, first=9)
    early = finding("version-refused", STOCK, first=3)
    mild = finding("lookup-storm", ("client", "other"), first=0)
    assert [each.finding for each in folded([mild, late, early])] == [early, late, mild]


def test_equal_findings_have_equal_ids_and_others_have_not() -> None:
    one = finding("unanswered", ORDERS)
    assert one.id == finding("unanswered", ORDERS).id
    assert len({one.id, finding("unanswered", STOCK).id, replace(one, count=2).id}) == 3


def test_the_same_trouble_tomorrow_has_the_same_key() -> None:
    rule = RULES["unanswered"]
    today = key_of(rule, (("client", "orders@10.0.0.1"), ("broker", "b:9092"), ("api", "Fetch")))
    tomorrow = key_of(rule, (("broker", "b:9093"), ("api", "Fetch"), ("client", "orders")))
    assert today == tomorrow == "unanswered api=Fetch broker=b client=orders"
    assert key_of(rule, (ORDERS, ("connection", "7"))) == key_of(rule, (ORDERS,))


@pytest.mark.parametrize(
    ("capture", "cause", "effect"),
    [
        ("odd-requests", "unknown-api", "unanswered"),
        ("old-versions", "version-refused", "undecodable"),
        ("sequences", "sequence-refused", "sequence-repeated"),
    ],
)
def test_one_exchange_is_told_by_one_cause(capture: str, cause: str, effect: str) -> None:
    """Both are about the same requests."""
    found = judged(capture_of(capture))[0]
    ids = {each.id for each in found if each.name == cause}
    assert any(ids.intersection(each.because) for each in found if each.name == effect)


def test_what_clients_try_at_an_ensemble_without_a_leader_follows_from_its_loss() -> None:
    found = judged(capture_of("zookeeper-failover"))[0]
    (down,) = (each for each in found if each.name == "broker-down")
    assert down.text.startswith("ZooKeeper 127.0.0.1:20187 was down")
    effects = [each for each in found if each.name.startswith("zookeeper-")]
    assert len(effects) == 3
    assert all(down.id in each.because for each in effects)


def test_what_was_slow_long_before_a_broker_stopped_has_another_cause() -> None:
    down = finding("broker-down", ORDERS, first=60, last=66)
    early, late = (finding("slow-answers", ORDERS, first=first) for first in (40, 58))
    moved = finding("leader-moved", ORDERS, first=40)
    found = linked([down, early, late, moved])
    assert [bool(each.because) for each in found] == [False, False, True, True]


def test_an_old_client_that_never_asks_for_versions_is_one_cause() -> None:
    old, silent = finding("breaks-on-upgrade", ORDERS), finding("no-api-versions", ORDERS, first=-9)
    assert folded(linked([silent, old])) == [Cause(old, (linked([old, silent])[1],))]


NAMES = sorted({name for line in EXPLANATIONS for name in (*line.causes, *line.effects)})
ENTITIES = st.tuples(
    st.sampled_from(["client", "group", "broker"]), st.sampled_from(["a", "b", "c"])
)
SOME = st.lists(
    st.builds(
        lambda name, about, first, span: finding(name, *about, first=first, last=first + span),
        st.sampled_from(NAMES),
        st.lists(ENTITIES, max_size=3, unique=True),
        st.integers(0, 200),
        st.integers(0, 50),
    ),
    max_size=20,
    unique_by=lambda each: each.id,
)


@given(SOME, st.randoms())
def test_folding_keeps_every_finding_once_in_any_order(
    found: list[Finding], random: object
) -> None:
    causes = folded(linked(found))
    told = unfolded(causes)
    assert sorted(each.id for each in told) == sorted(each.id for each in found)
    assert not any(cause.finding.because for cause in causes)
    assert all(each.because for cause in causes for each in cause.consequences)
    ranks = [RANK[cause.severity] for cause in causes]
    assert ranks == sorted(ranks)
    random.shuffle(found)  # type: ignore[attr-defined]
    assert folded(linked(found)) == causes
    assert [order(each) for each in told] == [order(each) for each in unfolded(causes)]


@pytest.mark.timeout(120)
def test_thousands_of_findings_about_one_client_are_linked_in_linear_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 3,000 took 38 seconds, 15,000 would have taken a quarter of an hour.
    count = 5_000
    lines = (each for each in EXPLANATIONS if each.same == ("client",))
    line = next(each for each in lines if len(each.effects) > 1)
    names = (line.causes[0], *line.effects[:2])
    found = [
        finding(name, ("client", "c"), ("topic", f"t{number}"))
        for number in range(count)
        for name in names
    ]
    looks = 0
    in_time = causes._in_time

    def counted(line: Explanation, effect: Finding, cause: Finding) -> bool:
        nonlocal looks
        looks += 1
        return in_time(line, effect, cause)

    monkeypatch.setattr(causes, "_in_time", counted)
    told = folded(linked(found))
    assert looks < len(found) * len(EXPLANATIONS) * LIMITS.causes / 4
    assert sum(1 + len(each.consequences) for each in told) == len(found)
    assert all(each.finding.name == names[0] for each in told)


def of(rule: str, name: str) -> list[Finding]:
    path = capture_of(name, SAMPLES if name == "sasl" else CAPTURES)
    return [finding for finding in judged(path)[0] if finding.name == rule]


def test_denials_are_errors_and_say_what_to_grant() -> None:
    producer, consumer = of("denied", "acl-denied-java")
    assert {producer.severity, consumer.severity} == {"error"}
    topic = ("2 Metadata requests", "orders", "TOPIC_AUTHORIZATION_FAILED")
    cluster = ("19 InitProducerId requests", "CLUSTER_AUTHORIZATION_FAILED")
    assert states(producer.text, "acl-producer", "user alice", "denied", *topic, *cluster)
    assert "WRITE on the topics" in producer.advice
    assert "IDEMPOTENT_WRITE on the cluster" in producer.advice
    assert "READ on the group" in consumer.advice
    assert {("topic", "orders"), ("group", "acl-group")} <= set(consumer.entities)
    assert all("retry" not in finding.advice for finding in (producer, consumer))


def test_all_fenced_members_are_counted_and_those_who_took_over_are_named() -> None:
    (finding,) = of("static-conflict", "static-conflict-java")
    assert finding.count == 2
    first, second = "stat-1 (instance pod-1) by stat-2", "stat-2 (instance pod-1) by stat-3"
    assert states(finding.text, "2 members", "group stat", "fenced", first, second)
    assert ("instance", "pod-1") in finding.entities


@pytest.mark.parametrize(("hosts", "named"), [(2, "app at 10.0.0.9"), (1, "app (member-2)")])
def test_who_took_over_is_told_apart_from_others_of_its_name(hosts: int, named: str) -> None:
    wires = []
    for number in (1, 2):
        wire = Wire(number=number, start_ns=number * 10_000_000_000)
        if number == 2 and hosts == 2:
            wire.connection.a = CLIENT._replace(host="10.0.0.9")
        joined = {"group_id": "g", "group_instance_id": "pod-1", "protocol_type": "consumer"}
        member = {"member_id": f"member-{number}", "generation_id": 1}
        wire.exchange("JoinGroup", 5, 1, member, **joined)
        wires.append(wire)
    first = wires[0]
    first.time_ns = wires[1].time_ns + 1_000_000_000
    beat = {"group_id": "g", "member_id": "member-1", "generation_id": 1}
    first.exchange("Heartbeat", 3, 2, {"error_code": 82}, **beat)
    finding = found(wires)["static-conflict"]
    assert finding.text.endswith(f"app (instance pod-1) by {named}")


def test_throttling_links_to_the_error_of_topic_changes_only_there() -> None:
    assert {finding.link for finding in of("throttled", "throttled")} == {""}
    wire = Wire()
    for number in range(1, 4):
        wire.exchange("CreateTopics", 6, number, {"throttle_time_ms": 800})
    assert found([wire])["throttled"].link == "THROTTLING_QUOTA_EXCEEDED"


def test_connections_that_brokers_end_are_not_for_the_client_to_keep() -> None:
    """kafka-python with a wrong password on half of its connections."""
    (finding,) = of("connection-churn", "sasl")
    assert finding.severity == "note"
    assert "brokers closed or refused 10 of them" in finding.text
    assert "one client object" not in finding.advice
    (own,) = of("apiversions-loop", "short-connections")
    assert own.severity == "warning"
    assert "probe" in own.advice
