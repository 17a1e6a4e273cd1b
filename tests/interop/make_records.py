"""Scenarios of `make_findings` about producers, batches, and what else comes to a broker."""

import os
import struct
import time
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewPartitions

from tests.interop import make_findings_kit as kit
from tests.interop.brokers import KRaftCluster
from tests.interop.make_groups import members, spread
from tests.kit.wire import request

LONG = 61
"""Seconds: a little longer than the thresholds of a minute."""


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def old_reader(cluster: KRaftCluster) -> None:
    """A reader whose Fetch is too old for zstd: refused, as brokers before 4.0 do where the topic
    says zstd (by the proxy), and not where only its producer does."""
    kit.topics("modern", "mixed")
    for topic in ("modern", "mixed"):
        kit.write(kit.producer("packer", kit.INSIDE, compression_type="zstd"), topic, b"x" * 500)
    refusal = "api == Fetch and topic == modern -> error UNSUPPORTED_COMPRESSION_TYPE"
    with kit.proxied(refusal), kit.Raw(kit.PROXY, "old-reader") as raw:
        raw.ask("ApiVersions", 2)
        for topic in ("modern", "mixed"):
            asked = [{"topic": topic, "partitions": [{"partition_max_bytes": 1_000_000}]}]
            raw.ask("Fetch", 9, replica_id=-1, max_wait_ms=100, min_bytes=1, topics=asked)


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def forgotten_producer(cluster: KRaftCluster) -> None:
    """An idempotent producer whose id the broker no longer knows."""
    kit.topics("forgotten")
    fault = "api == Produce and sequence > 0 -> error UNKNOWN_PRODUCER_ID once"
    with kit.proxied(fault) as there:
        out = kit.producer("long-lived", there, enable_idempotence=True)
        kit.write(out, "forgotten", *[b"x"] * 3)


@kit.scenario()
def huge_request(cluster: KRaftCluster) -> None:
    """A request with a length beyond socket.request.max.bytes: the broker reads four bytes."""
    with kit.Raw(kit.PORT, "whale") as raw:
        raw.ask("ApiVersions", 2)
        head = request("Produce", 7, 2, "whale", acks=-1, timeout_ms=1000, topic_data=[])[4:]
        with suppress(OSError):
            raw.socket.sendall(struct.pack(">i", 104_857_700) + head + bytes(3000))
        raw.answer()


@kit.scenario()
def large_batches(cluster: KRaftCluster) -> None:
    """A batch that is just below the default limit."""
    kit.topics("large")
    out = kit.producer("bulky", compression_type="none", message_max_bytes=1_000_000)
    kit.write(out, "large", bytes(950_000))


@kit.scenario()
def left_alone(cluster: KRaftCluster) -> None:
    """Partitions that were added while the leader's metadata is old: it assigns none of them."""
    kit.topics("grown")
    settings = {"group.protocol": "classic", "heartbeat.interval.ms": "500"}
    with members(("a", "b"), "grown-group", "grown", **settings) as (one, two):
        one.do("join", holds=1)
        client = kit.admin()
        for future in client.create_partitions([NewPartitions("grown", 3)]).values():
            future.result(20)
        time.sleep(1)
        two.do("join")
        time.sleep(5)
        one.do("await")
        two.kill()
        one.kill()


@kit.scenario()
def measured(cluster: KRaftCluster) -> None:
    """Client metrics that the broker subscribes to (KIP-714)."""
    configs = [
        {"name": "interval.ms", "config_operation": 0, "value": "1000"},
        {"name": "metrics", "config_operation": 0, "value": "*"},
    ]
    subscription = {"resource_type": 16, "resource_name": "all", "configs": configs}
    with kit.Raw(9094, "admin") as raw:
        raw.ask("IncrementalAlterConfigs", 1, resources=[subscription], validate_only=False)
        kit.topics("measured")
        out = kit.producer("metered", enable_metrics_push=True)
        for _ in range(20):
            out.produce("measured", b"x")
            out.flush(5)
            time.sleep(0.3)
        removed = [{**each, "config_operation": 1, "value": None} for each in configs]
        gone = {**subscription, "configs": removed}
        raw.ask("IncrementalAlterConfigs", 1, resources=[gone], validate_only=False)


@kit.scenario(kit.SASL)
def tls_only(cluster: KRaftCluster) -> None:
    """A client that speaks TLS to a TLS listener."""
    settings = {"security_protocol": "ssl", "enable_ssl_certificate_verification": False}
    client = kit.producer("secret", f"127.0.0.1:{kit.SASL}", **settings)
    client.list_topics(timeout=10)


@kit.scenario()
def other_protocols(cluster: KRaftCluster) -> None:
    """SSH and redis at a broker's door, next to a client."""
    with kit.Raw(kit.PORT, "guest") as raw:
        raw.ask("ApiVersions", 2)
    for words in (b"SSH-2.0-OpenSSH_9.6\r\n", b"*1\r\n$4\r\nPING\r\n"):
        with kit.Raw(kit.PORT) as wrong:
            wrong.socket.sendall(words)
            wrong.answer()


@kit.scenario()
def falling_behind(cluster: KRaftCluster) -> None:
    """A consumer that commits what it reads, while others write far more."""
    kit.topics("flood")
    kit.fill("flood", 20)
    client = kit.consumer(
        "slow-reader",
        "flood-group",
        fetch_message_max_bytes=1000,
        queued_min_messages=1,
        max_poll_interval_ms=60000,
    )
    client.subscribe(["flood"])
    kit.read(client, 10)
    client.commit(asynchronous=False)
    for _ in range(3):
        kit.fill("flood", 1500)
        kit.read(client, 5)
        client.commit(asynchronous=False)
    client.close()


@kit.scenario()
def restless_group(cluster: KRaftCluster) -> None:
    """A member that changes its mind about its topics again and again."""
    kit.topics("one", "two")
    client = kit.consumer("fickle", "restless-group", heartbeat_interval_ms=500)
    for wanted in (["one"], ["one", "two"], ["one"], ["one", "two"], ["one"]):
        client.subscribe(wanted)
        kit.read(client, 1, 2.5)
    client.close()


@kit.scenario()
def slow_rebalance(cluster: KRaftCluster) -> None:
    """A member that works for 11 seconds between two polls, while another wants to join."""
    kit.topics("slow", partitions=2)
    settings = {
        "group.protocol": "classic",
        "heartbeat.interval.ms": "2000",
        "fetch.max.wait.ms": "5000",
    }
    with members(("busy", "late"), "slow-group", "slow", **settings) as (busy, late):
        busy.do("join", holds=2)
        late.driver.step("Member", do="join")
        busy.do("stand", ms=11_000)
        late.do("await", holds=1)
        busy.do("await", holds=1)
        late.end()
        busy.end()


@kit.scenario()
def long_minute(cluster: KRaftCluster) -> None:
    """For more than a minute: a group that reads and never commits, a transaction that stays
    open."""
    kit.topics("kept", "hung")
    spread("kept", 1, 5)
    out = kit.producer("forgetful", transactional_id="forgetful-id", transaction_timeout_ms=120000)
    out.init_transactions(20)
    out.begin_transaction()
    out.produce("hung", b"waits")
    out.flush(10)
    client = kit.consumer(
        "never",
        "never-group",
        fetch_wait_max_ms=10000,
        session_timeout_ms=30000,
        heartbeat_interval_ms=9000,
    )
    client.subscribe(["kept"])
    kit.read(client, 5)
    kit.read(client, 1, LONG)
    spread("kept", 1, 1)
    kit.read(client, 1)
    client.close()
    out.abort_transaction(10)


@kit.scenario()
def odd_requests(cluster: KRaftCluster) -> None:
    """An API and a version that nobody has, and a setting that the broker does not accept."""
    with kit.Raw(kit.PORT, "odd") as raw:
        raw.ask("ApiVersions", 2)
        raw.socket.sendall(struct.pack(">ihhih3s", 13, 999, 0, 7, 3, b"odd"))
        raw.answer()
    with kit.Raw(kit.PORT, "ahead") as raw:
        raw.socket.sendall(struct.pack(">ihhih5s", 15, 18, 99, 1, 5, b"ahead"))
        raw.answer()
        raw.ask("ApiVersions", 2)
    with kit.Raw(kit.PORT, "patient") as raw:
        raw.ask("ApiVersions", 2)
        for _ in range(20):  # the coordinator loads at first
            told = producer_id(raw, transactional_id="x", transaction_timeout_ms=1 << 30)
            if struct.unpack_from(">h", told, 8)[0] == 50:  # INVALID_TRANSACTION_TIMEOUT
                break
            time.sleep(0.5)


@kit.scenario()
def too_large(cluster: KRaftCluster) -> None:
    """A topic with a small limit, a producer with larger records."""
    kit.topics("small", max_message_bytes="1000")
    kit.write(kit.producer("generous"), "small", os.urandom(2000))


@kit.scenario()
def tiny_batches(cluster: KRaftCluster) -> None:
    """One record for each request, as fast as it goes."""
    kit.topics("tiny")
    kit.write(kit.producer("flusher"), "tiny", *(b"%d" % number for number in range(300)))


def producer_id(raw: kit.Raw, **more: Any) -> bytes:
    """Ask for the id of a producer."""
    asked = {"transactional_id": None, "transaction_timeout_ms": 60000} | more
    return raw.ask("InitProducerId", 1, **asked)


@kit.scenario()
def sequences(cluster: KRaftCluster) -> None:
    """A producer that asks for an id without a pause until it gets one (an error storm); then it
    repeats a batch, and leaves one out."""
    kit.topics("sequences")
    with kit.Raw(kit.PORT, "gappy") as raw:
        error = 14
        while error:  # COORDINATOR_LOAD_IN_PROGRESS at first
            error, number, epoch = struct.unpack_from(">hqh", producer_id(raw), 8)
        for sequence in (0, 2, 2, 9):
            data = kit.batch(2, (number, epoch, sequence))
            sent = [{"name": "sequences", "partition_data": [{"index": 0, "records": data}]}]
            raw.ask("Produce", 7, acks=-1, timeout_ms=5000, topic_data=sent)


@kit.scenario()
def sequence_gap(cluster: KRaftCluster) -> None:
    """A producer that leaves batches out and asks for no answers: the broker refuses what is behind
    the gap, and has no way to say so but to close the connection."""
    kit.topics("gaps")
    with kit.Raw(kit.PORT, "careless") as raw:
        number, epoch = -1, 0
        while number < 0:  # COORDINATOR_LOAD_IN_PROGRESS at first
            time.sleep(0.2)
            number, epoch = struct.unpack_from(">qh", producer_id(raw), 10)
        for sequence in (0, 2, 10):
            data = kit.batch(2, (number, epoch, sequence))
            sent = [{"name": "gaps", "partition_data": [{"index": 0, "records": data}]}]
            raw.tell("Produce", 7, acks=0, timeout_ms=5000, topic_data=sent)
            time.sleep(0.2)
        raw.answer()


@kit.scenario()
def seen_by_one(cluster: KRaftCluster) -> None:
    """One of three brokers is captured; the leader of a partition goes to another one and comes
    back, and with it an idempotent producer: what it sent there is missing here."""
    kit.topics("wandering")
    out = kit.producer("wanderer", enable_idempotence=True)
    for leader in (1, 2, 1):
        move("wandering", leader)
        kit.write(out, "wandering", *(b"%d" % number for number in range(10)))


def move(topic: str, node: int) -> None:
    """Make a node the only replica of the first partition of a topic."""
    with kit.Raw(kit.PORT + 2, "mover") as raw:
        place = {"partition_index": 0, "replicas": [node]}
        wanted = [{"name": topic, "partitions": [place]}]
        raw.ask("AlterPartitionReassignments", 0, timeout_ms=10000, topics=wanted)
        time.sleep(3)


@kit.scenario()
def fenced_producer(cluster: KRaftCluster) -> None:
    """Two producers with one transactional id; an aborted transaction."""
    kit.topics("tx")
    old = kit.producer("old", transactional_id="shared-id")
    old.init_transactions(20)
    old.begin_transaction()
    old.produce("tx", b"a")
    old.flush(10)
    old.abort_transaction(10)
    old.begin_transaction()
    old.produce("tx", b"b")
    old.flush(10)
    new = kit.producer("new", transactional_id="shared-id")
    new.init_transactions(20)
    with suppress(KafkaException):
        old.commit_transaction(10)


def with_open_transaction(
    topic: str, name: str, transactional_id: str, timeout_ms: int
) -> Producer:
    """Return a producer with a record of a transaction that has not ended."""
    kit.topics(topic)
    out = kit.producer(name, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    out.init_transactions(20)
    out.begin_transaction()
    out.produce(topic, b"held back")
    out.flush(10)
    return out


@kit.scenario()
def open_transaction(cluster: KRaftCluster) -> None:
    """A transaction that stays open, and a read_committed consumer behind it."""
    out = with_open_transaction("stuck", "sleeper", "sleeper-id", 60000)
    client = kit.consumer(
        "blocked", "stuck-group", isolation_level="read_committed", fetch_wait_max_ms=2000
    )
    client.subscribe(["stuck"])
    kit.read(client, 1, 17)
    client.close()
    out.abort_transaction(10)


@kit.scenario()
def overdue_transaction(cluster: KRaftCluster) -> None:
    """A transaction that is open for longer than its timeout: its broker seldom looks for those."""
    out = with_open_transaction("overdue", "slow-pay", "slow-pay-1", 2000)
    time.sleep(5)
    out.abort_transaction(10)


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def wrong_checksum(cluster: KRaftCluster) -> None:
    """A batch that is damaged on its way."""
    kit.topics("damaged")
    kit.fill("damaged", 5)
    with kit.proxied("api == Fetch and records > 0 -> corrupt-crc once") as there:
        kit.read_from(
            "damaged", 0, 5, kit.consumer("checker", "crc-group", there, check_crcs=True), 6
        )
