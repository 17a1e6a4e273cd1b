"""Limits of what is told of ZooKeeper."""

from __future__ import annotations

from tests.analyzer.findings.sides import SECOND, Side, at, severity
from tests.analyzer.zookeeper_wire import ZooKeeperWire, stat, text

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


SIDES: dict[tuple[str, ...], Side] = {
    ("zookeeper-slow", "zookeeper.slow"): Side(slow, SECOND - 1, SECOND),
    ("zookeeper-large", "zookeeper.large"): Side(
        lambda n: large(n) is not None, 900_000 - 5, 900_000 - 4
    ),
    ("zookeeper-large", "zookeeper.largest"): Side(
        lambda n: large(n) == "error", 1_048_575, 1_048_576
    ),
    ("zookeeper-reconnects", "zookeeper.reconnects"): Side(lambda n: again(n, SECOND), 4, 5),
    # Two a minute: the five of two and a half minutes.
    ("zookeeper-reconnects", "zookeeper.reconnects-rate"): Side(
        lambda n: again(5, n), 150 * SECOND // 4 + 1, 150 * SECOND // 4
    ),
}
