"""The shop's three brokers and its topics."""

import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import KRaftCluster

ADDRESSES = ("10.0.1.1", "10.0.1.2", "10.0.1.3")
PORTS = (9092, 9095, 29092)
"""Of the listeners for clients: plain, SASL, and one that was set up for containers."""
INSIDE = "172.17.0.4"
"""What node 3 advertises on the last one: an address inside of somebody's Docker."""
BEHIND = 4_000
AUDITED, CHECKED, KEPT = 500, 120, 400


class ShopCluster(KRaftCluster):
    """Three nodes of 3.9, which still serve the old clients, each with an address of its own."""

    names = ("PLAINTEXT", "CONTROLLER", "INTERNAL", "SASL_PLAINTEXT", "EXTERNAL")

    def __init__(self, home: Path) -> None:
        super().__init__("3.9.2", 3, home)

    def host(self, number: int) -> str:
        """Address of a node."""
        return ADDRESSES[number - 1]

    def allot(self, count: int, number: int) -> list[int]:
        """The same ports for all, as on machines of their own."""
        return [9092, 9093, 9094, 9095, 29092]

    def configuration(
        self, number: int, ports: dict[str, int], controllers: object, home: Path
    ) -> dict[str, str]:
        """server.properties of one node."""
        settings = super().configuration(number, ports, controllers, home)  # type: ignore[arg-type]
        settings["listener.security.protocol.map"] += ",EXTERNAL:PLAINTEXT"
        if number == 3:
            told = settings["advertised.listeners"].replace(
                f"EXTERNAL://{self.host(3)}", f"EXTERNAL://{INSIDE}"
            )
            settings["advertised.listeners"] = told
        return settings | {
            "num.partitions": "3",
            "auto.create.topics.enable": "false",
            "default.replication.factor": "3",
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": "1000",
            "connection.failed.authentication.delay.ms": "100",
            "metric.reporters": "",
            "log.cleaner.enable": "false",
            "super.users": "User:ANONYMOUS;User:admin;User:alice",
        }


TOPICS: dict[str, dict[str, str]] = {
    "orders": {},
    "payments": {},
    "invoices": {},
    "clicks": {},
    "audit-log": {},
    "inventory": {},
    "thumbnails": {"max.message.bytes": "65536"},
    "reports": {},
    "exports": {},
    "catalog": {},
}
TURNS = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


def prepare(cluster: ShopCluster) -> None:
    """Topics, a quota, and what was there before the capture begins."""
    at = {"bootstrap.servers": cluster.bootstrap()}
    admin = AdminClient(at)
    topics = [
        NewTopic(name, 3, replica_assignment=[list(turn) for turn in TURNS], config=config)
        for name, config in TOPICS.items()
    ]
    for future in admin.create_topics(topics).values():
        future.result(90)
    cluster.tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", cluster.bootstrap(), "--alter"),
        *("--add-config", "producer_byte_rate=4000"),
        *("--entity-type", "clients", "--entity-name", "bulk-load"),
    )
    producer = Producer(at | {"compression.type": "gzip", "linger.ms": 200})
    for number in range(BEHIND):
        value = f'{{"session":{number % 97},"page":"/lamps/{number % 31}","ms":{number % 900}}}'
        producer.produce("clicks", value, f"session-{number % 97}")
        if number % 1000 == 999:
            producer.flush()
    for number in range(AUDITED):
        value = f'{{"event":{number},"user":"user-{number % 7}","action":"login"}}'
        producer.produce("audit-log", value, None, partition=0)
    producer.flush()
    _warm(at)
    consumer = Consumer(at | {"group.id": "audit"})
    place = TopicPartition("audit-log", 0, CHECKED)
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()
    kept = admin.delete_records([TopicPartition("audit-log", 0, KEPT)])
    for done in kept.values():
        done.result(30)


def _warm(at: dict[str, str]) -> None:
    """The first transaction of a cluster waits for its internal topic: not in the capture."""
    end = time.monotonic() + 60
    for name in ("payments-tx", "warm-up"):
        while True:
            producer = Producer(at | {"transactional.id": name})
            try:
                producer.init_transactions(15)
                break
            except KafkaException:
                if time.monotonic() > end:
                    raise
