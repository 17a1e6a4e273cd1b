# mypy: ignore-errors
"""A client under test, its traffic, and what has to be true of it."""

import json
import os
import threading
from pathlib import Path

from confluent_kafka import Consumer, Producer

SCHEMA = Path(__file__).with_name("order.json")


def produce(bootstrap, topic="orders", count=3, **settings):
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop", **settings})
    failures = []
    for number in range(count):
        producer.produce(topic, f"order {number}", on_delivery=lambda e, _: failures.append(e))
    assert producer.flush(30) == 0
    return [failure for failure in failures if failure]


def consume(bootstrap, topic, count, group="billing"):
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values = []
    for _ in range(150):
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            values.append(message.value())
        if len(values) == count:
            break
    consumer.close()
    return values


def test_the_producer_waits_for_all_replicas(kafka_capture):
    assert produce(kafka_capture.bootstrap) == []
    kafka_capture.assert_request(api="Produce", client="shop", where="acks == -1")
    kafka_capture.assert_no_errors(allow=["UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"])
    kafka_capture.assert_versions(Produce=range(7, 14))


def sell(bootstrap, order):
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop"})
    producer.produce("orders", json.dumps(order))
    assert producer.flush(30) == 0


def test_no_order_is_free(kafka_capture):
    kafka_capture.use_schemas(topics={"orders": SCHEMA})
    sell(kafka_capture.bootstrap, {"number": 1, "amount": 3})
    kafka_capture.assert_records("topic == orders and record.value.amount > 0")
    kafka_capture.assert_records("topic == orders and not record.value.amount > 0", count=0)


def test_a_leader_that_moves_costs_no_record(kafka_proxy, kafka_bootstrap):
    proxy = kafka_proxy(kafka_bootstrap)
    rule = proxy.add_rule("api == Produce -> error NOT_LEADER_OR_FOLLOWER once")
    assert produce(proxy.bootstrap) == []
    assert [each["fired"] for each in proxy.rules() if each["name"] == rule] == [1]
    assert len(proxy.exchanges("api == Produce")) > 1


def test_nothing_is_delivered_before_the_broker_has_it(kafka_proxy, kafka_bootstrap):
    proxy = kafka_proxy(kafka_bootstrap)
    proxy.hold("api == Produce")
    failures = []
    writer = threading.Thread(target=lambda: failures.extend(produce(proxy.bootstrap, count=1)))
    writer.start()
    (held,) = proxy.held()
    assert held["api"] == "Produce"
    assert writer.is_alive()
    proxy.release()
    writer.join(30)
    assert not writer.is_alive()
    assert failures == []


def test_a_consumer_reads_what_was_captured(kafka_replay_broker):
    broker = kafka_replay_broker(os.environ["KAFKA_EXAMPLE_CAPTURE"])
    topic = os.environ["KAFKA_EXAMPLE_TOPIC"]
    assert len(consume(broker.bootstrap, topic, 6)) == 6
