"""The steps with kafka-python. It writes no record without key and value, and no null header."""

import threading
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.interop.clients import steps
from tests.interop.known import Row, known

CLIENT = "kafka-python"


def send(producer: KafkaProducer, a: steps.Arguments, first: int, count: int) -> list[Row]:
    """Send known records and wait for their offsets."""
    sent = []
    for index in range(first, first + count):
        r = known(a["topic"], index, null_headers=False)
        future = producer.send(
            r.topic,
            partition=r.partition,
            timestamp_ms=r.time_ms,
            key=r.key,
            value=r.value,
            headers=r.headers,
        )
        sent.append((r, future))
    producer.flush(40)
    offsets = [future.get(40).offset for _, future in sent]
    unknown = a.get("acks") == "0"
    return [
        r.row(None if unknown or offset < 0 else offset)
        for (r, _), offset in zip(sent, offsets, strict=True)
    ]


def produce(a: steps.Arguments) -> dict[str, Any]:
    """Known records with a codec and a kind of acknowledgement."""
    producer = KafkaProducer(**steps.settings(a, CLIENT), **steps.producing(a))
    produced = send(producer, a, int(a.get("first", 0)), int(a.get("count", 60)))
    producer.close()
    return {"produced": produced}


def reader(a: steps.Arguments, suffix: str = "") -> KafkaConsumer:
    return KafkaConsumer(**steps.settings(a, CLIENT, suffix), **steps.reading(a))


def consume(a: steps.Arguments) -> dict[str, Any]:
    """Read `count` records, as a group of one or without a group."""
    consumer = reader(a)
    if "group" in a:
        consumer.subscribe([a["topic"]])
    else:
        partitions = [TopicPartition(a["topic"], p) for p in (0, 1)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
    found: list[Row] = []
    end = time.monotonic() + float(a.get("seconds", 40))
    while len(found) < int(a.get("count", 60)) and time.monotonic() < end:
        found += steps.rows(consumer.poll(timeout_ms=500))
    if "group" in a:
        consumer.commit()
    consumer.close()
    return {"consumed": found}


class Member(threading.Thread):
    """One member of a group; a consumer of kafka-python belongs to one thread."""

    def __init__(self, a: steps.Arguments, suffix: str) -> None:
        super().__init__(daemon=True)
        self.a, self.suffix = a, suffix
        self.rows: list[Row] = []
        self.holds = -1
        self.leave = False
        self.start()

    def run(self) -> None:
        consumer = reader(self.a, self.suffix)
        consumer.subscribe([self.a["topic"]])
        while not self.leave:
            self.rows += steps.rows(consumer.poll(timeout_ms=200))
            self.holds = len(consumer.assignment())
        consumer.commit()
        consumer.close()

    def await_(self, partitions: int) -> None:
        end = time.monotonic() + 40
        while self.holds != partitions:
            if time.monotonic() > end or not self.is_alive():
                raise RuntimeError(f"holds {self.holds}, not {partitions}")
            time.sleep(0.05)


def rebalance(a: steps.Arguments) -> dict[str, Any]:
    """A second member joins, shares the work and leaves."""
    first = Member(a, "-1")
    first.await_(2)
    second = Member(a, "-2")
    second.await_(1)
    first.await_(1)
    time.sleep(0.8)
    second.leave = True
    second.join(30)
    first.await_(2)
    first.leave = True
    first.join(30)
    return {"consumed": first.rows + second.rows, "held": [[2, 1, 2], [1]]}


def transact(a: steps.Arguments) -> dict[str, Any]:
    """Committed and aborted."""
    each = int(a.get("each", 10))
    producer = KafkaProducer(**steps.settings(a, CLIENT), transactional_id=a["id"], linger_ms=20)
    producer.init_transactions()
    producer.begin_transaction()
    committed = send(producer, a, 0, each)
    producer.commit_transaction()
    producer.begin_transaction()
    aborted = send(producer, a, each, each)
    producer.abort_transaction()
    producer.close()
    return {"produced": committed, "aborted": aborted, "consumed": []}


def journey(a: steps.Arguments) -> dict[str, Any]:
    """A producer and a consumer that go on for seconds, while leaders move and brokers restart."""
    count, pause = int(a.get("count", 400)), int(a.get("pause", 50)) / 1000
    producer = KafkaProducer(**steps.settings(a, CLIENT), acks="all", retries=50)
    member = Member(a, "-reader")
    futures = []
    for index in range(count):
        futures.append(producer.send(a["topic"], value=f"r{index}".encode()))
        time.sleep(pause)
    producer.flush(60)
    for future in futures:
        future.get(1)
    producer.close()

    def read() -> set[str]:
        return {str(row.value) for row in tuple(member.rows)}

    end = time.monotonic() + 40
    while len(read()) < count and time.monotonic() < end:
        time.sleep(0.1)
    member.leave = True
    member.join(30)
    return steps.travelled(count, read())


def administer(a: steps.Arguments) -> dict[str, Any]:
    """Make topics, list topics and groups, describe a group."""
    admin = KafkaAdminClient(**steps.settings(a, CLIENT))
    if made := steps.topics(a):
        admin.create_topics([NewTopic(topic, 2, 1) for topic in made])
    result: dict[str, Any] = {"topics": sorted(admin.list_topics())}
    if "group" in a:
        result["groups"] = repr(admin.list_groups())
        result["state"] = repr(admin.describe_groups([a["group"]]))
    admin.close()
    return result


if __name__ == "__main__":
    steps.serve(globals())
