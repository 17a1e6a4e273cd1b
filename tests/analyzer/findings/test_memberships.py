"""Groups whose members come and go, do not belong together, or have nothing to do."""

import re
from fractions import Fraction

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.findings.applications import similar_pairs
from tests.analyzer.findings.judging import capture_of, found, judged, states, wire_of
from tests.analyzer.findings.sides_data import reads, writes
from tests.analyzer.findings.sides_groups import HERE, member, owning, restless
from tests.kit.batches import batch
from tests.kit.members import Members, subscribed
from tests.kit.wire import SECOND, START, Wire


def test_a_lone_member_that_leaves_and_comes_back_in_the_same_epoch() -> None:
    """Its broker forgets the group meanwhile; the member id stays with KIP-848."""
    group = Members()
    for at in (0, 10, 20):
        group.epoch("a", at, 0, 2, given={"topic_partitions": []}, rebalance_timeout_ms=3_000)
        group.epoch("a", at + 1, 2, 2)
        group.epoch("a", at + 5, -1, -1)
    told = found(group.wires.values())
    assert states(told["rebalance-poll"].text, "2 of 3 rebalances", "max.poll.interval.ms")
    assert "rebalance-slow" not in told


@pytest.mark.parametrize(("silent", "told"), [(9, True), (1, False)])
@pytest.mark.parametrize("error", [25, 69])
def test_a_lone_member_that_was_evicted_meanwhile(error: int, silent: int, told: bool) -> None:
    """Nobody was left to rebalance: the broker says so when the member is back."""
    new, old = Members(), Members()
    new.epoch("a", 0, 0, 2, given={"topic_partitions": []})
    old.join("a", 0, 1, ("a",), session_timeout_ms=6_000)
    for second in range(1, 6):
        new.epoch("a", second, 2, 2)
        old.beat("a", second, 1)
    asked = {"member_id": "a", "member_epoch": 2}
    new.ask("a", 5 + silent, "ConsumerGroupHeartbeat", 1, asked, {"error_code": error}, 0.01)
    old.beat("a", 5 + silent, 1, error)
    for group in (new, old):
        finding = found(group.wires.values()).get("rebalance-expired")
        assert (finding is not None) == told
        assert finding is None or states(finding.text, "1 member", "no heartbeat for 9.0 s")


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


def test_a_client_that_comes_back_again_and_again() -> None:
    told = found(restless(3).wires.values())["rebalance-storm"]
    assert states(told.text, "2 members", "left and came back: a (3")


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
    for at in range(len(parts)):
        mine = range(sum(parts[:at]), sum(parts[: at + 1]))
        group.epoch(f"m{at}", at, 0, 1, subscribed_topic_names=["t"], given=owning(*mine))
    return group


@pytest.mark.parametrize(
    ("parts", "idle"), [((1, 1, 0), 1), ((1, 1, 1), 0), ((2, 1, 0), 0), ((1, 0, 0, 0), 3)]
)
def test_members_without_a_partition(parts: tuple[int, ...], idle: int) -> None:
    told = found(consumers(*parts).wires.values())
    assert ("idle-members" in told) == bool(idle)
    if idle:
        assert told["idle-members"].text.startswith(f"{idle} of {len(parts)} members of group g")


def alone(times: int, every: int, *, more: int = 5, value: bytes = b"v") -> Finding | None:
    """A reader without a group that asks for an offset so often, then for another one."""
    wire = Wire()
    for number in range(times + 1):
        asked = 5 if number < times else more
        wire.time_ns = START + every * number * SECOND
        blob = batch([(None, value)], base_offset=asked)
        wire.fetch(number, asked, blob, client="job", high_watermark=25, last_stable_offset=25)
    return found([wire]).get("reader-stuck")


def test_a_reader_without_a_group_is_stuck() -> None:
    told = alone(4, 5)
    assert told.severity == "error"
    parts = ("job", "stuck at offset 5 of orders-0", "5 times within 20 s", "20 records after it")
    assert states(told.text, *parts)
    assert ("topic", "orders") in told.entities


@pytest.mark.parametrize(
    ("times", "every", "more"),
    [(1, 20, 5), (4, 2, 5), (4, 5, 6)],
    ids=["a restart", "within seconds", "goes on"],
)
def test_readers_without_a_group_that_are_well(times: int, every: int, more: int) -> None:
    assert alone(times, every, more=more) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [(b"\0\0\0\0\x11avro", True), (b"\0\0\0\0\0\0\0\x11", False), (b'{"a": 1}', False)],
)
def test_the_schema_id_of_what_a_reader_fails_on(value: bytes, said: bool) -> None:
    told = alone(4, 5, value=value)
    assert states(told.text, "schema id 17") == said


ELSEWHERE = (2, "10.0.1.3", 9092)


@pytest.mark.parametrize("least", [0, 4])
def test_a_member_that_never_fetches(least: int) -> None:
    finding = member(least=least)
    assert states(finding.text, "app", "owned 2 partitions", "group g", "60 s", "no Fetch")
    assert states(finding.text, "orders-0", "orders-1", f"Fetch v{least} to v17")


@pytest.mark.parametrize(
    "finding",
    [
        member(fetches=True),
        member(60 * SECOND, HERE, ELSEWHERE),
        member(kind="connect"),
        member(parts=()),
        member(handshake=False),
    ],
    ids=["fetches", "at another broker", "a worker of Connect", "owns nothing", "midstream"],
)
def test_members_that_may_fetch(finding: Finding | None) -> None:
    assert finding is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("orders", "Orders"), ("a.b", "a_b"), ("Page-Views", "page.views")),
        *(("metrics", "metrcis"), ("invoices", "invoice"), ("payments", "paymants")),
        ("customer-events", "customers-events"),
    ],
)
def test_names_that_differ_by_a_typo_are_alike(one: str, other: str) -> None:
    assert list(similar_pairs(sorted([one, other, "something-else"]))) == [
        tuple(sorted([one, other]))
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("orders-1", "orders-2"), ("orders-v1", "orders-v12"), ("shard-a", "shard-b")),
        *(("eu.orders", "us.orders"), ("in", "on"), ("orders", "invoices"), ("logs", "logs2")),
    ],
)
def test_numbered_and_short_names_are_not(one: str, other: str) -> None:
    assert not list(similar_pairs(sorted([one, other])))


def test_many_names_take_no_time() -> None:
    names = [f"{'x' * 200}{number:04}" for number in range(1_000)]
    assert not list(similar_pairs(names))


def test_the_capture_says_who_misspelled() -> None:
    findings, _ = judged(capture_of("topic-names-alike"))
    rules = ("topic-unread", "topic-unwritten", "shared-group", "topic-names-alike")
    told = {each.text: each.severity for each in findings if each.name in rules}
    assert told == {
        "Topics Metrics and metrics in this capture differ by case only": "note",
        "Topics metrcis and metrics in this capture differ by one letter only": "note",
        "1 topic was written, but not read in this capture: metrcis": "chat",
    }


def test_topics_of_kafka_and_streams_are_not_reported() -> None:
    writer, reader = wire_of(0), wire_of(1)
    internal = "__consumer_offsets", "app-store-changelog", "_schemas", "b.checkpoints.internal"
    joins = (
        f"app-{name}-topic"
        for name in ("KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-03", "x-subscription-response")
    )
    for number, topic in enumerate((*internal, *joins)):
        writes(writer, topic, number, number)
    mirror = wire_of(2)
    writes(mirror, "a.heartbeats", 0, 1, "connector-producer-MirrorSourceConnector-0")
    writes(writer, "orders", 20 * SECOND, 9)
    reads(reader, "orders", 30 * SECOND, 9)
    assert not found([writer, reader, mirror], "topic-unread")
    writes(writer, "heartbeats", 0, 10)
    assert "heartbeats" in found([writer, reader, mirror], "topic-unread")["topic-unread"].text


def test_a_capture_of_one_side_says_nothing() -> None:
    writer = wire_of(0)
    writes(writer, "orders", 0, 1)
    writes(writer, "orders", 60 * SECOND, 2)
    assert not found([writer], "topic-unread")


def test_applications_of_one_library_are_a_chat() -> None:
    (shared,) = [
        each for each in judged(capture_of("expired-member"))[0] if each.name == "shared-group"
    ]
    assert shared.severity == "chat"
    assert "2 applications in this capture: killed, survivor" in shared.text


def refused(group: Members, name: str, code: int, assignor: str, kind: str = "consumer") -> None:
    asked = {"member_id": "", "protocol_type": kind, "session_timeout_ms": 10_000}
    asked |= {"protocols": [{"name": assignor, "metadata": subscribed("orders")}]}
    group.ask(name, 2, "JoinGroup", 8, asked, {"error_code": code}, 0)


@pytest.mark.parametrize(
    ("code", "text", "advice"),
    [
        (23, "offers sticky, and the group has range of a", "assignor"),
        (81, "GROUP_MAX_SIZE_REACHED", "group.max.size"),
        (26, "INVALID_SESSION_TIMEOUT", "session.timeout.ms"),
        (79, "", ""),
    ],
)
def test_a_client_that_its_group_refuses(code: int, text: str, advice: str) -> None:
    group = Members()
    group.join("a", 0, 1, ("a",))
    refused(group, "b", code, "sticky")
    findings = found(group.wires.values())
    assert ("group-mismatch" in findings) == bool(text)
    if text:
        finding = findings["group-mismatch"]
        assert states(finding.text, "b cannot join group g", text)
        assert advice in finding.advice
        assert findings["error-broken"].because


def test_a_worker_of_connect_in_a_group_of_consumers() -> None:
    group = Members()
    group.join("a", 0, 1, ("a",))
    refused(group, "b", 23, "sessioned", "connect")
    findings = found(group.wires.values())
    assert states(findings["group-mismatch"].text, "type is connect", "of the group is consumer")
    assert "another group.id" in findings["group-mismatch"].advice
    assert "group-unreadable" not in findings


@pytest.mark.parametrize("epoch", [0, 4])
def test_a_client_for_another_type_of_group(epoch: int) -> None:
    """Brokers answer so to members that they evicted, too: these have an epoch."""
    group = Members()
    answer = {"error_code": 69, "error_message": "Group g is not a share group."}
    asked = {"member_id": "b", "member_epoch": epoch, "subscribed_topic_names": ["orders"]}
    group.ask("b", 2, "ShareGroupHeartbeat", 1, asked, answer, 0)
    findings = found(group.wires.values())
    assert ("group-mismatch" in findings) == (not epoch)
    if not epoch:
        assert states(findings["group-mismatch"].text, "GROUP_ID_NOT_FOUND", "not a share group")
        assert "another group.id" in findings["group-mismatch"].advice


@pytest.mark.parametrize(("member", "outside"), [("", True), ("b-1", False)])
def test_commits_of_who_is_no_member(member: str, outside: bool) -> None:
    """assign() with the group.id of others; an evicted member has an id."""
    group = Members()
    group.join("a", 0, 1, ("a",))
    part = {"partition_index": 0, "committed_offset": 7}
    asked = {"member_id": member, "generation_id_or_member_epoch": -1 if outside else 1}
    asked |= {"topics": [{"name": "orders", "partitions": [part]}]}
    done = [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": 25}]}]
    group.ask("b", 2, "OffsetCommit", 8, asked, {"topics": done}, 0)
    finding = found(group.wires.values()).get("commit-outside")
    assert (finding is not None) == outside
    if finding is not None:
        assert states(finding.text, "b commits offsets of group g", "1 commit", "has members (a)")


@pytest.mark.parametrize("ended", [True, False])
def test_a_member_whose_process_ended_is_not_slow(ended: bool) -> None:
    group = Members()
    group.join("b", 0, 1, ("a", "b"))
    group.join("a", 0, 1)
    for second in range(1, 31):
        group.beat("b", second, 1, 27 if second == 30 else 0)
    group.beat("a", 3, 1)
    if ended:
        group.wires["a"].close("client", "rst")
    group.join("b", 31, 2, ("b",))
    finding = found(group.wires.values())["rebalance-expired"]
    assert ("connections were closed before" in finding.text) == ended
    assert ("SIGKILL" in finding.advice) == ended


def test_a_member_that_sends_heartbeats_and_does_not_rejoin() -> None:
    """A handler of sarama that does not return when the session is over."""
    group = Members()
    group.join("a", 0, 1, ("a",), rebalance_timeout_ms=60_000)
    for second in range(2, 64, 2):
        group.beat("a", second, 1, 27)
    group.beat("a", 64, 1, 25)
    finding = found(group.wires.values())["rebalance-expired"]
    assert states(finding.text, "a did not rejoin for 62 s after REBALANCE_IN_PROGRESS")
    assert "no heartbeat" not in finding.text
    assert "ConsumeClaim" in finding.advice
