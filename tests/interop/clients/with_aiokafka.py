"""The steps with aiokafka. It writes no record without key and value, and no null header."""

import asyncio
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import OffsetAndMetadata

from tests.interop.clients import steps
from tests.interop.known import Row, known

CLIENT = "aiokafka"


async def send(producer: AIOKafkaProducer, a: steps.Arguments, first: int, count: int) -> list[Row]:
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
    return [r.row(_offset(await future)) for r, future in sent]


def _offset(told: Any) -> int | None:
    """The offset a broker said; with acks=0 nobody does."""
    return told.offset if told is not None and told.offset >= 0 else None


async def produce(a: steps.Arguments) -> dict[str, Any]:
    """Known records with a codec and a kind of acknowledgement."""
    async with AIOKafkaProducer(**steps.settings(a, CLIENT), **steps.producing(a)) as producer:
        count = int(a.get("count", 60))
        return {"produced": await send(producer, a, int(a.get("first", 0)), count)}


def reader(a: steps.Arguments, suffix: str = "") -> AIOKafkaConsumer:
    return AIOKafkaConsumer(**steps.settings(a, CLIENT, suffix), **steps.reading(a))


async def poll(consumer: AIOKafkaConsumer, timeout_ms: int) -> list[Row]:
    """What one call gives."""
    return steps.rows(await consumer.getmany(timeout_ms=timeout_ms))


async def consume(a: steps.Arguments) -> dict[str, Any]:
    """Read `count` records, as a group of one or without a group."""
    found: list[Row] = []
    async with reader(a) as consumer:
        if "group" in a:
            consumer.subscribe([a["topic"]])
        else:
            consumer.assign([TopicPartition(a["topic"], p) for p in (0, 1)])
            await consumer.seek_to_beginning()
        end = time.monotonic() + float(a.get("seconds", 40))
        while len(found) < int(a.get("count", 60)) and time.monotonic() < end:
            found += await poll(consumer, 500)
        if "group" in a:
            await consumer.commit()
    return {"consumed": found}


async def rebalance(a: steps.Arguments) -> dict[str, Any]:
    """A second member joins, shares the work and leaves."""
    found: list[Row] = []
    first, second = reader(a, "-1"), reader(a, "-2")
    first.subscribe([a["topic"]])
    second.subscribe([a["topic"]])
    await first.start()

    async def until(first_holds: int, *others: AIOKafkaConsumer) -> None:
        end = time.monotonic() + 40
        while len(first.assignment()) != first_holds or any(not o.assignment() for o in others):
            for consumer in (first, *others):
                found.extend(await poll(consumer, 100))
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
    return {"consumed": found, "held": [[2, 1, 2], [1]]}


async def transact(a: steps.Arguments) -> dict[str, Any]:
    """Committed, aborted, committed together with a group's offsets."""
    each = int(a.get("each", 10))
    read: list[Row] = []
    options = steps.settings(a, CLIENT) | {"transactional_id": a["id"], "linger_ms": 20}
    async with AIOKafkaProducer(**options) as producer:
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


async def journey(a: steps.Arguments) -> dict[str, Any]:
    """A producer and a consumer that go on for seconds, while leaders move and brokers restart."""
    count, pause = int(a.get("count", 400)), int(a.get("pause", 50)) / 1000
    read: set[str] = set()

    async def look() -> None:
        async with reader(a, "-reader") as consumer:
            consumer.subscribe([a["topic"]])
            while len(read) < count:
                read.update(str(row.value) for row in await poll(consumer, 200))

    looking = asyncio.create_task(look())
    async with AIOKafkaProducer(**steps.settings(a, CLIENT), acks="all") as producer:
        sent = []
        for index in range(count):
            sent.append(await producer.send(a["topic"], value=f"r{index}".encode()))
            await asyncio.sleep(pause)
        await asyncio.gather(*sent)
    await asyncio.wait((looking,), timeout=40)
    looking.cancel()
    return steps.travelled(count, read)


async def administer(a: steps.Arguments) -> dict[str, Any]:
    """Make topics, list topics and groups, describe a group."""
    admin = AIOKafkaAdminClient(**steps.settings(a, CLIENT))
    await admin.start()
    try:
        if made := steps.topics(a):
            await admin.create_topics([NewTopic(topic, 2, 1) for topic in made])
        result: dict[str, Any] = {"topics": sorted(await admin.list_topics())}
        if "group" in a:
            result["groups"] = repr(await admin.list_consumer_groups())
            result["state"] = repr(await admin.describe_consumer_groups([a["group"]]))
    finally:
        await admin.close()
    return result


if __name__ == "__main__":
    steps.serve(globals(), asyncio.run)
