"""Scenarios of `make_findings` about batches, producers and what else comes to a broker."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import closing

from confluent_kafka.admin import NewPartitions

from tests.interop.brokers import KRaftCluster
from tests.interop.make_findings_kit import (
    PORT,
    PROXY,
    SASL,
    Raw,
    admin,
    consumer,
    fill,
    producer,
    proxied,
    read,
    scenario,
    topics,
)
from tests.interop.make_groups import Member, folder, spread
from tests.kit.wire import request

LONG = 61
"""Seconds: a little longer than the thresholds of a minute."""


@scenario(PROXY, PROXY + 1)
def old_reader(cluster: KRaftCluster) -> None:
    """A reader whose Fetch is too old for zstd: refused, as brokers before 4.0 do where the topic
    says zstd (by the proxy), and not where only its producer does."""
    topics("modern", "mixed")
    out = producer("packer", "127.0.0.1:9094", compression_type="zstd")
    for topic in ("modern", "mixed"):
        out.produce(topic, b"x" * 500)
    out.flush(10)
    part = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "log_start_offset": -1,
        "partition_max_bytes": 1_000_000,
    }
    refusal = "api == Fetch and topic == modern -> error UNSUPPORTED_COMPRESSION_TYPE"
    with proxied(refusal), closing(Raw(PROXY, "old-reader")) as raw:
        raw.ask("ApiVersions", 2)
        for topic in ("modern", "mixed"):
            asked = [{"topic": topic, "partitions": [part]}]
            raw.ask("Fetch", 9, replica_id=-1, max_wait_ms=100, min_bytes=1, topics=asked)


@scenario(PROXY, PROXY + 1)
def forgotten_producer(cluster: KRaftCluster) -> None:
    """An idempotent producer whose id the broker no longer knows."""
    topics("forgotten")
    fault = "api == Produce and sequence > 0 -> error UNKNOWN_PRODUCER_ID once"
    with proxied(fault) as there:
        out = producer("long-lived", there, enable_idempotence=True)
        for _ in range(3):
            out.produce("forgotten", b"x")
            out.flush(15)


@scenario()
def huge_request(cluster: KRaftCluster) -> None:
    """A request with a length beyond socket.request.max.bytes: the broker reads four bytes."""
    with closing(Raw(PORT, "whale")) as raw:
        raw.ask("ApiVersions", 2)
        head = request("Produce", 7, 2, "whale", acks=-1, timeout_ms=1000, topic_data=[])[4:]
        try:
            raw.socket.sendall(struct.pack(">i", 104_857_700) + head + bytes(3000))
        except OSError:
            pass
        raw.answer()


@scenario()
def large_batches(cluster: KRaftCluster) -> None:
    """A batch that is just below the default limit."""
    topics("large")
    out = producer("bulky", compression_type="none", message_max_bytes=1_000_000)
    out.produce("large", bytes(950_000))
    out.flush(20)


@scenario()
def left_alone(cluster: KRaftCluster) -> None:
    """Partitions that were added while the leader's metadata is old: it assigns none of them."""
    topics("grown")
    settings = {"group.protocol": "classic", "heartbeat.interval.ms": "500"}
    with folder() as logs:
        one, two = (Member(logs, name, "grown-group", "grown", **settings) for name in ("a", "b"))
        one.do("join", holds=1)
        client = admin()
        for future in client.create_partitions([NewPartitions("grown", 3)]).values():
            future.result(20)
        time.sleep(1)
        two.do("join")
        time.sleep(5)
        one.do("await")
        two.kill()
        one.kill()


@scenario()
def measured(cluster: KRaftCluster) -> None:
    """Client metrics that the broker subscribes to (KIP-714)."""
    configs = [
        {"name": "interval.ms", "config_operation": 0, "value": "1000"},
        {"name": "metrics", "config_operation": 0, "value": "*"},
    ]
    subscription = {"resource_type": 16, "resource_name": "all", "configs": configs}
    with closing(Raw(9094, "admin")) as raw:
        raw.ask("IncrementalAlterConfigs", 1, resources=[subscription], validate_only=False)
        topics("measured")
        out = producer("metered", enable_metrics_push=True)
        for _ in range(20):
            out.produce("measured", b"x")
            out.flush(5)
            time.sleep(0.3)
        removed = [{**each, "config_operation": 1, "value": None} for each in configs]
        gone = {**subscription, "configs": removed}
        raw.ask("IncrementalAlterConfigs", 1, resources=[gone], validate_only=False)


@scenario(SASL)
def tls_only(cluster: KRaftCluster) -> None:
    """A client that speaks TLS to a TLS listener."""
    settings = {"security_protocol": "ssl", "enable_ssl_certificate_verification": False}
    client = producer("secret", f"127.0.0.1:{SASL}", **settings)
    client.list_topics(timeout=10)


@scenario()
def other_protocols(cluster: KRaftCluster) -> None:
    """SSH and redis at a broker's door, next to a client."""
    with closing(Raw(PORT, "guest")) as raw:
        raw.ask("ApiVersions", 2)
    for words in (b"SSH-2.0-OpenSSH_9.6\r\n", b"*1\r\n$4\r\nPING\r\n"):
        with closing(socket.create_connection(("127.0.0.1", PORT))) as wrong:
            wrong.sendall(words)
            wrong.settimeout(2)
            try:
                wrong.recv(10)
            except OSError:
                pass


@scenario()
def falling_behind(cluster: KRaftCluster) -> None:
    """A consumer that commits what it reads, while others write far more."""
    topics("flood")
    fill("flood", 20)
    client = consumer("slow-reader", "flood-group", fetch_message_max_bytes=1000,
                      queued_min_messages=1, max_poll_interval_ms=60000)  # fmt: skip
    client.subscribe(["flood"])
    read(client, 10)
    client.commit(asynchronous=False)
    for _ in range(3):
        fill("flood", 1500)
        read(client, 5)
        client.commit(asynchronous=False)
    client.close()


@scenario()
def restless_group(cluster: KRaftCluster) -> None:
    """A member that changes its mind about its topics again and again."""
    topics("one", "two")
    client = consumer("fickle", "restless-group", heartbeat_interval_ms=500)
    for wanted in (["one"], ["one", "two"], ["one"], ["one", "two"], ["one"]):
        client.subscribe(wanted)
        read(client, 1, 2.5)
    client.close()


@scenario()
def slow_rebalance(cluster: KRaftCluster) -> None:
    """A member that works for 11 seconds between two polls, while another wants to join."""
    topics("slow", partitions=2)
    settings = {
        "group.protocol": "classic",
        "heartbeat.interval.ms": "2000",
        "fetch.max.wait.ms": "5000",
    }
    with folder() as logs:
        busy, late = (
            Member(logs, name, "slow-group", "slow", **settings) for name in ("busy", "late")
        )
        busy.do("join", holds=2)
        late.driver.step("Member", do="join")
        busy.do("stand", ms=11_000)
        late.do("await", holds=1)
        busy.do("await", holds=1)
        late.end()
        busy.end()


@scenario()
def long_minute(cluster: KRaftCluster) -> None:
    """For more than a minute: a group that reads and never commits, a transaction that stays
    open."""
    topics("kept", "hung")
    spread("kept", 1, 5)
    out = producer("forgetful", transactional_id="forgetful-id", transaction_timeout_ms=120000)
    out.init_transactions(20)
    out.begin_transaction()
    out.produce("hung", b"waits")
    out.flush(10)
    client = consumer("never", "never-group", fetch_wait_max_ms=10000,
                      session_timeout_ms=30000, heartbeat_interval_ms=9000)  # fmt: skip
    client.subscribe(["kept"])
    read(client, 5)
    read(client, 1, LONG)
    spread("kept", 1, 1)
    read(client, 1)
    client.close()
    out.abort_transaction(10)


@scenario()
def odd_requests(cluster: KRaftCluster) -> None:
    """An API and a version that nobody has, and a setting that the broker does not accept."""
    with closing(Raw(PORT, "odd")) as raw:
        raw.ask("ApiVersions", 2)
        raw.socket.sendall(struct.pack(">ihhih3s", 13, 999, 0, 7, 3, b"odd"))
        raw.answer()
    with closing(Raw(PORT, "ahead")) as raw:
        raw.socket.sendall(struct.pack(">ihhih5s", 15, 18, 99, 1, 5, b"ahead"))
        raw.answer()
        raw.ask("ApiVersions", 2)
    with closing(Raw(PORT, "patient")) as raw:
        raw.ask("ApiVersions", 2)
        for _ in range(20):  # the coordinator loads at first
            told = raw.ask(
                "InitProducerId", 1, transactional_id="x", transaction_timeout_ms=1 << 30
            )
            if struct.unpack_from(">h", told, 8)[0] == 50:  # INVALID_TRANSACTION_TIMEOUT
                break
            time.sleep(0.5)
