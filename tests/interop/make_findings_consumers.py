"""Scenarios of `make_findings`: consumers and their groups in trouble."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import Any

from confluent_kafka import TopicPartition
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tests.interop.brokers import KRaftCluster
from tests.interop.make_findings_kit import (
    BROKER,
    PORT,
    Raw,
    consumer,
    fill,
    read,
    scenario,
    topics,
)
from tests.kit.samples import ROOT


@scenario()
def eager_fetches(cluster: KRaftCluster) -> None:
    """A consumer with a wait of one millisecond on an empty topic."""
    topics("empty")
    client = consumer("eager", "eager-group", fetch_wait_max_ms=1, fetch_error_backoff_ms=0)
    client.assign([TopicPartition("empty", 0, 0)])
    read(client, 1, 1.8)
    client.close()


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
    client = consumer("lost-reader", "range-group")
    client.assign([TopicPartition("short", 0, 500)])
    read(client, 10)
    client.close()


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
    with closing(Raw(PORT, "busy")) as raw:
        raw.ask("OffsetCommit", 2, group_id="busy-group", topics=[])
    client = consumer(
        "busy", "busy-group", session_timeout_ms=6000, max_poll_interval_ms=6000,
        heartbeat_interval_ms=1000,
    )  # fmt: skip
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
            "batches", "batches-group", session_timeout_ms=6000, max_poll_interval_ms=6000,
            heartbeat_interval_ms=1000, enable_auto_commit=True,
        )  # fmt: skip
        client.subscribe(["batches"])
        until = time.monotonic() + 7
        while time.monotonic() < until:
            client.poll(0.5)
        client.close()
