"""Scenarios of `make_findings` with consumers and their groups; of those of the Java client, what
is true of them: which member read which offsets, what it committed, what the broker kept.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tests.interop.brokers import KRaftCluster
from tests.interop.drivers import drive
from tests.interop.make_findings_kit import (
    BROKER,
    PORT,
    TARGET,
    Raw,
    admin,
    consumer,
    fill,
    read,
    read_from,
    scenario,
    topics,
)
from tests.kit.samples import ROOT


class Member:
    """A consumer in a Java process of its own."""

    def __init__(self, folder: Path, name: str, group: str, topic: str, **settings: str) -> None:
        common = {"client": name, "name": "m", "group": group, "topic": topic}
        common |= {f"conf.{key}" if "." in key else key: each for key, each in settings.items()}
        self.driver = drive("java-4.4.0", folder, BROKER, **common)
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
def members(
    names: Iterable[str], group: str, topic: str, **settings: str
) -> Iterator[tuple[Member, ...]]:
    """Members of a group, each a Java process."""
    with tempfile.TemporaryDirectory() as folder:
        yield tuple(Member(Path(folder), name, group, topic, **settings) for name in names)


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
    told: dict[str, Any] = {"group": group}
    new = {"group.protocol": "consumer"}
    with members(("first", "second", "third"), group, "next", **new) as (first, second, third):
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
    with Raw(9094, "admin") as raw:
        raw.ask("IncrementalAlterConfigs", 1, resources=[group], validate_only=False)
    spread("shared", 1, 20)
    with members(("one", "two"), "share-group", "shared", kind="share") as (one, two):
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
    for name, kind in ASSIGNORS.items():
        settings = {
            "group.protocol": "classic",
            "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{kind}",
            "heartbeat.interval.ms": "500",
            "fetch.max.wait.ms": "3000",
        }
        names = (f"{name}-1", f"{name}-2")
        with members(names, f"{name}-group", "red,blue", **settings) as (one, two):
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
    with members(("worker", "worker"), group, "again", **settings) as (first, again):
        first.do("join", holds=1, records=30)
        told["commit"] = first.do("commit", back=12)
        told["first"] = first.read()
        first.kill()
        again.do("join", holds=1, records=12)
        told["second commit"] = again.do("commit")
        again.do("stand", ms=10_000)
        again.do("await", holds=1)
        told["second"] = again.read()
        again.end()
    told["committed"] = committed(group)
    keep("restarted-member", told)


@scenario()
def eager_fetches(cluster: KRaftCluster) -> None:
    """A consumer with a wait of one millisecond on an empty topic."""
    topics("empty")
    often = {"fetch_wait_max_ms": 1, "fetch_error_backoff_ms": 0}
    read_from("empty", 0, 1, consumer("eager", "eager-group", **often), 1.8)


class Overlapping(RangePartitionAssignor):
    """An assignor that somebody wrote: it counts the last partition of each member again."""

    name = "ours"

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        """As its parent, with one more partition for each member but the last."""
        found = super().assign(cluster, members)
        last = max(cluster.partitions_for_topic("doubled"))
        for member, each in found.items():
            ((topic, mine),) = each.assigned_partitions
            mine = [*mine, mine[-1] + 1] if mine[-1] < last else mine
            found[member] = type(each)(cls.version, [(topic, mine)], b"")
        return found


@scenario()
def owned_twice(cluster: KRaftCluster) -> None:
    """Two members of a group whose assignor gives a partition to both: each reads its records."""
    topics("doubled", partitions=4)
    for partition in range(4):
        fill("doubled", 5, partition)
    threads = [threading.Thread(target=_share, args=(name,)) for name in ("left", "right")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def _share(name: str) -> None:
    client = KafkaConsumer(
        "doubled",
        bootstrap_servers=BROKER,
        client_id=name,
        group_id="doubled-group",
        auto_offset_reset="earliest",
        partition_assignment_strategy=[Overlapping],
    )
    end = time.monotonic() + 6
    while time.monotonic() < end:
        client.poll(500)
    client.close()


@scenario()
def out_of_range(cluster: KRaftCluster) -> None:
    """A consumer that starts beyond the end of its partition."""
    topics("short")
    fill("short", 10)
    read_from("short", 500, 10, consumer("lost-reader", "range-group"))


@scenario()
def odd_commits(cluster: KRaftCluster) -> None:
    """Commits that skip records, and that go back."""
    topics("commits")
    fill("commits", 20)
    client = consumer("committer", "odd-group", max_poll_interval_ms=60000)
    client.subscribe(["commits"])
    read(client, 20)
    for offset in (8, 3, 50):
        client.commit(offsets=[TopicPartition("commits", 0, offset)], asynchronous=False)
    client.close()


@scenario()
def commit_storm(cluster: KRaftCluster) -> None:
    """A commit for each record."""
    topics("each")
    fill("each", 120)
    client = consumer("by-record", "each-group")
    client.subscribe(["each"])
    for _ in range(120):
        message = client.poll(5)
        if message is not None and not message.error():
            client.commit(message=message, asynchronous=False)
    client.close()


@scenario()
def expired_member(cluster: KRaftCluster) -> None:
    """One of two members is killed."""
    topics("members", partitions=2)
    settings = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
    code = (
        "from tests.interop.make_findings_kit import consumer, read\n"
        f"c = consumer('killed', 'members-group', **{settings})\n"
        "c.subscribe(['members'])\nread(c, 1, 60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    client = consumer("survivor", "members-group", **settings)
    client.subscribe(["members"])
    read(client, 1, 6)
    child.kill()
    child.wait()
    read(client, 1, 10)
    client.close()


@scenario()
def fenced_member(cluster: KRaftCluster) -> None:
    """Two members with one instance id."""
    topics("static")
    first = consumer("first", "static-group", group_instance_id="one", heartbeat_interval_ms=500)
    first.subscribe(["static"])
    read(first, 1, 4)
    second = consumer("second", "static-group", group_instance_id="one", heartbeat_interval_ms=500)
    second.subscribe(["static"])
    read(second, 1, 4)
    read(first, 1, 2)
    second.close()
    first.close()


@scenario()
def silent_consumer(cluster: KRaftCluster) -> None:
    """A consumer that is busy for longer than max.poll.interval.ms."""
    topics("busy")
    fill("busy", 50)
    with Raw(PORT, "busy") as raw:
        raw.ask("OffsetCommit", 2, group_id="busy-group", topics=[])
    client = consumer(
        "busy",
        "busy-group",
        session_timeout_ms=6000,
        max_poll_interval_ms=6000,
        heartbeat_interval_ms=1000,
    )
    client.subscribe(["busy"])
    read(client, 10)
    time.sleep(9)
    read(client, 1, 3)
    client.close()


@scenario()
def reopened_consumer(cluster: KRaftCluster) -> None:
    """A program that closes its consumer after a while and opens another one: nothing is wrong."""
    topics("batches")
    fill("batches", 50)
    for _ in range(2):
        client = consumer(
            "batches",
            "batches-group",
            session_timeout_ms=6000,
            max_poll_interval_ms=6000,
            heartbeat_interval_ms=1000,
            enable_auto_commit=True,
        )
        client.subscribe(["batches"])
        until = time.monotonic() + 7
        while time.monotonic() < until:
            client.poll(0.5)
        client.close()
