"""Records for log directories: written by a client, and counted."""

from __future__ import annotations

from typing import Any

from tests.interop.zookeeper import admin_of

TIME_MS = 1_700_000_000_000


COUNT = 300


def produce(bootstrap: str, topic: str, codec: str, *, headers: bool, times: bool) -> Any:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 5,
            "batch.num.messages": 20,
            # A batch that is sent again must not come behind those sent after it.
            "max.in.flight.requests.per.connection": 1,
        }
    )
    rows = []
    for i in range(COUNT):
        key = None if i % 7 == 0 else f"k{i}"
        value = None if key and i % 11 == 10 else f"value {i} " * (i % 30)
        named = [("h", b"x"), ("none", None)] if headers and i % 5 == 0 else []
        stamp = TIME_MS + i
        producer.produce(topic, key=key, value=value, headers=named, timestamp=stamp)
        shown = [[name, data and data.decode()] for name, data in named]
        rows.append((key, value, shown, stamp if times else None))
    assert producer.flush(120) == 0
    return rows


def make(bootstrap: str, configs: dict[str, dict[str, str]]) -> None:
    from confluent_kafka.admin import NewTopic

    topics = [NewTopic(name, 1, 1, config=config) for name, config in configs.items()]
    admin = admin_of(bootstrap)  # kept: what it was asked ends with it
    for done in admin.create_topics(topics).values():
        done.result(120)
