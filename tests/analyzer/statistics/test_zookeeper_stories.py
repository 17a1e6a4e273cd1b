"""What became of nodes, sessions and old consumer groups: on sessions made by hand, and on real
brokers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroups, ranges
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from tests.analyzer.findings.sides import time_of
from tests.analyzer.wire import MS, Wire, told
from tests.analyzer.zookeeper_wire import ZooKeeperWire

CAPTURES = Path(__file__).parents[1] / "captures"
SECOND = 1000 * MS
DELETED = 2
EPHEMERAL = 1


def counted(*wires: Wire) -> ZooKeeper:
    zookeeper, context = ZooKeeper(), Context()
    events = sorted((event for wire in wires for event in wire.events), key=time_of)
    for exchange in told(events, context):
        zookeeper.add(row_of(exchange, context.names), exchange)
    return zookeeper


@cache
def read(name: str) -> ZooKeeper:
    zookeeper = ZooKeeper()
    with open_capture([next(CAPTURES.glob(f"{name}.pcap*"))]) as capture:
        for exchange in capture.exchanges():
            if exchange.zookeeper is not None:
                zookeeper.add(row_of(exchange, capture.context.names), exchange)
    return zookeeper


def states(zookeeper: ZooKeeper) -> dict[str, Any]:
    return {line["session"]: line["state"] for line in zookeeper.session_lines()}


def later(wire: ZooKeeperWire, after_ns: int) -> ZooKeeperWire:
    wire.time_ns += after_ns
    return wire


def test_a_session_that_dies_takes_its_nodes_as_others_are_told() -> None:
    dead = ZooKeeperWire(7).connect().create("/brokers/ids/1", b"{}", EPHEMERAL, zxid=5)
    other = ZooKeeperWire(8, number=1).connect()
    later(other, 5 * SECOND).event(DELETED, "/brokers/ids/1")
    zookeeper = counted(dead, other)
    line = zookeeper.session_lines()[0]
    assert (line["state"], line["lost"], line["who"]) == (
        "expired",
        ["/brokers/ids/1"],
        ["broker 1"],
    )
    assert [each["how"] for each in zookeeper.history("/brokers/ids/1")] == [
        "",
        "its session expired",
    ]


def test_a_read_that_finds_nothing_tells_the_same() -> None:
    dead = ZooKeeperWire(7).connect().create("/controller", b"{}", EPHEMERAL, zxid=5)
    other = ZooKeeperWire(8, number=1).connect()
    later(other, 5 * SECOND).get("/controller", error=-101)
    assert states(counted(dead, other)) == {"0x7": "expired", "0x8": "open"}


def test_a_session_that_is_closed_did_not_expire() -> None:
    wire = ZooKeeperWire(7).connect().create("/controller", b"{}", EPHEMERAL, zxid=5)
    other = ZooKeeperWire(8, number=1).connect()
    wire.close_session(zxid=6)
    later(other, 5 * SECOND).event(DELETED, "/controller")
    zookeeper = counted(wire, other)
    assert states(zookeeper)["0x7"] == "closed"
    assert zookeeper.session_lines()[0]["lost"] == []


def test_a_node_of_its_own_that_a_session_deletes_is_no_loss() -> None:
    wire = ZooKeeperWire(7).connect().create("/e", b"", EPHEMERAL, zxid=5).delete("/e", zxid=6)
    zookeeper = counted(wire)
    assert states(zookeeper) == {"0x7": "open"}
    assert [each["change"] for each in zookeeper.history("/e")] == ["created", "deleted"]


def test_silence_beyond_the_timeout_is_said_and_nothing_more() -> None:
    quiet = ZooKeeperWire(7).connect(timeout_ms=4000)
    other = later(ZooKeeperWire(8, number=1).connect(), 5 * SECOND).create("/n", zxid=9)
    assert states(counted(quiet, other)) == {"0x7": "silent", "0x8": "open"}


def test_a_wrong_password_does_not_end_a_session() -> None:
    wire = ZooKeeperWire(7).connect()
    thief = ZooKeeperWire(7, number=1).connect(attach=True, refused=True)
    later(wire, SECOND).create("/n", zxid=9)
    line = counted(wire, thief).session_lines()[0]
    assert (line["state"], line["refused"]) == ("open", 1)


def test_a_change_is_one_whoever_tells_of_it() -> None:
    wire = ZooKeeperWire(7).connect().create("/n", b"1", zxid=1).set("/n", b"2", zxid=2)
    wire.get("/n", b"2", zxid=2, born=1, version=1).get("/n", b"3", zxid=3, born=1, version=2)
    zookeeper = counted(wire)
    assert [(each["change"], each["data"], each["how"]) for each in zookeeper.history("/n")] == [
        ("created", "1", ""),
        ("changed", "2", ""),
        ("changed", "3", "told later"),
    ]


def test_a_change_of_a_node_that_was_there_before_makes_no_creation() -> None:
    zookeeper = counted(ZooKeeperWire(7).connect().set("/old", b"2", zxid=2).delete("/old", zxid=3))
    assert [each["change"] for each in zookeeper.history("/old")][-1] == "deleted"


def test_secrets_are_not_kept() -> None:
    zookeeper = read("zookeeper-brokers")
    (line,) = (line for line in zookeeper.rows() if line["path"] == "/config/users/alice")
    assert line["data"] == '{"version":1,"config":{"SCRAM-SHA-256":"********"}}'
    assert "salt=" not in str(zookeeper.dump())


def test_elections_of_real_controllers() -> None:
    elections = read("zookeeper-brokers").elections()
    assert [(each["controller"], each["epoch"], each["end"]) for each in elections] == [
        (1, 1, "session closed"),
        (2, 2, "session expired"),
        (1, 3, "session closed"),
    ]


def test_topics_come_and_go() -> None:
    topics = {each["topic"]: each for each in read("zookeeper-brokers").story().topics()}
    assert topics.keys() == {"gone", "orders", "pairs"}
    assert topics["gone"]["created"] < topics["gone"]["asked"] < topics["gone"]["deleted"]
    assert (topics["orders"]["partitions"], topics["orders"]["deleted"]) == (3, None)


# --- consumers of 0.8


@pytest.mark.parametrize(
    ("streams", "partitions", "expected"),
    [
        ({"a": 1, "b": 1}, 3, ["a-0", "a-0", "b-0"]),
        ({"b": 2, "a": 1}, 4, ["a-0", "a-0", "b-0", "b-1"]),
        ({"a": 3}, 2, ["a-0", "a-1"]),
        # Threads are in the order of their names as texts: 10 comes before 2.
        ({"a": 11}, 11, [f"a-{number}" for number in (0, 1, 10, *range(2, 10))]),
    ],
)
def test_ranges(streams: dict[str, int], partitions: int, expected: list[str]) -> None:
    subscriptions = {member: {"t": count} for member, count in streams.items()}
    found = ranges(subscriptions, {"t": partitions})
    assert [found["t", number] for number in range(partitions)] == expected


def test_a_real_group_owned_what_it_should() -> None:
    groups = KeptGroups(read("zookeeper-consumers").story())
    (line,) = groups.lines()
    assert (line["group"], line["rebalances"], line["causes"]) == (
        "zk-group",
        4,
        ["2 joined", "2 left"],
    )
    assert [each["text"] for each in groups.rebalances("zk-group")] == [
        "zk-group_one joined; owned as the range assignor has it",
        "zk-group_two joined; owned as the range assignor has it",
        "zk-group_two left; owned as the range assignor has it",
        "zk-group_one left; nobody is left",
    ]
    committed = {each["partition"]: each["committed"] for each in groups.offsets("zk-group")}
    assert committed == {0: 19, 1: 11, 2: 10}


@pytest.mark.parametrize(
    "data", [b"[1]", b"{}", b'{"subscription":[1],"brokerid":{},"endpoints":["x://h:%d"]}' % 10**90]
)
def test_odd_data_is_survived(data: bytes) -> None:
    wire = ZooKeeperWire(7).connect()
    for zxid, path in enumerate(
        (
            "/controller",
            "/brokers/ids/" + "9" * 5000,
            "/brokers/ids/1",
            "/brokers/topics/t",
            "/brokers/topics/t/partitions/" + "9" * 5000,
            "/cluster/id",
            "/consumers/g/ids/g_a",
            "/consumers/g/owners/t/0",
            "/consumers/g/offsets/t/0",
        ),
        1,
    ):
        wire.create(path, data, EPHEMERAL, zxid=zxid)
    zookeeper = counted(wire)
    story = zookeeper.story()
    groups = KeptGroups(story)
    assert len(story.node_lines()) == 9
    assert [line["controller"] for line in story.elections()] == [None]
    assert [line["text"] for line in groups.rebalances("g")] == [
        "g_a joined; partitions of its topics are not known"
    ]
    assert groups.lines()[0]["commits"] == 1
    cluster, context = Cluster(), Context()
    for exchange in told(wire.events, context):
        cluster.add(row_of(exchange, context.names), exchange)
    assert cluster.rows() == []


def test_a_partition_with_another_owner_is_named() -> None:
    one = b'{"version":1,"subscription":{"t":1},"pattern":"static"}'
    topic = b'{"version":1,"partitions":{"0":[1],"1":[1]}}'
    wire = ZooKeeperWire(7).connect().create("/brokers/topics/t", topic, zxid=1)
    wire.create("/consumers/g/ids/g_a", one, EPHEMERAL, zxid=2)
    wire.create("/consumers/g/owners/t/0", b"g_b-0", EPHEMERAL, zxid=3)
    (line,) = KeptGroups(counted(wire).story()).rebalances("g")
    assert line["text"] == (
        "g_a joined; t-0 is owned by g_b-0 instead of g_a-0, "
        "t-1 is owned by nobody instead of g_a-0"
    )
