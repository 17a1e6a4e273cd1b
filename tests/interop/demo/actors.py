"""The shop's programs in Python, one a process: `python -m tests.interop.demo.actors NAME`.

Each is small and makes one mistake that people make. Java's are `Sell.java` and `Follow.java`.
"""

import asyncio
import json
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.demo.shop import ADDRESSES

ALL = ",".join(f"{address}:9092" for address in ADDRESSES)
SASL = ",".join(f"{address}:9095" for address in ADDRESSES)


def said(error: object, message: object = None) -> None:
    """What a library reports goes to the log."""
    print(error, message, file=sys.stderr)


def rdkafka(name: str, **more: Any) -> dict[str, Any]:
    """Settings of a librdkafka client."""
    at = {"bootstrap.servers": ALL, "client.id": name, "error_cb": said}
    return at | {key.replace("_", "."): value for key, value in more.items()}


def row(number: int, **more: object) -> bytes:
    """A value as such programs write it."""
    return json.dumps({"id": number, **more}, separators=(",", ":")).encode()


def clickstream() -> None:
    """Waits for each click to be written: batches of one record. (aiokafka)"""

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=ALL, client_id="clickstream", linger_ms=0)
        await producer.start()
        for number in range(260):
            value = row(number, page=f"/lamps/{number % 31}")
            key = b"session-%d" % (number % 5)
            await producer.send_and_wait("clicks", value, key=key)
        await producer.stop()

    asyncio.run(run())


def analytics() -> None:
    """Reads a little, thinks a lot: far behind, and falling back. (kafka-python)"""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        "clicks",
        bootstrap_servers=ALL.split(","),
        client_id="analytics",
        group_id="analytics",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=40,
        max_partition_fetch_bytes=1024,
        fetch_max_bytes=1024,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=2_000,
    )
    end = time.monotonic() + 22
    while time.monotonic() < end:
        if consumer.poll(timeout_ms=500):
            consumer.commit()
        time.sleep(1.0)
    consumer.close()


def audit() -> None:
    """Retention has deleted what it had not read; resets to the end. (librdkafka)"""
    # What the shop writes meanwhile, so that "latest" means a loss.
    consumer = Consumer(
        rdkafka("audit", group_id="audit", auto_offset_reset="latest", enable_auto_commit=False)
        | {"fetch.wait.max.ms": 1000, "heartbeat.interval.ms": 2000}
    )
    consumer.subscribe(["audit-log"])
    end = time.monotonic() + 9
    while time.monotonic() < end:
        consumer.poll(0.5)
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as nothing_read:
        said(nothing_read)
    consumer.close()


def image_svc() -> None:
    """Sends a picture that is larger than the topic allows. (kafka-python)"""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=ALL.split(","),
        client_id="image-svc",
        acks=1,
        retries=0,
        enable_idempotence=False,
    )
    for number, size in enumerate((12_000, 90_000, 15_000, 110_000)):
        picture = b"\x89PNG" + (b"%08d" % number) * (size // 8)
        try:
            producer.send("thumbnails", picture, key=b"lamp-%d" % number).get(10)
        except Exception as error:
            said(error)
        time.sleep(0.6)
    producer.close()


def bulk_load() -> None:
    """Writes more a second than its quota allows. (librdkafka)"""
    producer = Producer(rdkafka("bulk-load", linger_ms=5, batch_size=9_000, acks="all"))
    for number in range(480):
        producer.produce("catalog", row(number, text="lamp " * 30), b"%d" % number, partition=0)
        if number % 40 == 39:
            producer.flush(20)
    producer.flush(20)


def crm_sync() -> None:
    """Its password was changed, and nobody told it. (librdkafka)"""
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "last-years-password",
    }
    more = {"reconnect.backoff.ms": 300, "reconnect.backoff.max.ms": 1200}
    producer = Producer(rdkafka("crm-sync") | login | more | {"bootstrap.servers": SASL})
    producer.produce("orders", row(1))
    producer.flush(4)


def partner_feed() -> None:
    """May log in, may not read. (librdkafka)"""
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "bob",
        "sasl.password": "bob-secret",
        "group.id": "partner-feed",
    }
    consumer = Consumer(rdkafka("partner-feed") | login | {"bootstrap.servers": SASL})
    consumer.assign([TopicPartition("orders", 0, 0)])
    end = time.monotonic() + 3
    while time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is not None:
            said(message.error())
    consumer.close()


def vendor_app() -> None:
    """Speaks TLS to a listener that does not. (librdkafka)"""
    plain = {"security.protocol": "ssl", "reconnect.backoff.max.ms": 1500}
    producer = Producer(rdkafka("vendor-app") | plain)
    producer.produce("orders", row(1))
    producer.flush(3)


def prometheus() -> None:
    """Was told to scrape this port: HTTP. (a socket, as any program for HTTP)"""
    for _ in range(2):
        with socket.create_connection((ADDRESSES[0], 9092), 5) as plug:
            plug.sendall(
                b"GET /metrics HTTP/1.1\r\nHost: kafka-1:9092\r\nUser-Agent: Prometheus/2.53.0\r\n"
                b"Accept: text/plain;version=0.0.4\r\n\r\n"
            )
            plug.settimeout(2)
            try:
                plug.recv(100)
            except OSError as error:
                said(error)
        time.sleep(1.5)


def healthcheck() -> None:
    """A new connection for each look. (librdkafka)"""
    for _ in range(24):
        client = AdminClient(rdkafka("healthcheck") | {"bootstrap.servers": f"{ADDRESSES[1]}:9092"})
        client.list_topics("orders", timeout=5)
        del client
        time.sleep(1.0)


def reports_ui() -> None:
    """Starts at a port that was made for containers: node 3 sends it to nowhere. (librdkafka)"""
    at = {"bootstrap.servers": f"{ADDRESSES[0]}:29092"}
    patience = {"socket.connection.setup.timeout.ms": 3000, "message.timeout.ms": 9000}
    producer = Producer(rdkafka("reports-ui", acks="all") | at | patience)
    for number in range(12):
        producer.produce("reports", row(number, report="daily"), partition=number % 3)
    producer.flush(12)


def payments_svc() -> None:
    """Commits, aborts; a second instance with the same id comes and fences it. (librdkafka)"""

    def instance(number: int) -> Producer:
        conf = rdkafka(f"payments-svc-{number}", compression_type="lz4", linger_ms=20)
        return Producer(
            conf | {"transactional.id": "payments-tx", "transaction.timeout.ms": 60_000}
        )

    first = instance(1)
    first.init_transactions(15)
    for turn in range(3):
        first.begin_transaction()
        for number in range(8):
            first.produce("payments", row(8 * turn + number, amount=19.9), b"%d" % number)
        if turn == 1:
            first.flush(5)
            first.abort_transaction(15)
        else:
            first.commit_transaction(15)
    first.begin_transaction()
    first.produce("payments", row(900, amount=4.5), b"900")
    first.flush(5)
    time.sleep(1.0)  # "has it died?" thinks the scheduler, and starts another one
    second = instance(2)
    second.init_transactions(15)
    second.begin_transaction()
    second.produce("payments", row(901, amount=4.5), b"900")
    second.commit_transaction(15)
    try:
        first.produce("payments", row(902, amount=7.5), b"901")
        first.flush(5)
        first.commit_transaction(15)
    except KafkaException as fenced:
        said(fenced)


def ledger() -> None:
    """Reads what was committed, and waits where a transaction is open. (aiokafka)"""

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            "payments",
            bootstrap_servers=ALL,
            client_id="ledger",
            group_id="ledger",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=1000,
            session_timeout_ms=10_000,
        )
        await consumer.start()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if await consumer.getmany(timeout_ms=500):
                await consumer.commit()
        await consumer.stop()

    asyncio.run(run())


def checkout() -> None:
    """Gives up after a second and a half; the answer comes later. (librdkafka)"""
    # Broker 2 stands still meanwhile; it leads partition 1.
    fast = {"socket.timeout.ms": 1500, "request.timeout.ms": 1500, "message.timeout.ms": 8000}
    producer = Producer(rdkafka("checkout", acks="all", linger_ms=5) | fast)
    for number in range(20):
        producer.produce(
            "orders", row(number, cart=True), b"cart-%d" % number, partition=number % 3
        )
        producer.poll(0)
        time.sleep(0.5)
    producer.flush(8)


def invoicing() -> None:
    """Every codec there is, acknowledged in every way. (librdkafka)"""
    for codec, acks in (
        ("gzip", "all"),
        ("snappy", "1"),
        ("lz4", "all"),
        ("zstd", "all"),
        ("none", "0"),
    ):
        producer = Producer(rdkafka("invoicing", compression_type=codec, acks=acks, linger_ms=50))
        for number in range(30):
            value = row(number, customer=f"customer-{number % 7}", lines=["lamp"] * 6)
            producer.produce("invoices", value, b"customer-%d" % (number % 7))
        producer.flush(10)
        time.sleep(0.4)


def inventory_sync() -> None:
    """Written in the house: knows one broker for each partition and never asks again.

    No ApiVersions, no Metadata, Produce 3; tries again and again whatever the error is.
    """
    from kafkascope.dissectors.records.records import Record
    from kafkascope.dissectors.records.writer import encode_batch
    from kafkascope.dissectors.registry import encode_body

    leader, partition = ADDRESSES[2], 2
    name = b"inventory-sync"
    plug: socket.socket | None = None
    end = time.monotonic() + float(sys.argv[2])
    for correlation in range(1, 10_000):
        if time.monotonic() > end:
            break
        record = Record(
            offset=0,
            timestamp=int(time.time() * 1000),
            key=b"lamp-%d" % (correlation % 9),
            value=row(correlation, stock=correlation % 40),
            headers=(),
        )
        body = encode_body(
            "ProduceRequest",
            3,
            {
                "transactional_id": None,
                "acks": -1,
                "timeout_ms": 5000,
                "topic_data": [
                    {
                        "name": "inventory",
                        "partition_data": [{"index": partition, "records": encode_batch([record])}],
                    }
                ],
            },
        )
        head = struct.pack(">hhih", 0, 3, correlation, len(name)) + name
        try:
            if plug is None:
                plug = socket.create_connection((leader, 9092), 2)
            plug.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
            (size,) = struct.unpack(">i", plug.recv(4, socket.MSG_WAITALL))
            plug.recv(size, socket.MSG_WAITALL)
        except (OSError, struct.error) as error:
            said(error)
            if plug is not None:
                plug.close()
            plug = None
            time.sleep(0.4)
        time.sleep(0.12)


ACTORS: dict[str, Callable[[], None]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        clickstream,
        analytics,
        audit,
        image_svc,
        bulk_load,
        crm_sync,
        partner_feed,
        vendor_app,
        prometheus,
        healthcheck,
        reports_ui,
        payments_svc,
        ledger,
        checkout,
        invoicing,
        inventory_sync,
    )
}

if __name__ == "__main__":
    ACTORS[sys.argv[1]]()
