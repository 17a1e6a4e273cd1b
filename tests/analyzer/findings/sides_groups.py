"""Both sides of the limits of groups: rebalances, readers that are stuck, slow or silent."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from kafkascope.analyzer.findings import Finding
from kafkascope.dissectors.registry import encode_body
from tests.analyzer.findings.sides import SECOND, Side, at, found, seconds, wire_of
from tests.analyzer.findings.test_fetchless import lives
from tests.analyzer.findings.test_memberships import restless
from tests.analyzer.findings.test_readers import Readers, failing, sharing, zstd
from tests.analyzer.statistics.groups.test_groups import Members, subscribed
from tests.analyzer.wire import MS, Wire, request, response

STORM = "rebalance-storm"
TENTH = Fraction(1, 10)


def of(group: Members, rule: str) -> Finding | None:
    return found(group.wires.values(), rule).get(rule)


# --- rebalances ---------------------------------------------------------------------------------


def rejoining(count: int) -> bool:
    """So many rebalances after the first one."""
    group = Members()
    for generation in range(1, count + 2):
        group.join("a", 10 * generation, generation, ("a", "b"), reason="rejoin")
        group.join("b", 10 * generation + TENTH, generation)
    return of(group, STORM) is not None


def returning(times: int) -> bool:
    """A client comes back so often, and a third one joins."""
    group, generation = restless(times), 2 * times + 2
    group.join("c", 50, generation, asked_id="")
    group.join("b", 50 + TENTH, generation, ("b", f"a#{times}", "c"))
    group.join(f"a#{times}", 50 + 2 * TENTH, generation)
    return of(group, STORM) is not None


def rarely(span_ns: int) -> bool:
    """Four rebalances within a span."""
    return of(restless(2, seconds(span_ns) - 7 * TENTH), STORM) is not None


def often(times: int) -> bool:
    """Three rebalances for each time; one of two members leaves and comes back as the same."""
    group = Members()
    group.join("a", 0, 1, ("a", "b"))
    group.join("b", TENTH, 1)
    for turn in range(3 * times):
        generation, begin = turn + 2, 10 * turn + 10
        if turn % 2:
            group.join("b", begin, generation, asked_id="")
            group.join("a", begin + TENTH, generation, ("a", "b"))
        else:
            group.leave("b", begin)
            group.join("a", begin + TENTH, generation, ("a",))
    return of(group, STORM) is not None


def handing_over(pause_ns: int) -> bool:
    """Cooperative members ask again so long after each rebalance."""
    group = Members()
    cooperative = [{"name": "cooperative-sticky", "metadata": subscribed("orders")}]
    for generation in range(1, 6):
        # The rebalance before took two tenths.
        begin = generation * (seconds(pause_ns) + 2 * TENTH)
        for name, after in (("a", 0), ("b", TENTH)):
            members = ("a", "b") if name == "a" else ()
            more: dict[str, Any] = {"protocols": cooperative}
            group.join(name, begin + after, generation, members, **more)
    return of(group, STORM) is not None


def came_back(after_ns: int) -> bool:
    """A member leaves without a reason after more than its max.poll.interval.ms."""
    group = Members()
    group.join("a#1", 0, 1, ("a#1",), rebalance_timeout_ms=5_000)
    for second in range(1, 11):
        group.beat("a#1", second, 1)
    group.leave("a#1", 10 + TENTH)
    group.join("a#2", 10 + Fraction(1, 100) + seconds(after_ns), 2, ("a#2",), asked_id="")
    return of(group, "rebalance-poll") is not None


def standing_still(length_ns: int) -> bool:
    group = Members()
    group.join("a", 0, 1, ("a", "b"), takes=seconds(length_ns))
    group.join("b", 5, 1)
    return of(group, "rebalance-slow") is not None


def unowned(pause_ns: int) -> bool:
    """A leader assigns nothing, as one that does not know the topic yet, and all so long after."""
    group, known = Members(), wire_of(9)
    group.wires["known"] = known
    at(known, 0).client(
        request("Metadata", 7, 1, "a", topics=[{"name": "orders"}], allow_auto_topic_creation=True)
    )
    part = {"error_code": 0, "partition_index": 0, "leader_id": 1, "leader_epoch": 0}
    part |= {"replica_nodes": [1], "isr_nodes": [1], "offline_replicas": []}
    topic = {"error_code": 0, "name": "orders", "is_internal": False, "partitions": [part]}
    at(known, MS).broker(response("Metadata", 7, 1, topics=[topic]))
    for generation, numbers in ((1, []), (2, [0])):
        begin = 1 + (generation - 1) * seconds(pause_ns)
        group.join("a", begin, generation, ("a",))
        given = {"topic": "orders", "partitions": numbers}
        body = {"assigned_partitions": [given] if numbers else [], "user_data": None}
        mine = b"\0\1" + encode_body("ConsumerProtocolAssignment", 1, body)
        asked = {"generation_id": generation, "member_id": "a", "protocol_name": "range"}
        asked |= {"protocol_type": "consumer"}
        asked |= {"assignments": [{"member_id": "a", "assignment": mine}]}
        answer = {"error_code": 0, "assignment": mine}
        group.ask("a", begin + 2 * TENTH, "SyncGroup", 5, asked, answer, TENTH)
    return of(group, "owned-by-none") is not None


# --- readers ------------------------------------------------------------------------------------


def silent(length_ns: int) -> bool:
    """A member pauses for more than half of its max.poll.interval.ms."""
    group = Readers()
    group.join("a", 0, 1, ("a",), rebalance_timeout_ms=100_000)
    group.fetch("a", 1, 0)
    group.fetch("a", 1 + seconds(length_ns + MS), 10)
    return of(group, "consumer-silent") is not None


def uncommitted(length_ns: int) -> bool:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 1, 0)
    group.fetch("a", 1 + seconds(length_ns - MS), 10)
    return of(group, "commits-lost") is not None


def restarted(after_ns: int) -> bool:
    """A new member fetches what the last one had fetched, so long after it."""
    group = Readers()
    group.join("a#1", 0, 1, ("a#1",))
    group.start("a#1", 1, -1)
    group.fetch("a#1", 2, 0)
    group.leave("a#1", 2 + TENTH)
    group.join("a#2", 2 + 2 * TENTH, 2, ("a#2",), takes=TENTH / 10)
    group.start("a#2", 2 + 3 * TENTH, -1)
    group.fetch("a#2", 2 + seconds(after_ns), 0)
    return of(group, "commits-lost") is not None


def lagging(span_ns: int, offsets: Sequence[int], lags: Sequence[int]) -> bool:
    """A group that commits so far, while the log ends so much further."""
    wire, other = Wire(), Wire(number=1)
    last = len(offsets) - 1
    for number, (offset, lag) in enumerate(zip(offsets, lags, strict=True)):
        time_ns = 10 * SECOND + span_ns * number // last
        part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1000}
        part |= {"current_leader_epoch": -1, "log_start_offset": -1}
        end = {"high_watermark": offset + lag, "last_stable_offset": offset + lag}
        data = {"partition_index": 0, "error_code": 0, "log_start_offset": 0, "records": None}
        data |= end | {"aborted_transactions": None, "preferred_read_replica": -1}
        at(wire, time_ns - MS)
        wire.client(request("Fetch", 11, number, topics=[{"topic": "t", "partitions": [part]}]))
        answer = [{"topic": "t", "partitions": [data]}]
        wire.broker(response("Fetch", 11, number, error_code=0, responses=answer))
        row = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": "t", "partitions": [row | {"committed_metadata": ""}]}]
        body = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 1}
        at(other, time_ns).client(request("OffsetCommit", 8, number, **body, topics=topics))
        done = [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]
        other.broker(response("OffsetCommit", 8, number, topics=done))
    return "lag" in found([wire, other], "lag")


SLOW = (0, 1, 2, 3)
LONG = 9 * SECOND


def committing(commits: int, span_ns: int) -> bool:
    """One offset is committed so often, while the log grows."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", TENTH, 0, high_watermark=20)
    for number in range(commits):
        begin = 5 + seconds(span_ns * number // (commits - 1))
        group.commit("a", begin, 6)
        group.fetch("b", begin + TENTH, 0, high_watermark=30 + 10 * number)
    return of(group, "reader-stuck") is not None


def leaving(after_ns: int) -> bool:
    """Members without commits leave so long after they got the records."""
    stays = seconds(after_ns) - Fraction(41, 20) + Fraction(2_012, 1_000)
    return of(failing(3, commits=False, stays=stays), "reader-stuck") is not None


def unread(version: int, waits_ns: int) -> bool:
    """A client that got zstd in an older version of Fetch, and is there for so long."""
    beats = Fraction(1_002, 1_000) + seconds(waits_ns)
    told = zstd(version, beats=beats, further=False)
    return told["batch-codec"].severity == "error"


def without_codec(after_ns: int) -> bool:
    """A member of kafkajs leaves so long after it got zstd."""
    group = Readers()
    protocol = [{"name": "RoundRobinAssigner", "metadata": subscribed("orders")}]
    group.join("a", 0, 1, ("a",), protocols=protocol)
    group.fetch("a", 1, 0, attributes=4)
    group.leave("a", Fraction(1_012, 1_000) + seconds(after_ns))
    return of(group, "batch-codec") is not None


def shared(deliveries: list[int]) -> bool:
    return sharing(deliveries, [])["share-redelivery"].severity == "warning"


SIDES: dict[tuple[str, ...], Side] = {
    ("fetches-nothing", "fetchless.time"): Side(lives, 10 * SECOND - 1, 10 * SECOND),
    (STORM, "rebalances.many"): Side(rejoining, 2, 3),
    (STORM, "rebalances.returns"): Side(returning, 1, 2),
    (STORM, "rebalances.every"): Side(rarely, 240 * SECOND + 1, 240 * SECOND),
    (STORM, "rebalances.each"): Side(often, 1, 2),
    (STORM, "rebalances.handover"): Side(handing_over, 5 * SECOND - 1, 5 * SECOND),
    ("rebalance-poll", "rebalances.back"): Side(came_back, 30 * SECOND, 30 * SECOND - 1),
    ("rebalance-slow", "rebalances.slow"): Side(standing_still, 10 * SECOND - 1, 10 * SECOND),
    ("owned-by-none", "unowned.pause"): Side(unowned, 2 * SECOND, 2 * SECOND + 1),
    ("consumer-silent", "consumer.silence"): Side(silent, 60 * SECOND - 1, 60 * SECOND),
    ("commits-lost", "commits.none"): Side(uncommitted, 60 * SECOND - 1, 60 * SECOND),
    ("commits-lost", "commits.restart"): Side(restarted, SECOND // 2 - 1, SECOND // 2),
    ("lag", "lag.points"): Side(
        lambda n: lagging(LONG, SLOW[:n], (10, 400, 2_000, 3_000)[:n]), 3, 4
    ),
    ("lag", "lag.records"): Side(lambda n: lagging(LONG, SLOW, (10, 40, 60, n)), 99, 100),
    ("lag", "lag.many"): Side(lambda n: lagging(4 * SECOND, SLOW, (10, 400, 600, n)), 999, 1_000),
    ("lag", "lag.span"): Side(
        lambda n: lagging(n, SLOW, (10, 200, 300, 500)), 5 * SECOND - 1, 5 * SECOND
    ),
    ("lag", "lag.time"): Side(
        lambda n: lagging(n, (0, 1_000, 3_000, 5_000), (10, 2_000, 4_000, 5_000)),
        3 * SECOND - 1,
        3 * SECOND,
    ),
    ("lag", "lag.share"): Side(
        lambda n: lagging(
            60 * SECOND,
            (0, 1_000, 2_000, 1_000 * n),
            (10, 3_000, 6_000, 100_010 - 1_000 * n),
        ),
        91,
        90,
    ),
    ("lag", "lag.grown"): Side(
        lambda n: lagging(LONG, SLOW, (1_000, 1_400, n, 4_000)), 1_999, 2_000
    ),
    ("reader-stuck", "stuck.fetches"): Side(
        lambda n: of(failing(n, commits=True), "reader-stuck") is not None, 2, 3
    ),
    ("reader-stuck", "stuck.fetches", "without commits"): Side(
        lambda n: of(failing(n, commits=False), "reader-stuck") is not None, 2, 3
    ),
    ("reader-stuck", "stuck.leaves"): Side(leaving, 2 * SECOND + 1, 2 * SECOND),
    ("reader-stuck", "stuck.commits"): Side(lambda n: committing(n, 20 * SECOND), 2, 3),
    ("reader-stuck", "stuck.time"): Side(lambda n: committing(4, n), 10 * SECOND - 1, 10 * SECOND),
    ("batch-codec", "codec.waits"): Side(lambda n: unread(7, n), 2 * SECOND - 1, 2 * SECOND),
    ("batch-codec", "codec.slow"): Side(lambda n: unread(4, n), 10 * SECOND - 1, 10 * SECOND),
    ("batch-codec", "stuck.leaves"): Side(without_codec, 2 * SECOND + 1, 2 * SECOND),
    ("share-redelivery", "share.deliveries"): Side(lambda n: shared([1] * 30 + [n]), 4, 5),
    ("share-redelivery", "share.again"): Side(
        lambda n: shared([1] * (1_000 - 10 * n) + [2] * 10 * n), 9, 10
    ),
    ("share-redelivery", "share.least"): Side(lambda n: shared([1] * 10 + [2] * n), 19, 20),
}
