"""The steps with aiokafka. It writes no record without key and value, and no null header."""

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import OffsetAndMetadata

from tests.interop.clients.steps import Arguments, serve
from tests.interop.known import Row, known, payload

Step = Callable[[Arguments], Coroutine[Any, Any, dict[str, Any]]]


def settings(a: Arguments, suffix: str = "") -> dict[str, Any]:
    """Settings every client has."""
    conf: dict[str, Any] = {
        "bootstrap_servers": a["bootstrap"],
        "client_id": a.get("client", "aiokafka") + suffix,
    }
    if "user" in a:
        conf |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": a.get("mechanism", "PLAIN"),
            "sasl_plain_username": a["user"],
            "sasl_plain_password": a["password"],
        }
    if "ca" in a:
        context = ssl.create_default_context(cafile=a["ca"])
        if "cert" in a:
            context.load_cert_chain(a["cert"])
        conf |= {
            "security_protocol": "SASL_SSL" if "user" in a else "SSL",
            "ssl_context": context,
        }
    if "timeout" in a:
        conf["request_timeout_ms"] = int(a["timeout"])
    return conf


async def send(producer: AIOKafkaProducer, a: Arguments, first: int, count: int) -> list[Row]:
    """Send known records and wait for their offsets."""
    sent = []
    for index in range(first, first + count):
        r = known(a["topic"], index, null_headers=False)
        future = await producer.send(
            r.topic,
            partition=r.partition,
            timestamp_ms=r.time_ms,
            key=r.key,
            value=r.value,
            headers=r.headers,
        )
        sent.append((r, future))
    await producer.flush()
    rows = []
    for r, future in sent:
        told = await future
        known_offset = told is not None and told.offset >= 0
        rows.append(r.row(told.offset if known_offset else None))
    return rows


async def produce(a: Arguments) -> dict[str, Any]:
    """Known records with a codec and a kind of acknowledgement."""
    codec, acks = a.get("codec", "none"), a.get("acks", "all")
    producer = AIOKafkaProducer(
        **settings(a),
        compression_type=None if codec == "none" else codec,
        acks=acks if acks == "all" else int(acks),
        enable_idempotence=a.get("idempotent", "false") == "true",
        linger_ms=20,
    )
    async with producer:
        count = int(a.get("count", 60))
        return {"produced": await send(producer, a, int(a.get("first", 0)), count)}


def reader(a: Arguments, suffix: str = "", **more: Any) -> AIOKafkaConsumer:
    """A consumer with short waits."""
    return AIOKafkaConsumer(
        **settings(a, suffix),
        group_id=a.get("group"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level=a.get("isolation", "read_uncommitted"),
        session_timeout_ms=10_000,
        heartbeat_interval_ms=300,
        fetch_max_wait_ms=200,
        **more,
    )


async def poll(consumer: AIOKafkaConsumer, timeout_ms: int) -> list[Row]:
    """What one call gives."""
    found = await consumer.getmany(timeout_ms=timeout_ms)
    return [
        Row(
            r.topic,
            r.partition,
            r.offset,
            r.timestamp,
            payload(r.key),
            payload(r.value),
            [[name, payload(value)] for name, value in r.headers],
        )
        for records in found.values()
        for r in records
    ]


async def consume(a: Arguments) -> dict[str, Any]:
    """Read `count` records, as a group of one or without a group."""
    rows: list[Row] = []
    async with reader(a) as consumer:
        if "group" in a:
            consumer.subscribe([a["topic"]])
        else:
            consumer.assign([TopicPartition(a["topic"], p) for p in (0, 1)])
            await consumer.seek_to_beginning()
        end = time.monotonic() + float(a.get("seconds", 40))
        while len(rows) < int(a.get("count", 60)) and time.monotonic() < end:
            rows += await poll(consumer, 500)
        if "group" in a:
            await consumer.commit()
    return {"consumed": rows}


async def rebalance(a: Arguments) -> dict[str, Any]:
    """A second member joins, shares the work and leaves."""
    rows: list[Row] = []
    first, second = reader(a, "-1"), reader(a, "-2")
    first.subscribe([a["topic"]])
    second.subscribe([a["topic"]])
    await first.start()

    async def until(first_holds: int, *others: AIOKafkaConsumer) -> None:
        end = time.monotonic() + 40
        while len(first.assignment()) != first_holds or any(not o.assignment() for o in others):
            for consumer in (first, *others):
                rows.extend(await poll(consumer, 100))
            if time.monotonic() > end:
                raise RuntimeError("no rebalance")

    await until(2)
    await second.start()
    await until(1, second)
    await asyncio.sleep(0.8)
    await second.stop()
    await until(2)
    await first.commit()
    await first.stop()
    return {"consumed": rows, "held": [[2, 1, 2], [1]]}


async def transact(a: Arguments) -> dict[str, Any]:
    """Committed, aborted, committed together with a group's offsets."""
    each = int(a.get("each", 10))
    read: list[Row] = []
    async with AIOKafkaProducer(**settings(a), transactional_id=a["id"], linger_ms=20) as producer:
        await producer.begin_transaction()
        committed = await send(producer, a, 0, each)
        await producer.commit_transaction()
        await producer.begin_transaction()
        aborted = await send(producer, a, each, each)
        await producer.abort_transaction()
        async with reader(a, "-reader") as consumer:
            consumer.subscribe([a["source"]])
            end = time.monotonic() + 40
            while not read and time.monotonic() < end:
                read += await poll(consumer, 500)
            await producer.begin_transaction()
            committed += await send(producer, a, 2 * each, each)
            offsets = {
                p: OffsetAndMetadata(await consumer.position(p), "") for p in consumer.assignment()
            }
            await producer.send_offsets_to_transaction(offsets, a["group"])
            await producer.commit_transaction()
    return {"produced": committed, "aborted": aborted, "consumed": read}


async def journey(a: Arguments) -> dict[str, Any]:
    """A producer and a consumer that go on for seconds, while leaders move and brokers restart."""
    count, pause = int(a.get("count", 400)), int(a.get("pause", 50)) / 1000
    read: set[str] = set()

    async def look() -> None:
        async with reader(a, "-reader") as consumer:
            consumer.subscribe([a["topic"]])
            while len(read) < count:
                read.update(str(row.value) for row in await poll(consumer, 200))

    looking = asyncio.create_task(look())
    async with AIOKafkaProducer(**settings(a), acks="all") as producer:
        sent = []
        for index in range(count):
            sent.append(await producer.send(a["topic"], value=f"r{index}".encode()))
            await asyncio.sleep(pause)
        await asyncio.gather(*sent)
    await asyncio.wait((looking,), timeout=40)
    looking.cancel()
    return {
        "written": count,
        "read": len(read),
        "same": read == {f"r{index}" for index in range(count)},
    }


async def administer(a: Arguments) -> dict[str, Any]:
    """Make topics, list topics and groups, describe a group."""
    admin = AIOKafkaAdminClient(**settings(a))
    await admin.start()
    try:
        topics = [t for t in a.get("topics", "").split(",") if t]
        if topics:
            await admin.create_topics([NewTopic(t, 2, 1) for t in topics])
        result: dict[str, Any] = {"topics": sorted(await admin.list_topics())}
        if "group" in a:
            result["groups"] = repr(await admin.list_consumer_groups())
            result["state"] = repr(await admin.describe_consumer_groups([a["group"]]))
    finally:
        await admin.close()
    return result


def awaited(step: Step) -> Callable[[Arguments], dict[str, Any]]:
    """A step in an event loop of its own."""
    return lambda a: asyncio.run(step(a))


if __name__ == "__main__":
    serve(
        {
            "Produce": awaited(produce),
            "Consume": awaited(consume),
            "Rebalance": awaited(rebalance),
            "Transact": awaited(transact),
            "Administer": awaited(administer),
            "Journey": awaited(journey),
        }
    )
