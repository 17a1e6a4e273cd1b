"""Scenarios of `make_findings`: producers and their sizes, sequences, transactions, checksums."""

from __future__ import annotations

import os
import struct
import time
from contextlib import closing

from confluent_kafka import KafkaException, TopicPartition

from tests.interop.brokers import KRaftCluster
from tests.interop.make_findings_kit import (
    PORT,
    PROXY,
    Raw,
    batch,
    consumer,
    fill,
    producer,
    proxied,
    read,
    scenario,
    topics,
)


@scenario()
def too_large(cluster: KRaftCluster) -> None:
    """A topic with a small limit, a producer with larger records."""
    topics("small", max_message_bytes="1000")
    out = producer("generous")
    out.produce("small", os.urandom(2000))
    out.flush(20)


@scenario()
def tiny_batches(cluster: KRaftCluster) -> None:
    """One record for each request, as fast as it goes."""
    topics("tiny")
    out = producer("flusher")
    for number in range(300):
        out.produce("tiny", b"%d" % number)
        out.flush(5)


@scenario()
def sequences(cluster: KRaftCluster) -> None:
    """A producer that asks for an id without a pause until it gets one (an error storm); then it
    repeats a batch, and leaves one out."""
    topics("sequences")
    with closing(Raw(PORT, "gappy")) as raw:
        error = 14
        while error:  # COORDINATOR_LOAD_IN_PROGRESS at first
            asked = {"transactional_id": None, "transaction_timeout_ms": 60000}
            error, number, epoch = struct.unpack_from(
                ">hqh", raw.ask("InitProducerId", 1, **asked), 8
            )
        for sequence in (0, 2, 2, 9):
            data = batch(2, (number, epoch, sequence))
            sent = [{"name": "sequences", "partition_data": [{"index": 0, "records": data}]}]
            raw.ask("Produce", 7, acks=-1, timeout_ms=5000, topic_data=sent)


@scenario()
def sequence_gap(cluster: KRaftCluster) -> None:
    """A producer that leaves batches out and asks for no answers: the broker refuses what is behind
    the gap, and has no way to say so but to close the connection."""
    topics("gaps")
    with closing(Raw(PORT, "careless")) as raw:
        asked = {"transactional_id": None, "transaction_timeout_ms": 60000}
        number, epoch = -1, 0
        while number < 0:  # COORDINATOR_LOAD_IN_PROGRESS at first
            time.sleep(0.2)
            number, epoch = struct.unpack_from(">qh", raw.ask("InitProducerId", 1, **asked), 10)
        for sequence in (0, 2, 10):
            data = batch(2, (number, epoch, sequence))
            sent = [{"name": "gaps", "partition_data": [{"index": 0, "records": data}]}]
            raw.tell("Produce", 7, acks=0, timeout_ms=5000, topic_data=sent)
            time.sleep(0.2)
        raw.answer()


@scenario()
def seen_by_one(cluster: KRaftCluster) -> None:
    """One of three brokers is captured; the leader of a partition goes to another one and comes
    back, and with it an idempotent producer: what it sent there is missing here."""
    topics("wandering")
    out = producer("wanderer", enable_idempotence=True)
    for leader in (1, 2, 1):
        move("wandering", leader)
        for number in range(10):
            out.produce("wandering", b"%d" % number)
            out.flush(20)


def move(topic: str, node: int) -> None:
    """Make a node the only replica of the first partition of a topic."""
    with closing(Raw(PORT + 2, "mover")) as raw:
        place = {"partition_index": 0, "replicas": [node]}
        wanted = [{"name": topic, "partitions": [place]}]
        raw.ask("AlterPartitionReassignments", 0, timeout_ms=10000, topics=wanted)
        time.sleep(3)


@scenario()
def fenced_producer(cluster: KRaftCluster) -> None:
    """Two producers with one transactional id; an aborted transaction."""
    topics("tx")
    old = producer("old", transactional_id="shared-id")
    old.init_transactions(20)
    old.begin_transaction()
    old.produce("tx", b"a")
    old.flush(10)
    old.abort_transaction(10)
    old.begin_transaction()
    old.produce("tx", b"b")
    old.flush(10)
    new = producer("new", transactional_id="shared-id")
    new.init_transactions(20)
    try:
        old.commit_transaction(10)
    except KafkaException:
        pass


@scenario()
def open_transaction(cluster: KRaftCluster) -> None:
    """A transaction that stays open, and a read_committed consumer behind it."""
    topics("stuck")
    out = producer("sleeper", transactional_id="sleeper-id", transaction_timeout_ms=60000)
    out.init_transactions(20)
    out.begin_transaction()
    out.produce("stuck", b"held back")
    out.flush(10)
    client = consumer("blocked", "stuck-group", isolation_level="read_committed",
                      fetch_wait_max_ms=2000)  # fmt: skip
    client.subscribe(["stuck"])
    read(client, 1, 17)
    client.close()
    out.abort_transaction(10)


@scenario()
def overdue_transaction(cluster: KRaftCluster) -> None:
    """A transaction that is open for longer than its timeout: its broker seldom looks for those."""
    topics("overdue")
    out = producer("slow-pay", transactional_id="slow-pay-1", transaction_timeout_ms=2000)
    out.init_transactions(20)
    out.begin_transaction()
    out.produce("overdue", b"held back")
    out.flush(10)
    time.sleep(5)
    out.abort_transaction(10)


@scenario(PROXY, PROXY + 1)
def wrong_checksum(cluster: KRaftCluster) -> None:
    """A batch that is damaged on its way."""
    topics("damaged")
    fill("damaged", 5)
    with proxied("api == Fetch and records > 0 -> corrupt-crc once") as there:
        client = consumer("checker", "crc-group", there, check_crcs=True)
        client.assign([TopicPartition("damaged", 0, 0)])
        read(client, 5, 6)
        client.close()
