"""Limits of what is told of ZooKeeper."""

import struct

from tests.analyzer.findings.judging import Side, at, least, most, severity
from tests.kit.wire import SECOND
from tests.kit.zookeeper import ACL, ZooKeeperWire, stat, text

FRAME = 8 + 4 + 2 + 4 + 4
"""Header, path `/n`, length of data, version, of a setData."""


def slow(takes_ns: int) -> bool:
    wire = ZooKeeperWire(7).connect()
    at(wire, SECOND)
    xid = wire.ask(3, text("/n") + b"\0")
    at(wire, SECOND + takes_ns)
    wire.told(xid, 1, 0, stat(1))
    return severity([wire], "zookeeper-slow") is not None


def large(frame_bytes: int) -> str | None:
    """The severity for a setData of so many bytes, its size in front left out."""
    wire = ZooKeeperWire(7).connect()
    wire.set("/n", bytes(frame_bytes - FRAME))
    return severity([wire], "zookeeper-large")


def again(times: int, every_ns: int) -> bool:
    wires = []
    for number in range(times):
        wire = ZooKeeperWire(7, number=number)
        at(wire, number * every_ns)
        wires.append(wire.connect(attach=True))
    return severity(wires, "zookeeper-reconnects") is not None


def settled(lasts_ns: int, owner: bytes, rule: str) -> bool:
    """A member of a group owns one of two partitions, the other one is somebody's or nobody's;
    after some time a second member comes."""
    consumer = b'{"version":1,"subscription":{"t":1},"pattern":"static"}'
    topic = b'{"version":1,"partitions":{"0":[1],"1":[1]}}'
    wire = ZooKeeperWire(7).connect().create("/brokers/topics/t", topic, zxid=1)
    for zxid, member in ((2, "g_a"), (9, "g_b")):
        path = f"/consumers/g/ids/{member}"
        xid = wire.ask(1, text(path) + text(consumer) + ACL + struct.pack(">i", 1))
        at(wire, SECOND if zxid == 2 else SECOND + lasts_ns)
        wire.told(xid, zxid, 0, text(path))
        if zxid == 2:
            wire.create("/consumers/g/owners/t/0", b"g_a-0", 1, zxid=3)
            if owner:
                wire.create("/consumers/g/owners/t/1", owner, 1, zxid=4)
    return severity([wire], rule) is not None


def claims(times: int) -> bool:
    wire = ZooKeeperWire(7).connect().create("/consumers/g/ids/g_a", b"{}", 1, zxid=2)
    for _ in range(times):
        wire.create("/consumers/g/owners/t/0", b"g_a-0", 1, error=-110)
    return severity([wire], "zookeeper-claims") is not None


SIDES: dict[str, Side] = {
    "zookeeper-slow zookeeper.slow": least(slow, SECOND),
    "zookeeper-large zookeeper.large": Side(
        lambda n: large(n) is not None, 900_000 - 5, 900_000 - 4
    ),
    "zookeeper-large zookeeper.largest": least(lambda n: large(n) == "error", 1_048_576),
    "zookeeper-reconnects zookeeper.reconnects": least(lambda n: again(n, SECOND), 5),
    "zookeeper-unowned zookeeper.settled": least(
        lambda n: settled(n, b"", "zookeeper-unowned"), 10 * SECOND
    ),
    "zookeeper-misassigned zookeeper.settled": least(
        lambda n: settled(n, b"g_x-0", "zookeeper-misassigned"), 10 * SECOND
    ),
    "zookeeper-claims zookeeper.claims": least(claims, 4),
    # Two a minute: the five of two and a half minutes.
    "zookeeper-reconnects zookeeper.reconnects-rate": most(
        lambda n: again(5, n), 150 * SECOND // 4
    ),
}
