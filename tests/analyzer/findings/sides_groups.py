"""Both sides of the limits of groups: rebalances, readers that are stuck, slow or silent."""

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from kafkascope.analyzer.findings import Finding
from kafkascope.dissectors.registry import encode_body
from tests.analyzer.findings import judging
from tests.analyzer.findings.judging import Side, at, commit, found, least, most, seconds, wire_of
from tests.kit.batches import batch
from tests.kit.members import Members, Seconds, subscribed
from tests.kit.wire import MS, SECOND, Wire, metadata


class Readers(Members):
    """Members that fetch partition 0 of `orders` and commit, at times in seconds."""

    def reported(self) -> dict[str, Finding]:
        return found(self.wires.values())

    def fetch(
        self, name: str, at: Seconds, offset: int, count: int = 10, version: int = 11, **more: Any
    ) -> None:
        attributes = more.pop("attributes", 0)
        blob = batch([(None, b"v")] * count, base_offset=offset, attributes=attributes)
        wire, client = self.plain(name, at)
        records = blob if count else None
        wire.fetch(self.ids, offset, records, version=version, client=client, **more)

    def start(self, name: str, at: Seconds, offset: int) -> None:
        data = {"partition_index": 0, "committed_offset": offset, "error_code": 0}
        data |= {"committed_leader_epoch": -1, "metadata": ""}
        asked = {"topics": [{"name": "orders", "partition_indexes": [0]}]}
        answer = {"topics": [{"name": "orders", "partitions": [data]}], "error_code": 0}
        self.ask(name, at, "OffsetFetch", 5, asked, answer, 0.01)

    def list_end(self, name: str, at: Seconds, offset: int, stamp: int = -1) -> None:
        part = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": stamp}
        data = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": offset}
        asked = {"replica_id": -1, "topics": [{"name": "orders", "partitions": [part]}]}
        answer = {"topics": [{"name": "orders", "partitions": [data | {"leader_epoch": 0}]}]}
        wire, client = self.plain(name, at)
        wire.exchange("ListOffsets", 5, self.ids, answer, client=client, **asked)

    def commit(
        self, name: str, at: Seconds, offset: int, error: int = 0, *, by_hand: bool = False
    ) -> None:
        part = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": "orders", "partitions": [part | {"committed_metadata": None}]}]
        asked = {"member_id": name, "generation_id": 1, "topics": topics}
        if by_hand:
            asked |= {"member_id": "", "generation_id": -1}
        done = [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": error}]}]
        self.ask(name, at, "OffsetCommit", 7, asked, {"topics": done}, 0.01)

    def plain(self, name: str, at: Seconds) -> tuple[Wire, str]:
        """The connection and the client id of a member, for a request without a group."""
        self.beat(name, at, 1)  # makes the wire, and sets its time
        self.ids += 1
        return self.wires[name], name.partition("#")[0]


def failing(times: int, *, commits: bool, stays: Seconds = 0.1, **fetch: int) -> Readers:
    """An application that fails on what it is given and starts again."""
    group = Readers()
    for life in range(times):
        name, at = f"a#{life}", 10 * life
        group.join(name, at, 1, (name,))
        group.start(name, at + 1, 5 if commits else -1)
        group.fetch(name, at + 2, 5 if commits else 0, **fetch)
        if commits and life == 0:
            group.commit(name, at + 2.05, 5)
        group.leave(name, at + Fraction(41, 20) + stays)
    return group


def zstd(version: int, *, beats: Seconds, further: bool) -> dict[str, Finding]:
    """Bytes that only say that they are zstd: nobody looks inside."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 1, 0, version=version, attributes=4)
    if further:
        group.fetch("a", 2, 10, 0, version=version)
    group.beat("a", beats, 1)
    return group.reported()


def sharing(deliveries: list[int], types: list[int], refused: int = 0) -> dict[str, Finding]:
    group = Readers()
    topic = bytes(15) + b"\7"
    acquired = [
        {"first_offset": at, "last_offset": at, "delivery_count": count}
        for at, count in enumerate(deliveries)
    ]
    acks = [{"first_offset": 0, "last_offset": len(types) - 1, "acknowledge_types": types}]
    part = {"partition_index": 0, "acknowledgement_batches": acks if types else []}
    asked = {"member_id": "m", "topics": [{"topic_id": topic, "partitions": [part]}]}
    data = {"partition_index": 0, "records": b"", "acquired_records": acquired}
    data |= {"current_leader": {"leader_id": 0}, "acknowledge_error_code": refused}
    answer = {"responses": [{"topic_id": topic, "partitions": [data]}]}
    group.ask("a", 1, "ShareFetch", 1, asked, answer, 0.1)
    return group.reported()


def owning(*parts: int) -> dict[str, Any]:
    """An assignment of the consumer protocol: these partitions of a topic."""
    return {"topic_partitions": [{"topic_id": bytes(15) + b"\7", "partitions": list(parts)}]}


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


RULE = "fetches-nothing"
HERE = (1, "10.0.1.2", 9092)


def assigned(version: int, *parts: int) -> bytes:
    """An assignment of these partitions of `orders`."""
    mine = [{"topic": "orders", "partitions": list(parts)}]
    body = {"assigned_partitions": mine, "user_data": None}
    return struct.pack(">h", version) + encode_body("ConsumerProtocolAssignment", version, body)


def member(
    lasts_ns: int = 60 * SECOND,
    *nodes: tuple[int, str, int],
    fetches: bool = False,
    least: int = 4,
    kind: str = "consumer",
    parts: tuple[int, ...] = (0, 1),
    handshake: bool = True,
) -> Finding | None:
    """A group of one that lives so long."""
    keys = [{"api_key": 1, "min_version": least, "max_version": 17}]
    wire = Wire(handshake=handshake).exchange("ApiVersions", 0, 1, {"api_keys": keys})
    wire.exchange("Metadata", 8, 2, metadata(*(nodes or (HERE,))))
    me = {"group_id": "g", "member_id": "m"}
    protocols = [{"name": "range", "metadata": b""}]
    answer = {"generation_id": 1, "protocol_name": "range", "leader": "m", "member_id": "m"}
    wire.exchange("JoinGroup", 5, 3, answer, **me, protocol_type=kind, protocols=protocols)
    assignment = assigned(0, *parts)
    plan = [{"member_id": "m", "assignment": assignment}]
    me |= {"generation_id": 1}
    wire.exchange("SyncGroup", 3, 4, {"assignment": assignment}, **me, assignments=plan)
    begin = wire.time_ns - MS
    if fetches:
        wire.exchange("Fetch", 11, 5)
    for number in range(6, 10):
        wire.time_ns = begin + lasts_ns * (number - 5) // 4 - (MS if number == 9 else 0)
        wire.exchange("Heartbeat", 3, number, **me)
    return judging.found([wire], RULE).get(RULE)


def lives(lasts_ns: int) -> bool:
    return member(lasts_ns) is not None


STORM = "rebalance-storm"
TENTH = Fraction(1, 10)


def of(group: Members, rule: str) -> Finding | None:
    return found(group.wires.values(), rule).get(rule)


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
    group.join("a#2", 10 + TENTH + seconds(after_ns), 2, ("a#2",), asked_id="")
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
    part = {"leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topics = {"topics": [{"name": "orders", "partitions": [part]}]}
    at(known, 0).exchange("Metadata", 7, 1, topics, client="a", topics=[{"name": "orders"}])
    for generation, numbers in ((1, []), (2, [0])):
        begin = 1 + (generation - 1) * seconds(pause_ns)
        group.join("a", begin, generation, ("a",))
        mine = assigned(1, *numbers)
        asked = {"generation_id": generation, "member_id": "a", "protocol_name": "range"}
        asked |= {"protocol_type": "consumer"}
        asked |= {"assignments": [{"member_id": "a", "assignment": mine}]}
        answer = {"error_code": 0, "assignment": mine}
        group.ask("a", begin + 2 * TENTH, "SyncGroup", 5, asked, answer, TENTH)
    return of(group, "owned-by-none") is not None


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
    for number, (offset, lag) in enumerate(zip(offsets, lags, strict=True)):
        time_ns = 10 * SECOND + span_ns * number // (len(offsets) - 1)
        end = {"high_watermark": offset + lag, "last_stable_offset": offset + lag}
        at(wire, time_ns - MS).fetch(number, offset, topic="t", **end)
        commit(at(other, time_ns), number, offset)
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


SIDES: dict[str, Side] = {
    "fetches-nothing fetchless.time": least(lives, 10 * SECOND),
    "rebalance-storm rebalances.many": least(rejoining, 3),
    "rebalance-storm rebalances.returns": least(returning, 2),
    "rebalance-storm rebalances.every": most(rarely, 240 * SECOND),
    "rebalance-storm rebalances.each": least(often, 2),
    "rebalance-storm rebalances.handover": least(handing_over, 5 * SECOND),
    "rebalance-poll rebalances.back": most(came_back, 30 * SECOND - 1),
    "rebalance-slow rebalances.slow": least(standing_still, 10 * SECOND),
    "owned-by-none unowned.pause": least(unowned, 2 * SECOND + 1),
    "consumer-silent consumer.silence": least(silent, 60 * SECOND),
    "commits-lost commits.none": least(uncommitted, 60 * SECOND),
    "commits-lost commits.restart": least(restarted, SECOND // 2),
    "lag lag.points": least(lambda n: lagging(LONG, SLOW[:n], (10, 400, 2_000, 3_000)[:n]), 4),
    "lag lag.records": least(lambda n: lagging(LONG, SLOW, (10, 40, 60, n)), 100),
    "lag lag.many": least(lambda n: lagging(4 * SECOND, SLOW, (10, 400, 600, n)), 1_000),
    "lag lag.span": least(lambda n: lagging(n, SLOW, (10, 200, 300, 500)), 5 * SECOND),
    "lag lag.time": least(
        lambda n: lagging(n, (0, 1_000, 3_000, 5_000), (10, 2_000, 4_000, 5_000)), 3 * SECOND
    ),
    "lag lag.share": most(
        lambda n: lagging(
            60 * SECOND,
            (0, 1_000, 2_000, 1_000 * n),
            (10, 3_000, 6_000, 100_010 - 1_000 * n),
        ),
        90,
    ),
    "lag lag.grown": least(lambda n: lagging(LONG, SLOW, (1_000, 1_400, n, 4_000)), 2_000),
    "reader-stuck stuck.fetches": least(
        lambda n: of(failing(n, commits=True), "reader-stuck") is not None, 3
    ),
    "reader-stuck stuck.fetches without commits": least(
        lambda n: of(failing(n, commits=False), "reader-stuck") is not None, 3
    ),
    "reader-stuck stuck.leaves": most(leaving, 2 * SECOND),
    "reader-stuck stuck.commits": least(lambda n: committing(n, 20 * SECOND), 3),
    "reader-stuck stuck.time": least(lambda n: committing(4, n), 10 * SECOND),
    "batch-codec codec.waits": least(lambda n: unread(7, n), 2 * SECOND),
    "batch-codec codec.slow": least(lambda n: unread(4, n), 10 * SECOND),
    "batch-codec stuck.leaves": most(without_codec, 2 * SECOND),
    "share-redelivery share.deliveries": least(lambda n: shared([1] * 30 + [n]), 5),
    "share-redelivery share.again": least(
        lambda n: shared([1] * (1_000 - 10 * n) + [2] * 10 * n), 10
    ),
    "share-redelivery share.least": least(lambda n: shared([1] * 10 + [2] * n), 20),
}
