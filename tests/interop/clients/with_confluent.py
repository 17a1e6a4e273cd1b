"""The steps with confluent-kafka (librdkafka)."""

import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.clients.steps import Arguments, serve, topics, travelled
from tests.interop.known import Row, known, payload


def settings(a: Arguments, suffix: str = "") -> dict[str, Any]:
    """Settings every client has: where, who, and `conf.NAME=VALUE`."""
    conf: dict[str, Any] = {
        "bootstrap.servers": a["bootstrap"],
        "client.id": a.get("client", "librdkafka") + suffix,
        "broker.address.family": "v4",
    }
    if "user" in a:
        conf |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": a.get("mechanism", "PLAIN"),
            "sasl.username": a["user"],
            "sasl.password": a["password"],
        }
    if "ca" in a:
        conf |= {
            "security.protocol": "SASL_SSL" if "user" in a else "SSL",
            "ssl.ca.location": a["ca"],
        }
        if "cert" in a:
            conf |= {"ssl.certificate.location": a["cert"], "ssl.key.location": a["cert"]}
    if "timeout" in a:
        conf["socket.timeout.ms"] = a["timeout"]
    return conf | {k[5:]: v for k, v in a.items() if k.startswith("conf.")}


def _offset(message: Any) -> int | None:
    """The offset a broker said; with acks=0 nobody does."""
    offset: int | None = message.offset()
    return offset if offset is not None and offset >= 0 else None


def send(producer: Producer, a: Arguments, first: int, count: int) -> list[Row]:
    """Send known records and wait for their offsets."""
    rows: list[Row] = []
    failures: list[str] = []
    for index in range(first, first + count):
        record = known(a["topic"], index)

        def told(error: Any, message: Any, record: Any = record) -> None:
            if error:
                failures.append(str(error))
            else:
                rows.append(record.row(_offset(message)))

        producer.produce(
            record.topic,
            partition=record.partition,
            timestamp=record.time_ms,
            key=record.key,
            value=record.value,
            headers=record.headers,
            on_delivery=told,
        )
    left = producer.flush(40)
    if left or failures:
        raise RuntimeError(f"{left} not delivered, {failures[:3]}")
    return rows


def produce(a: Arguments) -> dict[str, Any]:
    """Known records with a codec and a kind of acknowledgement."""
    conf = settings(a) | {
        "compression.type": a.get("codec", "none"),
        "acks": a.get("acks", "all"),
        "enable.idempotence": a.get("idempotent", "false"),
        "linger.ms": 20,
    }
    return {"produced": send(Producer(conf), a, int(a.get("first", 0)), int(a.get("count", 60)))}


def reader(a: Arguments, suffix: str = "") -> Consumer:
    """A consumer with short waits."""
    if a.get("protocol") == "consumer":
        # KIP-848: the times are the broker's.
        member: dict[str, Any] = {"group.protocol": "consumer"}
    else:
        member = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 300}
    return Consumer(
        settings(a, suffix)
        | member
        | {
            "group.id": a.get("group", "none"),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": a.get("isolation", "read_uncommitted"),
            "fetch.wait.max.ms": 200,
        }
    )


def row(message: Any) -> Row:
    """A consumed message as a row."""
    return Row(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        payload(message.key()),
        payload(message.value()),
        [[name, payload(value)] for name, value in message.headers() or []],
    )


def poll(consumer: Consumer, seconds: float) -> list[Row]:
    """What one call gives."""
    message = consumer.poll(seconds)
    if message is None:
        return []
    if message.error():
        raise RuntimeError(str(message.error()))
    return [row(message)]


def consume(a: Arguments) -> dict[str, Any]:
    """Read `count` records, as a group of one or without a group."""
    consumer = reader(a)
    if "group" in a:
        consumer.subscribe([a["topic"]])
    else:
        consumer.assign([TopicPartition(a["topic"], p, 0) for p in (0, 1)])
    rows: list[Row] = []
    end = time.monotonic() + float(a.get("seconds", 40))
    while len(rows) < int(a.get("count", 60)) and time.monotonic() < end:
        rows += poll(consumer, 0.5)
    if "group" in a and rows:  # else there is nothing to commit, which it calls an error
        consumer.commit(asynchronous=False)
    consumer.close()
    return {"consumed": rows}


def rebalance(a: Arguments) -> dict[str, Any]:
    """A second member joins, shares the work and leaves."""
    rows: list[Row] = []
    first, second = reader(a, "-1"), reader(a, "-2")
    first.subscribe([a["topic"]])

    def until(first_holds: int, *others: Consumer) -> None:
        end = time.monotonic() + 40
        while len(first.assignment()) != first_holds or any(not o.assignment() for o in others):
            for consumer in (first, *others):
                rows.extend(poll(consumer, 0.1))
            if time.monotonic() > end:
                raise RuntimeError("no rebalance")

    until(2)
    second.subscribe([a["topic"]])
    until(1, second)
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        rows.extend(poll(first, 0.1) + poll(second, 0.1))
    second.close()
    until(2)
    first.close()
    return {"consumed": rows, "held": [[2, 1, 2], [1]]}


def transact(a: Arguments) -> dict[str, Any]:
    """Committed, aborted, committed together with a group's offsets."""
    each = int(a.get("each", 10))
    conf = settings(a) | {
        "transactional.id": a["id"],
        "compression.type": a.get("codec", "none"),
        "linger.ms": 20,
    }
    producer, consumer = Producer(conf), reader(a, "-reader")
    producer.init_transactions(30)
    producer.begin_transaction()
    committed = send(producer, a, 0, each)
    producer.commit_transaction(30)
    producer.begin_transaction()
    aborted = send(producer, a, each, each)
    producer.abort_transaction(30)
    consumer.subscribe([a["source"]])
    read: list[Row] = []
    end = time.monotonic() + 40
    while len(read) < 5 and time.monotonic() < end:
        read += poll(consumer, 0.5)
    producer.begin_transaction()
    committed += send(producer, a, 2 * each, each)
    positions = [p for p in consumer.position(consumer.assignment()) if p.offset >= 0]
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    consumer.close()
    return {"produced": committed, "aborted": aborted, "consumed": read}


def journey(a: Arguments) -> dict[str, Any]:
    """A producer and a consumer that go on for seconds, while leaders move and brokers restart."""
    count, pause = int(a.get("count", 400)), int(a.get("pause", 50)) / 1000
    producer, consumer = Producer(settings(a) | {"linger.ms": 5}), reader(a, "-reader")
    consumer.subscribe([a["topic"]])
    read: set[str] = set()
    failures: list[str] = []

    def look(seconds: float) -> None:
        message = consumer.poll(seconds)
        # Errors that pass (a broker is away) are told as messages, too.
        if message is not None and not message.error():
            read.add(message.value().decode())

    for index in range(count):
        producer.produce(
            a["topic"],
            value=f"r{index}",
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        producer.poll(0)
        look(pause)
    left = producer.flush(40)
    end = time.monotonic() + 40
    while len(read) < count and time.monotonic() < end:
        look(0.2)
    consumer.close()
    if left or failures:
        raise RuntimeError(f"{left} not delivered, {failures[:3]}")
    return travelled(count, read)


def administer(a: Arguments) -> dict[str, Any]:
    """Make topics, list topics and groups, describe a group."""
    admin = AdminClient(settings(a))
    if made := topics(a):
        for future in admin.create_topics([NewTopic(topic, 2, 1) for topic in made]).values():
            future.result(30)
    result: dict[str, Any] = {"topics": sorted(admin.list_topics(timeout=30).topics)}
    if "group" in a:
        result["groups"] = [g.group_id for g in admin.list_consumer_groups().result(30).valid]
        described = admin.describe_consumer_groups([a["group"]])
        result["state"] = described[a["group"]].result(30).state.name
    return result


if __name__ == "__main__":
    serve(globals())
