"""Scenarios of `make_findings` with groups of the Java client, and what was true of them: which
member read which offsets, what it committed, what the broker kept.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions

from tests.interop.brokers import KRaftCluster
from tests.interop.drivers import CLIENT_LIST, Driver
from tests.interop.make_findings_kit import BROKER, TARGET, Raw, admin, fill, scenario, topics

FAST = {
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "5000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
}
"""Groups whose dead members are missed soon."""


class Member:
    """A consumer in a Java process of its own."""

    def __init__(self, folder: Path, name: str, group: str, topic: str, **settings: str) -> None:
        common = {"bootstrap": BROKER, "client": name, "name": "m", "group": group, "topic": topic}
        common |= {f"conf.{key}": value for key, value in settings.items() if "." in key}
        common |= {key: value for key, value in settings.items() if "." not in key}
        self.driver = Driver(CLIENT_LIST["java-4.4.0"], folder / f"{name}.log", common)
        self.rows: list[list[Any]] = []

    def do(self, what: str, **arguments: object) -> Any:
        """join, await, commit, stand or leave: see Member.java."""
        told = self.driver.step("Member", do=what, **arguments)
        self.rows = told["rows"]
        return told.get("committed")

    def end(self) -> None:
        """Leave, and end the process."""
        self.do("leave")
        self.driver.__exit__()

    def kill(self) -> None:
        """End the process without a word."""
        self.driver.process.kill()
        self.driver.__exit__()

    def read(self) -> dict[str, list[int]]:
        """Partition -> offsets, in the order in which they were read."""
        found: dict[str, list[int]] = {}
        for topic, partition, offset in self.rows:
            found.setdefault(f"{topic}-{partition}", []).append(offset)
        return dict(sorted(found.items()))


def committed(group: str) -> dict[str, int]:
    """What the broker keeps, asked on a listener that is not captured."""
    client = admin()
    asked = [ConsumerGroupTopicPartitions(group)]
    found = client.list_consumer_group_offsets(asked)[group].result(20).topic_partitions
    return {f"{p.topic}-{p.partition}": p.offset for p in sorted(found, key=lambda p: p.partition)}


def keep(name: str, told: dict[str, Any]) -> None:
    """Write what was true beside the capture."""
    (TARGET / f"{name}.truth.json").write_text(json.dumps(told, indent=1) + "\n")


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def spread(topic: str, partitions: int, count: int) -> None:
    """So many records for each partition."""
    for partition in range(partitions):
        fill(topic, count, partition)


@scenario()
def consumer_protocol(cluster: KRaftCluster) -> None:
    """KIP-848: a second member joins, is killed without having committed; its partitions come back
    to the first, which reads them again; all leave, and a new member goes on at the commits."""
    topics("next", partitions=4)
    spread("next", 4, 10)
    group = "next-group"
    with folder() as logs:
        told: dict[str, Any] = {"group": group}
        first, second, third = (
            Member(logs, name, group, "next", **{"group.protocol": "consumer"})
            for name in ("first", "second", "third")
        )
        first.do("join", holds=4, records=40)
        told["first commit"] = first.do("commit", back=4)
        second.do("join", holds=2)
        first.do("await", holds=2)
        second.do("await", records=8)  # what was read and not committed
        spread("next", 4, 5)
        first.do("await", records=50)
        second.do("await", records=18)
        told["second"] = second.read()
        second.kill()
        first.do("await", holds=4, records=68)
        told["second commit"] = first.do("commit")
        told["first"] = first.read()
        first.end()
        spread("next", 4, 1)
        third.do("join", holds=4, records=4)
        told["third commit"] = third.do("commit")
        told["third"] = third.read()
        third.end()
    told["committed"] = committed(group)
    keep("consumer-protocol", told)


@scenario()
def share_group(cluster: KRaftCluster) -> None:
    """Two members of a share group read the same partition, as they are meant to."""
    topics("shared", partitions=1)
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    group = {"resource_type": 32, "resource_name": "share-group", "configs": configs}
    with closing(Raw(9094, "admin")) as raw:
        raw.ask("IncrementalAlterConfigs", 1, resources=[group], validate_only=False)
    spread("shared", 1, 20)
    with folder() as logs:
        one, two = (
            Member(logs, name, "share-group", "shared", kind="share") for name in ("one", "two")
        )
        one.do("join", records=20)
        two.do("join")
        time.sleep(4)  # heartbeats, until both hold the partition
        for _ in range(4):
            spread("shared", 1, 5)
            time.sleep(0.7)
        one.do("await")
        two.do("await")
        keep("share-group", {"one": one.read(), "two": two.read()})
        one.end()
        two.end()


ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@scenario()
def assignors(cluster: KRaftCluster) -> None:
    """Each assignor of the Java client: two members, two topics of three partitions, then one
    member less."""
    topics("red", "blue", partitions=3)
    with folder() as logs:
        for name, kind in ASSIGNORS.items():
            settings = {
                "group.protocol": "classic",
                "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{kind}",
                "heartbeat.interval.ms": "500",
                "fetch.max.wait.ms": "3000",
            }
            one, two = (
                Member(logs, f"{name}-{n}", f"{name}-group", "red,blue", **settings) for n in (1, 2)
            )
            one.do("join", holds=6)
            held = 4 if name == "range" else 3
            two.do("join", holds=6 - held)
            one.do("await", holds=held)
            two.end()
            one.do("await", holds=6)
            one.end()


@scenario()
def restarted_member(cluster: KRaftCluster) -> None:
    """Classic: a member is killed with records that it had read and not committed, starts again at
    once with the same client id, and reads them again; then it stands longer between two polls
    than it may."""
    topics("again", partitions=1)
    spread("again", 1, 30)
    settings = {
        "group.protocol": "classic",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "max.poll.interval.ms": "8000",
        "max.poll.records": "10",
    }
    group, told = "again-group", {}
    with folder() as logs:
        first = Member(logs, "worker", group, "again", **settings)
        first.do("join", holds=1, records=30)
        told["commit"] = first.do("commit", back=12)
        told["first"] = first.read()
        again = Member(logs, "worker", group, "again", **settings)
        first.kill()
        again.do("join", holds=1, records=12)
        told["second commit"] = again.do("commit")
        again.do("stand", ms=10_000)
        again.do("await", holds=1)
        told["second"] = again.read()
        again.end()
    told["committed"] = committed(group)
    keep("restarted-member", told)
